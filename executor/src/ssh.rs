//! How SSH gets to each host: one configuration a host, made from typed values, with its own known keys, so
//! that two hosts with the same address behind different bastions are never taken for each other. Nothing of
//! the user's own SSH set-up is read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fmt::Write as _, io};

use crds::host::HostKeyPolicy;
use crds::inputs::{CredentialKind, HostInputs, RunInputs, secret_key};
use serde_json::{Value, json};

use crate::guard::call::Root;
use crate::guard::identity;
use crate::secrets::{Secrets, without_newline};
use crate::workdir::Workdir;

/// The files for SSH, and the variables of the inventory that belong to them.
#[derive(Debug, Default, PartialEq)]
pub struct Ssh {
    /// Files by their path in the private directory.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// Connection variables by host.
    pub variables: BTreeMap<String, BTreeMap<String, Value>>,
    /// Hosts whose first key is believed, and the file that it comes to stand in.
    pub first_use: BTreeMap<String, PathBuf>,
    /// Bastions by name.
    pub bastions: BTreeMap<String, Bastion>,
    /// How ssh is called by hand for each host.
    pub routes: BTreeMap<String, Route>,
}

/// The way to a host, the same as Ansible's.
#[derive(Debug, PartialEq)]
pub struct Route {
    /// Its configuration.
    pub config: PathBuf,
    /// The socket of the connection.
    pub control: PathBuf,
    /// The file with its password, if that is its credential.
    pub password: Option<PathBuf>,
    /// How a command there comes to be root's.
    pub root: Root,
}

/// A machine to go through.
#[derive(Debug, Default, PartialEq)]
pub struct Bastion {
    /// Its address.
    pub address: String,
    /// Its configuration.
    pub config: PathBuf,
    /// The file with its password, if that is its credential.
    pub password: Option<PathBuf>,
    /// Bastions before it.
    pub depth: usize,
    /// Hosts behind it.
    pub hosts: BTreeSet<String>,
}

/// States the files and variables for a private directory at `root`; writes nothing.
pub fn plan(model: &RunInputs, secrets: &Secrets, root: &Path) -> Ssh {
    let mut ssh = Ssh::default();
    for (number, (name, host)) in model.hosts.iter().enumerate() {
        let config = ssh.place_host(name, host, name, secrets, root);
        // Not ssh's %C: that is the same for two hosts of one address behind different bastions.
        let control = root.join(format!("c/{number}"));
        let mut variables = BTreeMap::from([
            ("ansible_host".to_owned(), json!(host.address)),
            ("ansible_port".to_owned(), json!(host.port)),
            ("ansible_user".to_owned(), json!(host.user)),
            ("ansible_become".to_owned(), json!(host.use_sudo)),
            ("ansible_ssh_common_args".to_owned(), json!(format!("-F {}", config.display()))),
            ("ansible_control_path".to_owned(), json!(control.display().to_string())),
        ]);
        if host.credential_kind == CredentialKind::Password {
            variables.insert("ansible_password".to_owned(), json!(text(host, secrets)));
            variables.insert("ansible_ssh_password_mechanism".to_owned(), json!("sshpass"));
        }
        let become_password = secrets.get(&format!("become-password.{}", host.credential)).map(without_newline);
        if let Some(password) = become_password {
            let password = String::from_utf8_lossy(password).into_owned();
            variables.insert("ansible_become_password".to_owned(), json!(password));
        }
        let route = Route {
            config,
            control,
            password: ssh.place_password(host, secrets, root),
            root: match host.use_sudo && host.user != "root" {
                true => Root::Sudo(become_password.map(<[u8]>::to_vec)),
                false => Root::Already,
            },
        };
        ssh.routes.insert(name.clone(), route);
        if believes_the_first_key(host) {
            ssh.first_use.insert(name.clone(), root.join(known_hosts(name)));
        }
        ssh.variables.insert(name.clone(), variables);
    }
    ssh
}

/// The text of an ssh configuration.
struct Config(String);

impl Config {
    /// The options that every host has.
    fn new(name: &str, host: &HostInputs, root: &Path) -> Self {
        let mut config = Self(String::from("Host *\n"));
        config.line(&format!("HostName {}", host.address));
        config.line(&format!("Port {}", host.port));
        config.line(&format!("User {}", host.user));
        config.line(&format!("UserKnownHostsFile {}", root.join(known_hosts(name)).display()));
        config.line("GlobalKnownHostsFile none");
        config.line(match believes_the_first_key(host) {
            true => "StrictHostKeyChecking accept-new",
            false => "StrictHostKeyChecking yes",
        });
        config.line("UpdateHostKeys no");
        config.line("HashKnownHosts no");
        config.line("IdentityAgent none");
        config.line("IdentitiesOnly yes");
        config.line("ForwardAgent no");
        config.line("ConnectTimeout 15");
        // Only this is tried again: a connection that breaks later may have brought its command to the machine.
        config.line("ConnectionAttempts 2");
        config
    }

    fn line(&mut self, text: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "  {text}");
    }
}

impl Ssh {
    /// Writes the files.
    pub fn write(&self, workdir: &Workdir) -> io::Result<()> {
        self.files.iter().try_for_each(|(name, content)| workdir.write(name, content).map(drop))
    }

    /// Adds the files of a host (the target, or a bastion on the way to it), and those of its bastion; the
    /// answer is its configuration's path.
    fn place_host(&mut self, name: &str, host: &HostInputs, target: &str, secrets: &Secrets, root: &Path) -> PathBuf {
        let mut config = Config::new(name, host, root);
        match host.credential_kind {
            CredentialKind::SshKey => {
                let key = PathBuf::from("ssh/keys").join(&host.credential);
                config.line(&format!("IdentityFile {}", root.join(&key).display()));
                config.line("PasswordAuthentication no");
                config.line("KbdInteractiveAuthentication no");
                let content = secrets.get(&secret_key(host.credential_kind, &host.credential)).unwrap_or_default();
                self.files.insert(key, private_key(content));
            }
            CredentialKind::Password => {
                config.line("PubkeyAuthentication no");
                config.line("NumberOfPasswordPrompts 1");
            }
        }
        if name != target {
            // One connection for all hosts behind it; theirs are Ansible's to keep.
            config.line("ControlMaster auto");
            config.line(&format!("ControlPath {}", root.join("c").join(name).display()));
            config.line("ControlPersist 120s");
        }

        if let Some(bastion) = &host.bastion {
            let bastion = self.place_bastion(bastion, target, secrets, root);
            let ssh = format!("ssh -F {} -W [%h]:%p bastion", bastion.config.display());
            match &bastion.password {
                Some(file) => config.line(&format!("ProxyCommand sshpass -f {} {ssh}", file.display())),
                None => config.line(&format!("ProxyCommand {ssh}")),
            }
        }
        self.files.insert(known_hosts(name), known_keys(host).into_bytes());
        let path = PathBuf::from("ssh/config").join(name);
        self.files.insert(path.clone(), config.0.into_bytes());
        root.join(path)
    }

    /// The file with the host's password, if that is its credential.
    fn place_password(&mut self, host: &HostInputs, secrets: &Secrets, root: &Path) -> Option<PathBuf> {
        (host.credential_kind == CredentialKind::Password).then(|| {
            let file = PathBuf::from("ssh/passwords").join(&host.credential);
            self.files.insert(file.clone(), text(host, secrets).into_bytes());
            root.join(file)
        })
    }

    fn place_bastion(&mut self, host: &HostInputs, target: &str, secrets: &Secrets, root: &Path) -> &Bastion {
        let name = bastion_name(host);
        let config = self.place_host(&name, host, target, secrets, root);
        let password = self.place_password(host, secrets, root);
        let before = host.bastion.as_deref().map(bastion_name);
        let depth = before.and_then(|name| self.bastions.get(&name)).map_or(0, |bastion| bastion.depth + 1);
        let bastion = self.bastions.entry(name).or_default();
        bastion.hosts.insert(target.to_owned());
        (bastion.address, bastion.config, bastion.password, bastion.depth) =
            (host.address.clone(), config, password, depth);
        bastion
    }
}

/// A configuration by which ssh reaches nothing: a host that let nobody in, or that another run has, is not contacted
/// again.
pub fn block(route: &Route) -> io::Result<()> {
    std::fs::write(&route.config, "Host *\n  ControlPath none\n  ProxyCommand /bin/false\n")
}

/// One name for each bastion, by what it is: many hosts share it, and with it one connection.
fn bastion_name(bastion: &HostInputs) -> String {
    let text = serde_json::to_vec(bastion).unwrap_or_default();
    let digest = crate::inputs::hex_sha256(&text);
    // No host's name has a dot.
    format!("b.{}", digest.get(..12).unwrap_or_default())
}

fn known_hosts(name: &str) -> PathBuf {
    PathBuf::from("ssh/known_hosts").join(name)
}

/// Nobody has seen a key of this machine yet.
fn believes_the_first_key(host: &HostInputs) -> bool {
    host.host_key_policy == HostKeyPolicy::TrustOnFirstUse && host.host_keys.is_empty() && host.identity.is_none()
}

/// The lines of `known_hosts`, by the name under which ssh looks.
fn known_keys(host: &HostInputs) -> String {
    let name = if host.port == 22 { host.address.clone() } else { format!("[{}]:{}", host.address, host.port) };
    identity::believed(host).iter().map(|key| format!("{name} {key}\n")).collect()
}

/// The first key in a file of `known_hosts`, as `TYPE BASE64`.
pub fn first_key(known_hosts: &str) -> Option<String> {
    let mut words = known_hosts.lines().find(|line| !line.trim().is_empty())?.split_ascii_whitespace().skip(1);
    Some(format!("{} {}", words.next()?, words.next()?))
}

/// ssh refuses a key with a carriage return in it, or without its last newline, in words that nobody
/// understands.
fn private_key(content: &[u8]) -> Vec<u8> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let mut key: Vec<u8> = content.iter().copied().filter(|byte| *byte != b'\r').collect();
    if !key.ends_with(b"\n") {
        key.push(b'\n');
    }
    key
}

fn text(host: &HostInputs, secrets: &Secrets) -> String {
    let content = secrets.get(&secret_key(host.credential_kind, &host.credential)).unwrap_or_default();
    String::from_utf8_lossy(without_newline(content)).into_owned()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use serde_json::{Value, json};

    use super::{Ssh, first_key, plan};
    use crate::secrets::Secrets;

    fn host(change: Value) -> Value {
        let mut host = json!({"address": "10.0.0.1", "port": 22, "user": "root", "useSudo": false, "credential": "fleet",
            "credentialKind": "SshKey", "hostKeys": ["ssh-ed25519 AAAA"], "hostKeyPolicy": "Strict"});
        host.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        host
    }

    fn planned(host: Value) -> Ssh {
        let model = json!({"namespace": "n", "run": "r", "intent": "Join", "steps": ["node"], "hosts": {"w1": host}});
        let secrets: Secrets = [
            ("ssh-privatekey.fleet".to_owned(), b"line\r\nlast".to_vec()),
            ("password.pw".to_owned(), b"p'w\n".to_vec()),
            ("become-password.pw".to_owned(), b"sudo\n".to_vec()),
        ]
        .into_iter()
        .collect();
        plan(&serde_json::from_value(model).unwrap(), &secrets, Path::new("/p"))
    }

    fn file(ssh: &Ssh, name: &str) -> String {
        String::from_utf8(ssh.files[&PathBuf::from(name)].clone()).unwrap()
    }

    #[test]
    fn known_keys_stand_under_the_name_that_ssh_looks_for() {
        let check = |change: Value, expected: &str| {
            assert_eq!(file(&planned(host(change)), "ssh/known_hosts/w1"), expected);
        };
        check(json!({}), "10.0.0.1 ssh-ed25519 AAAA\n");
        check(json!({"port": 2222}), "[10.0.0.1]:2222 ssh-ed25519 AAAA\n");
        check(json!({"address": "2001:db8::1"}), "2001:db8::1 ssh-ed25519 AAAA\n");
        check(json!({"address": "2001:db8::1", "port": 23}), "[2001:db8::1]:23 ssh-ed25519 AAAA\n");
        check(json!({"hostKeys": ["ssh-rsa A", "ssh-ed25519 B c"]}), "10.0.0.1 ssh-rsa A\n10.0.0.1 ssh-ed25519 B c\n");
        check(json!({"hostKeys": []}), "");
    }

    #[test]
    fn only_a_host_without_pinned_keys_is_trusted_on_first_use() {
        let check = |change: Value, line: &str, first_use: bool| {
            let ssh = planned(host(change));
            assert!(file(&ssh, "ssh/config/w1").contains(line));
            assert_eq!(ssh.first_use.contains_key("w1"), first_use);
        };
        check(json!({}), "StrictHostKeyChecking yes\n", false);
        check(json!({"hostKeys": []}), "StrictHostKeyChecking yes\n", false);
        check(json!({"hostKeyPolicy": "TrustOnFirstUse"}), "StrictHostKeyChecking yes\n", false);
        check(json!({"hostKeyPolicy": "TrustOnFirstUse", "hostKeys": []}), "StrictHostKeyChecking accept-new\n", true);
    }

    #[test]
    fn a_key_is_a_file_and_a_password_a_variable() {
        let ssh = planned(host(json!({})));
        assert_eq!(file(&ssh, "ssh/keys/fleet"), "line\nlast\n");
        assert!(file(&ssh, "ssh/config/w1").contains("  IdentityFile /p/ssh/keys/fleet\n"));
        assert_eq!(
            json!(ssh.variables["w1"]),
            json!({"ansible_host": "10.0.0.1", "ansible_port": 22, "ansible_user": "root", "ansible_become": false,
                "ansible_ssh_common_args": "-F /p/ssh/config/w1", "ansible_control_path": "/p/c/0"})
        );
        let ssh = planned(host(json!({"credential": "pw", "credentialKind": "Password", "useSudo": true})));
        assert!(!ssh.files.keys().any(|name| name.starts_with("ssh/keys")));
        assert_eq!(ssh.variables["w1"]["ansible_password"], "p'w");
        assert_eq!(ssh.variables["w1"]["ansible_become_password"], "sudo");
        assert_eq!(ssh.variables["w1"]["ansible_become"], true);
    }

    #[test]
    fn a_bastion_has_its_own_keys_and_one_connection_for_all() {
        let bastion =
            host(json!({"address": "198.51.100.7", "port": 2222, "credential": "pw", "credentialKind": "Password",
            "hostKeys": ["ssh-rsa BBBB"]}));
        let ssh = planned(host(json!({"bastion": bastion})));
        let name = ssh.files.keys().find_map(|path| path.strip_prefix("ssh/config").ok()?.to_str()?.strip_prefix("b."));
        let name = format!("b.{}", name.unwrap());
        let proxy =
            format!("ProxyCommand sshpass -f /p/ssh/passwords/pw ssh -F /p/ssh/config/{name} -W [%h]:%p bastion\n");
        assert!(file(&ssh, "ssh/config/w1").contains(&proxy));
        assert_eq!(file(&ssh, "ssh/passwords/pw"), "p'w");
        assert_eq!(file(&ssh, &format!("ssh/known_hosts/{name}")), "[198.51.100.7]:2222 ssh-rsa BBBB\n");
        let config = file(&ssh, &format!("ssh/config/{name}"));
        for line in ["HostName 198.51.100.7", "Port 2222", &format!("ControlPath /p/c/{name}"), "ControlPersist 120s"] {
            assert!(config.contains(line), "{line} in {config}");
        }
    }

    #[test]
    fn the_key_seen_first_is_read_back() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(first_key(text).as_deref(), expected, "{text:?}");
        check("[10.0.0.1]:22 ssh-ed25519 AAAA\nother ssh-rsa B\n", Some("ssh-ed25519 AAAA"));
        check("", None);
        check("host\n", None);
    }
}
