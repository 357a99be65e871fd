//! Inputs to start from, for those who write playbooks and run them by hand.

use std::collections::BTreeMap;

use crds::host::HostKeyPolicy;
use crds::inputs::{CredentialKind, Group, HostInputs, RunInputs};
use crds::step::{Intent, Step};
use serde_json::json;

/// A model with one worker.
pub fn model() -> RunInputs {
    let host = HostInputs {
        address: "172.30.0.10".to_owned(),
        port: 22,
        user: "root".to_owned(),
        use_sudo: false,
        credential: "fleet".to_owned(),
        credential_kind: CredentialKind::SshKey,
        host_keys: Vec::new(),
        host_key_policy: HostKeyPolicy::TrustOnFirstUse,
        bastion: None,
        groups: vec![Group::KubeNode],
        claim_epoch: 0,
        claim_uid: None,
        comparisons: Vec::new(),
        identity: None,
        vars: BTreeMap::from([("ip".to_owned(), json!("172.30.0.10")), ("access_ip".to_owned(), json!("172.30.0.10"))]),
    };
    RunInputs {
        namespace: "default".to_owned(),
        run: "by-hand".to_owned(),
        cluster_name: None,
        intent: Intent::Custom,
        steps: vec![Step::BootstrapOs, Step::Preflight],
        resume: false,
        hosts: BTreeMap::from([("w1".to_owned(), host)]),
        vars: BTreeMap::from([
            ("kube_version".to_owned(), json!("1.35.4")),
            ("artifacts_url".to_owned(), json!("http://172.30.0.1:8080")),
        ]),
        playbooks: BTreeMap::new(),
        backup: None,
        staging: None,
    }
}

/// Its text.
pub fn text() -> String {
    serde_json::to_string_pretty(&model()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_example_is_accepted_as_it_stands() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["model", "secrets"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        std::fs::write(directory.path().join("model/inputs.json"), super::text()).unwrap();
        std::fs::write(directory.path().join("secrets/ssh-privatekey.fleet"), "key\n").unwrap();
        let inputs = crate::inputs::read(directory.path(), None).unwrap();
        assert_eq!(inputs.model, super::model());
    }
}
