//! The data of a plane's etcd, brought to another one: `etcdctl` takes the snapshot, and `etcdutl` makes data of it as
//! the operator's Job says. What would carry it from one to the other is not here.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;

use super::World;
use crate::host;
use crate::programs::{command, run_etcd};

/// Files of the API server by which it reaches etcd: the flag of `etcdctl`, and the key in its Secret.
const FILES: [(&str, &str); 3] = [
    ("cacert", "pki.etcd.ca.crt"),
    ("cert", "pki.apiserver-etcd-client.crt"),
    ("key", "pki.apiserver-etcd-client.key"),
];

/// A snapshot of etcd, for as long as it is held.
pub(super) struct Snapshot {
    directory: tempfile::TempDir,
}

impl Snapshot {
    /// Takes that of a plane with one member.
    pub(super) async fn take(world: &World) -> Result<Self> {
        let own = Self { directory: tempfile::tempdir()? };
        let secrets: Api<Secret> = Api::namespaced(world.client.clone(), world.namespace);
        let files = secrets.get(&format!("{}-apiserver", world.name)).await?.data.unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(world.client.clone(), world.namespace);
        let pod = pods.get(&format!("{}-etcd-0", world.name)).await?;
        let address = pod.status.and_then(|status| status.pod_ip).context("etcd has no address")?;
        // It is reached by an address that its certificate does not have.
        let mut arguments =
            vec![format!("--endpoints=https://{address}:2379"), "--insecure-skip-tls-verify".to_owned()];
        for (flag, key) in FILES {
            let path = own.directory.path().join(key);
            fs::write(&path, &files.get(key).with_context(|| format!("the API server has no {key}"))?.0)?;
            arguments.push(format!("--{flag}={}", path.display()));
        }
        arguments.extend(["snapshot".to_owned(), "save".to_owned(), own.file().display().to_string()]);
        run_etcd("etcdctl", &arguments)?;
        Ok(own)
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("snapshot.db")
    }

    /// Waits for the Job that makes the data of a plane's only member, and does what its container would.
    pub(super) async fn restore(&self, world: &World) -> Result<()> {
        let jobs: Api<Job> = Api::namespaced(world.client.clone(), world.namespace);
        let name = format!("{}-etcd-restore-0", world.name);
        world.until("making data", async |_| Ok(jobs.get_opt(&name).await?.is_some())).await?;
        let job = serde_json::to_value(jobs.get(&name).await?)?;
        let volume = world.node.root(&format!("{}-etcd-0", world.name)).join("var/lib/etcd");
        fs::create_dir_all(&volume)?;
        let arguments =
            command(&job)?.into_iter().map(|argument| match argument.strip_prefix("--data-dir=/var/lib/etcd") {
                Some(below) => format!("--data-dir={}{below}", volume.display()),
                None if argument == "/restore/snapshot.db" => self.file().display().to_string(),
                None => argument,
            });
        run_etcd("etcdutl", &arguments.collect::<Vec<_>>())?;
        let security = &job["spec"]["template"]["spec"]["securityContext"];
        let owner = format!("{}:{}", security["runAsUser"], security["fsGroup"]);
        let status = Command::new("chown").arg("-R").arg(&owner).arg(&volume).status()?;
        ensure!(status.success(), "chown {owner}: {status}");
        host::complete(&jobs, &name).await
    }
}
