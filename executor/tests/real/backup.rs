//! A backup of a real etcd over a real SSH connection and through the guard, into a directory. etcd's programs are
//! found as those of `modules.rs`: in `CLUSTERWRIGHT_CACHE`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::bench::{Bench, free_port, wait};
use crate::machine::{Machine, text};
use crate::wire::Wire;

/// The role's tasks, but for the module that asks the member: the test's member is elsewhere.
const TAKE: &str = "
- hosts: etcd
  gather_facts: false
  tasks:
  - name: Reach the machine
    ansible.builtin.command: 'true'
    changed_when: false
  - name: Report
    ansible.builtin.set_fact:
      etcd_backup_candidate:
        clusterwright: {answers: true, isLeader: \"{{ inventory_hostname == 'm1' }}\", isLearner: false, isCorrupt: false,
                        appliedIndex: 7, clusterID: c}
  - name: Stream
    clusterwright.cluster.etcd_snapshot: {}
    register: etcd_backup_snapshot
    timeout: 0
";
const VERIFY: &str = "
- hosts: etcd
  gather_facts: false
  tasks:
  - name: Verify
    clusterwright.cluster.etcd_snapshot: {verify: true}
";
/// An authority, and one certificate for everybody.
const PKI: &str = "set -e; exec 2>/dev/null
openssl ecparam -name prime256v1 -genkey -noout -out ca.key; openssl ecparam -name prime256v1 -genkey -noout -out all.key
openssl req -x509 -new -key ca.key -subj /CN=ca -out ca.crt -addext keyUsage=critical,digitalSignature,keyCertSign
printf 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n' >extensions
openssl req -new -key all.key -subj /CN=all | \
openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -extfile extensions -out all.crt";
const RECIPIENT: &str = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";
/// More than the output of any other command may be.
const SIZE: usize = 6 << 20;

/// An etcd of one member with data in it.
pub struct Etcd {
    process: Child,
    place: PathBuf,
    address: String,
}

impl Etcd {
    fn start(place: &Path) -> Self {
        fs::create_dir(place).unwrap();
        let made = Command::new("sh").args(["-c", PKI]).current_dir(place).status().unwrap();
        assert!(made.success());
        let (address, peer) = (format!("127.0.0.1:{}", free_port()), format!("http://127.0.0.1:{}", free_port()));
        let url = format!("https://{address}");
        let process = program("etcd")
            .args(["--data-dir=data", "--log-level=error", "--client-cert-auth", "--trusted-ca-file=ca.crt"])
            .args(["--cert-file=all.crt", "--key-file=all.key"])
            .args([format!("--listen-client-urls={url}"), format!("--advertise-client-urls={url}")])
            .args([format!("--listen-peer-urls={peer}"), format!("--initial-advertise-peer-urls={peer}")])
            .arg(format!("--initial-cluster=default={peer}"))
            .current_dir(place)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let etcd = Self { process, place: place.to_owned(), address };
        wait(|| etcd.ctl("endpoint health"), || "etcd does not answer".to_owned());
        let random = "head -c 700000 /dev/urandom | base64 -w0 >value";
        for number in 0..SIZE / 900_000 {
            assert!(Command::new("sh").args(["-c", random]).current_dir(place).status().unwrap().success());
            assert!(etcd.ctl(&format!("put key{number} <value")));
        }
        etcd
    }

    fn ctl(&self, words: &str) -> bool {
        let tls = "--cacert=ca.crt --cert=all.crt --key=all.key";
        let line = format!("{}/etcdctl --endpoints=https://{} {tls} {words}", programs().display(), self.address);
        let quiet = Command::new("sh").args(["-c", &line]).current_dir(&self.place).output().unwrap();
        quiet.status.success()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn programs() -> PathBuf {
    let cache = std::env::var_os("CLUSTERWRIGHT_CACHE").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| Path::new(&std::env::var_os("HOME").unwrap()).join(".cache/clusterwright"));
    let versions = cache.join("programs/etcd");
    let mut found: Vec<_> = fs::read_dir(&versions)
        .unwrap_or_else(|_| panic!("{} is missing: run `lab build programs`", versions.display()))
        .map(|entry| entry.unwrap().path().join("bin"))
        .collect();
    found.sort();
    found.pop().unwrap()
}

fn program(name: &str) -> Command {
    Command::new(programs().join(name))
}

/// What a run reads etcd by, and a file of the bundle.
fn secrets(bench: &Bench, etcd: &Etcd) {
    for (name, file) in
        [("pki.etcd-ca.crt", "ca.crt"), ("etcd.backup-client.crt", "all.crt"), ("etcd.backup-client.key", "all.key")]
    {
        bench.secret(name, &fs::read_to_string(etcd.place.join(file)).unwrap());
    }
    bench.secret("bundle.cluster.yaml", "kind: ClusterDeployment\n");
}

/// A machine with an etcd, and the inputs of a run that backs it up; `m3` cannot be reached.
pub fn prepared(hosts: &[&str], change: impl Fn(&mut Value)) -> (Machine, Etcd) {
    let mut machine = Machine::new();
    let etcd = Etcd::start(&machine.bench.path().join("etcd"));
    machine.bench.playbook("backup-etcd", TAKE);
    machine.bench.playbook("probe/backup-etcd", VERIFY);
    secrets(&machine.bench, &etcd);
    inputs(&mut machine, hosts, change);
    (machine, etcd)
}

/// The inputs of the machine's next run.
pub fn inputs(machine: &mut Machine, hosts: &[&str], change: impl Fn(&mut Value)) {
    let storage = machine.bench.path().join("storage");
    let closed = free_port();
    machine.inputs(
        &["backup-etcd"],
        |model| {
            model["intent"] = json!("Backup");
            model["backup"] = json!({"storage": {"directory": storage}, "location": "c/u/1", "recipients": [RECIPIENT],
                "backup": "b", "cluster": "c", "clusterUid": "u"});
            for (name, host) in model["hosts"].as_object_mut().unwrap() {
                host["groups"] = json!(["etcd"]);
                if name == "m3" {
                    host["port"] = json!(closed);
                }
            }
            change(model);
        },
        hosts,
    );
}

pub fn command(machine: &Machine, etcd: &Etcd, token: i64) -> Command {
    let mut command = machine.command(token);
    command.args(["--etcd-address", &etcd.address]);
    command
}

pub fn run(machine: &Machine, etcd: &Etcd, token: i64) -> crate::bench::Ran {
    let output = command(machine, etcd, token).output().unwrap();
    machine.bench.ran(output.status.code(), text(&output))
}

fn stored(machine: &Machine) -> Vec<String> {
    stored_at(machine, "c/u/1")
}

/// Names of the files at a location of the storage.
pub fn stored_at(machine: &Machine, location: &str) -> Vec<String> {
    let files = fs::read_dir(machine.bench.path().join("storage").join(location)).into_iter().flatten().flatten();
    let mut names: Vec<_> = files.map(|file| file.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn etcd_is_backed_up_from_a_follower_although_one_machine_is_gone() {
    let (machine, etcd) = prepared(&["m1", "m2", "m3"], |_| ());
    let ran = run(&machine, &etcd, 1);
    assert_eq!(ran.code, 21, "{}", ran.text);
    assert_eq!(ran.host("m3")["failure"]["reason"], "Unreachable", "{}", ran.text);
    assert_eq!(ran.result["steps"][0]["phase"], "Succeeded", "{}", ran.text);
    let backup = &ran.result["backup"];
    assert_eq!((&backup["member"], &backup["location"]), (&json!("m2"), &json!("c/u/1")), "{}", ran.text);
    assert!(backup["size"].as_u64().unwrap() > 4 << 20, "{backup}");
    let message = ran.result["outcome"]["message"].as_str().unwrap();
    assert!(message.starts_with("etcd backed up from m2: ") && message.contains("m3: "), "{message}");
    assert_eq!(ran.result["progress"]["bytes"], backup["size"]);
    assert_eq!(stored(&machine), ["cluster.tar.age", "manifest.json", "snapshot.db.age"]);
    assert!(!ran.text.contains("ClusterDeployment"), "{}", ran.text);

    // The same place is never written twice, and what is there is not touched.
    let before = fs::read(machine.bench.path().join("storage/c/u/1/manifest.json")).unwrap();
    let ran = run(&machine, &etcd, 2);
    assert_eq!(ran.host("m2")["failure"]["reason"], "BackupExists", "{}", ran.text);
    assert_eq!(ran.result.get("backup"), None);
    assert_eq!(fs::read(machine.bench.path().join("storage/c/u/1/manifest.json")).unwrap(), before);
    machine.history();
    machine.bench.assert_nothing_left();
}

#[test]
fn a_backup_that_is_stopped_leaves_nothing_behind() {
    let (machine, etcd) = prepared(&["m1"], |model| model["backup"]["bytesPerSecond"] = json!(65536));
    let log = machine.bench.path().join("log");
    let mut command = command(&machine, &etcd, 1);
    let file = fs::File::create(&log).unwrap();
    let mut run = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    let said = || fs::read_to_string(&log).unwrap();
    wait(|| !stored(&machine).is_empty(), || format!("nothing was stored: {}", said()));
    std::thread::sleep(Duration::from_secs(1));
    let told = Command::new("kill").args(["-s", "TERM", &run.id().to_string()]).status().unwrap();
    assert!(told.success());
    let code = run.wait().unwrap().code();
    let ran = machine.bench.ran(code, said());
    assert_eq!(ran.result["outcome"]["phase"], "Canceled", "{}", ran.text);
    assert_eq!(ran.host("m1")["quiet"], true, "{}", ran.text);
    assert_eq!(ran.result.get("backup"), None);
    machine.bench.assert_nothing_left();
    wait(|| stored(&machine).is_empty(), || format!("left: {:?}", stored(&machine)));
    machine.history();
}

#[test]
fn a_backup_whose_machine_is_cut_off_for_some_seconds_goes_on_row_45() {
    let (mut machine, etcd) = prepared(&["m1"], |_| ());
    let wire = Wire::to(machine.sshd.port);
    inputs(&mut machine, &["m1"], |model| {
        model["backup"]["bytesPerSecond"] = json!(1 << 20);
        model["hosts"]["m1"]["port"] = json!(wire.port);
    });
    let log = machine.bench.path().join("log");
    let file = fs::File::create(&log).unwrap();
    let mut run = command(&machine, &etcd, 1).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    let said = || fs::read_to_string(&log).unwrap();
    wait(|| !stored(&machine).is_empty(), || format!("nothing was stored: {}", said()));
    for _ in 0..3 {
        wire.flaps(5);
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(run.try_wait().unwrap().is_none(), "it was over before: {}", said());
    let code = run.wait().unwrap().code();
    let ran = machine.bench.ran(code, said());
    assert_eq!(ran.code, 0, "{}", ran.text);
    assert_eq!(stored(&machine), ["cluster.tar.age", "manifest.json", "snapshot.db.age"]);
    machine.history();
}

#[test]
fn an_etcd_that_is_away_is_named_and_nothing_is_stored() {
    let (machine, etcd) = prepared(&["m1"], |_| ());
    let gone = Etcd { address: format!("127.0.0.1:{}", free_port()), process: idle(), place: etcd.place.clone() };
    let ran = run(&machine, &gone, 1);
    let failure = &ran.host("m1")["failure"];
    let message = failure["message"].as_str().unwrap_or_default();
    assert!(message.contains("guard: failed to connect to 127.0.0.1:"), "{message}\n{}", ran.text);
    assert_eq!(failure["reason"], "EtcdUnreachable", "{message}");
    assert_eq!(ran.result["outcome"]["retriable"], true);
    assert_eq!(stored(&machine), [""; 0]);
}

/// The inputs of a run without machines.
fn over_endpoints(etcd: &Etcd, change: impl Fn(&mut Value)) -> Bench {
    let bench = Bench::new();
    secrets(&bench, etcd);
    bench.inputs("Backup", &["backup-etcd"], json!({}), json!({}));
    let file = bench.path().join("inputs/model/inputs.json");
    let mut model: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    model["backup"] = json!({"storage": {"directory": bench.path().join("storage")}, "location": "_etcd/x/1",
        "recipients": [RECIPIENT], "backup": "b",
        "etcd": {"endpoints": [format!("https://{}", etcd.address)], "prefix": "/registry"}});
    change(&mut model);
    fs::write(file, model.to_string()).unwrap();
    bench
}

#[test]
fn an_etcd_is_backed_up_over_its_endpoints_without_a_machine_and_a_lock() {
    let place = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(&place.path().join("etcd"));
    assert!(etcd.ctl("put /registry/a b"));
    let bench = over_endpoints(&etcd, |_| ());
    let ran = bench.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.text);
    let backup = &ran.result["backup"];
    assert_eq!((&backup["member"], &backup["keys"]), (&json!(etcd.address), &json!(1)), "{}", ran.text);
    assert_eq!(ran.result["progress"]["bytes"], backup["size"], "{}", ran.text);
    assert_eq!((&ran.result["steps"][0]["phase"], &ran.result["hosts"]), (&json!("Succeeded"), &json!([])));
    let message = ran.message["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("etcd backed up from {}: ", etcd.address)), "{message}");
    assert!(bench.path().join("storage/_etcd/x/1/manifest.json").exists());
    bench.assert_nothing_left();

    let again = bench.run(&[]);
    assert_eq!((again.code, &again.message["reason"]), (20, &json!("BackupExists")), "{}", again.text);
    assert_eq!((&again.message["phase"], &again.message["retriable"]), (&json!("Failed"), &json!(false)));
    assert_eq!(again.result["steps"][0]["phase"], "Failed");

    let wrong = |change: fn(&mut Value), reason: &str, retriable: bool| {
        let bench = over_endpoints(&etcd, change);
        let ran = bench.run(&[]);
        assert_eq!(
            (&ran.message["reason"], &ran.message["retriable"]),
            (&json!(reason), &json!(retriable)),
            "{}",
            ran.text
        );
        assert!(!bench.path().join("storage/_etcd").exists(), "{reason}");
    };
    wrong(|model| model["backup"]["etcd"]["prefix"] = json!("/lab"), "EtcdPrefixEmpty", false);
    let closed = |model: &mut Value| {
        model["backup"]["etcd"]["endpoints"] = json!([format!("https://127.0.0.1:{}", free_port())]);
    };
    wrong(closed, "EtcdUnreachable", true);
    wrong(|model| model["backup"]["etcd"]["endpoints"] = json!([]), "InputsInvalid", false);
}

#[test]
fn a_backup_over_endpoints_that_is_stopped_leaves_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let etcd = Etcd::start(&place.path().join("etcd"));
    let slow = |model: &mut Value| {
        model["backup"]["bytesPerSecond"] = json!(65536);
        model["backup"]["etcd"]["prefix"] = Value::Null;
    };
    let bench = over_endpoints(&etcd, slow);
    let log = bench.path().join("log");
    let file = fs::File::create(&log).unwrap();
    let mut run = bench.command(&[]).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    let directory = bench.path().join("storage/_etcd/x/1");
    let stored = || fs::read_dir(&directory).is_ok_and(|mut files| files.next().is_some());
    wait(stored, || fs::read_to_string(&log).unwrap());
    assert!(Command::new("kill").args(["-s", "TERM", &run.id().to_string()]).status().unwrap().success());
    let code = run.wait().unwrap().code();
    let ran = bench.ran(code, fs::read_to_string(&log).unwrap());
    assert_eq!((ran.code, &ran.message["phase"]), (143, &json!("Canceled")), "{}", ran.text);
    assert_eq!(ran.result.get("backup"), None);
    wait(|| !stored(), || "something is left".to_owned());
}

#[test]
fn a_snapshot_that_is_spooled_comes_over_ssh_and_is_removed_from_the_machine() {
    let (machine, etcd) = prepared(&["m1"], |model| model["backup"]["spool"] = json!(true));
    let pki = machine.bench.path().join("pki");
    fs::create_dir(&pki).unwrap();
    let files = [("ca.crt", "ca.crt"), ("all.crt", "healthcheck-client.crt"), ("all.key", "healthcheck-client.key")];
    for (from, to) in files {
        fs::copy(etcd.place.join(from), pki.join(to)).unwrap();
    }
    let spool = machine.bench.path().join("spool");
    // Left by an attempt that was killed.
    fs::create_dir(&spool).unwrap();
    fs::write(spool.join("snapshot.db"), "half").unwrap();
    let mut command = command(&machine, &etcd, 1);
    command.arg("--etcd-pki-directory").arg(&pki).arg("--spool-directory").arg(&spool);
    let output = command.arg("--etcdctl").arg(programs().join("etcdctl")).output().unwrap();
    let ran = machine.bench.ran(output.status.code(), text(&output));
    assert_eq!(ran.code, 0, "{}", ran.text);
    assert_eq!(ran.result["backup"]["member"], "m1", "{}", ran.text);
    assert_eq!(stored(&machine), ["cluster.tar.age", "manifest.json", "snapshot.db.age"]);
    assert!(!spool.exists(), "the snapshot is left on the machine");
    machine.history();
    machine.bench.assert_nothing_left();
}

fn idle() -> Child {
    Command::new("true").spawn().unwrap()
}
