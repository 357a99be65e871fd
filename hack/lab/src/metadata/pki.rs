//! Certificates and kubeconfigs of the metadata cluster, made by kubeadm's own phases.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow};

use super::NODES;
use crate::command::Invocation;
use crate::network::{HOST_ADDRESS, POD_NETWORK};
use crate::place::{write, write_private};

/// The network of the metadata cluster's Services.
pub(super) const SERVICE_NETWORK: &str = "10.201.0.0/16";

/// The files of the metadata cluster's identities.
#[derive(Debug, Clone)]
pub(super) struct Pki {
    directory: PathBuf,
}

impl Pki {
    pub(super) fn at(metadata: &Path) -> Self {
        Self { directory: metadata.to_owned() }
    }

    /// A certificate or key, by kubeadm's name of it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.join("pki").join(name)
    }

    /// The kubeconfig of a component or node.
    pub(super) fn kubeconfig(&self, of: &str) -> PathBuf {
        match of {
            "admin" => self.directory.join("kubeconfig"),
            _ => self.directory.join(format!("{of}.conf")),
        }
    }

    /// Makes everything that is not there.
    pub(super) fn ensure(&self, kubeadm: &Path, version: &str) -> Result<()> {
        let config = self.directory.join("kubeadm.yaml");
        write(&config, configuration(&self.file(""), version))?;
        // kubeadm leaves certificates alone that it finds.
        Invocation::new(kubeadm)
            .args(["init", "phase", "certs", "all", "--config"])
            .args([&config])
            .run()
            .context("failed to make the metadata cluster's certificates")?;
        let mut users = vec![
            ("admin".to_owned(), "lab-admin".to_owned(), Some("system:masters")),
            ("controller-manager".to_owned(), "system:kube-controller-manager".to_owned(), None),
            ("scheduler".to_owned(), "system:kube-scheduler".to_owned(), None),
            ("kube-proxy".to_owned(), "system:kube-proxy".to_owned(), None),
        ];
        for (node, _) in NODES {
            users.push((node.to_owned(), format!("system:node:{node}"), Some("system:nodes")));
        }
        thread::scope(|scope| {
            let makers: Vec<_> = users
                .iter()
                .filter(|(file, ..)| !self.kubeconfig(file).exists())
                .map(|(file, user, group)| {
                    let config = &config;
                    scope.spawn(move || self.make_kubeconfig(kubeadm, config, file, user, *group))
                })
                .collect();
            makers.into_iter().try_for_each(|maker| maker.join().map_err(|_| anyhow!("a kubeconfig's thread ended"))?)
        })
    }

    fn make_kubeconfig(
        &self,
        kubeadm: &Path,
        config: &Path,
        file: &str,
        user: &str,
        group: Option<&str>,
    ) -> Result<()> {
        let mut invocation =
            Invocation::new(kubeadm).args(["kubeconfig", "user", "--client-name", user, "--config"]).args([config]);
        if let Some(group) = group {
            invocation = invocation.args(["--org", group]);
        }
        let text = invocation.run().with_context(|| format!("failed to make the kubeconfig of {user}"))?;
        let path = self.kubeconfig(file);
        // Whole or not at all: one that is there counts as made.
        let draft = path.with_extension("draft");
        write_private(&draft, text)?;
        fs::rename(&draft, &path).with_context(|| format!("failed to move {} into place", path.display()))
    }
}

fn configuration(certificates: &Path, version: &str) -> String {
    format!(
        "apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: {HOST_ADDRESS}, bindPort: 6443}}
nodeRegistration: {{name: {node}}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v{version}
clusterName: metadata
certificatesDir: {certificates}
controlPlaneEndpoint: {HOST_ADDRESS}:6443
encryptionAlgorithm: ECDSA-P256
networking: {{serviceSubnet: {SERVICE_NETWORK}, podSubnet: {POD_NETWORK}}}
etcd: {{local: {{dataDir: /nowhere, serverCertSANs: [\"{HOST_ADDRESS}\"]}}}}
",
        node = NODES[0].0,
        certificates = certificates.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_for_the_address_that_pods_and_people_use() {
        let text = configuration(Path::new("/lab/metadata/pki"), "1.35.4");
        for wanted in
            ["certificatesDir: /lab/metadata/pki", "advertiseAddress: 172.30.0.1", "kubernetesVersion: v1.35.4"]
        {
            assert!(text.contains(wanted), "{wanted} is not in {text}");
        }
    }

    #[test]
    fn the_administrators_kubeconfig_is_where_everybody_looks_for_it() {
        let pki = Pki::at(Path::new("/lab/metadata"));
        assert_eq!(pki.kubeconfig("admin"), Path::new("/lab/metadata/kubeconfig"));
        assert_eq!(pki.kubeconfig("meta-1"), Path::new("/lab/metadata/meta-1.conf"));
    }
}
