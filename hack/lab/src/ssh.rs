//! SSH to the lab's machines: keys made before the first start, host keys pinned, every wait with a total deadline.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::command::{Invocation, Output, run};
use crate::place::{Place, write};

/// A machine as SSH sees it.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where sshd listens.
    pub address: IpAddr,
    /// The private key that opens it.
    pub key: PathBuf,
    /// A known_hosts file with the machine's own key and no other.
    pub known_hosts: PathBuf,
}

impl Target {
    /// Runs a command as root and gives what it left; `deadline` covers connecting too.
    pub fn run(&self, command: &str, deadline: Duration) -> Result<Output> {
        self.invocation(command).within(deadline).output()
    }

    /// Runs a command as root that must succeed and gives its standard output.
    pub fn succeed(&self, command: &str, deadline: Duration) -> Result<String> {
        let output = self.run(command, deadline)?;
        if !output.ok() {
            bail!("{command:?} on {} failed with {}: {}", self.address, output.code, output.stderr.trim());
        }
        Ok(output.stdout)
    }

    /// The ssh program with everything but standard input and a deadline.
    pub fn invocation(&self, command: &str) -> Invocation {
        Invocation::new("ssh").args(self.arguments()).args(["--", command])
    }

    /// The arguments of ssh up to the command.
    pub fn arguments(&self) -> Vec<String> {
        let mut args: Vec<String> = vec!["-i".into(), self.key.display().to_string()];
        for option in [
            "BatchMode=yes",
            "ConnectTimeout=5",
            "IdentitiesOnly=yes",
            "LogLevel=ERROR",
            "ServerAliveInterval=5",
            "ServerAliveCountMax=3",
            "StrictHostKeyChecking=yes",
        ] {
            args.extend(["-o".into(), option.into()]);
        }
        args.extend(["-o".into(), format!("UserKnownHostsFile={}", self.known_hosts.display())]);
        args.push(format!("root@{}", self.address));
        args
    }

    /// Waits until a command can be run.
    pub fn wait(&self, deadline: Duration) -> Result<()> {
        let until = Instant::now() + deadline;
        let socket = SocketAddr::new(self.address, 22);
        let mut last = String::from("nothing listens on port 22");
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            // A bare connect costs nothing, so it may be tried often; ssh itself is only started when it can work.
            if TcpStream::connect_timeout(&socket, left.min(Duration::from_secs(1))).is_ok() {
                match self.run("true", left) {
                    Ok(output) if output.ok() => return Ok(()),
                    Ok(output) => last = output.stderr.trim().to_owned(),
                    Err(error) => last = error.to_string(),
                }
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("{} does not answer SSH within {} s: {last}", self.address, deadline.as_secs())
    }
}

/// Makes the key that opens every machine, once, and gives its public part.
pub fn ensure_user_key(place: &Place) -> Result<String> {
    ensure_key(&place.ssh_key(), "lab")
}

/// Makes an ed25519 key at `path` unless it is there, and gives its public part.
pub fn ensure_key(path: &Path, comment: &str) -> Result<String> {
    if !public_path(path).exists() {
        write(path, "")?;
        fs::remove_file(path).with_context(|| format!("failed to replace {}", path.display()))?;
        let file = path.display().to_string();
        run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", file.as_str()])
            .with_context(|| format!("failed to make the SSH key {file}"))?;
    }
    public_key(path)
}

/// The public part of the key at `path`: kind, key and comment.
pub fn public_key(path: &Path) -> Result<String> {
    let public = public_path(path);
    let text = fs::read_to_string(&public).with_context(|| format!("failed to read {}", public.display()))?;
    Ok(text.trim().to_owned())
}

fn public_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.pub"))
}

/// The kind and the key of a public key, without its comment.
pub fn without_comment(public_key: &str) -> String {
    public_key.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pinned_key_is_accepted() {
        let target = Target {
            address: "172.30.0.10".parse().unwrap(),
            key: "/lab/ssh/id_ed25519".into(),
            known_hosts: "/lab/machines/a/known_hosts".into(),
        };
        let args = target.arguments().join(" ");
        assert!(args.contains("StrictHostKeyChecking=yes"), "{args}");
        assert!(args.contains("UserKnownHostsFile=/lab/machines/a/known_hosts"), "{args}");
        assert!(args.ends_with("root@172.30.0.10"), "{args}");
    }

    #[test]
    fn a_public_key_is_pinned_without_its_comment() {
        assert_eq!(without_comment("ssh-ed25519 AAAA someone@somewhere\n"), "ssh-ed25519 AAAA");
    }

    #[test]
    fn waiting_ends_at_its_deadline() {
        let target =
            Target { address: "127.0.0.254".parse().unwrap(), key: "/none".into(), known_hosts: "/none".into() };
        let started = Instant::now();
        assert!(target.wait(Duration::from_millis(100)).is_err());
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}
