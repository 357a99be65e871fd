//! The versions of a cluster's components. The machines that are installed first find them in the artifact bundle's
//! index and report them; from then on each run is given these very versions and digests, until another Kubernetes
//! version is begun. See `docs/decisions/component-versions.md`.

use crds::step::{Effect, Intent};
use crds::{ClusterDeployment, Component, KubernetesVersion, PlaybookRun};
use serde_json::{Value, json};

/// The component whose version is Kubernetes' own.
const KUBELET: &str = "kubelet";

/// The Kubernetes version that runs bring: one that is wanted, and whose rollout has not begun, may still be taken
/// back.
pub fn version(deployment: &ClusterDeployment) -> KubernetesVersion {
    let status = deployment.status.as_ref();
    let started = status.and_then(|status| status.started_kubernetes_version);
    started.unwrap_or(deployment.spec.kubernetes_version)
}

/// The Kubernetes version of a run: only what lies ready for later is of one whose rollout has not begun.
pub fn version_of(deployment: &ClusterDeployment, intent: Intent) -> KubernetesVersion {
    let begun = version(deployment);
    if intent == Intent::Prefetch { version_after(deployment, begun) } else { begun }
}

/// The Kubernetes version that follows the one that all machines have: what is wanted, or, where that is more than one
/// minor away, the one of `upgradePath` on the way there.
pub fn version_after(deployment: &ClusterDeployment, begun: KubernetesVersion) -> KubernetesVersion {
    let wanted = deployment.spec.kubernetes_version;
    let next = begun.minor() + 1;
    deployment.spec.upgrade_path.of_minor(next).filter(|_| wanted.minor() > next).unwrap_or(wanted)
}

/// The variable that freezes the components into a run: `{NAME: {version, digests: {ARCHITECTURE: SHA256}}}`; none:
/// they are not known, and the first machine that looks finds them.
pub fn variable(deployment: &ClusterDeployment, intent: Intent) -> Option<Value> {
    let known = recorded(deployment, version_of(deployment, intent));
    let entry = |component: &Component| {
        let frozen = json!({"version": component.version, "digests": component.digests});
        (component.name.clone(), frozen)
    };
    (!known.is_empty()).then(|| Value::Object(known.iter().map(entry).collect()))
}

/// The components of this Kubernetes version as they are known now: those that the status remembers, and what runs of the
/// same version have reported beside them.
pub fn resolved(deployment: &ClusterDeployment, version: KubernetesVersion, runs: &[&PlaybookRun]) -> Vec<Component> {
    let mut known = recorded(deployment, version).to_vec();
    let mut reports: Vec<&PlaybookRun> = runs.iter().copied().filter(|run| is_of(run, version)).collect();
    // What the first ones found is what the cluster was built of. Probes tell only what no other run does.
    reports.sort_by_key(|run| {
        let token = run.status.as_ref().map(|status| status.token);
        (run.spec.intent.spec().effect != Effect::Provisions, token, run.metadata.creation_timestamp.clone())
    });
    for found in reports.into_iter().flat_map(reported) {
        Component::merge(&mut known, found);
    }
    known
}

/// What the status remembers, if that is of this version.
fn recorded(deployment: &ClusterDeployment, version: KubernetesVersion) -> &[Component] {
    let status = deployment.status.as_ref();
    let known = status.map(|status| status.components.as_slice()).unwrap_or_default();
    match speaks_of(known) {
        Some(of) if of.parse() != Ok(version) => &[],
        Some(_) | None => known,
    }
}

fn reported(run: &PlaybookRun) -> &[Component] {
    run.status.as_ref().map(|status| status.components.as_slice()).unwrap_or_default()
}

/// Whether a run's report is of this Kubernetes version: its kubelet is, or, where it has none, the run was to bring
/// it.
fn is_of(run: &PlaybookRun, version: KubernetesVersion) -> bool {
    if let Some(kubelet) = speaks_of(reported(run)) {
        return kubelet.parse() == Ok(version);
    }
    let settings = run.status.as_ref().and_then(|status| status.settings.as_ref());
    let brought = settings.and_then(|settings| settings.kubernetes_version);
    !run.spec.intent.changes_nothing() && brought == Some(version)
}

/// The kubelet's version, as the bundle has it.
fn speaks_of(components: &[Component]) -> Option<&str> {
    let kubelet = components.iter().find(|component| component.name == KUBELET)?;
    Some(kubelet.version.trim_start_matches('v'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0";

    fn listed(components: &[(&str, &str)]) -> String {
        let one = |(name, version): &(&str, &str)| {
            format!("{{name: {name}, version: {version}, digests: {{amd64: {DIGEST}}}}}")
        };
        format!("components: [{}]", components.iter().map(one).collect::<Vec<_>>().join(", "))
    }

    fn deployment(wanted: &str, started: &str, components: &[(&str, &str)]) -> ClusterDeployment {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {{name: a}},
              spec: {{kubernetesVersion: {wanted}, controlPlane: {{replicas: 1}}}},
              status: {{startedKubernetesVersion: {started}, {}}}}}",
            listed(components)
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    fn run(intent: &str, token: i64, version: &str, components: &[(&str, &str)]) -> PlaybookRun {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: PlaybookRun, metadata: {{name: r{token}}},
              spec: {{clusterName: a, intent: {intent}, hosts: [h], steps: [prepare]}},
              status: {{token: {token}, settings: {{certSANs: '', registryMirrors: '', addonManifests: '', networkManifests: '',
                kubernetesVersion: {version}}}, {}}}}}",
            listed(components)
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    fn told(deployment: &ClusterDeployment, runs: &[PlaybookRun]) -> Vec<String> {
        let runs: Vec<&PlaybookRun> = runs.iter().collect();
        let known = resolved(deployment, version(deployment), &runs);
        known.iter().map(|component| format!("{} {}", component.name, component.version)).collect()
    }

    #[test]
    fn components_are_resolved_once_and_a_newer_bundle_changes_none_of_them() {
        let new = deployment("1.35.4", "1.35.4", &[]);
        assert_eq!(variable(&new, Intent::Install), None, "the first machine that looks finds them");
        let install = run("Install", 1, "1.35.4", &[("etcd", "3.6.16"), ("kubelet", "1.35.4")]);
        let join = run("Join", 2, "1.35.4", &[("etcd", "3.6.20"), ("runc", "1.5.2")]);
        let both = ["etcd 3.6.16", "kubelet 1.35.4", "runc 1.5.2"];
        assert_eq!(told(&new, &[join.clone(), install]), both);
        // The install is pruned, and what it found stays.
        let known = deployment("1.35.4", "1.35.4", &[("etcd", "3.6.16"), ("kubelet", "1.35.4")]);
        assert_eq!(told(&known, &[join]), both);
        let frozen = variable(&known, Intent::Join).unwrap();
        assert_eq!(frozen["etcd"], json!({"version": "3.6.16", "digests": {"amd64": DIGEST}}));
    }

    #[test]
    fn a_version_that_is_only_wanted_changes_no_component_and_one_that_is_begun_resolves_them_anew() {
        let old = [("etcd", "3.6.16"), ("kubelet", "v1.35.4")];
        let wanted = deployment("1.36.0", "1.35.4", &old);
        assert_eq!(told(&wanted, &[]), ["etcd 3.6.16", "kubelet v1.35.4"]);
        assert!(variable(&wanted, Intent::Join).is_some());
        assert_eq!(variable(&wanted, Intent::Prefetch), None, "what lies ready is of the other version");
        assert_eq!(version_of(&wanted, Intent::Prefetch).to_string(), "1.36.0");
        assert_eq!(version_of(&wanted, Intent::Join).to_string(), "1.35.4");
        let begun = deployment("1.36.0", "1.36.0", &old);
        let before = run("Join", 4, "1.35.4", &[("etcd", "3.6.16")]);
        assert_eq!(told(&begun, std::slice::from_ref(&before)), [""; 0]);
        assert_eq!(variable(&begun, Intent::Upgrade), None);
        let upgrade = run("Join", 5, "1.36.0", &[("etcd", "3.7.0"), ("kubelet", "v1.36.0")]);
        assert_eq!(told(&begun, &[before, upgrade]), ["etcd 3.7.0", "kubelet v1.36.0"]);
    }

    #[test]
    fn where_the_status_is_lost_the_machines_tell_what_they_run() {
        let lost = deployment("1.35.4", "1.35.4", &[]);
        let probe = run("Probe", 0, "1.35.4", &[("etcd", "3.6.12"), ("kubelet", "1.35.4")]);
        assert_eq!(told(&lost, std::slice::from_ref(&probe)), ["etcd 3.6.12", "kubelet 1.35.4"]);
        let install = run("Install", 1, "1.35.4", &[("etcd", "3.6.16")]);
        assert_eq!(told(&lost, &[probe, install]), ["etcd 3.6.16", "kubelet 1.35.4"]);
        let bare = run("Probe", 0, "1.35.4", &[("etcd", "3.6.12")]);
        assert_eq!(told(&lost, &[bare]), [""; 0], "of which Kubernetes version it is, nobody says");
    }
}
