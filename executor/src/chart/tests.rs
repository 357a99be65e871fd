//! The subcommand with a program in the place of Helm: what it is called with, and what becomes of what it says.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use clap::Parser;
use serde_json::{Value, json};

use super::run;
use crate::cli::{Cli, Command};

/// Notes its arguments; `pull` fetches, `history` answers, and `upgrade` does what the test says.
const HELM: &str = r#"#!/bin/sh
echo "$@" >> "$0.calls"
echo "${HTTPS_PROXY-none} ${NO_PROXY-none}" > "$0.proxies"
case "$1" in
pull) while [ "$1" != --destination ]; do shift; done; printf chart > "$2/agent-1.0.0.tgz" ;;
history) cat "$0.history" 2>/dev/null || exit 1 ;;
upgrade) echo "token is s3cr3t-t0ken-of-the-cluster and hunter2hunter2"; . "$0.upgrade" ;;
esac
"#;
/// Of another archive.
const DIGEST: &str = "sha256:3547d0a66e4fd8e89155e8c0ee2a1f2be36b8ab93c9b7c8ee5f3a7f1c2b3d1aa";

fn world(upgrade: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let helm = place.path().join("helm");
    std::fs::write(&helm, HELM).unwrap();
    std::fs::set_permissions(&helm, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(place.path().join("helm.upgrade"), upgrade).unwrap();
    let inputs = place.path().join("inputs");
    std::fs::create_dir(&inputs).unwrap();
    let kubeconfig = json!({
        "users": [{"name": "a", "user": {"token": "s3cr3t-t0ken-of-the-cluster"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://[fd00::1]:6443"}}],
    });
    std::fs::write(inputs.join("kubeconfig"), kubeconfig.to_string()).unwrap();
    std::fs::write(inputs.join("masked.json"), r#"["hunter2hunter2"]"#).unwrap();
    std::fs::write(inputs.join("values.json"), "{}").unwrap();
    place
}

/// The report, and the calls of Helm.
async fn ran(place: &Path, more: Value) -> (u8, Value, Vec<String>) {
    let mut inputs = json!({
        "verb": "Upgrade", "release": "agent", "namespace": "n", "timeoutSeconds": 60, "description": "d",
        "chart": {"oci": "oci://127.0.0.1:9/charts/agent", "version": "1.0.0"},
    });
    inputs.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    std::fs::write(place.join("inputs/release.json"), inputs.to_string()).unwrap();
    let text = |name: &str| place.join(name).to_str().unwrap().to_owned();
    let (given, work, message, helm) = (text("inputs"), text("work"), text("message"), text("helm"));
    let words =
        ["executor", "chart", "--inputs", &given, "--work", &work, "--termination-message", &message, "--helm", &helm];
    let Command::Chart(arguments) = Cli::parse_from(words).command else { panic!("no chart") };
    let code = run(&arguments).await;
    let report = std::fs::read(&message).map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap());
    let calls = std::fs::read_to_string(place.join("helm.calls")).unwrap_or_default();
    (code, report, calls.lines().map(str::to_owned).collect())
}

#[tokio::test]
async fn a_chart_is_fetched_held_to_its_digest_and_installed() {
    let place = world("exit 0");
    std::fs::write(place.path().join("helm.history"), r#"[{"revision": 4, "status": "deployed"}]"#).unwrap();
    let (code, report, calls) = ran(place.path(), json!({})).await;
    assert_eq!((code, &report["succeeded"], &report["revision"]), (0, &json!(true), &json!(4)), "{report}");
    let verbs: Vec<&str> = calls.iter().filter_map(|call| call.split(' ').next()).collect();
    assert_eq!(verbs, ["pull", "upgrade", "history"]);
    assert!(calls[1].contains("--install --rollback-on-failure --wait --namespace n --create-namespace"), "{calls:?}");
    assert!(!calls[1].contains("--force-conflicts"), "{calls:?}");
    let (_, report, calls) = ran(place.path(), json!({"forceConflicts": true, "takeOwnership": true})).await;
    assert!(report["succeeded"] == true && calls[4].ends_with("--force-conflicts --take-ownership"), "{calls:?}");
    let chart = json!({"oci": "oci://127.0.0.1:9/charts/agent", "version": "1.0.0", "digest": DIGEST});
    let (_, report, calls) = ran(place.path(), json!({ "chart": chart })).await;
    assert_eq!((&report["succeeded"], &report["reason"]), (&json!(false), &json!("ChartDigestMismatch")));
    assert!(report["message"].as_str().unwrap().contains(DIGEST) && !calls.last().unwrap().starts_with("upgrade"));
}

#[tokio::test]
async fn what_helm_says_last_is_reported_without_secrets() {
    let place = world("echo 'level=WARN msg=x' >&2; echo 'Error: UPGRADE FAILED: hunter2hunter2 is wrong' >&2; exit 1");
    let (code, report, _) = ran(place.path(), json!({})).await;
    assert_eq!((code, &report["reason"]), (0, &json!("ReleaseFailed")), "{report}");
    assert_eq!(report["message"], "UPGRADE FAILED: [secret] is wrong");
    assert!(report["digest"].as_str().unwrap().starts_with("sha256:"), "{report}");
    let place = world("echo 'Error: Kubernetes cluster unreachable: no' >&2; exit 1");
    assert_eq!(ran(place.path(), json!({})).await.1["reason"], "ClusterUnreachable");
}

#[tokio::test]
async fn a_repository_has_its_login_in_a_file_and_a_pending_release_is_put_in_order() {
    let place = world("exit 0");
    std::fs::write(place.path().join("inputs/username"), "joe").unwrap();
    std::fs::write(place.path().join("inputs/password"), "correct-horse\n").unwrap();
    let history = r#"[{"revision": 1, "status": "deployed"}, {"revision": 2, "status": "pending-upgrade"}]"#;
    std::fs::write(place.path().join("helm.history"), history).unwrap();
    let chart = json!({"repository": "https://127.0.0.1:9", "name": "agent", "version": "1.0.0"});
    let (_, report, calls) = ran(place.path(), json!({"chart": chart, "recover": true})).await;
    assert_eq!(report["succeeded"], true, "{report}");
    let starts = ["repo update source", "pull source/agent", "history agent", "rollback agent 1", "upgrade agent"];
    for (call, start) in calls.iter().zip(starts) {
        assert!(call.starts_with(start) && !call.contains("correct-horse"), "{calls:?}");
    }
    let work = std::fs::read_dir(place.path().join("work")).unwrap().next().unwrap().unwrap().path();
    let written = std::fs::read_to_string(work.join("repositories.yaml")).unwrap();
    assert!(written.contains("correct-horse\""), "{written}");
}

#[tokio::test]
async fn a_release_is_uninstalled_and_what_cannot_be_read_is_refused() {
    let place = world("");
    let (_, report, calls) = ran(place.path(), json!({"verb": "Uninstall", "chart": null})).await;
    assert_eq!(report["succeeded"], true, "{report}");
    assert_eq!(calls, ["uninstall agent --namespace n --ignore-not-found --wait --timeout 60s"]);
    assert_eq!(ran(place.path(), json!({"verb": "Guess"})).await.0, 10);
}

/// A server of one file, and the heads of the requests that it was sent.
async fn served(body: &'static str) -> (String, std::sync::Arc<std::sync::Mutex<Vec<String>>>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/bundle/files/agent-1.0.0.tgz", listener.local_addr().unwrap());
    let heads = std::sync::Arc::<std::sync::Mutex<Vec<String>>>::default();
    let seen = heads.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = vec![0; 4096];
            let read = stream.read(&mut head).await.unwrap();
            seen.lock().unwrap().push(String::from_utf8_lossy(&head[..read]).into_owned());
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        }
    });
    (url, heads)
}

#[tokio::test]
async fn a_chart_of_a_bundle_is_downloaded_with_the_login_and_held_to_its_digest() {
    let place = world("exit 0");
    std::fs::write(place.path().join("inputs/token"), "correct-horse\n").unwrap();
    let (url, heads) = served("chart").await;
    let chart = |digest: &str| json!({"archive": url, "name": "agent", "version": "1.0.0", "digest": digest});
    let (_, report, calls) = ran(place.path(), json!({"chart": chart(DIGEST)})).await;
    assert_eq!(report["reason"], "ChartDigestMismatch", "{report}");
    assert!(calls.iter().all(|call| !call.starts_with("upgrade")), "{calls:?}");
    let of_chart = "sha256:cc57fc1903e444cf6a726490b43b27ee9f87facc037f86872201847c565b45fb";
    let (_, report, calls) = ran(place.path(), json!({"chart": chart(of_chart)})).await;
    assert_eq!(report["succeeded"], true, "{report}");
    assert!(calls.iter().all(|call| !call.starts_with("pull") && !call.contains("correct-horse")), "{calls:?}");
    assert!(heads.lock().unwrap().iter().all(|head| head.contains("authorization: Bearer correct-horse\r\n")));
    let chart = json!({"archive": "http://127.0.0.1:9/a.tgz", "name": "agent", "version": "1.0.0", "digest": DIGEST});
    assert_eq!(ran(place.path(), json!({ "chart": chart })).await.1["reason"], "ChartNotFetched");
}

/// Proxies are the process's: it runs again, with this test alone.
#[test]
fn charts_come_through_the_proxy_of_the_environment_and_helm_asks_the_api_server_without_it() {
    const ALONE: &str = "CLUSTERWRIGHT_TEST_ALONE";
    if let Some(archive) = std::env::var_os(ALONE) {
        let archive = archive.to_string_lossy().into_owned();
        return tokio::runtime::Runtime::new().unwrap().block_on(install_through_a_proxy(&archive));
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            answer(stream).await;
        }
    });
    let name = "chart::tests::charts_come_through_the_proxy_of_the_environment_and_helm_asks_the_api_server_without_it";
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args([name, "--exact", "--nocapture"]).env(ALONE, "http://bundle.test/agent.tgz");
    again.env("HTTP_PROXY", &proxy).env("HTTPS_PROXY", &proxy).env("NO_PROXY", ".svc");
    let output = again.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("installed through"), "{said}");
}

/// Gives back the first line of the request: a proxy for http is asked for the whole URL.
async fn answer(stream: tokio::net::TcpStream) {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let mut stream = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        match line.trim() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let body = head.swap_remove(0);
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
}

async fn install_through_a_proxy(archive: &str) {
    let place = world("exit 0");
    let chart = json!({"archive": archive, "version": "1.0.0"});
    let (_, report, calls) = ran(place.path(), json!({ "chart": chart })).await;
    assert!(report["succeeded"] == true && !calls[0].starts_with("pull"), "{report} {calls:?}");
    let digest = <sha2::Sha256 as sha2::Digest>::digest(format!("GET {archive} HTTP/1.1"));
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(report["digest"], format!("sha256:{digest}"), "it is what the proxy answered");
    let proxies = std::fs::read_to_string(place.path().join("helm.proxies")).unwrap();
    assert!(proxies.starts_with("http://127.0.0.1:") && proxies.trim().ends_with(" .svc,fd00::1"), "{proxies}");
    println!("installed through {proxies}");
}
