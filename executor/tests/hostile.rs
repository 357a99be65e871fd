//! Nothing executes that was only data: what people write into objects, and what machines answer, through the real
//! executor, the real ansible-core and a real sshd on this machine.

#[cfg(test)]
#[path = "real/bench.rs"]
mod bench;
#[cfg(test)]
#[path = "hostile/collection.rs"]
mod collection;
#[cfg(test)]
#[path = "hostile/payloads.rs"]
mod payloads;

use std::fs;

use bench::{Bench, Sshd};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

const LOOK: &str = "
- hosts: all
  gather_facts: false
  tasks:
  - name: Look
    ansible.builtin.command: 'true'
    changed_when: false
";

/// Writes each text of `texts` to a file of its own, and `values` as JSON.
const WRITE: &str = "
- hosts: all
  gather_facts: false
  tasks:
  - name: Write
    clusterwright.cluster.write:
      files: \"{{ texts + [{'path': out ~ '/values', 'content': values | to_json}] }}\"
  - name: Loop over them
    ansible.builtin.debug: {msg: '{{ item }}'}
    loop: '{{ values }}'
";

fn write(bench: &mut Bench, sshd: &Sshd, texts: &[String], values: &[Value]) {
    let out = bench.path().join("out");
    let _ = fs::remove_dir_all(&out);
    let path = |number: usize| out.join(number.to_string());
    let files: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(number, text)| json!({"path": path(number), "content": text}))
        .collect();
    let mut host = bench.host(sshd);
    host["vars"] = json!({"texts": files});
    bench.inputs(
        "Custom",
        &["prepare"],
        json!({"values": values, "out": out}),
        json!({"w1": host}),
    );
    let ran = bench.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.text);
    for (number, text) in texts.iter().enumerate() {
        let written = fs::read(path(number)).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&written),
            text.as_str(),
            "{:?}",
            text.get(..80)
        );
    }
    let written: Vec<Value> = serde_json::from_slice(&fs::read(out.join("values")).unwrap()).unwrap();
    for (written, value) in written.iter().zip(values) {
        assert!(same(written, value), "{value} became {written}");
    }
    assert_eq!(written.len(), values.len());
}

/// Equal, but for the last digits of a number with a fraction: the reader of JSON rounds them.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() && other.is_f64() => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= one.abs() * 1e-14 || one.to_bits().abs_diff(other.to_bits()) <= 8
        }
        _ => one == other,
    }
}

#[test]
fn a_value_arrives_as_the_literal_that_it_was_rows_17_and_19() {
    let sshd = Sshd::start();
    let mut bench = Bench::new();
    collection::complete(&bench);
    bench.playbook("prepare", WRITE);
    bench.playbook("probe/prepare", LOOK);
    let canary = bench.path().join("canary");
    let texts = payloads::texts(&canary);
    let mut values = payloads::values(&texts[0]);
    values.extend(payloads::values("!!python/object/apply:os.system ['id']"));
    values.extend(texts.iter().map(|text| json!({ text: [text] })));
    write(&mut bench, &sshd, &texts, &values);

    // And whatever else can be written: many values in a run, since Ansible's start takes longer than they do.
    let seed = std::env::var("CLUSTERWRIGHT_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed: u64 = seed.unwrap_or_else(rand_seed);
    println!("CLUSTERWRIGHT_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    for _ in 0..2 {
        let values: Vec<Value> = (0..250)
            .map(|_| payloads::any_value().new_tree(&mut runner).unwrap().current())
            .collect();
        let texts: Vec<String> = values
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        write(&mut bench, &sshd, &texts, &values);
    }
    assert!(!canary.exists(), "something ran");
}

fn rand_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
}
