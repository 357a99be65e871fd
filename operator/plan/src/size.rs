//! Sizes for people.

use bytesize::ByteSize;

/// `812 KiB`, `3.1 MiB`.
pub fn size(bytes: i64) -> String {
    ByteSize::b(u64::try_from(bytes).unwrap_or_default()).display().iec().to_string()
}
