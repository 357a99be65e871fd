//! ssh as Ansible starts it, by the name of its link; what it calls `ssh` here is a shell.

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;
    use std::process::{Command, Output};
    use std::time::{Duration, Instant};

    use executor::capped_ssh::{MARKER, NAME};

    /// The output of the link for a script that is run in place of ssh.
    fn ran(place: &Path, script: &str) -> Output {
        let path = format!("{}:{}", place.display(), std::env::var("PATH").unwrap());
        Command::new(place.join(NAME)).args(["-c", script]).env("PATH", path).output().unwrap()
    }

    #[test]
    fn a_command_that_floods_is_ended_and_the_code_of_another_is_its_own() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        symlink(env!("CARGO_BIN_EXE_executor"), place.join(NAME)).unwrap();
        let ssh = place.join("ssh");
        std::fs::write(&ssh, "#!/bin/sh\nexec sh \"$@\"\n").unwrap();
        std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();

        let code = |script: &str| ran(place, script).status.code();
        assert_eq!(code("exit 7"), Some(7));
        assert_eq!(code("kill -TERM $$"), Some(143));
        let output = ran(place, "echo said; echo complained >&2; exit 255");
        assert_eq!(
            (output.status.code(), output.stdout, output.stderr),
            (Some(255), b"said\n".to_vec(), b"complained\n".to_vec())
        );
        for (flood, limit) in [("cat /dev/zero", 4 << 20), ("cat /dev/zero >&2", 256 << 10)] {
            let output = ran(place, flood);
            let text = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(76));
            assert!(text.contains(MARKER));
            assert!(output.stdout.len() + output.stderr.len() < limit + 1024);
        }
        // A master in the background holds the pipes.
        let begun = Instant::now();
        assert_eq!(code("sleep 60 & exit 3"), Some(3));
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
