//! Programs of Karmada control planes on machines: those of images are taken out of them.

use axum::body::Bytes;
use bundle::digest;
use bundle::index::Kind;

use crate::upstream::Upstream;
use crate::wright::{Wright, files};

const PLANES: &str = "
karmada:
  kubernetes:
    kube-apiserver: {kind: file, url: 'https://dl.example/v{version}/{arch}/kube-apiserver'}
  karmada:
    karmada-scheduler: {kind: program, from: 'registry.example/karmada-scheduler:v{version}', path: bin/karmada-scheduler}
";

/// A layer with this program in it.
fn layer(program: &str) -> Bytes {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in [("etc/motd", "hello"), ("bin/karmada-scheduler", program)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        tar.append_data(&mut header, path, content.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().into()
}

fn with_planes() -> (Upstream, Wright) {
    let upstream = Upstream::small();
    upstream.publish("dl.example/v1.35.4/amd64/kube-apiserver", b"an API server", None);
    let wright = Wright::new(&upstream);
    let sources = wright.path("catalogue/sources.yaml");
    let text = std::fs::read_to_string(&sources).unwrap();
    std::fs::write(sources, format!("{text}{PLANES}")).unwrap();
    (upstream, wright)
}

fn publish(upstream: &Upstream, program: &str) -> String {
    let registry = &mut upstream.site.lock().unwrap().registry;
    registry.publish_layers(
        "registry.example/karmada-scheduler",
        "v1.18.2",
        "amd64",
        vec![layer("old"), layer(program)],
    )
}

#[test]
fn programs_of_karmada_come_out_of_its_images_once_and_are_locked_by_the_image() {
    let (upstream, wright) = with_planes();
    let manifest = publish(&upstream, "a scheduler");
    wright
        .create("b", &["--karmada", "1.18.2"])
        .ended(0, &["karmada-scheduler 1.18.2 linux/amd64: downloaded", &manifest]);
    let index = wright.index("b");
    let found = index.find("karmada-scheduler", "1.18.2", "amd64").unwrap();
    assert_eq!((&found.kind, &found.sha256), (&Kind::File, &digest::of_bytes(b"a scheduler")));
    assert_eq!((found.source.as_str(), &found.manifest), ("registry.example/karmada-scheduler:v1.18.2", &manifest));
    assert_eq!(std::fs::read_to_string(wright.path("b").join(&found.path)).unwrap(), "a scheduler");
    assert_eq!(index.find("kube-apiserver", "1.35.4", "amd64").unwrap().kind, Kind::File);
    assert!(!index.components["1.35"].contains_key("karmada-scheduler"));
    // What is there is known by the lock, and nobody is asked.
    upstream.requests();
    let text = wright
        .create("b", &["--karmada", "1.18.2", "--locked"])
        .ended(0, &["karmada-scheduler 1.18.2 linux/amd64: was there"]);
    assert!(!text.contains("downloaded"), "{text}");
    assert_eq!(upstream.requests(), 0);
    // One that was changed here is made again.
    std::fs::write(wright.path("b").join(&found.path), "tampered").unwrap();
    wright.create("b", &["--karmada", "1.18.2"]).ended(0, &["karmada-scheduler 1.18.2 linux/amd64: downloaded"]);
    assert_eq!(std::fs::read_to_string(wright.path("b").join(&found.path)).unwrap(), "a scheduler");
    assert!(files(&wright.path("b")).contains(&"files/kube-apiserver-1.35.4-linux-amd64".to_owned()));
}

#[test]
fn an_image_that_was_moved_is_refused_and_so_are_versions_that_are_none() {
    let (upstream, wright) = with_planes();
    publish(&upstream, "a scheduler");
    wright.create("b", &["--karmada", "1.18.2"]).ended(0, &[]);
    publish(&upstream, "another scheduler");
    std::fs::remove_file(wright.path("b/bundle.lock")).unwrap();
    wright.create("b", &["--karmada", "1.18.2"]).ended(2, &["is in the bundle as another image"]);
    wright.create("c", &["--karmada", "v1.18.2"]).ended(2, &["no version of Karmada", "such as 1.18.2"]);
    let plain = Wright::new(&upstream);
    plain.create("d", &["--karmada", "1.18.2"]).ended(2, &["the catalogue has no programs of Karmada"]);
}
