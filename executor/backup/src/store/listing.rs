//! The objects of a storage.

use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};

use super::{SHORT, Store};
use crate::error::BackupError;

/// A directory of the file system's own, which only root may read.
const LOST_AND_FOUND: &str = "lost+found";

impl Store {
    /// All objects below a directory of the storage, or below its prefix. Each page of the list has its deadline.
    pub(crate) async fn list(
        &self,
        below: Option<&Path>,
    ) -> Result<BoxStream<'static, Result<ObjectMeta, BackupError>>, BackupError> {
        let mut streams = Vec::new();
        if let (None, Some(_)) = (below, &self.directory) {
            // One by one, since a directory that may not be read ends a list.
            let top = self.limited(SHORT, "list it", self.objects.list_with_delimiter(None)).await?;
            let top = top.map_err(|error| self.explained("list it", &error))?;
            streams.push(futures::stream::iter(top.objects).map(Ok).boxed());
            for directory in top.common_prefixes.into_iter().filter(|path| path.as_ref() != LOST_AND_FOUND) {
                streams.push(self.objects.list(Some(&directory)));
            }
        } else {
            streams.push(self.objects.list(below));
        }
        let all = futures::stream::iter(streams).flatten().boxed();
        let store = self.clone();
        Ok(futures::stream::try_unfold((store, all), |(store, mut all)| async move {
            match store.limited(SHORT, "list it", async { all.try_next().await }).await? {
                Ok(next) => Ok(next.map(|meta| (meta, (store, all)))),
                Err(error) => Err(store.explained("list it", &error)),
            }
        })
        .boxed())
    }
}
