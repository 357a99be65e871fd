//! Backups of an etcd that is known by its endpoints alone, and of a snapshot that a machine wrote to its disk first.

use std::io::{self, Cursor, Read};
use std::process::Command;

use backup::{BackupError, SpooledSnapshot, Task, choose, take};
use crds::backup::{BUNDLE_FILE, BackupInputs, EtcdInputs, SNAPSHOT_FILE};
use futures::future::BoxFuture;
use serde_json::json;
use tokio::net::TcpStream;

use super::fixture::{Fixture, NEVER};
use super::process::{Member, Pki, Plan, free_port, programs};

async fn dial(url: String) -> io::Result<TcpStream> {
    TcpStream::connect(url.trim_start_matches("https://")).await
}

async fn chosen(endpoints: &[String], pki: &Pki) -> Result<String, BackupError> {
    choose(endpoints, None, &pki.tls(), dial).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_is_read_although_an_endpoint_is_dead_and_nobody_without_a_majority() {
    let fixture = Fixture::new().await;
    let peers = (0..3).map(|_| free_port()).collect();
    let plan = Plan { place: fixture.place.path(), pki: &fixture.pki, peers, state: "new" };
    let mut members: Vec<_> = (0..3).map(|index| plan.start(index)).collect();
    let mut leader = 0;
    let mut ids = Vec::new();
    for member in &members {
        let mut client = member.client().await;
        let status = client.status().await.unwrap();
        leader = status.leader();
        ids.push(status.header().unwrap().member_id());
    }
    let mut endpoints: Vec<String> = members.iter().map(Member::url).collect();
    endpoints.push(format!("https://127.0.0.1:{}", free_port()));
    let url = chosen(&endpoints, &fixture.pki).await.unwrap();
    let read = endpoints.iter().position(|endpoint| *endpoint == url).unwrap();
    assert_ne!(ids[read], leader, "the leader has more to do");

    let stranger = Pki::new();
    let untrusted = chosen(&endpoints[..3], &Pki { ca: stranger.ca.clone(), ..Pki::new() }).await.unwrap_err();
    assert_eq!((untrusted.reason(), untrusted.retriable()), ("EtcdCertificateInvalid", false), "{untrusted}");
    members.truncate(1);
    let refused = chosen(&endpoints, &fixture.pki).await.unwrap_err();
    assert_eq!((refused.reason(), refused.retriable()), ("EtcdNoMember", true), "{refused}");
    assert!(endpoints.iter().all(|endpoint| refused.to_string().contains(endpoint.as_str())), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_without_a_cluster_is_backed_up_with_its_members_if_its_prefix_has_keys() {
    let mut fixture = Fixture::new().await;
    let member = Member::alone(fixture.place.path(), &fixture.pki).await;
    member.fill(3).await;
    member.client().await.put("/registry2/other", "x", None).await.unwrap();
    (fixture.inputs.cluster, fixture.inputs.cluster_uid) = (String::new(), String::new());
    let mut etcd = EtcdInputs { endpoints: vec![member.url()], prefix: Some("/lab".to_owned()), forwarded_in: None };
    fixture.inputs.etcd = Some(etcd.clone());
    let empty = fixture.take(&member, NEVER).await.unwrap_err();
    assert_eq!((empty.reason(), empty.retriable()), ("EtcdPrefixEmpty", false), "{empty}");
    assert!(empty.to_string().contains("/lab") && !empty.to_string().contains("Host"), "{empty}");
    etcd.prefix = Some("/registry".to_owned());
    fixture.inputs.etcd = Some(etcd);
    let manifest = fixture.take(&member, NEVER).await.unwrap();
    assert_eq!((manifest.keys, manifest.cluster.as_str()), (3, ""));
    let text = serde_json::to_string(&manifest).unwrap();
    assert!(!text.contains("clusterUid"), "{text}");
    let mut bundle = tar::Archive::new(Cursor::new(fixture.decrypted(BUNDLE_FILE)));
    let mut members = None;
    for entry in bundle.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.path().unwrap().to_str() == Some("members.json") {
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            members = Some(serde_json::from_str::<serde_json::Value>(&text).unwrap());
        }
    }
    let members = members.unwrap();
    assert_eq!((&members[0]["name"], &members[0]["peerURLs"][0]), (&"m0".into(), &member.peer.as_str().into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_etcd_of_a_plane_is_read_by_the_names_of_its_members_and_its_manifest_says_whose_it_is() {
    const NAME: &str = "k1-etcd-0.k1-etcd-peers.karmada-system.svc.cluster.local";
    let mut fixture = Fixture::new().await;
    fixture.pki = Pki::for_names(&[NAME]);
    let member = Member::alone(fixture.place.path(), &fixture.pki).await;
    member.fill(2).await;
    let plane = json!({ "name": "k1", "uid": "uid-k1", "version": "1.18.2" });
    fixture.inputs.karmada_deployment = serde_json::from_value(plane).unwrap();
    (fixture.inputs.cluster, fixture.inputs.cluster_uid) = (String::new(), String::new());
    fixture.inputs.location = "_karmada/k1/uid-k1/20260301T120000Z-k3x9".to_owned();
    let (tls, port) = (fixture.pki.tls(), member.port);
    let taken = async |name: &str| {
        let url = format!("https://{name}:2379");
        let prefix = Some("/registry".to_owned());
        let etcd = EtcdInputs { endpoints: vec![url.clone()], prefix, forwarded_in: None };
        let dial = move |_: String| TcpStream::connect(("127.0.0.1", port));
        choose(&etcd.endpoints, etcd.prefix.as_deref(), &tls, dial).await?;
        let member = format!("{name}:2379");
        let task = Task {
            inputs: &BackupInputs { etcd: Some(etcd), ..fixture.inputs.clone() },
            member: &member,
            url: &url,
            tls: &tls,
            bundle: &fixture.bundle,
            store: &fixture.store,
            spool: None,
        };
        take(&task, move || TcpStream::connect(("127.0.0.1", port)), |_| ()).await
    };
    let other = taken("k1-etcd-1.k1-etcd-peers.karmada-system.svc.cluster.local").await.unwrap_err();
    assert_eq!(other.reason(), "EtcdCertificateInvalid", "{other}");
    let manifest = taken(NAME).await.unwrap();
    assert_eq!((manifest.keys, manifest.cluster.as_str(), manifest.cluster_uid.as_str()), (2, "", ""));
    assert_eq!(manifest.member, format!("{NAME}:2379"));
    let stored = backup::read_manifest(&fixture.store, &fixture.inputs.location).await.unwrap();
    let plane = stored.karmada_deployment.unwrap();
    assert_eq!((plane.name.as_str(), plane.uid.as_str()), ("k1", "uid-k1"));
    assert_eq!(plane.version.unwrap().to_string(), "1.18.2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_comes_from_a_disk_as_it_was_written_there_or_not_at_all() {
    let fixture = Fixture::new().await;
    let member = Member::alone(fixture.place.path(), &fixture.pki).await;
    member.fill(20).await;
    let taken = async |content: Result<Vec<u8>, &'static str>| {
        let spool = |size: u64| -> BoxFuture<'_, io::Result<SpooledSnapshot>> {
            assert!(size > 20 << 20, "the room that is needed is named: {size}");
            let content = content.clone();
            Box::pin(async move {
                let content = content.map_err(io::Error::other)?;
                Ok(Box::new(Cursor::new(content)) as SpooledSnapshot)
            })
        };
        let (url, tls, port) = (member.url(), fixture.pki.tls(), member.port);
        let task = Task {
            inputs: &fixture.inputs,
            member: "cp-0",
            url: &url,
            tls: &tls,
            bundle: &fixture.bundle,
            store: &fixture.store,
            spool: Some(&spool),
        };
        take(&task, move || TcpStream::connect(("127.0.0.1", port)), |_| ()).await
    };
    let full = taken(Err("clusterwright-spool-full: 5 bytes are free in /x, and 9 are needed")).await.unwrap_err();
    assert_eq!((full.reason(), full.retriable()), ("SpoolFull", false), "{full}");
    assert!(
        full.to_string().contains("5 bytes are free in /x") && full.to_string().contains("without spool"),
        "{full}"
    );
    let broken = taken(Err("etcdctl: no such file")).await.unwrap_err();
    assert_eq!((broken.reason(), broken.retriable()), ("SnapshotInterrupted", true), "{broken}");
    let saved = fixture.place.path().join("saved.db");
    let mut etcdctl = Command::new(programs().join("etcdctl"));
    etcdctl.arg(format!("--endpoints={}", member.plain_url())).args(["snapshot", "save"]).arg(&saved);
    assert!(etcdctl.output().unwrap().status.success());
    let saved = std::fs::read(saved).unwrap();
    let short = taken(Ok(saved[..saved.len() / 2].to_vec())).await.unwrap_err();
    assert_eq!(short.reason(), "SnapshotCorrupt", "{short}");
    assert!(fixture.files().is_empty());
    let manifest = taken(Ok(saved.clone())).await.unwrap();
    assert_eq!((manifest.keys, manifest.member.as_str()), (20, "cp-0"));
    assert!(fixture.decrypted(SNAPSHOT_FILE) == saved);
}
