//! The test's own machine as one that a guard stands on: a directory of its own for the guard, and the log that it
//! keeps.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;

use guard::log_audit;
use serde_json::{Value, json};

use crate::bench::{Bench, Ran, Sshd, wait};

/// A machine, its sshd, and the bench that runs executors against it.
pub struct Machine {
    pub bench: Bench,
    pub sshd: Sshd,
    directory: PathBuf,
    kubeconfig: PathBuf,
}

impl Machine {
    pub fn new() -> Self {
        let bench = Bench::new();
        let directory = bench.path().join("machine/guard");
        Self { directory, kubeconfig: PathBuf::from("/nowhere"), sshd: Sshd::start(), bench }
    }

    /// Runs report to this API server.
    pub fn reports_to(&mut self, port: u16) {
        self.kubeconfig = self.bench.path().join("kubeconfig");
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
            "users": [{"name": "c", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]});
        fs::write(&self.kubeconfig, config.to_string()).unwrap();
    }

    /// Writes the inputs of a run on this machine, under the names given.
    pub fn inputs(&mut self, steps: &[&str], change: impl Fn(&mut Value), hosts: &[&str]) {
        let host = self.bench.host(&self.sshd);
        let hosts: serde_json::Map<_, _> = hosts.iter().map(|name| ((*name).to_owned(), host.clone())).collect();
        let mut model = json!({"namespace": "n", "run": "r", "clusterName": "c", "intent": "Custom", "steps": steps,
            "vars": {"place": self.bench.path()}, "hosts": hosts});
        change(&mut model);
        fs::write(self.bench.path().join("inputs/model/inputs.json"), model.to_string()).unwrap();
    }

    /// The command of a run with this token.
    pub fn command(&self, token: i64) -> Command {
        let mut command = self.bench.command(&["--run", "n/r", "--token", &token.to_string()]);
        command
            .arg("--guard")
            .arg(guard_program())
            .arg("--guard-directory")
            .arg(&self.directory)
            .env("KUBECONFIG", &self.kubeconfig)
            .env_remove("KUBERNETES_SERVICE_HOST");
        command
    }

    /// Runs to the end.
    pub fn run(&self, token: i64) -> Ran {
        let output = self.command(token).output().unwrap();
        self.bench.ran(output.status.code(), text(&output))
    }

    /// Starts a run that the test waits for by itself.
    pub fn start(&self, token: i64, to: &Path) -> Child {
        let log = fs::File::create(to).unwrap();
        let mut command = self.command(token);
        command.stdout(log.try_clone().unwrap()).stderr(log);
        command.spawn().unwrap()
    }

    /// Waits for a file of the playbook's.
    pub fn wait_for(&self, name: &str) {
        let file = self.bench.path().join(name);
        wait(|| file.exists(), || format!("{name} never came"));
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.bench.path().join(name)).unwrap_or_default()
    }

    /// The audit of the guard's log; it finds no violation.
    pub fn history(&self) -> log_audit::Report {
        let read = |name: &str| fs::read_to_string(self.directory.join(name)).unwrap_or_default();
        let report = log_audit::read(&read("log.1"), &read("log"));
        let violations: Vec<String> = report.violations.iter().map(ToString::to_string).collect();
        assert!(violations.is_empty(), "{violations:#?}\n{}", read("log"));
        report
    }
}

/// Both outputs.
pub fn text(output: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The guard: named by `CLUSTERWRIGHT_GUARD`, or built, once for all tests.
pub fn guard_program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(built).clone()
}

fn built() -> PathBuf {
    if let Some(named) = std::env::var_os("CLUSTERWRIGHT_GUARD") {
        return named.into();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hack/guard");
    let built = Command::new(script).output().unwrap();
    assert!(built.status.success(), "{}", text(&built));
    PathBuf::from(String::from_utf8_lossy(&built.stdout).trim())
}
