//! The archive of an etcd release: its programs, whatever directory they are in.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

/// What is taken out of it.
const PROGRAMS: [&str; 2] = ["etcd", "etcdutl"];

/// Puts the programs into a directory, beside the runtime. Errors: it is no archive, or lacks one of them.
pub(super) async fn unpack(archive: PathBuf, directory: PathBuf) -> Result<(), String> {
    let task = tokio::task::spawn_blocking(move || unpack_now(&archive, &directory));
    task.await.map_err(|error| error.to_string())?
}

fn unpack_now(archive: &Path, directory: &Path) -> Result<(), String> {
    let unreadable = |error: io::Error| format!("it cannot be unpacked: {error}");
    let file = File::open(archive).map_err(unreadable)?;
    let mut missing: BTreeSet<&str> = PROGRAMS.into();
    for entry in tar::Archive::new(GzDecoder::new(file)).entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        let path = entry.path().map_err(unreadable)?.into_owned();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !entry.header().entry_type().is_file() || !missing.remove(name) {
            continue;
        }
        // Its name is one of ours: it leads nowhere else.
        let mut options = OpenOptions::new();
        let target = directory.join(name);
        let mut program = options.write(true).create_new(true).mode(0o700).open(target).map_err(unreadable)?;
        io::copy(&mut entry, &mut program).map_err(unreadable)?;
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("it lacks {}", missing.into_iter().collect::<Vec<_>>().join(" and "))),
    }
}
