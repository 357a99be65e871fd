//! What a Machine, or a set of them, requests of a Host.

use crds::ObjectExt;
use crds::placement::HostSelector;
use crds::{Host, Machine};

/// Which Hosts may be taken.
#[derive(Clone, Copy, Debug)]
pub struct HostRequest<'a> {
    /// Labels that a Host must carry.
    pub selector: Option<&'a HostSelector>,
    /// Names, in the order of preference.
    pub hosts: Option<&'a [String]>,
    /// Keys of labels over whose values machines are spread.
    pub spread_by: &'a [String],
}

impl<'a> HostRequest<'a> {
    /// What a Machine wishes. One that names its Host wishes that one.
    pub fn from_machine(machine: &'a Machine) -> Self {
        Self {
            selector: machine.spec.host_selector.as_ref(),
            hosts: machine.spec.hosts.as_deref(),
            spread_by: &machine.spec.spread_by,
        }
    }

    /// Whether the Host is one of those wished for, and large enough; says nothing about whether it is free.
    pub fn matches(&self, host: &Host) -> bool {
        self.selects(host) && self.too_small(host).is_none()
    }

    /// Whether the Host has a name and the labels that are wished for.
    pub(super) fn selects(&self, host: &Host) -> bool {
        let name = host.name();
        let named = self.hosts.is_none_or(|hosts| hosts.iter().any(|wished| wished == name));
        let labels = host.metadata.labels.as_ref();
        let labelled = self.selector.is_none_or(|selector| {
            let has = |key: &String, value: &str| {
                labels.and_then(|labels| labels.get(key)).map(String::as_str) == Some(value)
            };
            let mut wanted = selector.match_labels.iter();
            let mut requirements = selector.match_expressions.iter();
            wanted.all(|(key, value)| has(key, &value.0)) && requirements.all(|requirement| requirement.is_met(labels))
        });
        named && labelled
    }

    /// What the Host has too little of, as far as its facts are known.
    pub(super) fn too_small(&self, host: &Host) -> Option<String> {
        let selector = self.selector?;
        let (cpus, memory) = (selector.min_cpus, selector.min_memory_mib);
        if cpus.is_none() && memory.is_none() {
            return None;
        }
        let Some(facts) = host.status.as_ref().and_then(|status| status.facts.as_ref()) else {
            return Some("its size is not known yet".into());
        };
        let cpus = cpus.filter(|least| facts.cpus < *least).map(|least| format!("fewer than {least} CPUs"));
        let memory =
            memory.filter(|least| facts.memory_mib < *least).map(|least| format!("less than {least} MiB of memory"));
        let lacks: Vec<String> = cpus.into_iter().chain(memory).collect();
        (!lacks.is_empty()).then(|| lacks.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use crds::Machine;

    use super::{Host, HostRequest};

    #[test]
    fn a_host_is_selected_by_expressions_as_kubernetes_selects() {
        let host = |labels: &str| -> Host {
            serde_yaml::from_str(&format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: h, labels: {{{labels}}}}}, spec: {{address: 10.0.0.1, ssh: {{credentialsRef: {{name: k}}}}}}}}")).unwrap()
        };
        let check = |expression: &str, labels: &str, expected: bool| {
            let machine: Machine = serde_yaml::from_str(&format!("{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: m}}, spec: {{clusterName: a, role: worker, kubernetesVersion: 1.35.4, hostSelector: {{matchLabels: {{size: large}}, matchExpressions: [{expression}]}}}}}}")).unwrap();
            let labels = format!("size: large, {labels}");
            assert_eq!(HostRequest::from_machine(&machine).matches(&host(&labels)), expected, "{expression} {labels}");
        };
        check("{key: rack, operator: In, values: [r1, r2]}", "rack: r2", true);
        check("{key: rack, operator: In, values: [r1, r2]}", "rack: r3", false);
        check("{key: rack, operator: In, values: [r1]}", "", false);
        check("{key: rack, operator: NotIn, values: [r1]}", "rack: r1", false);
        check("{key: rack, operator: NotIn, values: [r1]}", "", true);
        check("{key: gpu, operator: Exists}", "gpu: ''", true);
        check("{key: gpu, operator: Exists}", "", false);
        check("{key: gpu, operator: DoesNotExist}", "", true);
        check("{key: gpu, operator: DoesNotExist}", "gpu: a", false);
        check("{key: gpu, operator: Exists}, {key: rack, operator: NotIn, values: [r1]}", "gpu: a, rack: r1", false);
    }
}
