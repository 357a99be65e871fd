//! A backup of a real etcd that is brought back over a real SSH connection and through the guard.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use age::secrecy::ExposeSecret;
use age::x25519::Identity;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::backup::{self, prepared};
use crate::bench::{Ran, Sshd, wait};
use crate::machine::{Machine, text};
use crate::wire::Wire;

/// Calls the program as the action of Ansible does: beside the FIFO of events, with an input that does not end.
const CALL: &str = "
- hosts: etcd
  gather_facts: false
  vars:
    call: 'd=$(dirname $CLUSTERWRIGHT_EVENTS); f={{ place }}/open-$$; mkfifo $f; $d/etcd-backup VERB <>$f >{{ place }}/said 2>&1; echo $?'
  tasks:
  - name: Make the directory
    ansible.builtin.command: mkdir -p {{ place }}/data/restore-k3x9a0b1
    changed_when: false
  - name: Call
    ansible.builtin.set_fact:
      code: \"{{ lookup('pipe', call) }}\"
  - name: Say
    ansible.builtin.fail:
      msg: \"{{ lookup('file', place ~ '/said') }}\"
    when: code != '0'
";
const AGREED: &str = r#"report "{\"currentRevision\":99,\"bump\":1000000000,\"clusterID\":\"c0ffee\"}""#;
const KEYS: &str = r#"{"encryption.key": "aHVudGVyMmh1bnRlcjI="}"#;

fn key(identity: &Identity) -> String {
    identity.to_string().expose_secret().to_owned()
}

/// A machine with a backup of its etcd, whose next run stages it with this identity.
pub fn backed_up(identity: &Identity, sshd: Option<Sshd>) -> Machine {
    let public = identity.to_public().to_string();
    let (mut machine, etcd) = prepared(&["m1"], |model| model["backup"]["recipients"] = json!([public]));
    machine.bench.secret("bundle.pki.json", &format!(r#"{{"kind": "Secret", "data": {KEYS}}}"#));
    let ran = backup::run(&machine, &etcd, 1);
    assert_eq!(ran.code, 0, "{}", ran.text);
    if let Some(sshd) = sshd {
        machine.sshd = sshd;
    }
    machine.bench.secret("restore.identity", &format!("# created: today\n{}\n", key(identity)));
    machine.bench.secret("restore.pki.json", KEYS);
    machine.bench.playbook("stage-backup", &CALL.replace("VERB", "send m1"));
    machine.bench.playbook("probe/stage-backup", &CALL.replace("VERB", AGREED));
    inputs(&mut machine, |_| ());
    machine
}

fn inputs(machine: &mut Machine, change: impl Fn(&mut Value)) {
    let storage = machine.bench.path().join("storage");
    let staging = json!({"storage": {"directory": storage}, "location": "c/u/1", "id": "k3x9a0b1", "restore": "r",
        "cluster": "c"});
    machine.inputs(
        &["stage-backup"],
        |model| {
            (model["intent"], model["staging"]) = (json!("Stage"), staging.clone());
            model["hosts"]["m1"]["groups"] = json!(["etcd"]);
            change(model);
        },
        &["m1"],
    );
}

pub fn command(machine: &Machine, token: i64) -> Command {
    let mut command = machine.command(token);
    command.arg("--etcd-data-directory").arg(machine.bench.path().join("data"));
    command
}

pub fn run(machine: &Machine, token: i64) -> Ran {
    let output = command(machine, token).output().unwrap();
    machine.bench.ran(output.status.code(), text(&output))
}

/// The files of the restore on the machine.
pub fn files(machine: &Machine) -> Vec<PathBuf> {
    let entries = fs::read_dir(machine.bench.path().join("data/restore-k3x9a0b1"));
    entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[test]
fn a_backup_comes_to_the_machine_as_etcd_sent_it_and_is_reported() {
    let identity = Identity::generate();
    let machine = backed_up(&identity, None);
    let ran = run(&machine, 2);
    assert_eq!(ran.code, 0, "{}", ran.text);
    let manifest = fs::read(machine.bench.path().join("storage/c/u/1/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let files = files(&machine);
    let [file] = files.as_slice() else { panic!("{files:?}") };
    assert!(file.ends_with("snapshot.db.part"), "{}", file.display());
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let sha256: String = Sha256::digest(fs::read(file).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(manifest["snapshot"]["plainSha256"], sha256);
    let staged = &ran.result["staged"];
    assert_eq!((&staged["sha256"], &staged["size"]), (&json!(sha256), &manifest["snapshot"]["plainSize"]));
    assert_eq!((&staged["currentRevision"], &staged["clusterID"]), (&json!(99), &json!("c0ffee")));
    assert_eq!(ran.result["progress"]["bytes"], staged["size"]);
    let message = ran.result["outcome"]["message"].as_str().unwrap();
    assert!(message.starts_with("backup c/u/1 staged on 1 host: "), "{message}");
    assert!(!ran.text.contains(&key(&identity)), "{}", ran.text);

    // Another attempt replaces what the one before left.
    let ran = run(&machine, 3);
    assert_eq!(ran.code, 0, "{}", ran.text);
    machine.history();
    machine.bench.assert_nothing_left();
}

#[test]
fn a_staging_whose_machine_is_cut_off_for_some_seconds_goes_on_row_45() {
    let mut machine = backed_up(&Identity::generate(), None);
    let wire = Wire::to(machine.sshd.port);
    inputs(&mut machine, |model| model["hosts"]["m1"]["port"] = json!(wire.port));
    let log = machine.bench.path().join("log");
    let file = fs::File::create(&log).unwrap();
    let mut run = command(&machine, 2).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    for _ in 0..4 {
        std::thread::sleep(Duration::from_secs(1));
        wire.flaps(4);
    }
    let code = run.wait().unwrap().code();
    let ran = machine.bench.ran(code, fs::read_to_string(&log).unwrap());
    assert_eq!((ran.code, files(&machine).len()), (0, 1), "{}", ran.text);
    machine.history();
}

#[test]
fn a_backup_that_may_not_be_restored_is_not_sent_and_says_why() {
    let identity = Identity::generate();
    let mut machine = backed_up(&identity, None);
    let stranger = Identity::generate();
    let refused = |machine: &Machine, token: i64, parts: &[&str]| {
        let ran = run(machine, token);
        let message = ran.host("m1")["failure"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}\n{}", ran.text);
        assert_eq!((ran.result.get("staged"), files(machine)), (None, Vec::new()), "{}", ran.text);
        for secret in [key(&identity), key(&stranger), "aHVudGVyMmh1bnRlcjI".to_owned(), "hunter2".to_owned()] {
            assert!(!ran.text.contains(&secret), "{}", ran.text);
        }
    };
    machine.bench.secret("restore.identity", &key(&stranger));
    refused(&machine, 2, &["IdentityDoesNotMatch"]);
    machine.bench.secret("restore.identity", &identity.to_public().to_string());
    refused(&machine, 3, &["IdentityInvalid", "line 1 is a recipient"]);
    machine.bench.secret("restore.identity", &key(&identity));

    machine.bench.playbook("stage-backup", &CALL.replace("VERB", "inspect"));
    machine.bench.secret("restore.pki.json", r#"{"encryption.key": "b3RoZXJvdGhlcm90aGVy", "other.key": "QQ=="}"#);
    refused(&machine, 4, &["BackupOfOtherCluster", "other content in encryption.key; nothing of other.key"]);
    machine.bench.secret("restore.pki.json", KEYS);
    inputs(&mut machine, |model| model["staging"]["cluster"] = json!("paris"));
    refused(&machine, 5, &["BackupOfOtherCluster", "is of cluster c, and cluster paris"]);
    inputs(&mut machine, |_| ());
    let snapshot = machine.bench.path().join("storage/c/u/1/snapshot.db.age");
    let whole = fs::read(&snapshot).unwrap();
    fs::write(&snapshot, &whole[..whole.len() - 1]).unwrap();
    refused(&machine, 6, &["BackupCorrupt", "snapshot.db.age has"]);

    // What is only seen in the middle of the stream leaves a part, and is a failure.
    let mut changed = whole;
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    fs::write(&snapshot, changed).unwrap();
    machine.bench.playbook("stage-backup", &CALL.replace("VERB", "send m1"));
    let ran = run(&machine, 7);
    let message = ran.host("m1")["failure"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("BackupCorrupt") && ran.result.get("staged").is_none(), "{message}\n{}", ran.text);
    assert!(files(&machine).iter().all(|file| file.ends_with("snapshot.db.part")), "{:?}", files(&machine));
    machine.history();
    machine.bench.assert_nothing_left();
}

/// A `cat` that stops after the beginning of a snapshot.
const SLOW: &str = r#"#!/bin/sh
case $(readlink /proc/$$/fd/1) in
*.part) head -c 100000; sleep 300 ;;
*) exec /bin/cat "$@" ;;
esac
"#;

#[test]
fn staging_that_is_stopped_in_the_middle_leaves_a_part_and_a_quiet_machine() {
    let identity = Identity::generate();
    // The machine takes the beginning, and then nothing for a long time. What the login shell's own files do with `cat`
    // goes on as ever.
    let slow = tempfile::tempdir().unwrap();
    let cat = slow.path().join("cat");
    fs::write(&cat, SLOW).unwrap();
    fs::set_permissions(&cat, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("SetEnv PATH={}:/usr/sbin:/usr/bin:/sbin:/bin\n", slow.path().display());
    let machine = backed_up(&identity, Some(Sshd::with(&path)));
    let log = machine.bench.path().join("log");
    let output = fs::File::create(&log).unwrap();
    let mut run = command(&machine, 2).stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap();
    let said = || fs::read_to_string(&log).unwrap();
    let sizes = || files(&machine).iter().map(|file| file.metadata().map_or(0, |file| file.len())).sum::<u64>();
    wait(|| sizes() > 0, || format!("nothing was sent: {}", said()));
    let told = Command::new("kill").args(["-s", "TERM", &run.id().to_string()]).status().unwrap();
    assert!(told.success());
    let code = run.wait().unwrap().code();
    let ran = machine.bench.ran(code, said());
    assert_eq!(ran.result["outcome"]["phase"], "Canceled", "{}", ran.text);
    assert_eq!((&ran.host("m1")["quiet"], ran.result.get("staged")), (&json!(true), None), "{}", ran.text);
    let left = files(&machine);
    assert!(left.len() == 1 && left[0].ends_with("snapshot.db.part"), "{left:?}");
    machine.bench.assert_nothing_left();
    machine.history();
}
