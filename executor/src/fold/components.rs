//! The components that machines found in the artifact bundle, as their modules report them.

use crds::Component;
use serde_json::Value;

use crate::sanitize::clean;

/// The components of a report; none of another kind of report. One without a version or a digest is left out.
pub(super) fn found(report: &Value) -> Vec<Component> {
    if report.get("kind").and_then(Value::as_str) != Some("components") {
        return Vec::new();
    }
    let components = report.get("components").and_then(Value::as_array);
    let components = components.into_iter().flatten();
    components.take(Component::LIMIT).filter_map(component).collect()
}

fn component(value: &Value) -> Option<Component> {
    let text = |key: &str, limit| {
        let text = clean(value.get(key).and_then(Value::as_str).unwrap_or_default(), limit);
        Some(text).filter(|text| !text.is_empty())
    };
    let digest = text("sha256", 65)?.to_ascii_lowercase();
    let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then_some(Component {
        name: text("name", 253)?,
        version: text("version", 128)?,
        digests: [(text("arch", 32)?, digest)].into(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::found;

    #[test]
    fn a_component_without_a_version_or_a_digest_tells_nothing() {
        let digest = "A0".repeat(32);
        let etcd = json!({"name": "etcd", "version": "3.6.16", "arch": "amd64", "sha256": digest});
        let mut report = json!({"kind": "components", "components": [etcd, "no component"]});
        for (key, value) in [
            ("name", json!("")),
            ("version", json!(null)),
            ("arch", json!(7)),
            ("sha256", json!("a0")),
            ("sha256", json!("g".repeat(64))),
            ("sha256", json!("a".repeat(65))),
        ] {
            let mut bad = report["components"][0].clone();
            bad[key] = value;
            report["components"].as_array_mut().unwrap().push(bad);
        }
        let told = found(&report);
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].name.as_str(), told[0].version.as_str()), ("etcd", "3.6.16"));
        assert_eq!(told[0].digests["amd64"], "a0".repeat(32));
        report["kind"] = json!("facts");
        assert!(found(&report).is_empty());
    }
}
