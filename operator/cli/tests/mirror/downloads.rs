//! Downloads that end early, and go on.

use std::process::Stdio;
use std::time::{Duration, Instant};

use bundle::digest;

use crate::upstream::{Fault, Upstream, content};
use crate::wright::{Wright, files};

const KUBELET: &str = "/up/dl.example/v1.35.4/amd64/kubelet";

#[test]
fn a_bundle_is_made_and_what_is_there_is_not_downloaded_again() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    wright.create("b", &[]).ended(0, &["kubelet 1.35.4 linux/amd64: downloaded", "indexSHA256: "]);
    let index = wright.index("b");
    let kubelet = index.find("kubelet", "1.35.4", "amd64").unwrap();
    assert_eq!(kubelet.sha256, digest::of_bytes(&content("kubelet")));
    assert_eq!(kubelet.source, "https://dl.example/v1.35.4/amd64/kubelet");
    assert_eq!(index.components["1.35"]["etcd"], "3.6.16");
    assert_eq!(
        files(&wright.path("b")),
        [
            "bundle.lock",
            "files/etcd-3.6.16-linux-amd64.tar.gz",
            "files/kubelet-1.35.4-linux-amd64",
            "files/tool-1.0-linux-amd64",
            "images/registry.example/kube-proxy-v1.35.4-linux-amd64.tar",
            "index.json",
        ]
    );
    upstream.requests();
    let text = wright.create("b", &["--locked"]).ended(0, &["kubelet 1.35.4 linux/amd64: was there"]);
    assert!(!text.contains("downloaded"), "{text}");
    assert_eq!(upstream.requests(), 0);
}

#[test]
fn a_connection_that_breaks_is_made_again_where_it_broke() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    upstream.fault(KUBELET, Fault::Cut(70_000));
    wright.create("b", &[]).ended(0, &[]);
    let [None, Some(range)] = &upstream.asked(KUBELET)[..] else { panic!("there were not two requests") };
    // What was on its way when it broke may be lost.
    let from: u64 = range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap();
    assert!((1..=70_000).contains(&from), "{range}");
    assert_eq!(std::fs::read(wright.path("b/files/kubelet-1.35.4-linux-amd64")).unwrap(), content("kubelet"));
}

#[test]
fn a_server_that_is_busy_is_asked_again() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    upstream.fault(KUBELET, Fault::Status(503));
    upstream.fault("/up/dl.example/v1.35.4/amd64/kubelet.sha256", Fault::Status(502));
    wright.create("b", &[]).ended(0, &[]);
    assert_eq!(upstream.asked(KUBELET), [None, None]);
}

#[test]
fn a_call_that_is_killed_is_gone_on_with_by_the_next_one() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    upstream.fault(KUBELET, Fault::Stall(100_000));
    let arguments = wright.create_arguments("b", &["--parallel", "1"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut child = wright.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let partial = wright.path("b/.partial");
    let has_part = || {
        let sizes = std::fs::read_dir(&partial).into_iter().flatten().flatten();
        sizes.filter_map(|it| it.metadata().ok()).any(|found| found.is_file() && found.len() >= 65_536)
    };
    while !has_part() {
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing was written");
        std::thread::sleep(Duration::from_millis(20));
    }
    wright.create("b", &[]).ended(2, &["another wright is changing b"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!wright.path("b/index.json").exists(), "an index names what is there");
    upstream.requests();
    wright.create("b", &[]).ended(0, &[]);
    let [Some(range)] = &upstream.asked(KUBELET)[..] else { panic!("it did not go on") };
    assert!(range.starts_with("bytes="), "{range}");
    wright.run(&["diff", "b", "b"]).ended(0, &[]);
    assert_eq!(std::fs::read(wright.path("b/files/kubelet-1.35.4-linux-amd64")).unwrap(), content("kubelet"));
}

#[test]
fn a_part_that_is_of_another_file_is_thrown_away() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    let url = "https://dl.example/v1.35.4/amd64/kubelet";
    std::fs::create_dir_all(wright.path("b/.partial")).unwrap();
    let part = wright.path("b/.partial").join(&digest::of_bytes(url.as_bytes())[..32]);
    std::fs::write(part, "something else").unwrap();
    wright.create("b", &[]).ended(0, &[]);
    assert_eq!(upstream.asked(KUBELET), [Some("bytes=14-".to_owned()), None]);
}

#[test]
fn proxies_are_those_of_the_environment() {
    let upstream = Upstream::small();
    let wright = Wright::new(&upstream);
    let mut arguments = wright.create_arguments("b", &[]);
    let mirror = arguments.iter_mut().find(|it| it.starts_with("http://")).unwrap();
    *mirror = "http://mirror.invalid/up".to_owned();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let host = upstream.address();
    let output =
        wright.command(&arguments).env("http_proxy", format!("http://{host}")).env("no_proxy", "127.0.0.1").output();
    crate::wright::said(&output.unwrap()).ended(0, &[]);
}
