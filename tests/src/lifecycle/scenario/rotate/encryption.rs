//! `spec.encryption` is edited: ConfigMaps are encrypted as well, then all of it by a KMS plug-in on each control
//! plane, whose key is replaced, then Secrets alone by a key once more.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::names::{annotation, condition};
use crds::step::Role;
use crds::{ClusterDeployment, Conditions};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{ROTATED, Writing};
use crate::eventually::{Look, eventually};
use crate::lifecycle::scenario::control_plane::no_longer_than_an_election;
use crate::lifecycle::stage::{CLUSTER, Stage};
use crate::lifecycle::whole::{ETCDCTL, each_api_server};

const NAME: &str = "from-before-the-edit";
const CONTENT: &str = "it is plain at first";
/// It encrypts with keys of its own.
const PLUGIN: &str = include_str!("../../../../../executor/tests/modules/kms_test_plugin.py");
const PLACE: &str = "/opt/kms-test";
const SOCKET: &str = "/run/kms-test/plugin.sock";
/// By which values in etcd begin.
const PLAIN: &str = "k8s\\x00";

/// All edits one after the other, each under a client that writes; how long each took.
pub async fn edits(stage: &Stage<'_>, planes: usize) -> Result<Vec<String>> {
    let config_maps: Api<ConfigMap> = Api::namespaced(stage.client().await?, "default");
    let data = [("text".to_owned(), CONTENT.to_owned())].into();
    let mut before = ConfigMap { data: Some(data), ..ConfigMap::default() };
    before.metadata.name = Some(NAME.into());
    config_maps.create(&PostParams::default(), &before).await?;
    install_plugins(stage).await?;
    let kms = json!({"name": "test", "endpoint": format!("unix://{SOCKET}"), "timeoutSeconds": 3});
    let wide = json!(["secrets", "configmaps"]);
    let by_key = "k8s:enc:secretbox:v1:";
    let mut told = Vec::new();
    for (what, encryption, secrets, config_maps) in [
        ("configmaps too", json!({"resources": wide}), by_key, by_key),
        (
            "by a plug-in",
            json!({"resources": wide, "provider": "KMSv2", "kms": kms}),
            "k8s:enc:kms:v2:test.secrets:",
            "k8s:enc:kms:v2:test.configmaps:",
        ),
        ("by a key again", Value::Null, by_key, PLAIN),
    ] {
        let begun = Instant::now();
        let patch = json!({"spec": {"encryption": encryption}});
        let api = stage.scenario.api::<ClusterDeployment>();
        api.patch(CLUSTER, &PatchParams::default(), &Patch::Merge(patch)).await?;
        follow(stage, what, &[("secrets", secrets), ("configmaps", config_maps)], None).await?;
        is_read(stage, planes).await?;
        told.push(format!("{what} {:.0} s", begun.elapsed().as_secs_f64()));
        if what == "by a plug-in" {
            let begun = Instant::now();
            replace_key(stage).await?;
            told.push(format!("another key of it {:.0} s", begun.elapsed().as_secs_f64()));
            is_read(stage, planes).await?;
        }
    }
    Ok(told)
}

/// The plug-in runs on each control plane, with the same key.
async fn install_plugins(stage: &Stage<'_>) -> Result<()> {
    let key: String = (0..32).map(|_| format!("{:02x}", rand::random::<u8>())).collect();
    let keys = json!({ "test-key-1": key }).to_string();
    for member in stage.members(Role::ControlPlane).await? {
        let machine = stage.machine_of(&member)?;
        let command = format!(
            "mkdir -p {PLACE} && echo {} | base64 -d > {PLACE}/plugin.py && echo {} | base64 -d > {PLACE}/keys && \
             systemd-run --unit kms-test-plugin python3 {PLACE}/plugin.py {SOCKET} {PLACE}/keys",
            STANDARD.encode(PLUGIN),
            STANDARD.encode(&keys)
        );
        stage.scenario.ssh(&machine, &command).await?;
    }
    Ok(())
}

/// The plug-in encrypts with another key, and what it has encrypted before is written anew without a restart of an API
/// server.
async fn replace_key(stage: &Stage<'_>) -> Result<()> {
    let key: String = (0..32).map(|_| format!("{:02x}", rand::random::<u8>())).collect();
    let add = format!(
        "import json; keys = json.load(open('{PLACE}/keys')); keys['test-key-2'] = '{key}'; json.dump(keys, open('{PLACE}/keys', 'w'))"
    );
    let started = "pgrep -o -x kube-apiserver | xargs -I PID stat -c %Y /proc/PID";
    let planes = stage.members(Role::ControlPlane).await?;
    let mut before = Vec::new();
    for member in &planes {
        let machine = stage.machine_of(member)?;
        before.push(stage.scenario.ssh(&machine, started).await?);
        stage.scenario.ssh(&machine, &format!("python3 -c \"{add}\"")).await?;
    }
    let number = 2;
    stage.say(annotation::ROTATE, &format!("encryption-key.{number}")).await?;
    let expected = [("secrets", "test-key-2"), ("configmaps", "test-key-2")];
    follow(stage, "with another key of the plug-in", &expected, Some(&format!("encryption-key.{number}"))).await?;
    for (member, before) in planes.iter().zip(before) {
        let machine = stage.machine_of(member)?;
        let now = stage.scenario.ssh(&machine, started).await?;
        ensure!(now == before, "the API server of {} was started anew", machine.name());
    }
    Ok(())
}

/// Waits until no change of it is under way and etcd has all objects of each resource so, under a client that writes.
async fn follow(stage: &Stage<'_>, what: &str, expected: &[(&str, &str)], rotated: Option<&str>) -> Result<()> {
    let mut writing = Writing::begin(stage).await?;
    let api = stage.scenario.api::<ClusterDeployment>();
    let mut last = String::new();
    eventually(&format!("encryption is edited: {what}"), ROTATED, async || {
        writing.follow(stage).await?;
        let deployment = api.get(CLUSTER).await?;
        let said = deployment.condition(condition::AUTHORITIES_ROTATED).cloned();
        let message = deployment.status.and_then(|status| status.message).unwrap_or_default();
        if last != message {
            stage.scenario.say(&message);
            last.clone_from(&message);
        }
        let (reason, words) = said.map(|said| (said.reason, said.message)).unwrap_or_default();
        let is_asked = rotated.is_none_or(|rotated| reason == "Rotated" && words.starts_with(rotated));
        if reason == "RotatingAuthorities" || !is_asked {
            return Ok(Look::Waiting(message));
        }
        for (resource, beginning) in expected {
            let others = others_in_etcd(stage, resource, beginning).await?;
            if others > 0 {
                return Ok(Look::Waiting(format!("{others} {resource} have no {beginning:?}: {message}")));
            }
        }
        Ok(Look::Done(()))
    })
    .await?;
    writing.end().iter().try_for_each(no_longer_than_an_election)
}

/// How many values of a resource do not have this in them.
async fn others_in_etcd(stage: &Stage<'_>, resource: &str, beginning: &str) -> Result<u64> {
    let planes = stage.members(Role::ControlPlane).await?;
    let machine = stage.machine_of(planes.first().context("there is no control plane")?)?;
    // Keys and values one after the other, as JSON: a value may have line ends.
    let count = format!(
        "{ETCDCTL} get --prefix /registry/{resource}/ --write-out=json | python3 -c \"import base64, json, sys; \
         print(sum(b'{beginning}' not in base64.b64decode(entry['value']) for entry in json.load(sys.stdin)['kvs']))\""
    );
    let said = stage.scenario.ssh(&machine, &count).await?;
    said.trim().parse().with_context(|| format!("etcd says {said:?}"))
}

/// Each API server reads what is from before.
async fn is_read(stage: &Stage<'_>, planes: usize) -> Result<()> {
    for (machine, client) in each_api_server(stage, planes).await? {
        let found = Api::<ConfigMap>::namespaced(client, "default").get(NAME).await;
        let found = found.with_context(|| format!("the API server of {} does not read it", machine.name()))?;
        let text = found.data.unwrap_or_default().remove("text");
        ensure!(text.as_deref() == Some(CONTENT), "{} reads {text:?}", machine.name());
    }
    Ok(())
}
