//! Names that follow from a restore.

use crds::{EtcdRestore, ObjectExt};

use crate::naming::short_hash;

/// The longest name of an EtcdBackup.
const NAME: usize = 50;
/// What the backup's name ends with.
const SUFFIX: &str = "-before";
/// Of the restore's name in it, where the whole is too long.
const SHORT: usize = 36;

/// Characters of the UID that name its directories on the machines.
const ID: usize = 8;

/// That of the backup of what is there.
pub fn safety_name(restore: &EtcdRestore) -> String {
    let name = restore.name();
    if name.len() + SUFFIX.len() <= NAME {
        return format!("{name}{SUFFIX}");
    }
    let short: String = name.chars().take(SHORT).collect();
    format!("{short}-{}{SUFFIX}", short_hash(&[name], 6))
}

/// Names the directories of a restore on the machines.
pub fn id_of(restore: &EtcdRestore) -> String {
    id_of_uid(restore.uid())
}

/// The same, of the restore of this UID.
pub(crate) fn id_of_uid(uid: &str) -> String {
    uid.chars().filter(char::is_ascii_alphanumeric).take(ID).collect()
}
