//! Kubernetes' controllers beside an API server of a test: what only a controller makes is there, tokens of
//! ServiceAccounts and the Pods of a Deployment, which nobody runs.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use lab::cache::Cache;
use lab::programs::Programs;

use super::ApiServer;

const CONTROLLERS: &str = "deployment-controller,disruption-controller,garbage-collector-controller,namespace-controller,\
     replicaset-controller,root-ca-certificate-publisher-controller,serviceaccount-controller,\
     serviceaccount-token-controller,statefulset-controller";

/// A kube-controller-manager, which ends when it is let go of.
pub struct Controllers(Child);

impl ApiServer {
    /// Starts kube-controller-manager for it.
    pub fn start_controllers(&self) -> Result<Controllers> {
        let program = Programs::from_env(&Cache::from_env()).find("kube-controller-manager")?;
        let directory = self.processes.directory.path();
        std::fs::write(directory.join("controllers.kubeconfig"), self.checked_kubeconfig()?)?;
        let log = File::create(directory.join("kube-controller-manager.log"))?;
        let child = Command::new(&program)
            .arg(format!("--controllers={CONTROLLERS}"))
            .args(["--kubeconfig=controllers.kubeconfig", "--leader-elect=false", "--secure-port=0"])
            .args(["--root-ca-file=certs/apiserver.crt", "--service-account-private-key-file=sa.key"])
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("failed to start {}", program.display()))?;
        Ok(Controllers(child))
    }
}

impl Drop for Controllers {
    fn drop(&mut self) {
        // One that has ended already is no error.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
