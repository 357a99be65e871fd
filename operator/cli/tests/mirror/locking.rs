//! A lock without a bundle, for clusters whose machines take everything from upstream.

use std::fs;

use bundle::digest;

use crate::upstream::{Upstream, content};
use crate::wright::Wright;

const KUBELET: &str = "dl.example/v1.35.4/amd64/kubelet";

fn lock(wright: &Wright, more: &[&str]) -> crate::wright::Said {
    let fixed = ["lock", "--kubernetes", "1.35.4", "--arch", "amd64", "--catalogue", "catalogue"];
    wright.run_all(&wright.with_mirror(&[&fixed, more].concat()))
}

/// With a catalogue all of which has checksums.
fn wright(upstream: &Upstream) -> Wright {
    let wright = Wright::new(upstream);
    fs::write(wright.path("catalogue/1.35.yaml"), "{etcd: 3.6.16}").unwrap();
    wright
}

#[test]
fn a_lock_is_that_of_the_bundle_and_nothing_is_downloaded_for_it() {
    let upstream = Upstream::small();
    let wright = wright(&upstream);
    let said = [
        "its digest is that of https://dl.example/v1.35.4/amd64/kubelet.sha256",
        "TRUSTED ON FIRST USE, with the digest sha256:",
    ];
    let said =
        lock(&wright, &[]).ended(0, &[&said[..], &["1 digests were", "--from-file=bundle.lock=bundle.lock"]].concat());
    assert!(said.contains("[3/3]"), "{said}");
    assert_eq!(upstream.asked(&format!("/up/{KUBELET}")), []);
    wright.create("b", &["--lock", "other.lock"]).ended(0, &[]);
    assert_eq!(fs::read(wright.path("bundle.lock")).unwrap(), fs::read(wright.path("other.lock")).unwrap());
    assert!(!wright.path(".partial").exists() && !wright.path("index.json").exists());

    // What it has stays, whatever upstream publishes meanwhile; what is new is added.
    upstream.publish(KUBELET, b"another", Some("kubelet.sha256"));
    upstream.publish(
        "releases.example/etcd/v3.6.17/etcd-v3.6.17-linux-amd64.tar.gz",
        &content("etcd"),
        Some("SHA256SUMS"),
    );
    lock(&wright, &["--component", "etcd=3.6.17"])
        .ended(0, &["kubelet 1.35.4 linux/amd64: its digest is that of the lock"]);
    let text = fs::read_to_string(wright.path("bundle.lock")).unwrap();
    assert!(text.contains("etcd-v3.6.17") && text.contains(&digest::of_bytes(&content("kubelet"))), "{text}");
    lock(&wright, &["--locked"]).ended(0, &[]);
}

#[test]
fn what_upstream_publishes_no_checksum_of_is_not_locked_unseen() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    lock(&wright, &[]).ended(2, &["failed to lock tool 1.0", "publishes no checksum", "make a bundle"]);
    lock(&wright, &["--component", "calico=1"]).ended(2, &["the catalogue has no component calico"]);
}
