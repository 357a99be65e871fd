//! Secrets stay where they are kept: nothing that a cluster's install makes or says holds one, when it succeeds and
//! when it fails.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use crds::PlaybookRun;
use crds::playbook_run::RunPhase;
use e2e::eventually::{Look, eventually};
use e2e::objects;
use e2e::scenario::{Scenario, scenario};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{Api, DynamicObject, ListParams};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Client, ResourceExt};
use lab::Lab;
use lab::machines::MachineOptions;
use serde_json::json;

const INSTALL: Duration = Duration::from_secs(420);
const SSH_PASSWORD: &str = "canary-Tr0ub4dor-of-ssh";
const SUDO_PASSWORD: &str = "canary-Kr1stall-of-sudo";
/// A piece of a secret of so many letters is as bad as the whole.
const PIECE: usize = 20;

/// What a Secret may hold that is no secret.
fn is_public(key: &str) -> bool {
    key.ends_with(".crt") || key.ends_with(".pub") || matches!(key, "username" | "digest")
}

/// Secrets by their text, with where they were seen.
type Canaries = Arc<Mutex<BTreeMap<String, String>>>;

#[tokio::test(flavor = "multi_thread")]
async fn no_object_event_or_log_holds_a_secret_after_an_install_that_succeeds_and_one_that_fails() {
    scenario("canary", async |scenario: &Scenario| {
        let canaries = Canaries::default();
        for password in [SSH_PASSWORD, SUDO_PASSWORD] {
            canaries
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(password.to_owned(), "what the test wrote".to_owned());
        }
        let watching = tokio::spawn(watch(scenario.api::<Secret>(), Arc::clone(&canaries)));
        let login = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": scenario.name, "name": "login"},
            "type": "kubernetes.io/basic-auth",
            "stringData": {"username": "root", "password": SSH_PASSWORD, "become-password": SUDO_PASSWORD},
        });
        scenario.apply(&login).await?;
        scenario.machines(&["good"]).await?;
        let options = MachineOptions {
            password: Some(SSH_PASSWORD.to_owned()),
            ..MachineOptions::named(&scenario.machine_name("bad"))
        };
        let bad = scenario.machine(options).await?;
        let mut host = Lab::host_manifest(&bad, &scenario.name);
        host["spec"]["ssh"]["credentialsRef"]["name"] = json!("login");
        scenario.apply(&host).await?;

        let cluster = objects::cluster("canary", "good", "10.242.0.0/16", &["canary-good"], &[]);
        scenario.apply(&cluster).await?;
        let mut cluster = objects::cluster("canary", "bad", "10.243.0.0/16", &["canary-bad"], &[]);
        // Nobody listens there.
        cluster["spec"]["artifacts"]["url"] = json!("http://172.30.0.1:7999");
        scenario.apply(&cluster).await?;
        let failed = failed(scenario).await?;
        scenario.say(&format!("one install failed: {failed}"));
        scenario.ready("good", INSTALL).await?;
        watching.abort();

        let canaries: BTreeMap<String, String> = canaries.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for kind in [
            "password",
            "become-password",
            "ssh-privatekey",
            "ca.key",
            "etcd-ca.key",
            "sa.key",
            ".token",
            "encryption.key",
        ] {
            let seen = canaries.values().any(|place| place.contains(kind));
            ensure!(seen, "no secret of kind {kind} was seen: {:?}", canaries.values().collect::<Vec<_>>());
        }
        let texts = everything(scenario).await?;
        ensure!(texts.keys().any(|name| name.starts_with("log of ")), "no log was read: {:?}", texts.keys());
        ensure!(texts.keys().any(|name| name.contains("kept log")), "no kept log was read: {:?}", texts.keys());
        for (name, text) in &texts {
            for (secret, place) in &canaries {
                let found = pieces(secret).any(|piece| text.contains(piece));
                ensure!(!found, "{place} is in {name}");
            }
        }
        scenario.say(&format!("{} secrets are in none of {} objects and logs", canaries.len(), texts.len()));
        Ok(())
    })
    .await;
}

/// Pieces of a secret, which overlap by half: its whole where it is short.
fn pieces(secret: &str) -> impl Iterator<Item = &str> {
    let last = secret.len().saturating_sub(PIECE);
    let starts = (0..last).step_by(PIECE / 2).chain([last]);
    starts.filter_map(move |start| secret.get(start..(start + PIECE).min(secret.len())))
}

/// Gathers what every Secret of the namespace holds, also those that are there for a moment only.
async fn watch(api: Api<Secret>, canaries: Canaries) {
    loop {
        if let Ok(secrets) = api.list(&ListParams::default()).await {
            for secret in secrets {
                let name = secret.name_any();
                for (key, value) in secret.data.unwrap_or_default().into_iter().filter(|(key, _)| !is_public(key)) {
                    let text = String::from_utf8_lossy(&value.0).into_owned();
                    let mut canaries = canaries.lock().unwrap_or_else(PoisonError::into_inner);
                    if key == "kubeconfig" {
                        let keys = text.lines().filter_map(|line| line.trim().strip_prefix("client-key-data: "));
                        canaries.extend(keys.map(|data| (data.to_owned(), format!("{name}/{key}"))));
                        continue;
                    }
                    let lines =
                        text.lines().map(str::trim).filter(|line| line.len() >= 16 && !line.starts_with("-----"));
                    canaries.extend(lines.map(|line| (line.to_owned(), format!("{name}/{key}"))));
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

async fn failed(scenario: &Scenario) -> Result<String> {
    let api = scenario.api::<PlaybookRun>();
    eventually("an install that failed", INSTALL, async || {
        let runs = api.list(&ListParams::default()).await?;
        let failed =
            runs.into_iter().filter_map(|run| run.status).find(|status| status.phase == Some(RunPhase::Failed));
        Ok(match failed {
            Some(status) => Look::Done(status.message.unwrap_or_default()),
            None => Look::Waiting("none".to_owned()),
        })
    })
    .await
}

/// Every object of the namespace but the Secrets (Events among them), every log of a container, and the logs that are
/// kept, by name; and the operator's own log.
async fn everything(scenario: &Scenario) -> Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    let discovery = Discovery::new(scenario.client.clone()).run().await?;
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            let lists = capabilities.supports_operation(verbs::LIST) && capabilities.scope == Scope::Namespaced;
            if !lists || resource.kind == "Secret" {
                continue;
            }
            let api: Api<DynamicObject> = Api::namespaced_with(scenario.client.clone(), &scenario.name, &resource);
            for object in
                api.list(&ListParams::default()).await.with_context(|| format!("failed to list {}", resource.kind))?
            {
                texts.insert(format!("{} {}", resource.kind, object.name_any()), serde_json::to_string(&object)?);
            }
        }
    }
    for pod in scenario.api::<Pod>().list(&ListParams::default()).await? {
        texts.extend(log(&scenario.client, &scenario.name, &pod).await);
    }
    let operator = "clusterwright-system";
    let pods: Api<Pod> = Api::namespaced(scenario.client.clone(), operator);
    for pod in pods.list(&ListParams::default()).await? {
        texts.extend(log(&scenario.client, operator, &pod).await);
    }
    for map in scenario.api::<ConfigMap>().list(&ListParams::default()).await? {
        let name = map.name_any();
        for (key, bytes) in map.binary_data.unwrap_or_default() {
            texts.insert(format!("kept log {name} {key}"), unzip(&bytes.0)?);
        }
    }
    Ok(texts)
}

async fn log(client: &Client, namespace: &str, pod: &Pod) -> Option<(String, String)> {
    let name = pod.name_any();
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let text = api.logs(&name, &Default::default()).await.ok()?;
    Some((format!("log of {name}"), text))
}

fn unzip(bytes: &[u8]) -> Result<String> {
    let mut gzip = Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = gzip.stdin.take().context("gzip has no input")?;
    let bytes = bytes.to_vec();
    let writing = std::thread::spawn(move || stdin.write_all(&bytes));
    let output = gzip.wait_with_output()?;
    let written = writing.join().map_err(|_| anyhow::anyhow!("writing to gzip failed"))?;
    written?;
    ensure!(output.status.success(), "what is kept is no log");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
