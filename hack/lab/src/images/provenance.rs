//! How an image was made: an in-toto statement with SLSA's predicate. It is not signed.

use serde_json::{Value, json};

use super::layout::Labels;

/// What the statement's builder and build are called.
const BUILD: &str = "https://clusterwright.dev/build/images/v1";

/// The statement about the index of this digest (`sha256:...`).
pub fn statement(labels: &Labels, digest: &str, architectures: &[&str]) -> Value {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": labels.name, "digest": {"sha256": hex}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD,
                "externalParameters": {"version": labels.version, "architectures": architectures},
                "resolvedDependencies": [{"name": "source", "digest": {"gitCommit": labels.revision}}],
            },
            "runDetails": {"builder": {"id": BUILD}, "metadata": {"invocationId": labels.revision}},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_of_one_digest_and_one_commit() {
        let labels = Labels {
            name: "operator".into(),
            version: "1.2.3".into(),
            revision: "abc".into(),
            created: "2026-11-01T00:00:00Z".into(),
        };
        let said = statement(&labels, "sha256:00ff", &["amd64", "arm64"]);
        assert_eq!(said["subject"], json!([{"name": "operator", "digest": {"sha256": "00ff"}}]));
        let build = &said["predicate"]["buildDefinition"];
        assert_eq!(build["resolvedDependencies"][0]["digest"]["gitCommit"], "abc");
        assert_eq!(build["externalParameters"]["architectures"], json!(["amd64", "arm64"]));
    }
}
