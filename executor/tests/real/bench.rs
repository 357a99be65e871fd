//! The test bench: a collection of their own with the real plugins, inputs, and an sshd of their
//! own.

#![allow(dead_code, reason = "each file of tests uses its own part of it")]

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A step, or a probe, that looks and changes nothing.
pub const LOOK: &str = "
- hosts: all
  gather_facts: false
  tasks:
  - name: Look
    ansible.builtin.command: 'true'
    changed_when: false
";

const PATIENCE: Duration = Duration::from_secs(60);

/// A collection, inputs, and a place in memory for the executor.
pub struct Bench {
    directory: TempDir,
    memory: TempDir,
    path: String,
}

/// The results of a run.
pub struct Ran {
    pub code: i32,
    /// Both outputs.
    pub text: String,
    /// The file of `--result`.
    pub result: Value,
    /// The termination message.
    pub message: Value,
}

impl Ran {
    pub fn host(&self, name: &str) -> &Value {
        let hosts = self.result["hosts"].as_array().unwrap();
        hosts.iter().find(|host| host["name"] == name).unwrap_or_else(|| panic!("no host {name}: {}", self.text))
    }
}

impl Bench {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("ansible");
        let collection = directory.path().join("ansible");
        let links = collection.join("ansible_collections/clusterwright/cluster");
        fs::create_dir_all(&links).unwrap();
        fs::create_dir_all(collection.join("playbooks/probe")).unwrap();
        fs::copy(source.join("ansible.cfg"), collection.join("ansible.cfg")).unwrap();
        for name in ["plugins", "meta"] {
            std::os::unix::fs::symlink(source.join(name), links.join(name)).unwrap();
        }
        for name in ["inputs/model", "inputs/secrets"] {
            fs::create_dir_all(directory.path().join(name)).unwrap();
        }
        // Short: sockets lie below it.
        let memory = tempfile::Builder::new().prefix("t").rand_bytes(4).tempdir_in("/dev/shm").unwrap();
        let path = format!("{}:{}", venv().join("bin").display(), env::var("PATH").unwrap());
        Self { directory, memory, path }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where the executor keeps its files in memory.
    pub fn memory(&self) -> &Path {
        self.memory.path()
    }

    /// Where the executor looks for programs.
    pub fn search_path(&self) -> &str {
        &self.path
    }

    /// A program of the virtual environment.
    pub fn program(&self, name: &str) -> PathBuf {
        venv().join("bin").join(name)
    }

    pub fn playbook(&self, name: &str, text: &str) {
        fs::write(self.path().join(format!("ansible/playbooks/{name}.yml")), text).unwrap();
    }

    pub fn secret(&self, name: &str, content: &str) {
        fs::write(self.path().join("inputs/secrets").join(name), content).unwrap();
    }

    /// The sshd as a host, with its key pinned and a credential that it takes.
    pub fn host(&mut self, sshd: &Sshd) -> Value {
        self.secret("ssh-privatekey.fleet", &sshd.client_key);
        json!({"address": "127.0.0.1", "port": sshd.port, "user": user(), "useSudo": false, "credential": "fleet",
            "credentialKind": "SshKey", "hostKeys": [sshd.host_key], "hostKeyPolicy": "Strict", "groups": ["kube_node"]})
    }

    pub fn inputs(&self, intent: &str, steps: &[&str], vars: Value, hosts: Value) {
        let model =
            json!({"namespace": "n", "run": "r", "intent": intent, "steps": steps, "vars": vars, "hosts": hosts});
        fs::write(self.path().join("inputs/model/inputs.json"), model.to_string()).unwrap();
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.command(args);
        let output = command.output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        self.ran(output.status.code(), text)
    }

    /// Runs until Ansible's output shows the text, then sends the signal.
    pub fn run_and_signal(&self, text: &str, signal: &str) -> Ran {
        let mut child = self.command(&["--verbose"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut seen = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while !seen.contains(text) {
            let line = lines.next().unwrap_or_else(|| panic!("it ended: {seen}")).unwrap();
            seen.push_str(&line);
            seen.push('\n');
        }
        // The task's process is to be there.
        std::thread::sleep(Duration::from_secs(3));
        let status = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert!(status.success());
        lines.for_each(|line| seen.push_str(&format!("{}\n", line.unwrap())));
        let code = child.wait().unwrap().code();
        self.ran(code, seen)
    }

    /// No process and no file of a run is there any more.
    pub fn assert_nothing_left(&self) {
        let files: Vec<_> = fs::read_dir(self.memory.path()).unwrap().flatten().map(|entry| entry.path()).collect();
        assert!(files.is_empty(), "{files:?}");
        let place = self.memory.path().display().to_string();
        let left = || -> Vec<String> {
            let commands = fs::read_dir("/proc").unwrap().flatten().map(|process| process.path().join("cmdline"));
            let texts = commands.filter_map(|file| fs::read(file).ok());
            texts
                .map(|text| String::from_utf8_lossy(&text).replace('\0', " "))
                .filter(|text| text.contains(&place))
                .collect()
        };
        wait(|| left().is_empty(), || format!("still there: {:?}", left()));
    }

    /// The executor's command, to be run in a way of the test's own.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_executor"));
        let ansible = self.path().join("ansible");
        command
            .arg("run")
            .arg("--inputs")
            .arg(self.path().join("inputs"))
            .arg("--result")
            .arg(self.path().join("result.json"))
            .arg("--termination-message")
            .arg(self.path().join("message"))
            .args(args)
            .env("PATH", &self.path)
            .env("TMPDIR", self.memory.path());
        if !args.contains(&"--ansible") {
            command.arg("--ansible").arg(ansible);
        }
        command
    }

    /// The results of a run of [`Bench::command`].
    pub fn ran(&self, code: Option<i32>, text: String) -> Ran {
        let read = |name: &str| {
            let file = self.path().join(name);
            let value = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or(Value::Null);
            let _ = fs::remove_file(file);
            value
        };
        let (result, message) = (read("result.json"), read("message"));
        Ran { code: code.unwrap_or(-1), text, result, message }
    }
}

/// An SSH server on a port of its own, for the user who runs the test.
pub struct Sshd {
    child: Child,
    pub port: u16,
    /// `TYPE BASE64`.
    pub host_key: String,
    /// A private key that it takes.
    pub client_key: String,
    directory: TempDir,
}

impl Sshd {
    pub fn start() -> Self {
        Self::with("")
    }

    /// With more lines of configuration.
    pub fn with(lines: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let (_, host_public) = new_key(path, "host");
        let (client_key, client_public) = new_key(path, "client");
        fs::write(path.join("authorized"), &client_public).unwrap();
        let port = free_port();
        // Where Debian's sshd drops its privileges; a machine without a running sshd has none.
        if user() == "root" {
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {0}/host\nAuthorizedKeysFile {0}/authorized\nStrictModes no\n\
             PidFile none\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication yes\nMaxStartups 100\nMaxAuthTries 20\n\
             LogLevel VERBOSE\n{lines}",
            path.display()
        );
        fs::write(path.join("config"), config).unwrap();
        let log = fs::File::create(path.join("log")).unwrap();
        let child = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f"])
            .arg(path.join("config"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("these tests need /usr/sbin/sshd (package openssh-server)");
        let sshd = Self { child, port, host_key: words(&host_public), client_key, directory };
        wait(|| TcpStream::connect(("127.0.0.1", port)).is_ok(), || "sshd does not listen".to_owned());
        sshd
    }

    /// Its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    /// Connections that there have been, but for the one that asked whether it listens.
    pub fn connections(&self) -> usize {
        // What asked whether it listens may be logged later.
        self.log().matches("Connection from").count().saturating_sub(1)
    }

    /// Connections that are open.
    pub fn sessions(&self) -> usize {
        let count = || {
            let processes = fs::read_dir("/proc").unwrap().flatten();
            let stats = processes.filter_map(|process| fs::read_to_string(process.path().join("stat")).ok());
            let parent = |stat: &str| stat.rsplit(") ").next()?.split(' ').nth(1)?.parse::<u32>().ok();
            let alive = |stat: &str| !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'));
            stats.filter(|stat| parent(stat) == Some(self.child.id()) && alive(stat)).count()
        };
        // A connection takes a moment to end.
        let begun = Instant::now();
        while count() > 0 && begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(50));
        }
        count()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A new key pair: the private key's text and the public one's.
pub fn new_key(directory: &Path, name: &str) -> (String, String) {
    let file = directory.join(name);
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&file).status().unwrap();
    assert!(made.success());
    let public = fs::read_to_string(file.with_extension("pub")).unwrap();
    (fs::read_to_string(&file).unwrap(), public)
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

fn words(public: &str) -> String {
    public.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

pub fn user() -> String {
    String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap().trim().to_owned()
}

fn venv() -> PathBuf {
    let venv = env::var_os("CLUSTERWRIGHT_ANSIBLE_VENV")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache/clusterwright/venv")))
        .unwrap();
    assert!(
        venv.join("bin/ansible-playbook").is_file(),
        "these tests need ansible-core 2.19 in {0}: python3 -m venv {0} && {0}/bin/pip install ansible-core==2.19.14, \
         or set CLUSTERWRIGHT_ANSIBLE_VENV",
        venv.display()
    );
    venv
}

pub fn wait(done: impl Fn() -> bool, problem: impl Fn() -> String) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{}", problem());
        std::thread::sleep(Duration::from_millis(50));
    }
}
