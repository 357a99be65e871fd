//! An object read in ranges: a request that is cut off is repeated alone.

use bytes::Bytes;
use futures::{Stream, StreamExt};
use object_store::path::Path;

use crate::error::BackupError;
use crate::store::Store;

/// Each request reads so much.
const RANGE: u64 = 8 << 20;
/// Requests at the same time.
const AHEAD: usize = 2;

/// The bytes of an object of this size, in order. Memory: three ranges.
pub fn ranges<'a>(
    store: &'a Store,
    path: &'a Path,
    size: u64,
) -> impl Stream<Item = Result<Bytes, BackupError>> + Send + 'a {
    let starts = (0..size.div_ceil(RANGE)).map(|index| index * RANGE);
    let requests = starts.map(move |start| store.range(path, start..(start + RANGE).min(size)));
    futures::stream::iter(requests).buffered(AHEAD)
}
