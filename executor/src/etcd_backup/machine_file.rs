//! A file on a machine that is being written: a command over SSH reads it from its standard input. It is whole only
//! once the command has said so after the end of the stream; until then, ending the command leaves a part.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::program_output::last_line;
use crate::guard::call::RECEIVED;

/// How long a command that broke may take to say why.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// The file. Dropped before it was finished, its command is ended.
#[derive(Debug)]
pub(super) struct MachineFile {
    command: Child,
    stdin: ChildStdin,
    said: JoinHandle<String>,
    complaint: JoinHandle<String>,
}

impl MachineFile {
    /// Runs the command, and gives it what precedes the file: what sudo may ask for.
    pub(super) async fn open(words: &[String], before: &[u8]) -> io::Result<Self> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut command = command.kill_on_drop(true).spawn()?;
        let streams = (command.stdin.take(), command.stdout.take(), command.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let (said, complaint) = (tokio::spawn(last_line(stdout)), tokio::spawn(last_line(stderr)));
        let mut file = Self { command, stdin, said, complaint };
        if let Err(error) = file.stdin.write_all(before).await {
            return Err(file.explain(error).await);
        }
        Ok(file)
    }

    /// Where its bytes go.
    pub(super) fn bytes(&mut self) -> &mut ChildStdin {
        &mut self.stdin
    }

    /// Ends the stream, and waits until the machine has the file on its disk.
    pub(super) async fn finish(self) -> io::Result<()> {
        let Self { mut command, stdin, said, complaint } = self;
        drop(stdin);
        let said = said.await.unwrap_or_default();
        let complaint = complaint.await.unwrap_or_default();
        let status = command.wait().await?;
        if status.success() && said == RECEIVED {
            return Ok(());
        }
        Err(io::Error::other(if complaint.is_empty() { format!("it ended with {status}") } else { complaint }))
    }

    /// The error of a write, in the words of the command if it has some.
    pub(super) async fn explain(self, error: io::Error) -> io::Error {
        drop(self.stdin);
        match timeout(LAST_WORDS, self.complaint).await {
            Ok(Ok(complaint)) if !complaint.is_empty() => io::Error::other(complaint),
            _ => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::io::AsyncWriteExt;

    use super::MachineFile;

    fn words(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).into()
    }

    async fn written(script: &str, bytes: &[u8]) -> Result<(), String> {
        let mut file = MachineFile::open(&words(script), b"").await.map_err(|error| error.to_string())?;
        if let Err(error) = file.bytes().write_all(bytes).await {
            return Err(file.explain(error).await.to_string());
        }
        file.finish().await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_file_is_whole_only_if_the_machine_says_so_after_its_end() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file").display().to_string();
        let whole = format!("cat >{path} && echo clusterwright-received");
        let bytes = vec![7; 300_000];
        assert_eq!(written(&whole, &bytes).await, Ok(()));
        assert!(std::fs::read(&path).unwrap() == bytes);
        for (script, expected) in [
            ("cat >/dev/null", "it ended with exit status: 0"),
            ("cat >/dev/null; echo clusterwright-received; exit 1", "it ended with exit status: 1"),
            ("cat >/dev/null; echo No space left on device >&2; exit 1", "No space left on device"),
            ("echo first >&2; echo clusterwright-guard: refused: no >&2; exit 79", "clusterwright-guard: refused: no"),
        ] {
            assert_eq!(written(script, &bytes).await, Err(expected.to_owned()), "{script}");
        }
    }

    #[tokio::test]
    async fn a_file_that_is_given_up_is_never_said_to_be_whole() {
        let place = tempfile::tempdir().unwrap();
        let (part, whole) = (place.path().join("part"), place.path().join("whole"));
        let script = format!("cat >{}; sleep 0.2; touch {}", part.display(), whole.display());
        let mut file = MachineFile::open(&words(&format!("exec sh -c '{script}'")), b"").await.unwrap();
        file.bytes().write_all(b"half").await.unwrap();
        while !Path::new(&part).exists() {
            tokio::task::yield_now().await;
        }
        drop(file);
        tokio::time::sleep(std::time::Duration::from_millis(600)).await;
        assert!(!whole.exists());
    }
}
