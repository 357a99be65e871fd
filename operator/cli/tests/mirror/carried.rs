//! Bundles that are changed, carried and compared.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bundle::index::Index;
use lab::cache::Cache;
use lab::programs::{Programs, component};

use crate::upstream::{Upstream, content};
use crate::wright::{Wright, said};

fn sha256(wright: &Wright, bundle: &str) -> String {
    bundle::digest::of_file(&wright.path(bundle).join("index.json")).unwrap()
}

#[test]
fn a_bundle_comes_over_an_air_gap_as_a_directory_and_as_a_tar() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    wright.create("a", &[]).ended(0, &[]);
    let digest = sha256(&wright, "a");
    wright.run(&["import", "a", "b", "--index-sha256", &digest]).ended(0, &["+ kubelet 1.35.4 linux/amd64", &digest]);
    assert!(
        Command::new("tar")
            .args(["-cf", "a.tar", "a"])
            .current_dir(wright.directory.path())
            .status()
            .unwrap()
            .success()
    );
    wright.run(&["import", "a.tar", "c"]).ended(0, &["4 files were copied"]);
    wright.run(&["import", "a.tar", "c"]).ended(0, &["0 files were copied"]);
    let tar = std::fs::File::open(wright.path("a.tar")).unwrap();
    let output = wright.command(&["import", "-", "d"]).stdin(Stdio::from(tar)).output().unwrap();
    said(&output).ended(0, &["4 files were copied"]);
    for bundle in ["b", "c", "d"] {
        assert_eq!(sha256(&wright, bundle), digest, "{bundle}");
        wright.run(&["diff", "a", bundle]).ended(0, &[]);
    }
    let other = "0".repeat(64);
    wright.run(&["import", "a", "e", "--index-sha256", &other]).ended(2, &["nothing was imported"]);
    assert!(!wright.path("e/index.json").exists());
}

#[test]
fn a_bundle_is_pushed_to_a_registry_and_imported_from_there() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    wright.create("a", &[]).ended(0, &[]);
    let host = upstream.address();
    let (target, insecure) = (format!("oci://{host}/site/bundle:1"), ["--insecure-registry", host.as_str()]);
    wright.run(&[&["push", "a", &target][..], &insecure].concat()).ended(0, &["digest: sha256:"]);
    wright.run(&[&["push", "a", &target][..], &insecure].concat()).ended(0, &["pushed 0 B"]);
    wright.run(&[&["import", &target, "b"][..], &insecure].concat()).ended(0, &["4 files were copied"]);
    assert_eq!(sha256(&wright, "a"), sha256(&wright, "b"));
    let image = format!("oci://{host}/registry.example/kube-proxy:v1.35.4");
    wright.run(&[&["import", &image, "c"][..], &insecure].concat()).ended(2, &["is no bundle"]);

    std::fs::write(wright.path("a/files/tool-1.0-linux-amd64"), "changed").unwrap();
    wright.run(&[&["push", "a", &target][..], &insecure].concat()).ended(2, &["nothing was tagged"]);
    upstream.site.lock().unwrap().registry.damage_blobs();
    wright.run(&[&["import", &target, "d"][..], &insecure].concat()).ended(2, &["failed to read the index"]);
    assert!(!wright.path("d/index.json").exists());
}

#[test]
fn a_bundle_is_pushed_into_a_bucket_of_a_real_s3_server() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    wright.create("a", &[]).ended(0, &[]);
    let server = S3::start(&wright);
    let push = |bundle: &str, more: &[&str]| {
        let arguments = [&["push", bundle, "s3://artifacts/site/one", "--s3-endpoint", &server.url], more].concat();
        let mut command = wright.command(&arguments);
        let keys = [("AWS_ACCESS_KEY_ID", "fleet"), ("AWS_SECRET_ACCESS_KEY", "canary-Zk3-secret")];
        said(&command.envs(keys).env("AWS_REGION", "us-east-1").output().unwrap())
    };
    // More than a part of an upload.
    std::fs::create_dir_all(wright.path("built/runc/1.5.3/bin")).unwrap();
    std::fs::write(wright.path("built/runc/1.5.3/bin/runc"), vec![7; 40 << 20]).unwrap();
    wright.run(&["add", "programs", "built", "--bundle", "a", "--arch", "amd64"]).ended(0, &[]);
    push("a", &[]).ended(0, &["and 0 B were there: s3://artifacts/site/one"]);
    push("a", &[]).ended(0, &["pushed 0 B, and 42.37 MiB were there"]);
    // The server has objects as files.
    wright.run(&["diff", "a", "s3/artifacts/site/one"]).ended(0, &[]);
    let imported = wright.run(&["import", "s3/artifacts/site/one", "b"]);
    imported.ended(0, &["5 files were copied", &sha256(&wright, "a")]);

    // Another bundle would hide what clusters may need.
    wright.create("c", &[]).ended(0, &[]);
    push("c", &[]).ended(2, &["has what this bundle lacks", "runc 1.5.3 linux/amd64", "--replace"]);
    push("c", &["--replace"]).ended(0, &["pushed 0 B"]);
    assert_eq!(sha256(&wright, "c"), sha256(&wright, "s3/artifacts/site/one"));
    wright.run(&["push", "c", "s3://artifacts/x", "--insecure-registry", "r"]).ended(2, &["for oci:// alone"]);
}

/// versitygw over a directory, until it is dropped.
struct S3 {
    process: Child,
    url: String,
}

impl S3 {
    fn start(wright: &Wright) -> Self {
        std::fs::create_dir_all(wright.path("s3/artifacts")).unwrap();
        let bin = Programs::from_env(&Cache::from_env()).bin(component("versitygw").unwrap());
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let mut command = Command::new(bin.join("versitygw"));
        command.args(["--port", &address, "--access", "fleet", "--secret", "canary-Zk3-secret", "posix"]);
        let process = command.arg(wright.path("s3")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while std::net::TcpStream::connect(&address).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "the S3 server does not serve");
            std::thread::sleep(Duration::from_millis(50));
        }
        Self { process, url: format!("http://{address}") }
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn components_images_archives_and_programs_are_added() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    wright.create("b", &[]).ended(0, &[]);
    upstream.publish(
        "releases.example/etcd/v3.6.17/etcd-v3.6.17-linux-amd64.tar.gz",
        &content("newer"),
        Some("SHA256SUMS"),
    );
    let to = ["--bundle", "b", "--arch", "amd64"];
    let component = [&["add", "component", "etcd=3.6.17", "--catalogue", "catalogue"], &to[..]].concat();
    wright.run_all(&wright.with_mirror(&component)).ended(0, &["etcd 3.6.17 linux/amd64: downloaded"]);
    let made = upstream.site.lock().unwrap().registry.publish_small("quay.example/net/node", "v3", &["amd64"]);
    let image = [&["add", "image", "quay.example/net/node:v3"], &to[..]].concat();
    wright.run_all(&wright.with_mirror(&image)).ended(0, &["quay.example/net/node v3 linux/amd64: downloaded"]);

    std::fs::write(wright.path("own.tar"), docker_archive("r.example/own:1")).unwrap();
    let archive = [&["add", "archive", "own.tar", "--image", "r.example/own:1"], &to[..]].concat();
    wright.run(&archive).ended(0, &["+ r.example/own 1 linux/amd64"]);
    let other = [&["add", "archive", "own.tar", "--image", "r.example/own:2"], &to[..]].concat();
    wright.run(&other).ended(2, &["own.tar has r.example/own:1, and not r.example/own:2"]);
    std::fs::create_dir_all(wright.path("built/runc/1.5.3/bin")).unwrap();
    std::fs::write(wright.path("built/runc/1.5.3/bin/runc"), "one").unwrap();
    let programs = [&["add", "programs", "built"], &to[..]].concat();
    wright.run(&programs).ended(0, &["+ runc 1.5.3 linux/amd64"]);
    wright.run(&programs).ended(0, &[]);

    // Built anew it is another one: what is there stays.
    std::fs::write(wright.path("built/runc/1.5.3/bin/runc"), "two").unwrap();
    wright.run(&programs).ended(2, &["ComponentChanged", "a version of its own"]);
    assert_eq!(std::fs::read_to_string(wright.path("b/files/runc-1.5.3-linux-amd64")).unwrap(), "one");

    let index = wright.index("b");
    assert_eq!(index.find("quay.example/net/node", "v3", "amd64").unwrap().manifest, made[0]);
    assert_eq!(index.components["1.35"]["etcd"], "3.6.16", "a table is what was tested together");
    wright.create("without", &[]).ended(0, &[]);
    wright.run(&["diff", "without", "b"]).ended(
        1,
        &[
            "+ etcd 3.6.17 linux/amd64",
            "+ quay.example/net/node v3 linux/amd64",
            "+ r.example/own 1 linux/amd64",
            "+ runc 1.5.3 linux/amd64",
        ],
    );
}

/// What `docker save` writes of an image, without its layers.
fn docker_archive(name: &str) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    let manifest = serde_json::json!([{"Config": "c.json", "RepoTags": [name], "Layers": []}]).to_string();
    let mut header = tar::Header::new_gnu();
    header.set_size(manifest.len() as u64);
    tar.append_data(&mut header, "manifest.json", manifest.as_bytes()).unwrap();
    tar.into_inner().unwrap()
}

#[test]
fn what_clusters_may_have_is_not_replaced_by_a_download() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    std::fs::create_dir_all(wright.path("built/etcd/3.6.16/bin")).unwrap();
    std::fs::write(wright.path("built/etcd/3.6.16/bin/etcd"), "built here").unwrap();
    std::fs::write(wright.path("own.tar"), docker_archive("registry.example/kube-proxy:v1.35.4")).unwrap();
    let proxy = ["--image", "registry.example/kube-proxy:v1.35.4"];
    let archive = |bundle| [&["add", "archive", "own.tar", "--arch", "amd64", "--bundle", bundle], &proxy[..]].concat();
    for (bundle, added, said) in [
        ("a", vec!["add", "programs", "built", "--arch", "amd64", "--bundle", "a"], "etcd 3.6.16 linux/amd64 is in"),
        ("b", archive("b"), "registry.example/kube-proxy v1.35.4 linux/amd64 is in"),
    ] {
        wright.run(&added).ended(0, &[]);
        let before = wright.index(bundle);
        wright.create(bundle, &[]).ended(2, &[said, "ComponentChanged"]);
        let known = &before.artifacts[0];
        assert_eq!(bundle::verify::problem(&wright.path(bundle), known).unwrap(), None);
        assert_eq!(wright.index(bundle), before);
    }
}

#[test]
fn what_is_not_kept_is_pruned_once_it_is_not_only_asked() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    upstream.publish("dl.example/v1.35.5/amd64/kubelet", &content("newer"), Some("kubelet.sha256"));
    upstream.site.lock().unwrap().registry.publish_small("registry.example/kube-proxy", "v1.35.5", &["amd64"]);
    wright.create("b", &["--kubernetes", "1.35.5"]).ended(0, &[]);
    assert_eq!(wright.index("b").kubernetes_versions(), ["1.35.4", "1.35.5"]);
    let before = sha256(&wright, "b");
    wright
        .run(&["prune", "b", "--kubernetes", "1.35.5", "--dry-run"])
        .ended(0, &["- kubelet 1.35.4", "would be removed"]);
    assert_eq!(sha256(&wright, "b"), before);
    wright.run(&["prune", "b", "--kubernetes", "1.35.5"]).ended(0, &["- kubelet 1.35.4", "were removed"]);
    assert_eq!(Index::read(&wright.path("b")).unwrap().kubernetes_versions(), ["1.35.5"]);
    assert!(!wright.path("b/files/kubelet-1.35.4-linux-amd64").exists());
    wright
        .run(&["prune", "b", "--kubernetes", "1.35.4"])
        .ended(2, &["the bundle has no Kubernetes 1.35.4: it has 1.35.5"]);
}
