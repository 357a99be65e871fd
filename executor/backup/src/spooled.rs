//! A snapshot that its machine wrote to its disk first.

use std::io;

use bytes::Bytes;
use futures::Stream;
use tokio::io::AsyncReadExt;

use crate::error::{BackupError, EtcdFailure};
use crate::member::Member;
use crate::take::SpooledSnapshot;
use crate::text::chain;

/// What a machine's complaint begins with that has no room for the snapshot.
pub const SPOOL_FULL: &str = "clusterwright-spool-full: ";
/// As much as is read at once, in bytes: as etcd sends it.
const PIECE: usize = 32 << 10;

/// A member that nothing is read from over a connection of its own any more.
pub struct Spooled {
    member: String,
    url: String,
}

impl Member {
    /// Ends the connection: its machine runs one command of a run at a time, and the next one writes the snapshot.
    pub fn hang_up(self) -> Spooled {
        Spooled { member: self.name().to_owned(), url: self.url().to_owned() }
    }
}

impl Spooled {
    /// The bytes of a snapshot that the member's machine sends from its disk. An error ends it: in the machine's words.
    pub fn snapshot(
        self,
        opened: io::Result<SpooledSnapshot>,
    ) -> impl Stream<Item = Result<Bytes, BackupError>> + Send {
        futures::stream::try_unfold((Some(opened), None, self), async |(opened, mut file, spooled)| {
            if let Some(opened) = opened {
                file = Some(opened.map_err(|error| spooled.failed(&error))?);
            }
            let Some(mut file) = file else { return Ok(None) };
            let mut piece = vec![0; PIECE];
            let read = file.read(&mut piece).await.map_err(|error| spooled.failed(&error))?;
            piece.truncate(read);
            Ok((read > 0).then(|| (Bytes::from(piece), (None, Some(file), spooled))))
        })
    }

    fn failed(&self, error: &io::Error) -> BackupError {
        let said = chain(error);
        let (failure, action, answer) = match said.strip_prefix(SPOOL_FULL) {
            Some(figures) => (EtcdFailure::NoRoom, "write the snapshot to the disk", figures.to_owned()),
            None => (EtcdFailure::Interrupted, "read the snapshot", said),
        };
        BackupError::Etcd { failure, action, member: self.member.clone(), url: self.url.clone(), answer }
    }
}
