//! A storage that was opened: its objects, each access with its deadline and its errors explained.

mod listing;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crds::backup::{S3Inputs, StorageInputs};
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{Error, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use crate::credentials::Credentials;
use crate::error::{BackupError, StorageFailure};
use crate::location::Location;
use crate::storage_answer::{classify, is_not_implemented};
use crate::{directory, s3};

/// Everything but bulk data, with its repetitions.
const SHORT: Duration = Duration::from_secs(60);
/// A range of an object; a request of its own may take 300 s.
const LONG: Duration = Duration::from_secs(330);
/// The most that is read of an object at once.
const MAX_SMALL: u64 = 1 << 20;

/// A storage of backups. Clones share their connections.
#[derive(Clone)]
pub struct Store {
    objects: Arc<dyn ObjectStore>,
    /// Tries once.
    once: Arc<dyn ObjectStore>,
    directory: Option<PathBuf>,
    name: String,
}

/// How a write ended that must not replace anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It is there.
    Written,
    /// Something was there before.
    Exists,
    /// The storage does not know such writes.
    NotImplemented,
}

impl Store {
    /// Opens a storage. Of an S3 bucket nothing is asked yet; a directory is made where it is missing. Errors: it
    /// cannot be made, the credentials lack `accessKeyID` or `secretAccessKey`, the authorities are no PEM.
    pub async fn open(inputs: &StorageInputs, credentials: &Credentials) -> Result<Self, BackupError> {
        match inputs {
            StorageInputs::S3(inputs) => Self::open_bucket(inputs, credentials),
            StorageInputs::Directory(path) => Self::open_directory(PathBuf::from(path)).await,
        }
    }

    fn open_bucket(inputs: &S3Inputs, credentials: &Credentials) -> Result<Self, BackupError> {
        let name = format!("bucket {} at {}", inputs.bucket, inputs.endpoint);
        let failed = |(failure, answer)| failed(&name, "open it", failure, answer);
        let objects = s3::client(inputs, credentials).map_err(failed)?;
        let once = s3::client_without_retries(inputs, credentials).map_err(failed)?;
        if inputs.prefix.is_empty() {
            return Ok(Self { objects: Arc::new(objects), once: Arc::new(once), directory: None, name });
        }
        let prefix = Location::parse(&inputs.prefix)
            .map_err(|problem| failed((StorageFailure::Rejected, format!("its prefix is wrong: {problem}"))))?;
        let prefix = prefix.path().clone();
        let objects = Arc::new(PrefixStore::new(objects, prefix.clone()));
        let once = Arc::new(PrefixStore::new(once, prefix));
        Ok(Self { objects, once, directory: None, name })
    }

    async fn open_directory(path: PathBuf) -> Result<Self, BackupError> {
        let name = format!("directory {}", path.display());
        let opened = blocking(&name, "open it", path.clone(), directory::open).await?;
        Ok(Self { objects: Arc::new(opened.clone()), once: Arc::new(opened), directory: Some(path), name })
    }

    /// The bucket and its endpoint, or the directory: for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes that are free for new backups; none for a bucket, of which nobody knows.
    pub async fn free_space(&self) -> Result<Option<u64>, BackupError> {
        let Some(path) = self.directory.clone() else { return Ok(None) };
        blocking(&self.name, "read the free space", path, directory::free_space).await.map(Some)
    }

    /// An error of this storage.
    pub(crate) fn failed(&self, action: impl Into<String>, failure: StorageFailure, answer: String) -> BackupError {
        failed(&self.name, action, failure, answer)
    }

    /// An object of at most 1 MiB; none if it is not there.
    pub(crate) async fn get(&self, path: &Path) -> Result<Option<Bytes>, BackupError> {
        let action = format!("read {path}");
        let read = async {
            let found = self.objects.get(path).await?;
            if found.meta.size > MAX_SMALL {
                let problem = format!("it has {} bytes, more than {MAX_SMALL}", found.meta.size);
                return Err(Error::Generic { store: "backup", source: problem.into() });
            }
            found.bytes().await
        };
        self.present(&action, self.limited(SHORT, &action, read).await)
    }

    /// The size of an object; none if it is not there.
    pub(crate) async fn size(&self, path: &Path) -> Result<Option<u64>, BackupError> {
        let action = format!("find {path}");
        let size = self.limited(SHORT, &action, self.objects.head(path)).await.map(|found| found.map(|meta| meta.size));
        self.present(&action, size)
    }

    /// A range of an object, which has to be there.
    pub(crate) async fn range(&self, path: &Path, range: std::ops::Range<u64>) -> Result<Bytes, BackupError> {
        let action = format!("read {path}");
        let read = self.limited(LONG, &action, self.objects.get_range(path, range)).await?;
        read.map_err(|error| self.explained(&action, &error))
    }

    /// Writes an object, whatever was there before.
    pub(crate) async fn put(&self, path: &Path, bytes: Bytes) -> Result<(), BackupError> {
        let action = format!("write {path}");
        let written = self.limited(LONG, &action, self.objects.put(path, PutPayload::from(bytes))).await?;
        written.map(|_| ()).map_err(|error| self.explained(&action, &error))
    }

    /// Writes an object where there is none, in one attempt: after an error it may be there all the same.
    pub(crate) async fn create(&self, path: &Path, bytes: Bytes) -> Result<Created, BackupError> {
        let action = format!("write {path}");
        let options = PutOptions::from(PutMode::Create);
        match self.limited(SHORT, &action, self.once.put_opts(path, PutPayload::from(bytes), options)).await? {
            Ok(_) => Ok(Created::Written),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(Created::Exists),
            Err(error) if is_not_implemented(&error) => Ok(Created::NotImplemented),
            Err(error) => Err(self.explained(&action, &error)),
        }
    }

    /// Begins an object that is written in parts.
    pub(crate) async fn multipart(&self, path: &Path) -> Result<Box<dyn MultipartUpload>, BackupError> {
        let action = format!("begin {path}");
        let begun = self.limited(SHORT, &action, self.objects.put_multipart(path)).await?;
        begun.map_err(|error| self.explained(&action, &error))
    }

    /// Removes an object; one that is not there is removed already.
    pub(crate) async fn delete(&self, path: &Path) -> Result<(), BackupError> {
        let action = format!("delete {path}");
        let deleted = self.limited(SHORT, &action, self.objects.delete(path)).await;
        self.present(&action, deleted).map(|_| ())
    }

    /// What is left of a location in a directory after its objects were deleted.
    pub(crate) async fn delete_directory(&self, location: &Location) -> Result<(), BackupError> {
        let Some(root) = &self.directory else { return Ok(()) };
        let path = root.join(location.path().as_ref());
        blocking(&self.name, &format!("delete {location}"), path, directory::remove).await
    }

    /// An error of this storage, explained.
    pub(crate) fn explained(&self, action: &str, error: &Error) -> BackupError {
        let (failure, answer) = classify(error);
        self.failed(action, failure, answer)
    }

    /// What is there, or nothing where only the object is missing: a missing bucket or account is an error.
    fn present<T>(&self, action: &str, found: Result<Result<T, Error>, BackupError>) -> Result<Option<T>, BackupError> {
        match found? {
            Ok(found) => Ok(Some(found)),
            Err(error) => {
                let (failure, answer) = classify(&error);
                let other = [StorageFailure::BucketNotFound, StorageFailure::AccessDenied].contains(&failure);
                let missing = matches!(error, Error::NotFound { .. }) && !other;
                if missing { Ok(None) } else { Err(self.failed(action, failure, answer)) }
            }
        }
    }

    async fn limited<T>(
        &self,
        time: Duration,
        action: &str,
        access: impl Future<Output = T>,
    ) -> Result<T, BackupError> {
        tokio::time::timeout(time, access).await.map_err(|_| {
            self.failed(action, StorageFailure::Unreachable, format!("no answer within {} s", time.as_secs()))
        })
    }
}

/// Nothing but its name: the clients know the credentials.
impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.name)
    }
}

fn failed(storage: &str, action: impl Into<String>, failure: StorageFailure, answer: String) -> BackupError {
    BackupError::Storage { failure, action: action.into(), storage: storage.to_owned(), answer }
}

/// Something done to a path of a directory, beside the runtime: a volume's server may be away.
async fn blocking<T: Send + 'static>(
    storage: &str,
    action: &str,
    path: PathBuf,
    act: fn(&std::path::Path) -> std::io::Result<T>,
) -> Result<T, BackupError> {
    let task = tokio::task::spawn_blocking(move || act(&path));
    match tokio::time::timeout(SHORT, task).await {
        Ok(Ok(Ok(done))) => Ok(done),
        Ok(Ok(Err(error))) => {
            let (failure, answer) = classify(&Error::Generic { store: "directory", source: error.into() });
            Err(failed(storage, action, failure, answer))
        }
        Ok(Err(error)) => Err(failed(storage, action, StorageFailure::Failed, error.to_string())),
        Err(_) => {
            let answer = format!("no answer within {} s", SHORT.as_secs());
            Err(failed(storage, action, StorageFailure::Unreachable, answer))
        }
    }
}
