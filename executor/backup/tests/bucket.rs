//! Backups in a bucket: a server of the test's own holds the names of its objects.

#[cfg(test)]
#[path = "bucket/removal.rs"]
mod removal;
