//! A snapshot is encrypted and measured on threads of its own, while it is read and uploaded: one computes the digest
//! of what is read, one encrypts it and computes the digest of what comes out. Memory: some batches between them.

use bytes::Bytes;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::digest::{SnapshotCheck, Sum, Summing};
use crate::encryption::Encryption;

/// Bytes that are passed on at once: a thread is woken a few thousand times for a gigabyte, and not for each message.
const BATCH: usize = 512 << 10;
/// Batches that may wait for each thread, or for the upload.
const WAITING: usize = 4;

/// Messages that are passed on together.
type Batch = Vec<Bytes>;

/// Where a snapshot goes in. The threads end once this is dropped.
pub struct Intake {
    batch: Batch,
    /// Of the batch, in bytes.
    size: usize,
    to_check: Sender<Batch>,
    to_encryption: Sender<Batch>,
}

/// What the threads come to.
pub struct Sums {
    check: JoinHandle<SnapshotCheck>,
    encryption: JoinHandle<Result<Sum, String>>,
}

/// Starts the threads of one snapshot. What they sealed is received in order; that there is no more of it may also mean
/// that they failed, which [`Sums::finish`] says.
pub fn begin(encryption: Encryption) -> (Intake, Receiver<Bytes>, Sums) {
    let (to_check, checked) = channel(WAITING);
    let (to_encryption, encrypted) = channel(WAITING);
    let (to_upload, sealed) = channel(WAITING);
    let check = spawn_blocking(move || check(checked));
    let encryption = spawn_blocking(move || encrypt(encryption, encrypted, &to_upload));
    (Intake { batch: Batch::new(), size: 0, to_check, to_encryption }, sealed, Sums { check, encryption })
}

impl Intake {
    /// The next message; waits while the threads, or the upload, are slower than they come.
    pub async fn push(&mut self, message: Bytes) {
        self.size += message.len();
        self.batch.push(message);
        if self.size >= BATCH {
            self.pass_on().await;
        }
    }

    /// There are no more messages.
    pub async fn end(mut self) {
        self.pass_on().await;
    }

    /// A thread that has ended takes nothing more; why it has, it says itself.
    async fn pass_on(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        self.size = 0;
        if self.to_check.send(batch.clone()).await.is_ok() {
            let _ = self.to_encryption.send(batch).await;
        }
    }
}

impl Sums {
    /// The snapshot, which is still to be judged, and the sum of what was sealed.
    pub async fn finish(self) -> Result<(SnapshotCheck, Sum), String> {
        let sealed = self.encryption.await.map_err(|error| error.to_string())??;
        let check = self.check.await.map_err(|error| error.to_string())?;
        Ok((check, sealed))
    }
}

fn check(mut batches: Receiver<Batch>) -> SnapshotCheck {
    let mut check = SnapshotCheck::default();
    while let Some(batch) = batches.blocking_recv() {
        batch.iter().for_each(|message| check.update(message));
    }
    check
}

fn encrypt(mut encryption: Encryption, mut batches: Receiver<Batch>, sealed: &Sender<Bytes>) -> Result<Sum, String> {
    let mut sum = Summing::default();
    let mut pass_on = |bytes: Vec<u8>| {
        sum.update(&bytes);
        sealed.blocking_send(Bytes::from(bytes)).map_err(|_| "nobody takes what is encrypted".to_owned())
    };
    while let Some(batch) = batches.blocking_recv() {
        for message in batch {
            encryption.write(&message).map_err(|error| error.to_string())?;
        }
        pass_on(encryption.ready())?;
    }
    pass_on(encryption.finish().map_err(|error| error.to_string())?)?;
    Ok(sum.finish())
}
