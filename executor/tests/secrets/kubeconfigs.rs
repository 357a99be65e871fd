//! A kubeconfig that is read on a machine comes into the Secret of its run, and into nothing else.

use std::fs;

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::bench::{Bench, LOOK, Ran, Sshd};
use crate::status::Server;

/// What nobody may see.
const CANARY: &str = "Y2FuYXJ5IG9mIGFuIGFkbWluaXN0cmF0b3I";

/// As a Secret has it.
fn encoded(text: &str) -> Value {
    serde_json::to_value(ByteString(text.into())).unwrap()
}

struct Reader {
    bench: Bench,
    api: Server,
    sshd: Sshd,
}

impl Reader {
    fn new() -> Self {
        let bench = Bench::new();
        let files = ["admin.conf", "k3s.yaml"].map(|name| bench.path().join("machine").join(name));
        fs::create_dir(bench.path().join("machine")).unwrap();
        let playbook = format!(
            "
- hosts: all
  gather_facts: false
  tasks:
  - name: Read
    clusterwright.cluster.read_kubeconfig: {{files: {}}}
",
            json!(files)
        );
        bench.playbook("read-kubeconfig", &playbook);
        bench.playbook("probe/read-kubeconfig", LOOK);
        Self { bench, api: Server::start(), sshd: Sshd::start() }
    }

    /// The machine has this file.
    fn has(&self, name: &str, text: &str) {
        fs::write(self.bench.path().join("machine").join(name), text).unwrap();
    }

    fn run(&mut self, change: Value, args: &[&str]) -> Ran {
        let mut host = self.bench.host(&self.sshd);
        host.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        self.bench.inputs("Probe", &["read-kubeconfig"], json!({}), json!({ "m1": host }));
        let kubeconfig = self.bench.path().join("api");
        fs::write(&kubeconfig, self.api.kubeconfig()).unwrap();
        let mut command = self.bench.command(args);
        let output = command.env("KUBECONFIG", &kubeconfig).env_remove("KUBERNETES_SERVICE_HOST").output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        self.bench.ran(output.status.code(), text)
    }

    /// What was written into Secrets.
    fn secrets(&self) -> Vec<(String, Value)> {
        let requests = self.api.requests().into_iter().filter(|(first, _)| first.contains("/secrets/"));
        requests.map(|(first, body)| (first, serde_json::from_slice(&body).unwrap())).collect()
    }
}

fn unseen(reader: &Reader, ran: &Ran) {
    let mut seen = vec![ran.text.clone(), ran.result.to_string(), ran.message.to_string()];
    let others = reader.api.requests().into_iter().filter(|(first, _)| !first.contains("/secrets/"));
    seen.extend(others.map(|(_, body)| String::from_utf8_lossy(&body).into_owned()));
    for text in seen {
        assert!(!text.contains(CANARY) && !text.contains(encoded(CANARY).as_str().unwrap()), "{text}");
    }
}

#[test]
fn a_kubeconfig_that_is_read_is_in_the_secret_of_its_run_and_nowhere_else() {
    let mut reader = Reader::new();
    let file = format!("apiVersion: v1\nusers:\n- {{name: x, user: {{token: {CANARY}}}}}\n");
    reader.has("k3s.yaml", &file);
    let ran = reader.run(json!({}), &["--run", "n/r"]);
    assert_eq!(ran.code, 0, "{}", ran.text);
    let secrets = reader.secrets();
    assert_eq!(secrets.len(), 1, "{secrets:?}");
    let (first, body) = &secrets[0];
    assert!(first.starts_with("PATCH /api/v1/namespaces/n/secrets/r-kubeconfigs?"), "{first}");
    assert_eq!(*body, json!({ "data": { "m1": encoded(&file) } }));
    unseen(&reader, &ran);
    // The first of the files is the one that counts.
    reader.has("admin.conf", "kind: Config\n");
    assert_eq!(reader.run(json!({}), &["--run", "n/r"]).code, 0);
    assert_eq!(reader.secrets()[1].1["data"]["m1"], encoded("kind: Config\n"));
    reader.bench.assert_nothing_left();
}

#[test]
fn a_machine_without_one_whose_key_is_another_or_whose_file_is_too_large_is_said_and_nothing_is_written() {
    let mut reader = Reader::new();
    let reason = |ran: &Ran| ran.host("m1")["failure"]["reason"].as_str().unwrap_or_default().to_owned();
    let ran = reader.run(json!({}), &["--run", "n/r"]);
    assert_eq!((ran.code, reason(&ran).as_str()), (20, "KubeconfigNotFound"), "{}", ran.text);
    let message = ran.host("m1")["failure"]["message"].as_str().unwrap();
    assert!(message.contains("admin.conf") && message.contains("kubeConfigSecretName"), "{message}");
    reader.has("admin.conf", &CANARY.repeat(10_000));
    let ran = reader.run(json!({}), &["--run", "n/r"]);
    assert_eq!(reason(&ran), "KubeconfigRejected", "{}", ran.text);
    unseen(&reader, &ran);
    let other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJcxqLTtzqkmAhSLrOWaEv6tnLCfzpA54ZJZFoUR1tHe";
    let ran = reader.run(json!({ "hostKeys": [other] }), &["--run", "n/r"]);
    assert_eq!(reason(&ran), "HostKeyChanged", "{}", ran.text);
    let ran = reader.run(json!({}), &[]);
    assert_eq!(ran.code, 10, "by hand nothing takes it: {}", ran.text);
    assert!(reader.secrets().is_empty());
}
