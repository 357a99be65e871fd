//! A Secret from before the key that it is encrypted with is rotated.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use crds::step::Role;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;

use crate::lifecycle::stage::Stage;
use crate::lifecycle::whole::{ETCDCTL, each_api_server};

const NAME: &str = "from-before-the-rotation";
const CONTENT: &str = "it is encrypted with the former key";
/// What each stage of a rotation says in STATUS.
const STAGES: [&str; 4] =
    ["the next one decrypts: ", "the next one encrypts: ", "all Secrets are rewritten: ", "the former one goes"];

/// It, and the key that it was encrypted with.
pub struct StoredSecret {
    former: String,
}

impl StoredSecret {
    /// Writes it.
    pub async fn write(stage: &Stage<'_>) -> Result<Self> {
        let mut secret = Secret { string_data: Some([("text".into(), CONTENT.into())].into()), ..Secret::default() };
        secret.metadata.name = Some(NAME.into());
        let secrets: Api<Secret> = Api::namespaced(stage.client().await?, "default");
        secrets.create(&PostParams::default(), &secret).await?;
        let keys = keys_in_etcd(stage, &format!("/registry/secrets/default/{NAME}")).await?;
        let former = keys.first().context("it is not encrypted")?.clone();
        Ok(Self { former })
    }

    /// Each API server reads it, nothing in etcd is encrypted with its former key, and STATUS has told of each stage.
    pub async fn is_kept(&self, stage: &Stage<'_>, planes: usize, messages: &[String]) -> Result<()> {
        for (machine, client) in each_api_server(stage, planes).await? {
            let found = Api::<Secret>::namespaced(client, "default").get(NAME).await;
            let found = found.with_context(|| format!("the API server of {} does not read it", machine.name()))?;
            let text = found.data.unwrap_or_default().remove("text").map(|text| text.0);
            ensure!(text.as_deref() == Some(CONTENT.as_bytes()), "{} reads something else", machine.name());
        }
        let keys = keys_in_etcd(stage, "/registry/secrets/").await?;
        ensure!(keys.len() == 1 && !keys.contains(&self.former), "Secrets are encrypted with {keys:?}");
        let untold: Vec<&str> =
            STAGES.into_iter().filter(|stage| !messages.iter().any(|message| message.contains(stage))).collect();
        ensure!(untold.is_empty(), "STATUS has not told of {untold:?}: {messages:#?}");
        Ok(())
    }
}

/// The names of the keys that all values below a prefix are encrypted with; an error if one is not.
async fn keys_in_etcd(stage: &Stage<'_>, prefix: &str) -> Result<BTreeSet<String>> {
    let planes = stage.members(Role::ControlPlane).await?;
    let machine = stage.machine_of(planes.first().context("there is no control plane")?)?;
    let command = format!(
        "{ETCDCTL} get --prefix --keys-only {prefix} | grep -c . ; \
         {ETCDCTL} get --prefix --print-value-only {prefix} | grep -aoE '^k8s:enc:secretbox:v1:[^:]+:'"
    );
    let said = stage.scenario.ssh(&machine, &command).await?;
    let (count, found) = said.trim().split_once('\n').with_context(|| format!("etcd says {said:?}"))?;
    let names: Vec<&str> = found.lines().filter_map(|line| line.trim_end_matches(':').rsplit(':').next()).collect();
    ensure!(count.trim().parse() == Ok(names.len()), "{} of {count} Secrets are encrypted", names.len());
    Ok(names.into_iter().map(str::to_owned).collect())
}
