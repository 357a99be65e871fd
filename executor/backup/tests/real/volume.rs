//! A small file system, as a volume of it is: of so many MiB, in memory, until this is dropped.

use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Volume(PathBuf);

impl Volume {
    /// Mounts it at a directory, which is made. Only root can.
    pub fn mount(path: &Path, mib: usize) -> Self {
        std::fs::create_dir_all(path).unwrap();
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "clusterwright"]).arg(path));
        Self(path.to_owned())
    }

    pub fn read_only(&self) {
        run(Command::new("mount").args(["-o", "remount,ro"]).arg(&self.0));
    }

    pub fn writable(&self) {
        run(Command::new("mount").args(["-o", "remount,rw"]).arg(&self.0));
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Whoever has files in it may have ended a moment ago.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
