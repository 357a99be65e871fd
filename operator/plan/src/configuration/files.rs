//! Files that the configuration of a control plane refers to: each the value of one key of a ConfigMap. Their content
//! is not in the spec, so that statuses remember a digest of it beside the parts.

use std::collections::BTreeMap;

use crds::references::LocalRef;
use crds::step::Step;
use crds::{ClusterDeployment, Reason};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::inputs::InputsProblem;
use crate::settings;

/// Its name in statuses, beside those of the parts.
pub const NAME: &str = "files";

/// The steps that bring it to a control plane.
pub const STEPS: [Step; 2] = [Step::ControlPlane, Step::ControlPlaneConfiguration];

/// A file of a component.
pub struct File {
    /// The field of the spec that refers to it, for messages.
    pub field: &'static str,
    /// Its name on the machine, and the key of the ConfigMap.
    pub key: &'static str,
    /// The component that reads it.
    program: &'static str,
    reference: fn(&ClusterDeployment) -> Option<&LocalRef>,
}

pub(super) const AUDIT_POLICY: File = File {
    field: "configuration.apiServer.audit.policyRef",
    key: "audit-policy.yaml",
    program: "kube-apiserver",
    reference: |deployment| {
        let api_server = deployment.spec.configuration.as_ref()?.api_server.as_ref()?;
        Some(&api_server.audit.as_ref()?.policy_ref)
    },
};
pub(super) const AUTHENTICATION: File = File {
    field: "configuration.apiServer.authenticationRef",
    key: "authentication.yaml",
    program: "kube-apiserver",
    reference: |deployment| deployment.spec.configuration.as_ref()?.api_server.as_ref()?.authentication_ref.as_ref(),
};
pub(super) const SCHEDULER: File = File {
    field: "configuration.scheduler.configurationRef",
    key: "scheduler.yaml",
    program: "kube-scheduler",
    reference: |deployment| deployment.spec.configuration.as_ref()?.scheduler.as_ref()?.configuration_ref.as_ref(),
};

/// All files.
pub const FILES: [File; 3] = [AUDIT_POLICY, AUTHENTICATION, SCHEDULER];

impl File {
    /// Where the component finds it.
    pub(super) fn path(&self) -> String {
        format!("/etc/kubernetes/clusterwright/{}/{}", self.program, self.key)
    }

    /// What the ConfigMap of this name has of it; `None`: it is not there.
    pub fn content(&self, name: &str, map: Option<ConfigMap>) -> Result<String, InputsProblem> {
        let what = match map {
            None => format!("is not there: make it, with the key {}", self.key),
            Some(map) => match map.data.unwrap_or_default().remove(self.key) {
                Some(content) => return Ok(content),
                None => format!("has no key {} in its data: add it", self.key),
            },
        };
        let message = format!("ConfigMap {name} of {} {what}", self.field);
        Err(InputsProblem::waits(Reason::ConfigMapNotFound, message))
    }

    /// The ConfigMap that has it; none: it is not wanted.
    pub fn reference<'a>(&self, deployment: &'a ClusterDeployment) -> Option<&'a LocalRef> {
        (self.reference)(deployment)
    }
}

/// A digest of the content, by keys; none where there is none.
pub fn digest(contents: &BTreeMap<String, String>) -> Option<String> {
    (!contents.is_empty()).then(|| settings::digest(contents))
}

/// The variables by which runs get them.
pub fn variables(contents: &BTreeMap<String, String>) -> BTreeMap<String, Value> {
    let of = |program: &str| -> Value {
        let files = FILES.iter().filter(|file| file.program == program);
        let found = files.filter_map(|file| Some((file.key, contents.get(file.key)?)));
        found.map(|(key, content)| json!({"name": key, "content": content, "mode": "0600"})).collect()
    };
    BTreeMap::from([
        ("kube_apiserver_files".to_owned(), of("kube-apiserver")),
        ("kube_scheduler_files".to_owned(), of("kube-scheduler")),
    ])
}
