//! The operator in the metadata cluster, installed as an administrator would: from `manifests/`.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::metadata::Metadata;
use crate::progress::Progress;
use crate::project;

const NAMESPACE: &str = "clusterwright-system";
const DEADLINE: Duration = Duration::from_secs(120);

/// Applies the manifests and waits until the operator runs. With a new image it is restarted: its tag stays the same.
pub fn deploy(metadata: &Metadata, image_changed: bool, progress: &Progress) -> Result<()> {
    let manifests = project::path("manifests");
    let task = progress.task("operator");
    let run = |args: &[&str]| metadata.kubectl_invocation()?.args(args).within(DEADLINE).run();
    let there = run(&["get", "deployments", "-n", NAMESPACE, "-o", "name"]).unwrap_or_default();
    let directory = manifests.display().to_string();
    run(&["apply", "--server-side", "--force-conflicts", "-k", &directory])
        .context("failed to apply the operator's manifests")?;
    run(&["wait", "--for=condition=Established", "--timeout=30s", "customresourcedefinitions", "--all"])
        .context("failed to wait for the API of the operator's objects")?;
    if image_changed && !there.trim().is_empty() {
        run(&["rollout", "restart", "deployment", "-n", NAMESPACE]).context("failed to restart the operator")?;
    }
    if let Err(error) = run(&["rollout", "status", "deployment", "-n", NAMESPACE, "--timeout=100s"]) {
        let pods = run(&["get", "pods", "-n", NAMESPACE, "-o", "wide"]).unwrap_or_default();
        let log = run(&[
            "logs",
            "-n",
            NAMESPACE,
            "--all-containers",
            "--prefix",
            "--tail=25",
            "-l",
            "app.kubernetes.io/part-of=clusterwright",
        ]);
        return Err(error).context(format!("the operator does not run:\n{pods}\n{}", log.unwrap_or_default()));
    }
    task.done();
    Ok(())
}
