//! Charts and manifests for Addons.

use bundle::index::Kind;

use crate::wright::Wright;

const MANIFEST: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n";
/// A key of a test.
const KEY: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH
-----END PRIVATE KEY-----
";

#[test]
fn manifests_are_added_signed_and_held_to_their_version() {
    let wright = Wright::plain();
    std::fs::write(wright.path("a.yaml"), MANIFEST).unwrap();
    std::fs::write(wright.path("b.yaml"), "kind: Namespace\n").unwrap();
    std::fs::write(wright.path("key.pem"), KEY).unwrap();
    let add = |version: &str, more: &[&str]| wright.run(&[&["add", "manifests", version], more].concat());
    add("agent=1.0", &["a.yaml", "--signing-key", "key.pem"])
        .ended(0, &["+ agent 1.0 any/any", "-----BEGIN PUBLIC KEY", "indexSHA256: "]);
    let index = wright.index("bundle");
    let made = &index.artifacts[0];
    assert_eq!((&made.kind, made.path.as_str()), (&Kind::Manifests, "files/manifests-agent-1.0.yaml"));
    assert_eq!(made.signature.len(), 88, "64 bytes in base64");
    add("agent=1.0", &["a.yaml", "a.yaml"]).ended(2, &["agent 1.0 any/any is in the bundle with sha256"]);
    assert_eq!(std::fs::read_to_string(wright.path("bundle/files/manifests-agent-1.0.yaml")).unwrap(), MANIFEST);
    add("agent=1.1", &["b.yaml"]).ended(2, &["b.yaml cannot be applied: document 1 has no apiVersion"]);
    add("agent=1.1", &["b.yaml", "--template"]).ended(0, &[]);
    add("agent=1.2", &["a.yaml", "--signing-key", "a.yaml"]).ended(2, &["a.yaml is no Ed25519 key in PEM"]);
    wright.run(&["add", "chart", "a.yaml"]).ended(2, &["a.yaml is no chart's archive"]);
    assert_eq!(wright.index("bundle").artifacts.len(), 2);
}
