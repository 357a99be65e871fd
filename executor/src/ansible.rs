//! Starts Ansible's programs with an environment of their own: nothing of ours is inherited but PATH, and
//! nothing secret stands in it or in the arguments.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::capped_ssh;
use crate::ssh::{Bastion, Route};
use crate::workdir::Workdir;

/// Where Ansible and the collection are.
#[derive(Clone, Debug)]
pub struct Ansible {
    /// The collection: ansible.cfg, playbooks, roles, plugins.
    pub directory: PathBuf,
    /// The PATH of its processes.
    pub path: String,
    /// Settings of `ansible-playbook` for this run beside those of ansible.cfg, by the name of their variable.
    pub settings: Vec<(&'static str, &'static str)>,
}

impl Ansible {
    /// `ansible-playbook` for a playbook; its events go to one FIFO, and at the other it waits before each
    /// step.
    pub fn playbook(
        &self,
        workdir: &Workdir,
        inventory: &Path,
        playbook: &Path,
        events: &Path,
        gate: &Path,
    ) -> Command {
        let mut command = self.command("ansible-playbook", workdir);
        command
            .arg("--inventory")
            .arg(inventory)
            .arg(playbook)
            .env("CLUSTERWRIGHT_EVENTS", events)
            .env("CLUSTERWRIGHT_GATE", gate)
            .env("ANSIBLE_SSH_EXECUTABLE", workdir.path().join(capped_ssh::NAME))
            .envs(self.settings.iter().copied());
        command
    }

    /// `ansible-inventory --list --export`: the inventory as Ansible reads it, each variable where it stands (merged
    /// into every host, large ones would be repeated 500 times).
    pub fn inventory(&self, workdir: &Workdir, inventory: &Path) -> Command {
        let mut command = self.command("ansible-inventory", workdir);
        command.arg("--inventory").arg(inventory).args(["--list", "--export"]);
        command
    }

    /// Opens the connection to a bastion that its hosts share, and goes to the background; ssh's words go to
    /// the log.
    pub fn bastion(&self, workdir: &Workdir, bastion: &Bastion, log: &Path) -> Command {
        let mut command = self.ssh_with(workdir, bastion.password.as_deref());
        command.arg("-F").arg(&bastion.config).arg("-E").arg(log).args(["-N", "-f", "bastion"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// `ssh` to a host for one command; the connection stays for Ansible. The options are those of ansible.cfg.
    pub fn ssh(&self, workdir: &Workdir, route: &Route, remote: &str) -> Command {
        let mut command = self.ssh_with(workdir, route.password.as_deref());
        command.arg("-F").arg(&route.config).args(["-T", "-o"]);
        command.arg(format!("ControlPath={}", route.control.display()));
        for option in [
            "ControlMaster=auto",
            "ControlPersist=30m",
            "ServerAliveInterval=10",
            "ServerAliveCountMax=3",
            "PreferredAuthentications=publickey,password",
        ] {
            command.args(["-o", option]);
        }
        // The configuration says which host that is.
        command.args(["host", remote]);
        command.stdin(Stdio::piped());
        command
    }

    /// `ssh -O exit` for a master's socket.
    pub fn end_master(&self, workdir: &Workdir, socket: &Path) -> Command {
        let mut command = self.command("ssh", workdir);
        command.args(["-F", "none", "-O", "exit", "-o"]).arg(format!("ControlPath={}", socket.display())).arg("master");
        command
    }

    /// `ssh`, which gets its password from a file if there is one.
    fn ssh_with(&self, workdir: &Workdir, password: Option<&Path>) -> Command {
        let Some(file) = password else {
            return self.command("ssh", workdir);
        };
        let mut command = self.command("sshpass", workdir);
        command.arg("-f").arg(file).arg("ssh");
        command
    }

    fn command(&self, program: &str, workdir: &Workdir) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", workdir.path().join("home"))
            .env("TMPDIR", workdir.path().join("tmp"))
            .env("LC_ALL", "C.UTF-8")
            .env("ANSIBLE_CONFIG", self.directory.join("ansible.cfg"))
            .env("ANSIBLE_NOCOLOR", "1")
            .env("PYTHONUNBUFFERED", "1")
            .current_dir(workdir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// The collection's directory as an absolute path, if it looks like one and can stand in a playbook.
pub fn directory(path: &Path) -> io::Result<PathBuf> {
    let path = path.canonicalize()?;
    let problem = if path.to_str().is_none_or(|text| text.contains(['{', '}', '\n'])) {
        "its path has characters that mean something to Ansible"
    } else if !path.join("ansible.cfg").is_file() {
        "it has no ansible.cfg"
    } else {
        return Ok(path);
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
}
