//! The commands that messages print, through kubectl's own parser and against a real API server.

use anyhow::{Context, Result, ensure};
use crds::commands::{Target, annotate, create_secret, delete, remove_field};
use crds::names::annotation;
use e2e::api_server::ApiServer;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::{backup, cluster_addon, created, deployment, host, karmada_deployment, machine, restore};

/// Runs a command as it is printed; its words are what a shell makes of it: the last one may stand in quotes.
fn typed(server: &ApiServer, command: &str) -> Result<String> {
    let words = command.strip_prefix("kubectl ").context("not a command of kubectl")?;
    let (plain, quoted) = words.split_once(" '").unwrap_or((words, ""));
    let changed = |c: char| !(c.is_ascii_alphanumeric() || " -_./=,:".contains(c));
    ensure!(!plain.contains(changed), "a shell would change `{command}`");
    let mut words: Vec<&str> = plain.split(' ').collect();
    words.extend(quoted.strip_suffix('\''));
    server.kubectl(&words).with_context(|| format!("`{command}`"))
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_as_messages_print_them() -> Result<()> {
    let server = ApiServer::shared().await?;
    for target in Target::ALL {
        let object = match target {
            Target::ClusterAddon => cluster_addon("typed"),
            Target::ClusterDeployment => deployment("typed"),
            Target::EtcdBackup => backup("typed"),
            Target::EtcdRestore => restore("typed"),
            Target::Host => host("typed"),
            Target::KarmadaDeployment => karmada_deployment("typed"),
            Target::Machine => machine("typed-general-x7k2m9"),
        };
        let object = created(&server, object).await?;
        let metadata: ObjectMeta = serde_json::from_value(object["metadata"].clone())?;
        let name = metadata.name.clone().unwrap_or_default();
        for (key, value) in [
            (annotation::RETRY, "1"),
            (annotation::RETRY, "1.2"),
            (annotation::APPROVE, "1.quorum-loss"),
            (annotation::DELETE_CONFIRMED, "1.force"),
            (annotation::FORCE_REMOVE, "1"),
            (annotation::RELEASE, "1"),
            (annotation::UNLOCK, "1"),
            (annotation::DEFRAGMENT, "1"),
        ] {
            typed(&server, &annotate(target, &metadata, key, value))?;
            let resource = target.resource();
            let seen = server.kubectl(&["-n", "default", "get", &resource, &name, "-o", "json"])?;
            let seen: Value = serde_json::from_str(&seen)?;
            ensure!(seen["metadata"]["annotations"][key] == value, "{target:?} {key}");
        }
        typed(&server, &remove_field(target, &metadata, "nothing"))?;
        typed(&server, &delete(target, &metadata))?;
    }
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("ca.crt"), "x")?;
    let restore = create_secret("default", "typed-pki");
    typed(&server, &restore.replace("DIRECTORY", &directory.path().to_string_lossy()))?;
    Ok(())
}
