//! Nothing executes that was only data: what people write into objects, and what machines answer, through the real
//! executor, the real ansible-core and a real sshd on this machine. The rows are those of the list of bad inputs.

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
#[path = "hostile/payloads.rs"]
mod payloads;
#[cfg(test)]
#[path = "hostile/rendered.rs"]
mod rendered;

use std::fs;

use bench::{Bench, Sshd};
use literals::{LOOK, assert_arrives};
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
        let values: Vec<Value> = (0..250)
            .map(|_| payloads::any_value().new_tree(&mut runner).unwrap().current())
            .collect();
        let texts: Vec<String> = values
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        assert_arrives(&mut bench, &sshd, &texts, &values);
    }
    assert!(!canary(&bench).exists(), "something ran");
}

#[test]
fn what_the_roles_make_of_a_users_text_holds_it_as_it_is_rows_17_and_29() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    collection::complete(&bench);
    bench.playbook(
        "prepare",
        &rendered::playbook(&collection::roles().display().to_string()),
    );
    bench.playbook("probe/prepare", LOOK);
    bench.secret("join.token", "abcdef.0123456789abcdef");
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
