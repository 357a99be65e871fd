//! The backup that a run made, as its status has it.

use crds::etcd_backup::BackupContent;

use crate::sanitize::clean;

/// The content of a backup in the lengths that the schema allows: etcd's version is the member's own word.
pub(super) fn cleaned(content: &BackupContent) -> BackupContent {
    BackupContent {
        location: clean(&content.location, 512),
        sha256: clean(&content.sha256, 64),
        member: clean(&content.member, 259),
        etcd_version: clean(&content.etcd_version, 64),
        ..content.clone()
    }
}

/// What was made: `etcd backed up from m2: 3.1 MiB at revision 1234`.
pub(super) fn sentence(content: &BackupContent) -> String {
    format!("etcd backed up from {}: {} at revision {}", content.member, size(content.size), content.revision)
}

/// A size as people read it, in units of 1024.
pub(super) fn size(bytes: i64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    // Exact enough below 2^53; only one digit behind the point is shown.
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1023.95 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS.get(unit).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_told_as_people_read_them() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (3_250_586, "3.1 MiB"),
            (1024 * 1024 - 1, "1.0 MiB"),
            (8_589_934_592, "8.0 GiB"),
            (i64::MAX, "8388608.0 TiB"),
        ] {
            assert_eq!(size(bytes), expected, "{bytes}");
        }
    }
}
