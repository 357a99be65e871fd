//! What a backup holds, in one sentence.

use crds::etcd_backup::BackupContent;

use crate::message::count;
use crate::size::size;

/// What a backup holds.
pub(super) fn sentence(content: &BackupContent) -> String {
    format!(
        "{} of {} at revision {}, from {}: {}",
        size(content.size),
        count(usize::try_from(content.keys).unwrap_or_default(), "key"),
        content.revision,
        content.member,
        content.location
    )
}
