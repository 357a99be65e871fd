//! Objects that the API server has and our types cannot decode. They are missing from every list, and missing is not
//! deleted: this says for whom that could make a difference, from what can still be read of them. Where it cannot be
//! read, the answer is yes.

mod hold;

pub use hold::{ended, status_on_hold};

use crds::networking::EndpointProvider;
use crds::{ClusterDeployment, Host, Machine};
use serde_json::Value;

use crate::claims::without_comment;
use crate::inputs::address_in_cluster;
use crate::message::quote;

/// An object that cannot be decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Undecodable {
    /// Its kind, e.g. `Host`.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The field that cannot be decoded, e.g. `spec.quarantine.since`.
    pub field: String,
    /// What is wrong with the field.
    pub error: String,
    /// The object as the API server has it.
    pub object: Value,
}

impl Undecodable {
    /// `Host fleet/h1 cannot be decoded: spec.quarantine.since: ...`.
    pub fn message(&self) -> String {
        let (kind, namespace, name, field) = (&self.kind, &self.namespace, &self.name, &self.field);
        let error = quote(self.error.clone());
        format!("{kind} {namespace}/{name} cannot be decoded: {field}: {error}")
    }

    /// What whoever waits for it says.
    pub fn hold_message(&self) -> String {
        format!("on hold: {}; correct that field or delete the object", self.message())
    }

    /// Whether something of this cluster would be decided without this object. `machines`: all Machines that are known.
    pub fn concerns_cluster<'a>(
        &self,
        namespace: &str,
        cluster: &str,
        machines: impl IntoIterator<Item = &'a Machine>,
    ) -> bool {
        if self.namespace != namespace {
            return false;
        }
        let spec = &self.object["spec"];
        match self.kind.as_str() {
            "ClusterDeployment" | "Cluster" => self.name == cluster,
            "Machine" | "MachineSet" => spec["clusterName"].as_str().is_none_or(|name| name == cluster),
            // A run without a cluster holds no cluster's lock.
            "PlaybookRun" => !spec["clusterName"].is_null() && is_or_unreadable(&spec["clusterName"], cluster),
            // A policy without a cluster is for all of them.
            "RemediationPolicy" => is_or_unreadable(&spec["clusterName"], cluster),
            "Host" => self.host_concerns(namespace, cluster, machines),
            // They are their run's alone.
            "Job" | "Pod" => false,
            // They read a cluster, and change nothing of it.
            "BackupStorage" | "EtcdBackup" | "EtcdBackupSchedule" => false,
            // They make Machines, which are seen for themselves; nobody else decides by them.
            "MachineRequest" | "HostPool" => false,
            // They change what is on a cluster, and nothing of the cluster itself.
            "Addon" | "ClusterAddon" => false,
            // It may form it; and a member leaves it before its cluster is deleted.
            "KarmadaDeployment" => self.name == cluster || may_have_member(&self.object["status"]["members"], cluster),
            // While one is under way, nothing else is.
            "EtcdRestore" => {
                let is_of_plane = spec["clusterName"].is_null() && spec["karmadaDeploymentRef"].is_object();
                !is_of_plane && is_or_unreadable(&spec["clusterName"], cluster)
            }
            _ => true,
        }
    }

    fn host_concerns<'a>(
        &self,
        namespace: &str,
        cluster: &str,
        machines: impl IntoIterator<Item = &'a Machine>,
    ) -> bool {
        let spec = &self.object["spec"];
        let (claim, quarantine) = (&spec["claimRef"], &spec["quarantine"]);
        if !claim.is_null() && claim["uid"].as_str().is_none() {
            return true;
        }
        // By it, machines are found that were removed without being reached.
        if !quarantine.is_null() && quarantine["clusterName"].as_str() == Some(cluster) {
            return true;
        }
        let of_cluster = |machine: &&Machine| {
            machine.metadata.namespace.as_deref() == Some(namespace) && machine.spec.cluster_name == cluster
        };
        machines.into_iter().filter(of_cluster).any(|machine| {
            let named = machine.spec.host_ref.as_ref();
            named.is_some_and(|host| host.name == self.name)
                || (machine.metadata.uid.is_some() && machine.metadata.uid.as_deref() == claim["uid"].as_str())
        })
    }

    /// Whether this is a Host that may be the same machine as `host`: two clusters must not get one machine under two
    /// names.
    pub fn may_be_machine_of(&self, host: &Host) -> bool {
        if self.kind != "Host" || host.metadata.namespace.as_deref() != Some(self.namespace.as_str()) {
            return false;
        }
        let spec = &self.object["spec"];
        let Some(address) = spec["address"].as_str() else {
            return true;
        };
        let theirs = [Some(address), spec["internalAddress"].as_str()];
        let ours = [host.spec.address.as_str(), address_in_cluster(host)];
        let same_address = theirs.iter().flatten().any(|address| ours.contains(address));
        let pinned = host.status.iter().flat_map(|status| &status.host_keys);
        let mut ours = host.spec.ssh.host_keys.iter().chain(pinned);
        let theirs = [&spec["ssh"]["hostKeys"], &self.object["status"]["hostKeys"]];
        let theirs: Vec<&str> = theirs
            .into_iter()
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(Value::as_str)
            .map(without_comment)
            .collect();
        same_address || ours.any(|key| theirs.contains(&without_comment(key)))
    }

    /// Whether this is a ClusterDeployment that may hold the endpoint's address that `deployment` is about to take.
    pub fn may_hold_endpoint_of(&self, deployment: &ClusterDeployment) -> bool {
        let installed = deployment.status.as_ref().and_then(|status| status.installed_at.as_ref());
        let ours = deployment.spec.control_plane.endpoint.as_ref();
        let (Some(ours), None, "ClusterDeployment") = (ours, installed, self.kind.as_str()) else {
            return false;
        };
        let theirs = &self.object["spec"]["controlPlane"]["endpoint"];
        if theirs.is_null() {
            return false;
        }
        let held = ours.provider == EndpointProvider::Keepalived;
        is_or_unreadable(&theirs["host"], &ours.host) || (held && theirs["provider"] == "Keepalived")
    }

    /// Whether this is the Job, or a Pod, of a run.
    pub fn is_of_run(&self, namespace: &str, run: &str) -> bool {
        let label = &self.object["metadata"]["labels"][crds::names::label::RUN];
        matches!(self.kind.as_str(), "Job" | "Pod") && self.namespace == namespace && label == run
    }
}

/// Whether a cluster may be one of the members of a Karmada control plane.
fn may_have_member(members: &Value, cluster: &str) -> bool {
    let is_it = |member: &Value| {
        let name = &member["clusterRef"]["name"];
        !name.is_null() && is_or_unreadable(name, cluster)
    };
    !members.is_null() && members.as_array().is_none_or(|members| members.iter().any(is_it))
}

fn is_or_unreadable(value: &Value, wanted: &str) -> bool {
    value.as_str().is_none_or(|value| value == wanted)
}

#[cfg(test)]
mod tests {
    use super::Undecodable;
    use crds::{ClusterDeployment, Host, Machine};

    fn undecodable(kind: &str, name: &str, object: &str) -> Undecodable {
        Undecodable {
            kind: kind.into(),
            namespace: "fleet".into(),
            name: name.into(),
            field: "spec.x".into(),
            error: "no such thing".into(),
            object: serde_yaml::from_str(object).unwrap(),
        }
    }

    fn machine(name: &str, cluster: &str, host: &str) -> Machine {
        let text = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {{name: {name}, namespace: fleet, uid: uid-{name}}}, spec: {{clusterName: {cluster}, role: worker, kubernetesVersion: 1.35.4, {host}}}}}"
        );
        serde_yaml::from_str(&text).unwrap()
    }

    #[test]
    fn an_object_that_cannot_be_decoded_holds_the_clusters_that_decide_by_it_and_no_other() {
        let machines = [
            machine("m1", "a", "hostRef: {name: h1}"),
            machine("m2", "a", ""),
            machine("m3", "b", "hostRef: {name: h3}"),
        ];
        let check = |kind: &str, name: &str, object: &str, expected: &[&str]| {
            let bad = undecodable(kind, name, object);
            let held: Vec<&str> =
                ["a", "b"].into_iter().filter(|cluster| bad.concerns_cluster("fleet", cluster, &machines)).collect();
            assert_eq!(held, expected, "{kind} {name} {object}");
            assert!(!bad.concerns_cluster("other", "a", &machines));
        };
        check("Host", "h9", "{spec: {address: 10.0.0.9}}", &[]);
        check("Host", "h1", "{spec: {address: 10.0.0.1}}", &["a"]);
        check("Host", "h9", "{spec: {claimRef: {name: m2, uid: uid-m2}}}", &["a"]);
        check("Host", "h9", "{spec: {claimRef: {name: m2, uid: of-one-before}}}", &[]);
        check("Host", "h9", "{spec: {claimRef: {name: m2}}}", &["a", "b"]);
        check("Host", "h9", "{spec: {quarantine: {clusterName: b, since: x}}}", &["b"]);
        check("Machine", "m1", "{spec: {clusterName: a}}", &["a"]);
        check("Machine", "m1", "{spec: {clusterName: [a]}}", &["a", "b"]);
        check("Machine", "m1", "{}", &["a", "b"]);
        check("MachineSet", "b-w", "{spec: {clusterName: b}}", &["b"]);
        check("PlaybookRun", "r", "{spec: {clusterName: b}}", &["b"]);
        check("PlaybookRun", "r", "{spec: {clusterName: 1}}", &["a", "b"]);
        check("PlaybookRun", "r", "{spec: {intent: Probe}}", &[]);
        check("ClusterDeployment", "a", "{}", &["a"]);
        check("Cluster", "b", "{}", &["b"]);
        check("RemediationPolicy", "p", "{spec: {clusterName: b}}", &["b"]);
        check("RemediationPolicy", "p", "{spec: {}}", &["a", "b"]);
        check("Job", "r", "{metadata: {labels: {clusterwright.dev/run: r}}}", &[]);
        check("MachineRequest", "r", "{spec: {clusterName: a}}", &[]);
        check("HostPool", "p", "{}", &[]);
        check(
            "KarmadaDeployment",
            "k",
            "{status: {members: [{clusterRef: {name: b}}, {kubeConfigSecretName: a}]}}",
            &["b"],
        );
        check("KarmadaDeployment", "k", "{spec: {}}", &[]);
        check("KarmadaDeployment", "a", "{spec: {}}", &["a"]);
        check("KarmadaDeployment", "k", "{status: {members: 7}}", &["a", "b"]);
        check("Unheard", "x", "{}", &["a", "b"]);
    }

    #[test]
    fn a_host_that_cannot_be_decoded_keeps_its_machine_from_being_claimed_under_another_name() {
        let check = |object: &str, spec: &str, expected: bool| {
            let host: Host = serde_yaml::from_str(&format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: h2, namespace: fleet}}, spec: {{{spec}}}}}"
            ))
            .unwrap();
            let bad = undecodable("Host", "h1", object);
            assert_eq!(bad.may_be_machine_of(&host), expected, "{object} {spec}");
        };
        let plain = "address: 10.0.0.2, ssh: {credentialsRef: {name: k}}";
        check("{spec: {address: 10.0.0.1}}", plain, false);
        check("{spec: {address: 10.0.0.2}}", plain, true);
        check("{spec: {address: 203.0.113.1, internalAddress: 10.0.0.2}}", plain, true);
        check("{spec: {address: 7}}", plain, true);
        let keyed = "address: 10.0.0.2, ssh: {credentialsRef: {name: k}, hostKeys: ['ssh-rsa B', 'ssh-ed25519 A x']}";
        let key = "ssh: {hostKeys: ['ssh-ed25519 A root@h1']}";
        check(&format!("{{spec: {{address: 10.0.0.1, {key}}}}}"), keyed, true);
        check(&format!("{{spec: {{address: 10.0.0.1, {key}}}}}"), plain, false);
        check("{spec: {address: 10.0.0.1}, status: {hostKeys: ['ssh-rsa B']}}", keyed, true);
    }

    #[test]
    fn a_cluster_that_cannot_be_decoded_keeps_its_endpoint() {
        let check = |theirs: &str, ours: &str, expected: bool| {
            let deployment: ClusterDeployment = serde_yaml::from_str(&format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: b, namespace: other}}, spec: {{kubernetesVersion: 1.35.4, controlPlane: {{replicas: 1, endpoint: {{host: 10.0.0.9{ours}}}}}}}}}"
            ))
            .unwrap();
            let bad = undecodable("ClusterDeployment", "a", &format!("{{spec: {{controlPlane: {{{theirs}}}}}}}"));
            assert_eq!(bad.may_hold_endpoint_of(&deployment), expected, "{theirs} {ours}");
        };
        check("", "", false);
        check("endpoint: {host: 10.0.0.8}", "", false);
        check("endpoint: {host: 10.0.0.9}", "", true);
        check("endpoint: {host: 9}", "", true);
        check("endpoint: {host: 10.0.0.8, provider: Keepalived}", ", provider: Keepalived", true);
        check("endpoint: {host: 10.0.0.8, provider: Keepalived}", "", false);
    }
}
