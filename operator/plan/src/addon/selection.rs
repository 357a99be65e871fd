//! Which clusters an Addon selects, and which Addons come before it.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_selector::ClusterSelector;
use crds::names::label;
use crds::placement::{LabelOperator, LabelRequirement};
use crds::{Addon, Cluster, ClusterDeployment, ObjectExt, Reason};

use super::problem::Problem;
use crate::cluster::is_plane;

/// The labels of a cluster: its own, and those of its ClusterDeployment that it does not have itself.
pub fn labels(cluster: &Cluster, deployment: Option<&ClusterDeployment>) -> BTreeMap<String, String> {
    let mut labels = deployment.and_then(|deployment| deployment.metadata.labels.clone()).unwrap_or_default();
    labels.extend(cluster.metadata.labels.clone().unwrap_or_default());
    labels
}

/// Whether the Addon is for this cluster. A Karmada control plane is selected only by who asks for its labels: what is
/// applied to it goes on to its members.
pub fn selects(addon: &Addon, cluster: &Cluster, labels: &BTreeMap<String, String>) -> bool {
    let spec = &addon.spec;
    match (&spec.cluster_ref, &spec.cluster_selector) {
        (Some(wanted), _) => wanted.name == cluster.name(),
        (None, Some(selector)) => selector.selects(Some(labels)) && (!is_plane(cluster) || asks_for_planes(selector)),
        (None, None) => false,
    }
}

/// Whether a selector asks for a label that Clusters of Karmada control planes have.
fn asks_for_planes(selector: &ClusterSelector) -> bool {
    let is_of_planes = |key: &str| [label::KARMADA, label::KARMADA_UID].contains(&key);
    let requires = |requirement: &LabelRequirement| {
        matches!(requirement.operator, LabelOperator::In | LabelOperator::Exists) && is_of_planes(&requirement.key)
    };
    selector.match_labels.keys().any(|key| is_of_planes(key)) || selector.match_expressions.iter().any(requires)
}

/// The Addons that come before this one, by name: those that it names, and those of a lower wave.
pub fn before<'a>(addon: &Addon, addons: &[&'a Addon]) -> Result<Vec<&'a Addon>, Problem> {
    if let Some(unknown) = addon.spec.depends_on.iter().find(|name| !addons.iter().any(|there| there.name() == **name))
    {
        let message =
            format!("spec.dependsOn names Addon {unknown}, which is not there: create it, or take the name out");
        return Err(Problem { reason: Reason::AddonNotFound, message });
    }
    if let Some(circle) = circle(addon, addons) {
        let message = format!(
            "waits for itself: {}: take one of these out of the other's spec.dependsOn, or change a spec.wave",
            circle.join(" waits for ")
        );
        return Err(Problem { reason: Reason::DependencyCycle, message });
    }
    Ok(addons.iter().copied().filter(|there| comes_before(there, addon)).collect())
}

fn comes_before(earlier: &Addon, later: &Addon) -> bool {
    !earlier.is_deleting() && needs(later, earlier)
}

/// Whether this Addon comes after the other one, by its `dependsOn` or its wave.
pub fn needs(later: &Addon, earlier: &Addon) -> bool {
    earlier.name() != later.name()
        && (later.spec.depends_on.iter().any(|name| name == earlier.name()) || earlier.spec.wave < later.spec.wave)
}

/// The way from the Addon back to itself.
fn circle<'a>(addon: &'a Addon, addons: &[&'a Addon]) -> Option<Vec<&'a str>> {
    if addon.spec.depends_on.iter().any(|name| name == addon.name()) {
        return Some(vec![addon.name(), addon.name()]);
    }
    let mut ways = vec![vec![addon]];
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop() {
        let last = *way.last()?;
        for earlier in addons.iter().copied().filter(|earlier| comes_before(earlier, last)) {
            let mut way = way.clone();
            way.push(earlier);
            if earlier.name() == addon.name() {
                return Some(way.into_iter().map(ObjectExt::name).collect());
            }
            if seen.insert(earlier.name()) {
                ways.push(way);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crds::{Addon, Cluster, Reason};

    use super::{before, labels, selects};

    fn addon(name: &str, depends_on: &str, wave: i32) -> Addon {
        let text = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Addon, metadata: {{name: {name}, namespace: fleet}}, spec: {{clusterSelector: {{}}, source: {{}}, dependsOn: [{depends_on}], wave: {wave}}}}}"
        );
        serde_yaml::from_str(&text).unwrap()
    }

    #[test]
    fn a_karmada_control_plane_is_selected_only_by_who_asks_for_its_labels() {
        let check = |owner: &str, selector: &str, expected: bool| {
            let cluster: Cluster = serde_yaml::from_str(&format!(
                "{{apiVersion: clusterwright.dev/v1alpha1, kind: Cluster, metadata: {{name: k1, namespace: fleet, labels: {{clusterwright.dev/karmada: k1, stage: test}}, ownerReferences: [{{apiVersion: clusterwright.dev/v1alpha1, kind: {owner}, name: k1, uid: u, controller: true}}]}}, spec: {{kubeconfigRef: {{name: x}}}}}}"
            ))
            .unwrap();
            let mut addon = addon("a", "", 0);
            addon.spec.cluster_selector = Some(serde_yaml::from_str(selector).unwrap());
            assert_eq!(selects(&addon, &cluster, &labels(&cluster, None)), expected, "{owner} {selector}");
            addon.spec.cluster_ref = Some(crds::references::LocalRef::new("k1"));
            assert!(selects(&addon, &cluster, &labels(&cluster, None)), "it is named");
        };
        for (selector, expected) in [
            ("{}", false),
            ("{matchLabels: {stage: test}}", false),
            ("{matchExpressions: [{key: clusterwright.dev/karmada, operator: NotIn, values: [k2]}]}", false),
            ("{matchExpressions: [{key: clusterwright.dev/karmada, operator: Exists}]}", true),
            ("{matchExpressions: [{key: clusterwright.dev/karmada, operator: In, values: [k1, k2]}]}", true),
            ("{matchLabels: {clusterwright.dev/karmada: k1, stage: test}}", true),
            ("{matchLabels: {clusterwright.dev/karmada: k2}}", false),
        ] {
            check("KarmadaDeployment", selector, expected);
        }
        check("ClusterDeployment", "{}", true);
    }

    #[test]
    fn those_that_are_named_and_those_of_a_lower_wave_come_first() {
        let addons = [addon("a", "", 0), addon("b", "", 1), addon("c", "a", 0), addon("d", "c", 1)];
        let addons: Vec<&Addon> = addons.iter().collect();
        let check = |name: &str, expected: &[&str]| {
            let addon = addons.iter().find(|addon| addon.metadata.name.as_deref() == Some(name)).unwrap();
            let before = before(addon, &addons).unwrap();
            let names: Vec<&str> = before.iter().filter_map(|addon| addon.metadata.name.as_deref()).collect();
            assert_eq!(names, expected, "{name}");
        };
        check("a", &[]);
        check("b", &["a", "c"]);
        check("c", &["a"]);
        check("d", &["a", "c"]);
    }

    #[test]
    fn circles_and_names_that_are_not_there_are_named() {
        let check = |addons: &[Addon], reason: Reason, part: &str| {
            let addons: Vec<&Addon> = addons.iter().collect();
            let problem = before(addons[0], &addons).err().unwrap();
            assert_eq!(problem.reason, reason);
            assert!(problem.message.contains(part), "{}", problem.message);
        };
        check(&[addon("a", "x", 0)], Reason::AddonNotFound, "names Addon x");
        check(&[addon("a", "a", 0)], Reason::DependencyCycle, "a waits for a");
        check(&[addon("a", "b", 0), addon("b", "a", 0)], Reason::DependencyCycle, "a waits for b waits for a");
        // By its wave a comes before b.
        check(&[addon("a", "b", 0), addon("b", "", 1)], Reason::DependencyCycle, "a waits for b waits for a");
        let chain = [addon("a", "b", 0), addon("b", "c", 0), addon("c", "b", 0)];
        let chain: Vec<&Addon> = chain.iter().collect();
        assert_eq!(before(chain[0], &chain).unwrap().len(), 1, "the circle is not its own");
    }
}
