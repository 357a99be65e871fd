//! An operator for one namespace works there with the rights that the chart gives it, and nowhere else; and its metrics
//! are for those alone whom the API server lets.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::MachineSet;
use e2e::api_server::ApiServer;
use e2e::helm::{Helm, NAMESPACE};
use e2e::operator_process::Operator;
use kube::api::{Api, ListParams};
use kube::{Client, Config};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::rendered::chart;

const DEADLINE: Duration = Duration::from_secs(60);

fn apply(server: &ApiServer, directory: &Path, object: &Value) -> Result<()> {
    let file = directory.join("object.json");
    std::fs::write(&file, object.to_string())?;
    server.kubectl(&["apply", "-f", &file.display().to_string()])?;
    Ok(())
}

fn deployment(namespace: &str) -> Value {
    json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "ClusterDeployment",
        "metadata": {"name": "a", "namespace": namespace},
        "spec": {
            "kubernetesVersion": "1.35.4", "controlPlane": {"replicas": 1},
            "artifacts": {"url": "http://192.0.2.1:8080"},
        },
    })
}

/// A certificate for `localhost`, as the Secret's volume would have it; in PEM.
fn certificate(directory: &Path) -> Result<String> {
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["localhost".to_owned()])?.self_signed(&key)?;
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join("tls.crt"), certificate.pem())?;
    std::fs::write(directory.join("tls.key"), key.serialize_pem())?;
    Ok(certificate.pem())
}

/// What /metrics answers to a token.
async fn scrape(port: u16, certificate: &str, token: &str) -> Result<String> {
    let mut config = Config::new(format!("https://localhost:{port}").parse()?);
    let encoded = certificate.lines().filter(|line| !line.starts_with("-----")).collect::<String>();
    let engine = base64::engine::general_purpose::STANDARD;
    config.root_cert = Some(vec![base64::Engine::decode(&engine, encoded)?]);
    config.auth_info.token = Some(token.to_owned().into());
    config.default_retry = false;
    let request = http::Request::get("/metrics").body(Vec::new())?;
    Ok(Client::try_from(config)?.request_text(request).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_for_one_namespace_works_there_with_the_rights_of_the_chart() -> Result<()> {
    let server = ApiServer::bare().await?;
    let helm = Helm::new(Some(&server.checked_kubeconfig()?))?;
    for namespace in ["fleet", "other"] {
        server.kubectl(&["create", "namespace", namespace])?;
    }
    let path = chart().display().to_string();
    helm.run(&[
        "install",
        "clusterwright",
        &path,
        "--namespace",
        NAMESPACE,
        "--create-namespace",
        "--set=watchNamespace=fleet",
        "--set=metrics.tls.secretName=tls,metrics.authorization.enabled=true",
    ])?;
    server.kubectl(&["wait", "--for=condition=Established", "crd", "--all"])?;
    let token = |name: &str| server.kubectl(&["create", "token", name, "--namespace", NAMESPACE]);
    let operators = token("clusterwright-operator")?;
    let tls = helm.home().join("tls");
    let certificate = certificate(&tls)?;
    let port = e2e::api_server::free_port()?;
    let operator = Operator::start_as(
        &server,
        operators.trim(),
        helm.home(),
        &[
            "--namespace=fleet",
            &format!("--lease-namespace={NAMESPACE}"),
            "--metrics-authorization",
            &format!("--metrics-tls-directory={}", tls.display()),
            &format!("--metrics-listen=127.0.0.1:{port}"),
        ],
    )?;
    for namespace in ["fleet", "other"] {
        apply(&server, helm.home(), &deployment(namespace))?;
    }
    let sets = async |namespace: &str| -> Result<usize> {
        let api: Api<MachineSet> = Api::namespaced(server.client(), namespace);
        Ok(api.list(&ListParams::default()).await?.items.len())
    };
    let until = Instant::now() + DEADLINE;
    while sets("fleet").await? == 0 {
        ensure!(Instant::now() < until, "no MachineSet:\n{}", operator.log());
        sleep(Duration::from_millis(200)).await;
    }
    operator.answers("/readyz", "ok: leads").await?;
    operator.answers("/metrics", "404").await?;
    ensure!(sets("other").await? == 0, "it works in another namespace");
    ensure!(!operator.whole_log().contains("forbidden"), "it lacks a right:\n{}", operator.whole_log());
    // Who leads is an Event in the operator's own namespace.
    let events = server.kubectl(&["get", "events", "--namespace", NAMESPACE, "-o", "name"])?;
    ensure!(!events.trim().is_empty(), "nothing says who leads:\n{}", operator.whole_log());

    for name in ["prometheus", "somebody"] {
        server.kubectl(&["create", "serviceaccount", name, "--namespace", NAMESPACE])?;
    }
    let binding = ["create", "clusterrolebinding", "prometheus", "--clusterrole=clusterwright-metrics-reader"];
    let account = format!("--serviceaccount={NAMESPACE}:prometheus");
    server.kubectl(&[&binding[..], &[account.as_str()]].concat())?;
    let text = scrape(port, &certificate, token("prometheus")?.trim()).await.context("who may scrape cannot")?;
    ensure!(text.contains("clusterwright_leader 1"), "{text}");
    let refused = scrape(port, &certificate, token("somebody")?.trim()).await.err().context("anybody may scrape")?;
    ensure!(format!("{refused:?}").contains("403"), "{refused:?}");
    let unknown = scrape(port, &certificate, "guessed").await.err().context("anybody may scrape")?;
    ensure!(format!("{unknown:?}").contains("401"), "{unknown:?}");
    Ok(())
}

/// Nothing in the watched namespace goes beyond a Role.
#[tokio::test(flavor = "multi_thread")]
async fn no_right_of_an_operator_for_one_namespace_is_of_the_whole_cluster() -> Result<()> {
    let helm = Helm::new(None)?;
    let rendered = helm.render(&chart(), &["watchNamespace=fleet"])?;
    let subject = |object: &&Value| object["subjects"][0]["name"] == "clusterwright-operator";
    let bindings: Vec<&Value> = rendered.values().filter(subject).collect();
    ensure!(bindings.len() == 2, "{} bindings", bindings.len());
    ensure!(bindings.iter().all(|binding| binding["kind"] == "RoleBinding" && binding["roleRef"]["kind"] == "Role"));
    let everywhere = helm.render(&chart(), &[])?;
    let rules = |objects: &e2e::helm::Objects, key: &str| objects[key]["rules"].clone();
    let all = rules(&everywhere, "ClusterRole - clusterwright-operator");
    ensure!(all == rules(&rendered, "Role fleet clusterwright-operator"), "the rights differ");
    Ok(())
}
