//! Writes values on the machine through a run, and compares what has arrived.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::bench::{Bench, Sshd};

/// Writes each text of `texts` to a file of its own, and `values` as JSON.
pub const WRITE: &str = "
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

/// Each text and each value is on the machine what it was in the inputs.
pub fn assert_arrives(bench: &mut Bench, sshd: &Sshd, texts: &[String], values: &[Value]) {
    let out = bench.path().join("out");
    let _ = fs::remove_dir_all(&out);
    let path = |number: usize| out.join(number.to_string());
    let files: Vec<Value> =
        texts.iter().enumerate().map(|(number, text)| json!({"path": path(number), "content": text})).collect();
    let mut host = bench.host(sshd);
    host["vars"] = json!({"texts": files});
    bench.inputs("Custom", &["prepare"], json!({"values": values, "out": out}), json!({"w1": host}));
    let ran = bench.run(&[]);
    assert_eq!(ran.code, 0, "{}", ran.text);
    for (number, text) in texts.iter().enumerate() {
        let written = fs::read(path(number)).unwrap();
        assert!(written == text.as_bytes(), "{text:?} became {:?}", String::from_utf8_lossy(&written));
    }
    let written: Vec<Value> = serde_json::from_slice(&fs::read(out.join("values")).unwrap()).unwrap();
    assert_eq!(written.len(), values.len());
    for (written, value) in written.iter().zip(values) {
        assert!(same(written, value), "{value} became {written}");
    }
}

/// Equal, but for the last digits of a number with a fraction: our reader of JSON rounds them.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() && other.is_f64() => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            one.to_bits().abs_diff(other.to_bits()) <= 8
        }
        _ => one == other,
    }
}

/// A source of values that says how to have the same ones again: `CLUSTERWRIGHT_SEED`.
pub fn runner() -> TestRunner {
    let given = std::env::var("CLUSTERWRIGHT_SEED").ok().and_then(|text| text.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    println!("CLUSTERWRIGHT_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}
