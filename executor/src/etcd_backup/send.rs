//! Streams the snapshot of a backup from its storage into a file on a machine.

use backup::{BackupError, Source, fetch};
use crds::Reason;
use crds::backup::StagingInputs;

use super::answer::Answer;
use super::events::Events;
use super::inspect::opened;
use super::machine_file::MachineFile;
use super::staging_settings::Sending;
use crate::guard::call::head;
use crate::secrets::{Secrets, without_newline};

/// Sends it. The machine has the file whole only if this succeeds: the stream's end is sent after every check has
/// passed, and before it the command is ended.
pub(super) async fn send(
    inputs: &StagingInputs,
    secrets: &Secrets,
    host: &str,
    sending: &Sending,
) -> Result<u64, Answer> {
    let (store, identities) = opened(inputs, secrets).await?;
    let source = Source::open(&store, &inputs.location, &identities).await?;
    let password = sending.sudo_password.as_ref().map(|name| secrets.get(name).unwrap_or_default());
    let head = head(password.map(without_newline));
    let broke = |error: std::io::Error| {
        let message = format!("failed to write the snapshot on {host}: {error}");
        Answer::refused(Reason::StagingFailed, message)
    };
    let mut file = MachineFile::open(&sending.words, &head).await.map_err(broke)?;
    let events = Events::of_this_run();
    let mut sent = 0;
    let progress = |bytes| {
        sent = bytes;
        events.staging_progress(host, bytes);
    };
    match fetch(&source, file.bytes(), progress).await {
        Ok(()) => file.finish().await.map_err(broke)?,
        Err(BackupError::Receiver { problem }) => {
            return Err(broke(file.explain(std::io::Error::other(problem)).await));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(sent)
}
