//! The versions of a cluster's components. The machines that are installed first find them in the artifact bundle's
//! index and report them; from then on each run is given these very versions and digests, until another Kubernetes
//! version is begun. Those that `spec.versions` names go before. See `docs/decisions/component-versions.md`.

pub mod pins;

use crds::component::ComponentFile;
use crds::step::{Effect, Intent};
use crds::{ClusterComponent, ClusterDeployment, Component, ComponentVersion, KubernetesVersion, PlaybookRun};
use serde_json::{Map, Value, json};

use pins::Pin;

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

/// The variable that freezes the components into a run: `{NAME: {version, digests: {ARCHITECTURE: SHA256}}}`, and
/// `field` where the spec names the version; none: nothing is known of them, and the first machine that looks finds
/// them.
pub fn variable(deployment: &ClusterDeployment, intent: Intent) -> Option<Value> {
    let known = Known::new(deployment, version_of(deployment, intent));
    let of_table =
        known.table.iter().filter(|component| !is_wanted(deployment, &component.name)).map(|component| {
            (component.name.clone(), json!({"version": component.version, "digests": component.digests}))
        });
    let pinned = pins::wanted(deployment).map(|(pin, version)| {
        let Component { name, version, digests } = known.pinned(&pin, version);
        (name, json!({"version": version, "digests": digests, "field": format!("spec.{}", pin.field)}))
    });
    let all: Map<String, Value> = of_table.chain(pinned).collect();
    (!all.is_empty()).then_some(Value::Object(all))
}

/// The components as they are known now: those of this Kubernetes version that the status remembers, what runs of the
/// same version have reported beside them, and, before all of these, those that the spec names.
pub fn resolved(
    deployment: &ClusterDeployment,
    version: KubernetesVersion,
    runs: &[&PlaybookRun],
) -> Vec<ClusterComponent> {
    let mut known = Known::new(deployment, version);
    let mut reports: Vec<&PlaybookRun> = runs.to_vec();
    // What the first ones found is what the cluster was built of. Probes tell only what no other run does.
    reports.sort_by_key(|run| {
        let token = run.status.as_ref().map(|status| status.token);
        (looks(run), token, run.metadata.creation_timestamp.clone())
    });
    for run in reports.iter().filter(|run| is_of(run, version)) {
        for found in reported(run) {
            if !is_by_pin(deployment, &known, run, found) {
                Component::merge(&mut known.table, found);
            }
        }
    }
    let named: Vec<Component> = pins::wanted(deployment)
        .map(|(pin, version)| {
            let mut own = known.pinned(&pin, version);
            let all = reports.iter().flat_map(|run| reported(run));
            for found in all.filter(|found| found.name == pin.component && version.is(&found.version)) {
                add_digests(&mut own, found);
            }
            own
        })
        .collect();
    known.with(named)
}

/// Whether a machine has what a run found because the spec named it, or may have it for that.
fn is_by_pin(deployment: &ClusterDeployment, known: &Known, run: &PlaybookRun, found: &Component) -> bool {
    let Some(pin) = pins::find(&found.name) else { return false };
    let is_named = || pin.wanted(deployment).is_some() || known.pinned.iter().any(|there| there.name == found.name);
    pin.was_wanted(run) || (looks(run) && is_named())
}

/// Takes in the digests that another machine found, and how the index writes the version.
fn add_digests(own: &mut Component, found: &Component) {
    if own.digests.is_empty() {
        own.clone_from(found);
        return;
    }
    let mut one = vec![own.clone()];
    Component::merge(&mut one, found);
    one.into_iter().for_each(|merged| *own = merged);
}

/// Whether a run installs nothing that it reports.
fn looks(run: &PlaybookRun) -> bool {
    run.spec.intent.spec().effect != Effect::Provisions
}

fn is_wanted(deployment: &ClusterDeployment, component: &str) -> bool {
    pins::find(component).is_some_and(|pin| pin.wanted(deployment).is_some())
}

/// What is remembered of a cluster's components, each list by name.
#[derive(Default)]
struct Known {
    /// As they were found by the bundle's table for the Kubernetes version.
    table: Vec<Component>,
    /// As the spec names them, or did.
    pinned: Vec<Component>,
}

impl Known {
    /// What the status remembers; of another Kubernetes version nothing of the table.
    fn new(deployment: &ClusterDeployment, version: KubernetesVersion) -> Self {
        let mut known = Self::default();
        for component in deployment.status.iter().flat_map(|status| &status.components) {
            let ClusterComponent { name, version, digests, pinned, unpinned } = component.clone();
            let of_table =
                unpinned.map(|file| Component { name: name.clone(), version: file.version, digests: file.digests });
            known.table.extend(of_table);
            let list = if pinned { &mut known.pinned } else { &mut known.table };
            list.push(Component { name, version, digests });
        }
        if speaks_of(&known.table).is_some_and(|of| of.parse() != Ok(version)) {
            known.table.clear();
        }
        known
    }

    /// The component in the version that the spec names, with the digests that are known.
    fn pinned(&self, pin: &Pin, version: &ComponentVersion) -> Component {
        let mut all = self.pinned.iter().chain(&self.table);
        let known = all.find(|there| there.name == pin.component && version.is(&there.version));
        let new =
            || Component { name: pin.component.to_owned(), version: version.to_string(), digests: Default::default() };
        known.cloned().unwrap_or_else(new)
    }

    /// For the status, with those that the spec names before those of the table. One that it named stays until the
    /// table has been asked.
    fn with(self, named: Vec<Component>) -> Vec<ClusterComponent> {
        let is_named = |name: &str| named.iter().any(|there| there.name == name);
        let left = self.pinned.into_iter();
        let left = left.filter(|there| !is_named(&there.name) && find(&self.table, &there.name).is_none());
        let pinned = named.iter().cloned().chain(left).map(|component| ClusterComponent {
            pinned: true,
            unpinned: find(&self.table, &component.name).map(|Component { version, digests, .. }| ComponentFile {
                version: version.clone(),
                digests: digests.clone(),
            }),
            ..component.into()
        });
        let pinned: Vec<ClusterComponent> = pinned.collect();
        let of_table = self.table.iter().filter(|component| !is_named(&component.name)).cloned();
        let mut all: Vec<ClusterComponent> = of_table.map(ClusterComponent::from).chain(pinned).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all.truncate(Component::LIMIT);
        all
    }
}

fn find<'a>(components: &'a [Component], name: &str) -> Option<&'a Component> {
    components.iter().find(|component| component.name == name)
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
        let told = known.iter().map(|component| {
            let of_table = component.unpinned.as_ref().map(|file| format!(" ({})", file.version));
            let pinned = if component.pinned { " pinned" } else { "" };
            format!("{} {}{pinned}{}", component.name, component.version, of_table.unwrap_or_default())
        });
        told.collect()
    }

    /// The cluster with this `spec.versions`, after its status was written by these runs.
    fn pinned(mut deployment: ClusterDeployment, versions: &str, runs: &[PlaybookRun]) -> ClusterDeployment {
        deployment.spec.versions = serde_yaml::from_str(versions).unwrap();
        let runs: Vec<&PlaybookRun> = runs.iter().collect();
        let known = resolved(&deployment, version(&deployment), &runs);
        deployment.status.as_mut().unwrap().components = known;
        deployment
    }

    /// A run whose inputs were frozen while the spec named the version of etcd.
    fn run_with_pin(intent: &str, token: i64, components: &[(&str, &str)]) -> PlaybookRun {
        let mut run = run(intent, token, "1.35.4", components);
        let settings = run.status.as_mut().unwrap().settings.as_mut().unwrap();
        settings.configuration.insert("etcd-version/a-control-plane".into(), "x".into());
        run
    }

    const TABLE: [(&str, &str); 2] = [("etcd", "3.6.14"), ("kubelet", "1.35.4")];

    #[test]
    fn a_version_that_the_spec_names_goes_before_the_tables_which_is_remembered() {
        let known = pinned(deployment("1.35.4", "1.35.4", &TABLE), "{etcd: 3.6.16}", &[]);
        assert_eq!(told(&known, &[]), ["etcd 3.6.16 pinned (3.6.14)", "kubelet 1.35.4"]);
        let frozen = variable(&known, Intent::Configure).unwrap();
        let named = json!({"version": "3.6.16", "digests": {}, "field": "spec.versions.etcd"});
        assert_eq!((&frozen["etcd"], &frozen["kubelet"]["version"]), (&named, &json!("1.35.4")));
        // Its file is known once the first machine has told of it.
        let configure = run_with_pin("Configure", 5, &[("etcd", "3.6.16")]);
        let known = pinned(known, "{etcd: 3.6.16}", std::slice::from_ref(&configure));
        assert_eq!(variable(&known, Intent::Join).unwrap()["etcd"]["digests"], json!({"amd64": DIGEST}));
        // Taken back, whatever runs told meanwhile.
        let taken_back = pinned(known, "{}", &[configure]);
        assert_eq!(told(&taken_back, &[]), ["etcd 3.6.14", "kubelet 1.35.4"]);
        let frozen = variable(&taken_back, Intent::Configure).unwrap();
        assert_eq!(frozen["etcd"], json!({"version": "3.6.14", "digests": {"amd64": DIGEST}}));
    }

    #[test]
    fn of_a_cluster_that_was_installed_with_a_named_version_the_table_is_asked_once_it_is_taken_back() {
        let install = run_with_pin("Install", 1, &[("etcd", "3.6.16"), ("kubelet", "1.35.4")]);
        let probe = run("Probe", 2, "1.35.4", &[("etcd", "3.6.16"), ("kubelet", "1.35.4")]);
        let runs = [install, probe];
        let known = pinned(deployment("1.35.4", "1.35.4", &[]), "{etcd: 3.6.16}", &runs);
        assert_eq!(told(&known, &runs), ["etcd 3.6.16 pinned", "kubelet 1.35.4"]);
        let taken_back = pinned(known, "{}", &runs);
        assert_eq!(told(&taken_back, &runs), ["etcd 3.6.16 pinned", "kubelet 1.35.4"], "machines have it still");
        assert_eq!(variable(&taken_back, Intent::Configure).unwrap().get("etcd"), None, "the first machine asks");
        let configure = run("Configure", 3, "1.35.4", &[("etcd", "3.6.14")]);
        let known = pinned(taken_back, "{}", &[configure]);
        assert_eq!(told(&known, &runs), ["etcd 3.6.14", "kubelet 1.35.4"]);
    }

    #[test]
    fn a_named_version_goes_through_upgrades_and_a_tag_may_begin_with_v() {
        let coredns = "registry.k8s.io/coredns/coredns";
        let old = [("kubelet", "1.35.4"), (coredns, "v1.13.1")];
        let known = pinned(deployment("1.36.0", "1.35.4", &old), "{coredns: 1.14.7}", &[]);
        let prefetch = variable(&known, Intent::Prefetch).unwrap();
        assert_eq!(prefetch, json!({coredns: {"version": "1.14.7", "digests": {}, "field": "spec.versions.coredns"}}));
        let mut begun = known;
        begun.status.as_mut().unwrap().started_kubernetes_version = Some("1.36.0".parse().unwrap());
        let upgrade = run("Upgrade", 5, "1.36.0", &[("kubelet", "1.36.0"), (coredns, "v1.14.7")]);
        let begun = pinned(begun, "{coredns: 1.14.7}", &[upgrade]);
        assert_eq!(told(&begun, &[])[1], format!("{coredns} v1.14.7 pinned (v1.14.7)"), "{:?}", told(&begun, &[]));
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
