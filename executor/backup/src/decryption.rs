//! An object of a backup, decrypted while it is read. Memory: the ranges that travel, and a chunk of 64 KiB.

use std::cell::Cell;
use std::io;

use age::{DecryptError, Decryptor};
use crds::backup::ObjectManifest;
use futures::io::{AsyncBufRead, AsyncReadExt};
use futures::{StreamExt, TryStreamExt};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::digest::Summing;
use crate::error::BackupError;
use crate::identities::Identities;
use crate::object_key::{ObjectKey, Recorder};
use crate::ranges::ranges;
use crate::source::Source;
use crate::text::sanitize;

/// Plain bytes that are passed on at once: a chunk of age.
const PIECE: usize = 64 << 10;

/// Why an object was not decrypted.
enum Failure {
    /// It was encrypted for others, or its header was changed.
    NotForUs,
    /// It is not what was stored.
    Corrupt(String),
    /// The storage, or whoever gets the bytes.
    Other(BackupError),
}

/// Passes the plain bytes of an object on, each piece after it was authenticated, and shows it to `seen`. Well only if
/// the whole object is what its manifest says, as it is stored; the digest of the plain bytes is the caller's to
/// compare. After an error some bytes may have been passed on.
pub async fn decrypt(
    source: &Source<'_>,
    object: &ObjectManifest,
    sink: &mut (impl AsyncWrite + Unpin),
    seen: impl FnMut(&[u8]),
) -> Result<(), BackupError> {
    let path = source.location.object(&object.name);
    let corrupt = |problem: String| source.corrupt(format!("{}: {problem}", object.name));
    let mut stored = Summing::default();
    let bytes = ranges(source.store, &path, object.size).inspect_ok(|bytes| stored.update(bytes));
    let mut input = bytes.map_err(io::Error::other).boxed().into_async_read();
    let passed = pass(&mut input, source.identities, object.plain_size, sink, seen).await;
    if let Err(Failure::NotForUs) = passed {
        // A header that was changed looks the same: the digest of all tells.
        futures::io::copy(&mut input, &mut futures::io::sink()).await.map_err(|error| own(error, corrupt))?;
    }
    drop(input);
    match passed {
        Err(Failure::Other(error)) => return Err(error),
        Err(Failure::Corrupt(problem)) => return Err(corrupt(problem)),
        Err(Failure::NotForUs) | Ok(()) => (),
    }
    let sum = stored.finish();
    if (sum.size, &sum.sha256) != (object.size, &object.sha256) {
        let problem = format!("its SHA-256 is {}, and its manifest says {}", sum.sha256, object.sha256);
        return Err(corrupt(problem));
    }
    passed.map_err(|_| not_for_us(source))
}

/// The key of an object, from its header. Well only if one of the identities unwraps it, and the header was not
/// changed.
pub async fn object_key(source: &Source<'_>, object: &ObjectManifest) -> Result<ObjectKey, BackupError> {
    let path = source.location.object(&object.name);
    let corrupt = |problem: String| source.corrupt(format!("{}: {problem}", object.name));
    let bytes = ranges(source.store, &path, object.size);
    let mut input = bytes.map_err(io::Error::other).boxed().into_async_read();
    let decryptor = Decryptor::new_async_buffered(&mut input).await.map_err(of_header);
    let found = decryptor.and_then(|decryptor| {
        let found = Cell::new(None);
        let recorders: Vec<Recorder<'_>> =
            source.identities.iter().map(|identity| Recorder { identity, found: &found }).collect();
        decryptor.decrypt_async(recorders.iter().map(|one| one as &dyn age::Identity)).map_err(of_header)?;
        Ok(found.get())
    });
    match found {
        Ok(Some(key)) => Ok(key),
        Err(Failure::Other(error)) => Err(error),
        Err(Failure::Corrupt(problem)) => Err(corrupt(problem)),
        Ok(None) | Err(Failure::NotForUs) => Err(not_for_us(source)),
    }
}

fn not_for_us(source: &Source<'_>) -> BackupError {
    BackupError::OtherRecipients {
        storage: source.store.name().to_owned(),
        location: source.location.to_string(),
        public_keys: source.identities.public_keys(),
    }
}

async fn pass(
    input: &mut (impl AsyncBufRead + Unpin),
    identities: &Identities,
    plain_size: u64,
    sink: &mut (impl AsyncWrite + Unpin),
    mut seen: impl FnMut(&[u8]),
) -> Result<(), Failure> {
    let decryptor = Decryptor::new_async_buffered(input).await.map_err(of_header)?;
    let mut reader = decryptor.decrypt_async(identities.iter()).map_err(of_header)?;
    let mut piece = vec![0; PIECE];
    let mut passed = 0;
    loop {
        let length = match reader.read(&mut piece).await {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) => return Err(of_chunk(error, passed)),
        };
        passed += length as u64;
        if passed > plain_size {
            return Err(Failure::Corrupt(format!("it holds more than the {plain_size} bytes that its manifest says")));
        }
        let piece = piece.get(..length).unwrap_or_default();
        sink.write_all(piece).await.map_err(|error| of_receiver(&error))?;
        seen(piece);
    }
    sink.flush().await.map_err(|error| of_receiver(&error))
}

fn of_header(error: DecryptError) -> Failure {
    match error {
        DecryptError::NoMatchingKeys => Failure::NotForUs,
        DecryptError::Io(error) => of_chunk(error, 0),
        other => Failure::Corrupt(format!("it cannot be decrypted: {}", sanitize(&other.to_string()))),
    }
}

fn of_chunk(error: io::Error, passed: u64) -> Failure {
    match error.downcast::<BackupError>() {
        Ok(error) => Failure::Other(error),
        Err(error) => {
            let problem = sanitize(&error.to_string());
            Failure::Corrupt(format!("it was changed or cut off after {passed} of its decrypted bytes: {problem}"))
        }
    }
}

fn of_receiver(error: &io::Error) -> Failure {
    Failure::Other(BackupError::Receiver { problem: error.to_string() })
}

/// The error of the storage that was wrapped for the reader.
fn own(error: io::Error, corrupt: impl FnOnce(String) -> BackupError) -> BackupError {
    error.downcast().unwrap_or_else(|error| corrupt(error.to_string()))
}
