//! Nothing executes that was only data: what people write into objects, and what machines answer, through the real
//! executor, the real ansible-core and a real sshd on this machine. The rows are those of the list of bad inputs.

#[cfg(test)]
#[path = "hostile/answers.rs"]
mod answers;
#[cfg(test)]
#[path = "real/bench.rs"]
mod bench;
#[cfg(test)]
#[path = "hostile/collection.rs"]
mod collection;
#[cfg(test)]
#[path = "hostile/literals.rs"]
mod literals;
#[cfg(test)]
#[path = "hostile/machine.rs"]
mod machine;
#[cfg(test)]
#[path = "hostile/payloads.rs"]
mod payloads;
#[cfg(test)]
#[path = "hostile/rendered.rs"]
mod rendered;
#[cfg(test)]
#[path = "hostile/watched.rs"]
mod watched;

use std::fs;

use bench::{Bench, LOOK, Sshd};
use literals::assert_arrives;
use proptest::strategy::{Strategy, ValueTree};
use serde_json::{Value, json};

/// The canary: a file that something makes which should not have run.
fn canary(bench: &Bench) -> std::path::PathBuf {
    bench.path().join("canary")
}

#[test]
fn a_value_arrives_as_the_literal_that_it_was_rows_17_and_19() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    collection::complete(&bench);
    bench.playbook("prepare", literals::WRITE);
    bench.playbook("probe/prepare", LOOK);
    let texts = payloads::texts(&canary(&bench));
    let mut values = payloads::values(&texts[0]);
    values.extend(payloads::values("!!python/object/apply:os.system ['id']"));
    values.extend(texts.iter().map(|text| json!({ text: [text] })));
    assert_arrives(&mut bench, &sshd, &texts, &values);

    // And whatever else can be written: many values in a run, since Ansible's start takes longer than they do.
    let mut runner = literals::runner();
    for _ in 0..2 {
        let values: Vec<Value> =
            (0..250).map(|_| payloads::any_value().new_tree(&mut runner).unwrap().current()).collect();
        let texts: Vec<String> = values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        assert_arrives(&mut bench, &sshd, &texts, &values);
    }
    assert!(!canary(&bench).exists(), "something ran");
}

#[test]
fn what_the_roles_make_of_a_users_text_holds_it_as_it_is_rows_17_and_29() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    collection::complete(&bench);
    bench.playbook("prepare", &rendered::playbook(&collection::roles().display().to_string()));
    bench.playbook("probe/prepare", LOOK);
    bench.secret("join.w1.token", "abcdef.0123456789abcdef");
    let touch = format!("touch {}", canary(&bench).display());
    let out = bench.path().join("out");
    for text in [
        format!("{{{{ lookup('pipe','{touch}') }}}} $({touch}) `{touch}` !!python &a *a ${{IFS}}"),
        format!("{{% for x in [1] %}}{{{{ query('pipe','{touch}') }}}}{{% endfor %}} ../../etc/x \\ \" '"),
    ] {
        let (mut vars, host_vars) = rendered::variables(&text);
        vars["out"] = json!(out);
        let mut host = bench.host(&sshd);
        host["vars"] = host_vars;
        bench.inputs("Custom", &["prepare"], vars, json!({"w1": host}));
        let ran = bench.run(&[]);
        assert_eq!(ran.code, 0, "{}", ran.text);
        let written: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
        rendered::assert_literal(&written, &text);
    }
    assert!(!canary(&bench).exists(), "something ran");
}

#[test]
fn what_would_change_its_meaning_is_refused_before_anything_starts_rows_12_18_19_22_and_25() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    bench.playbook("prepare", LOOK);
    bench.playbook("probe/prepare", LOOK);
    let touch = format!("touch {}", canary(&bench).display());
    let good = bench.host(&sshd);
    let refused = |vars: Value, hosts: Value, reason: &str, field: &str, gist: &str| {
        bench.inputs("Custom", &["prepare"], vars, hosts);
        let ran = bench.run(&[]);
        let outcome = &ran.result["outcome"];
        let message = outcome["message"].as_str().unwrap_or_default();
        assert_eq!((ran.code, outcome["reason"].as_str()), (10, Some(reason)), "{}", ran.text);
        assert!(message.contains(field), "{message:?} does not name {field:?}");
        assert!(message.contains(gist), "{message:?} does not say {gist:?}");
        assert!(message.chars().count() <= 1024 && !message.chars().any(char::is_control), "{message:?}");
        assert_eq!(ran.message["reason"], reason);
    };
    let proxy = format!("-oProxyCommand={touch}");
    for name in [
        "n[1:200000]",
        "all",
        "localhost",
        "ungrouped",
        "etcd",
        "*",
        "!x",
        "a,b",
        "a:b",
        "10.0.0.1:2222",
        proxy.as_str(),
        "a b",
        "a\nb",
        "a\u{0}b",
        "😀",
        "a\u{202e}b",
        "../x",
        "{{ x }}",
        "",
    ] {
        refused(json!({}), json!({ name: good }), "InputsInvalid", "hosts.", "give the Host another name");
    }
    let with = |key: &str, value: Value| {
        let mut host = good.clone();
        host[key] = value;
        host
    };
    let long = "a".repeat(300);
    for (key, value, gist) in [
        ("address", json!(proxy), "spec.address"),
        ("address", json!("127.0.0.1 -oProxyCommand=x"), "spec.address"),
        ("address", json!("a\n  ProxyCommand x"), "spec.address"),
        ("address", json!("{{ x }}"), "spec.address"),
        ("address", json!("%h"), "spec.address"),
        ("address", json!(long), "spec.address"),
        ("port", json!(0), "spec.ssh.port"),
        ("user", json!(proxy), "spec.ssh.user"),
        ("user", json!("root\n  ProxyCommand x"), "spec.ssh.user"),
        ("user", json!("$(id)"), "spec.ssh.user"),
        ("credential", json!("../../model/inputs.json"), "credentialsRef"),
        ("credential", json!("kube-system/x"), "credentialsRef"),
        ("credential", json!("a b"), "credentialsRef"),
        ("credential", json!("a\n"), "credentialsRef"),
        ("credential", json!(long), "credentialsRef"),
        ("hostKeys", json!(["ssh-ed25519 AAAA\n* ssh-ed25519 BBBB"]), "spec.ssh.hostKeys"),
        ("hostKeys", json!(["@cert-authority * ssh-ed25519 AAAA"]), "spec.ssh.hostKeys"),
        ("hostKeys", json!(["ssh-dss AAAA"]), "spec.ssh.hostKeys"),
    ] {
        let field = format!("hosts.w1.{key}");
        refused(json!({}), json!({"w1": with(key, value.clone())}), "InputsInvalid", &field, gist);
        let bastion = with("bastion", with(key, value));
        refused(json!({}), json!({"w1": bastion}), "InputsInvalid", &format!("hosts.w1.bastion.{key}"), gist);
    }
    for name in [
        "ansible_connection",
        "ansible_ssh_common_args",
        "ansible_python_interpreter",
        "ansible_become_method",
        "ansible_shell_executable",
        "hostvars",
        "environment",
        "secrets_dir",
        "clusterwright_guard_run",
        "inventory_hostname",
        "groups",
        "lookup",
    ] {
        refused(
            json!({ name: touch }),
            json!({"w1": good}),
            "ReservedVariable",
            &format!("vars.{name}"),
            "choose another",
        );
        let host = with("vars", json!({ name: "local" }));
        refused(json!({}), json!({"w1": host}), "ReservedVariable", &format!("hosts.w1.vars.{name}"), "choose another");
    }
    for name in ["a-b", "1a", "a b", "", "{{ x }}", "a\u{0}", "__ünsafe", "a.b"] {
        refused(json!({ name: 1 }), json!({"w1": good}), "InputsInvalid", "vars.", "choose another");
    }
    let deep = |levels: usize| (0..levels).fold(json!("x"), |inner, _| json!([inner]));
    refused(json!({"deep": deep(33)}), json!({"w1": good}), "InputsInvalid", "vars.deep", "32 are allowed");

    // What JSON does not know, and what its readers would choke on, written by hand.
    let model = fs::read_to_string(bench.path().join("inputs/model/inputs.json")).unwrap();
    let thousand = format!("{}1{}", "[".repeat(1000), "]".repeat(1000));
    for number in ["NaN", "Infinity", "1e999", "0755", "'x'", "!!python/object:x", &thousand, "\"\\ud800\""] {
        let text = model.replacen("\"vars\":{", &format!("\"vars\":{{\"bad\":{number},"), 1);
        assert!(text.contains("\"bad\""), "{model}");
        fs::write(bench.path().join("inputs/model/inputs.json"), text).unwrap();
        let ran = bench.run(&[]);
        assert_eq!(
            (ran.code, &ran.result["outcome"]["reason"]),
            (10, &json!("InputsInvalid")),
            "{number}: {}",
            ran.text
        );
    }
    assert!(!canary(&bench).exists(), "something ran");
    assert!(sshd.connections() == 0, "{}", sshd.log());
    bench.assert_nothing_left();
}

/// A vars plugin, and an inventory plugin, that add what nobody asked for.
const ADDS_A_VARIABLE: &str = "
DOCUMENTATION = 'name: tamper\\noptions: {}'
from ansible.plugins.vars import BaseVarsPlugin
class VarsModule(BaseVarsPlugin):
    def get_vars(self, loader, path, entities, cache=True):
        return {'ansible_connection': 'local'}
";
const ADDS_A_HOST: &str = "
DOCUMENTATION = 'name: tamper\\noptions: {yaml_extensions: {type: list, default: [.yml]}}'
from ansible.plugins.inventory.yaml import InventoryModule as Yaml
class InventoryModule(Yaml):
    NAME = 'tamper'
    def parse(self, inventory, loader, path, cache=True):
        super().parse(inventory, loader, path, cache)
        inventory.add_host('stranger', group='kube_node')
";

#[test]
fn an_inventory_that_ansible_reads_otherwise_starts_nothing() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    bench.playbook("prepare", LOOK);
    bench.playbook("probe/prepare", LOOK);
    let host = bench.host(&sshd);
    bench.inputs("Custom", &["prepare"], json!({"a": 1}), json!({"w1": host}));
    let config = bench.path().join("ansible/ansible.cfg");
    let as_shipped = fs::read_to_string(&config).unwrap();
    let plugins = bench.path().join("tamper");
    fs::create_dir(&plugins).unwrap();
    let mismatch = |gist: &str| {
        let ran = bench.run(&[]);
        let message = ran.result["outcome"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!((ran.code, &ran.message["reason"]), (10, &json!("InventoryMismatch")), "{}", ran.text);
        assert!(message.contains(gist), "{gist:?}: {message}");
        assert!(sshd.connections() == 0, "{}", sshd.log());
    };

    fs::write(plugins.join("tamper.py"), ADDS_A_VARIABLE).unwrap();
    let adds =
        format!("[defaults]\nvars_plugins = {}\nvars_plugins_enabled = host_group_vars, tamper\n", plugins.display());
    fs::write(&config, as_shipped.replacen("[defaults]\n", &adds, 1)).unwrap();
    mismatch("variable ansible_connection of");

    fs::write(plugins.join("tamper.py"), ADDS_A_HOST).unwrap();
    let adds = format!("[defaults]\ninventory_plugins = {}\n", plugins.display());
    let changed = as_shipped.replacen("[defaults]\n", &adds, 1);
    fs::write(&config, changed.replacen("enable_plugins = yaml, ini", "enable_plugins = tamper", 1)).unwrap();
    mismatch("the members of group kube_node");

    // The plugin that reads it is another one: to it, it is no inventory.
    fs::write(&config, as_shipped.replacen("enable_plugins = yaml, ini", "enable_plugins = ini", 1)).unwrap();
    mismatch("");
    fs::write(&config, &as_shipped).unwrap();

    // Somebody else writes beside it, in the moment between its writing and its reading.
    let memory = bench.memory().to_owned();
    let beside = std::thread::spawn(move || {
        let begun = std::time::Instant::now();
        while begun.elapsed() < std::time::Duration::from_secs(10) {
            let mut places = fs::read_dir(&memory).unwrap().flatten().map(|place| place.path().join("inventory"));
            let written = places.find(|place| place.join("hosts.yml").is_file());
            if let Some(place) = written {
                fs::create_dir(place.join("group_vars")).unwrap();
                fs::write(place.join("group_vars/all.yml"), "ansible_connection: local\n").unwrap();
                return;
            }
        }
        panic!("no inventory was written");
    });
    mismatch("variable ansible_connection of");
    beside.join().unwrap();

    // As it was, it is played.
    let ran = bench.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.text);
    assert_eq!(sshd.connections(), 1);
}

#[test]
fn nothing_of_the_callers_surroundings_is_read() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    bench.playbook("prepare", LOOK);
    bench.playbook("probe/prepare", LOOK);
    let host = bench.host(&sshd);
    bench.inputs("Custom", &["prepare"], json!({}), json!({"w1": host}));
    let home = bench.path().join("home");
    let touch = format!("touch {}", canary(&bench).display());
    fs::create_dir_all(home.join(".ssh")).unwrap();
    fs::write(home.join(".ssh/config"), format!("Host *\n  ProxyCommand sh -c '{touch}'\n")).unwrap();
    fs::write(home.join(".ansible.cfg"), "[defaults]\nvault_password_file = /nowhere\n").unwrap();
    fs::write(home.join("sitecustomize.py"), format!("import os; os.system('{touch}')")).unwrap();
    let output = bench
        .command(&[])
        .current_dir(&home)
        .env("HOME", &home)
        .env("PYTHONPATH", &home)
        .env("PYTHONSTARTUP", home.join("sitecustomize.py"))
        .env("ANSIBLE_CONFIG", home.join(".ansible.cfg"))
        .env("ANSIBLE_SSH_EXECUTABLE", "/bin/false")
        .env("ANSIBLE_SSH_ARGS", format!("-oProxyCommand='{touch}'"))
        .env("ANSIBLE_HOST_KEY_CHECKING", "false")
        .env("ANSIBLE_VARS_ENABLED", "")
        .env("SSH_AUTH_SOCK", home.join("agent"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let ran = bench.ran(output.status.code(), text);
    assert_eq!(ran.code, 0, "{}", ran.text);
    assert!(!canary(&bench).exists(), "something ran");
}

#[test]
fn no_file_is_written_out_of_its_directory_row_29() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    collection::complete(&bench);
    bench.playbook("prepare", literals::WRITE);
    bench.playbook("probe/prepare", LOOK);
    let out = bench.path().join("out");
    let mut hosts = json!({});
    for (number, name) in ["../canary", "a/../../canary", "./canary", "a//canary"].iter().enumerate() {
        let mut host = bench.host(&sshd);
        host["vars"] = json!({"texts": [{"path": format!("{}/{name}", out.display()), "content": "x"}]});
        hosts[format!("w{number}")] = host;
    }
    bench.inputs("Custom", &["prepare"], json!({"values": [], "out": out}), hosts);
    let ran = bench.run(&[]);
    assert_eq!(ran.code, 20, "{}", ran.text);
    for number in 0..4 {
        let failure = &ran.host(&format!("w{number}"))["failure"];
        assert_eq!(failure["reason"], "InvalidVariables", "{failure:#}");
    }
    assert!(!canary(&bench).exists() && !out.exists());
}
