//! What is refused before or instead of a download.

use crate::upstream::{Upstream, content};
use crate::wright::Wright;

#[test]
fn what_upstream_does_not_have_is_named() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    let arm =
        ["create", "b", "--kubernetes", "1.35.4", "--arch", "arm64", "--catalogue", "catalogue", "--parallel", "1"];
    let said = ["404", "/up/dl.example/v1.35.4/arm64/kubelet.sha256"];
    wright.run_all(&wright.with_mirror(&arm)).ended(2, &said);

    upstream.publish("dl.example/v1.35.4/arm64/kubelet", &content("k"), Some("kubelet.sha256"));
    upstream.publish("releases.example/tool-1.0-arm64", &content("t"), None);
    let etcd = "releases.example/etcd/v3.6.16/etcd-v3.6.16-linux-arm64.tar.gz";
    upstream.publish(etcd, &content("e"), Some("SHA256SUMS"));
    let said = "registry.example/kube-proxy:v1.35.4 is not there for linux/arm64, but for linux/amd64";
    wright.run_all(&wright.with_mirror(&arm)).ended(2, &[said]);

    upstream.site.lock().unwrap().registry.publish_small("registry.example/kube-proxy", "v1.35.4", &["amd64", "arm64"]);
    wright.run_all(&wright.with_mirror(&arm)).ended(0, &[]);
}

#[test]
fn both_architectures_lie_side_by_side() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    upstream.publish("dl.example/v1.35.4/arm64/kubelet", &content("k"), Some("kubelet.sha256"));
    upstream.publish("releases.example/tool-1.0-arm64", &content("t"), None);
    upstream.publish("releases.example/etcd/v3.6.16/etcd-v3.6.16-linux-arm64.tar.gz", &content("e"), None);
    let sums = ["amd64", "arm64"].map(|arch| {
        let text = content(if arch == "amd64" { "etcd" } else { "e" });
        format!("{}  etcd-v3.6.16-linux-{arch}.tar.gz\n", bundle::digest::of_bytes(&text))
    });
    upstream.publish("releases.example/etcd/v3.6.16/SHA256SUMS", sums.concat().as_bytes(), None);
    upstream.site.lock().unwrap().registry.publish_small("registry.example/kube-proxy", "v1.35.4", &["amd64", "arm64"]);
    let both = ["create", "b", "--kubernetes", "1.35.4", "--arch", "amd64,arm64", "--catalogue", "catalogue"];
    wright.run_all(&wright.with_mirror(&both)).ended(0, &[]);
    let index = wright.index("b");
    for name in ["kubelet", "etcd", "tool", "registry.example/kube-proxy"] {
        let of = |arch: &str| index.artifacts.iter().find(|it| it.name == name && it.arch == arch).unwrap();
        assert_ne!(of("amd64").sha256, of("arm64").sha256, "{name}");
    }
}

#[test]
fn a_registry_without_tls_must_be_named() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    let mut arguments = wright.create_arguments("b", &[]);
    arguments.truncate(arguments.len() - 2);
    wright.run_all(&arguments).ended(2, &["failed to read the manifest of"]);
}

#[test]
fn arguments_that_mean_nothing_are_refused_with_what_is_allowed() {
    let wright = Wright::plain();
    let amd64 = ["--arch", "amd64"];
    for (arguments, said) in [
        (&["create", "--kubernetes", "1.33.1"][..], "the catalogue has no Kubernetes 1.33, but 1.34, 1.35, 1.36"),
        (&["create", "--kubernetes", "1.35"], "such as 1.35.4"),
        (&["create", "--kubernetes", "1.35.4", "--mirror", "m/up"], "such as https://mirror.example/upstream"),
        (&["create", "--kubernetes", "1.35.4", "--image-mirror", "http://r"], "without a scheme"),
        (&["create", "--kubernetes", "1.35.4", "--signed-by", "me"], "unexpected argument '--signed-by'"),
        (
            &["add", "component", "calico=3.31.0"],
            "the catalogue has no component calico, but clusterwright.dev/busybox",
        ),
        (&["add", "component", "etcd"], "give NAME=VERSION"),
        (&["add", "image", "quay.io/calico/node"], "give a tag too"),
    ] {
        wright.run(&[arguments, &amd64].concat()).ended(2, &[said]);
    }
    wright.run(&["create", "--kubernetes", "1.35.4", "--arch", "s390x"]).ended(2, &["amd64, arm64"]);
    wright.run(&["verify", "nothing"]).ended(2, &["nothing is no bundle: it has no index.json"]);
}
