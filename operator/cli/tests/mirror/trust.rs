//! Whom downloads are believed, and what is refused.

use bundle::digest;

use crate::upstream::{Upstream, content};
use crate::wright::Wright;

const KUBELET: &str = "dl.example/v1.35.4/amd64/kubelet";

#[test]
fn what_upstream_publishes_is_compared_and_the_rest_is_said_to_be_trusted() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    let tool = format!("downloaded, 410.16 KiB; TRUSTED ON FIRST USE, with the digest sha256:{}", sum("tool"));
    wright.create("b", &[]).ended(
        0,
        &[
            "its digest is that of https://dl.example/v1.35.4/amd64/kubelet.sha256",
            "its digest is that of https://releases.example/etcd/v3.6.16/SHA256SUMS",
            &tool,
            "registry.example/kube-proxy v1.35.4 linux/amd64: downloaded",
            "2 digests were trusted on first use",
        ],
    );
    let lock: serde_json::Value =
        serde_json::from_slice(&std::fs::read(wright.path("b/bundle.lock")).unwrap()).unwrap();
    let kubelet = &lock["files"]["https://dl.example/v1.35.4/amd64/kubelet"];
    assert_eq!(kubelet["sha256"], sum("kubelet"));
    assert_eq!(kubelet["checksums"], "https://dl.example/v1.35.4/amd64/kubelet.sha256");
    let index = wright.index("b");
    let proxy = index.find("registry.example/kube-proxy", "v1.35.4", "amd64").unwrap();
    assert_eq!(lock["images"]["registry.example/kube-proxy:v1.35.4 linux/amd64"], proxy.manifest);
}

fn sum(name: &str) -> String {
    digest::of_bytes(&content(name))
}

#[test]
fn a_file_that_is_not_what_upstream_publishes_is_refused() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    upstream.list(KUBELET, &"0".repeat(64), "kubelet.sha256");
    wright.create("b", &[]).ended(2, &["failed to bring kubelet 1.35.4", &sum("kubelet"), &"0".repeat(64)]);
    assert!(!wright.path("b/index.json").exists());
    assert!(!wright.path("b/files/kubelet-1.35.4-linux-amd64").exists());
}

#[test]
fn with_a_lock_the_same_bundle_is_made_elsewhere_or_none() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    wright.create("a", &[]).ended(0, &[]);
    wright.create("b", &["--lock", "a/bundle.lock", "--locked"]).ended(0, &["its digest is that of the lock"]);
    wright.run(&["diff", "a", "b"]).ended(0, &[]);
    let index = |bundle: &str| std::fs::read(wright.path(bundle).join("index.json")).unwrap();
    assert_eq!(index("a"), index("b"));
    assert!(!wright.path("b/bundle.lock").exists());

    // Upstream changes a file and its checksum: the lock knows better.
    upstream.publish(KUBELET, b"another", Some("kubelet.sha256"));
    let said = ["kubelet has the digest", &digest::of_bytes(b"another"), &sum("kubelet"), "delete its entry"];
    wright.create("c", &["--lock", "a/bundle.lock"]).ended(2, &said);

    // And a tag is moved: the image of the lock is taken.
    upstream.site.lock().unwrap().registry.publish_small("registry.example/kube-proxy", "v1.35.4", &["arm64", "amd64"]);
    upstream.publish(KUBELET, &content("kubelet"), Some("kubelet.sha256"));
    wright.create("d", &["--lock", "a/bundle.lock", "--locked"]).ended(0, &[]);
    assert_eq!(index("a"), index("d"));
}

#[test]
fn locked_refuses_what_the_lock_does_not_know_before_anything_is_downloaded() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    wright.create("b", &["--locked"]).ended(
        2,
        &[
            "https://dl.example/v1.35.4/amd64/kubelet",
            "https://releases.example/tool-1.0-amd64",
            "registry.example/kube-proxy:v1.35.4 linux/amd64",
            "nothing was downloaded",
        ],
    );
    assert_eq!(upstream.requests(), 0);
}

#[test]
fn another_file_without_checksums_is_refused_once_it_is_known() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    wright.create("b", &[]).ended(0, &[]);
    upstream.publish("releases.example/tool-1.0-amd64", b"another", None);
    std::fs::remove_file(wright.path("b/files/tool-1.0-linux-amd64")).unwrap();
    wright.create("b", &[]).ended(2, &["https://releases.example/tool-1.0-amd64 has the digest"]);
    assert!(!wright.path("b/files/tool-1.0-linux-amd64").exists());
}

#[test]
fn a_layer_with_another_digest_is_refused() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    upstream.site.lock().unwrap().registry.damage_blobs();
    wright.create("b", &[]).ended(2, &["failed to bring registry.example/kube-proxy", "nothing of it is used"]);
    assert!(!wright.path("b/index.json").exists());
}
