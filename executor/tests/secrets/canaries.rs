//! Secrets that can be found again, a run in which each is used, and where to look.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::bench::{Bench, Sshd};

/// Secrets that must not be seen. A piece of one is as bad.
pub struct Canaries {
    pub sudo_password: String,
    all: Vec<String>,
}

/// A run in which each secret is used, and all that it needs.
pub struct Seat {
    pub bench: Bench,
    pub canaries: Canaries,
    _sshd: Sshd,
}

/// A sudo that asks as the real one does, and writes down what it hears.
const SUDO: &str = r#"#!/bin/sh
prompt= heard=HEARD
while [ $# -gt 0 ]; do
    case $1 in
    -p) prompt=$2; shift ;;
    -u) shift ;;
    -*) ;;
    *) break ;;
    esac
    shift
done
printf '%s' "$prompt" >&2
IFS= read -r password
printf '%s\n' "$password" >>"$heard"
exec "$@"
"#;

/// Long enough to be seen in all its ways.
const WORK: &str = "
- hosts: all
  gather_facts: false
  tasks:
  - name: Work
    ansible.builtin.command: sleep 1.5
  - name: Copy the key
    ansible.builtin.copy: {src: '{{ secrets_dir }}/pki.ca.key', dest: '{{ out }}', mode: '0600'}
    no_log: true
";

/// Says everything that it knows, in one piece, cut where messages are cut, and in other letters.
const SAY: &str = "
  - name: Say too much
    ansible.builtin.debug: {msg: \"{{ lookup('file', secrets_dir ~ '/' ~ item) }} {{ 'x' * 4070 }}{{ lookup('file', secrets_dir ~ '/' ~ item) }}\"}
    loop: [pki.ca.key, join.w1.token, pki.encryption.key]
  - name: Run it, token {{ lookup('file', secrets_dir ~ '/join.w1.token') }}
    ansible.builtin.command: {argv: [echo, \"{{ lookup('file', secrets_dir ~ '/pki.ca.key') }}\"]}
    changed_when: false
  - name: Say the passwords
    ansible.builtin.debug: {msg: '{{ ansible_become_password }} {{ hostvars | to_json }}'}
  - name: Fail
    ansible.builtin.fail:
      msg: \"{{ 'x' * (4096 - 24) }}{{ lookup('file', secrets_dir ~ '/pki.encryption.key') }}\"
";

impl Seat {
    pub fn new(fails: bool) -> Self {
        let mut bench = Bench::new();
        let tools = bench.path().join("tools");
        fs::create_dir(&tools).unwrap();
        fs::create_dir(bench.path().join("home")).unwrap();
        let heard = bench.path().join("heard");
        let sudo = tools.join("sudo");
        fs::write(&sudo, SUDO.replace("HEARD", &heard.display().to_string())).unwrap();
        fs::set_permissions(&sudo, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("SetEnv PATH={}:/usr/bin:/bin:/usr/sbin:/sbin\n", tools.display());
        let sshd = Sshd::with(&path);

        let work = if fails { format!("{WORK}{SAY}") } else { WORK.to_owned() };
        bench.playbook("probe-host", &work);
        bench.playbook("probe/probe-host", WORK);
        // Everything that Ansible can say.
        let real = bench.program("ansible-playbook");
        let wrapper = tools.join("ansible-playbook");
        fs::write(&wrapper, format!("#!/bin/sh\nexec {} -vvvv \"$@\"\n", real.display())).unwrap();
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();

        // The user is root already: ask all the same.
        let config = bench.path().join("ansible/ansible.cfg");
        let mut text = fs::read_to_string(&config).unwrap();
        text.push_str("[privilege_escalation]\nbecome_allow_same_user = true\n");
        fs::write(&config, text).unwrap();

        let canaries = Canaries::make(&bench, &sshd);
        let mut key = bench.host(&sshd);
        key["useSudo"] = json!(true);
        let mut password = bench.host(&sshd);
        password["credential"] = json!("pw");
        password["credentialKind"] = json!("Password");
        let out = bench.path().join("out.key");
        // A Probe: it asks the guard and installs none on this machine.
        bench.inputs("Probe", &["probe-host"], json!({"out": out}), json!({"key": key, "password": password}));
        Self { bench, canaries, _sshd: sshd }
    }

    /// The surroundings of the executor.
    pub fn surround(&self, command: &mut Command) {
        let tools = self.bench.path().join("tools");
        let path = format!("{}:{}", tools.display(), self.bench.search_path());
        command.env("HOME", self.home()).env("PATH", path);
    }

    pub fn home(&self) -> PathBuf {
        self.bench.path().join("home")
    }

    /// The password that was typed for sudo.
    pub fn sudo_heard(&self) -> String {
        fs::read_to_string(self.bench.path().join("heard")).unwrap_or_default()
    }
}

impl Canaries {
    fn make(bench: &Bench, sshd: &Sshd) -> Self {
        let pem = |letters: &str| {
            let lines: String = (0..6).map(|n| format!("{}{n}\n", letters.repeat(21))).collect();
            format!("-----BEGIN PRIVATE KEY-----\n{lines}-----END PRIVATE KEY-----\n")
        };
        let files = [
            ("password.pw", "canary-of-ssh-Tr0ub4dor\n".to_owned()),
            ("become-password.fleet", "canary-of-sudo-\"Kr1stall'\\9\n".to_owned()),
            ("pki.ca.key", pem("cAk")),
            ("pki.front-proxy-ca.key", pem("fPk")),
            ("pki.etcd-ca.key", pem("eTk")),
            ("pki.sa.key", pem("sAk")),
            ("pki.encryption.key", "Y2FuYXJ5LW9mLWVuY3J5cHRpb24tYXQtcmVzdC1rZXk=".to_owned()),
            ("join.w1.token", "canary.0123456789fedcba".to_owned()),
        ];
        let mut all = Vec::new();
        for (name, content) in &files {
            bench.secret(name, content);
            all.extend(content.lines().filter(|line| !line.starts_with('-')).map(str::to_owned));
        }
        all.extend(sshd.client_key.lines().filter(|line| line.len() > 40 && !line.starts_with('-')).map(str::to_owned));
        Self { sudo_password: files[1].1.trim().to_owned(), all }
    }

    /// Where a piece of twelve letters of a secret is in the bytes.
    fn found<'a>(&'a self, bytes: &[u8]) -> Option<&'a str> {
        let pieces = self.all.iter().flat_map(|secret| {
            let last = secret.len().saturating_sub(12);
            // The beginning, the middle, the end.
            [0, last / 2, last].map(|start| &secret[start..(start + 12).min(secret.len())])
        });
        pieces.filter(|piece| !piece.is_empty()).find(|piece| contains(bytes, piece.as_bytes()))
    }

    pub fn assert_absent(&self, place: &str, bytes: &[u8]) {
        if let Some(piece) = self.found(bytes) {
            let text = String::from_utf8_lossy(bytes);
            let at = text.find(piece).unwrap_or_default();
            let from = text.floor_char_boundary(at.saturating_sub(200));
            let until = text.floor_char_boundary(at + 200);
            panic!("{piece:?} is in {place}: {}", &text[from..until]);
        }
    }

    /// Looks into every file below a directory.
    pub fn assert_absent_below(&self, directory: &Path) {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                self.assert_absent_below(&entry.path());
            } else if kind.is_file() {
                self.assert_absent(&entry.path().display().to_string(), &fs::read(entry.path()).unwrap());
            }
        }
    }

    /// Looks at the arguments and the environment of every process of this machine.
    pub fn look_at_processes(&self, seen: &mut BTreeSet<String>) {
        for process in fs::read_dir("/proc").unwrap().flatten() {
            for name in ["cmdline", "environ"] {
                let bytes = fs::read(process.path().join(name)).unwrap_or_default();
                if let Some(piece) = self.found(&bytes) {
                    let command = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
                    seen.insert(format!("{piece} in {name} of {}", command.trim()));
                }
            }
        }
    }
}

fn contains(bytes: &[u8], piece: &[u8]) -> bool {
    let first = piece[0];
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte == first) {
        if rest[at..].starts_with(piece) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

/// Soft and hard limit of the size of core dumps of a process and of those below it.
pub fn core_limit(pid: u32) -> Vec<String> {
    let mut limits = Vec::new();
    for line in fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default().lines() {
        if let Some(rest) = line.strip_prefix("Max core file size") {
            let words: Vec<_> = rest.split_whitespace().take(2).collect();
            limits.push(words.join(" "));
        }
    }
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    limits.extend(children.flat_map(core_limit));
    limits
}

/// Processes with a text in their arguments.
pub fn processes_with(text: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let with = processes.filter(|process| {
        let arguments = fs::read(process.path().join("cmdline")).unwrap_or_default();
        contains(&arguments, text.as_bytes())
    });
    with.map(|process| process.file_name().to_string_lossy().into_owned())
        .filter(|pid| pid.parse::<u32>().is_ok_and(|pid| pid != std::process::id()))
        .collect()
}
