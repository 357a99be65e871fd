//! Flags by which karmada-controller-manager leaves out what a plane is probed by.

use crds::KarmadaDeployment;
use regex::Regex;

use super::super::names::PROBE;

const APIS: &str = "skipped-propagating-apis";
const NAMESPACES: &str = "skipped-propagating-namespaces";

/// The flag of `controllerManager.extraArgs` by which the probe is left out; none: it is not.
pub(in super::super) fn hidden_by(object: &KarmadaDeployment) -> Option<&'static str> {
    let value = |flag: &str| object.spec.controller_manager.extra_args.get(flag).map(|value| value.0.as_str());
    if value(APIS).is_some_and(hides_kind) {
        return Some(APIS);
    }
    value(NAMESPACES).is_some_and(hides_namespace).then_some(NAMESPACES)
}

/// `apps;v1/ConfigMap,Secret`: a group, with a version, or with one and kinds of any case.
fn hides_kind(value: &str) -> bool {
    value.split(';').any(|part| part.starts_with("v1/") && part.to_lowercase().contains("configmap"))
}

/// `kube-.*,other`: expressions for whole names. One that is none might mean any.
fn hides_namespace(value: &str) -> bool {
    value.split(',').any(|part| Regex::new(&format!("^{part}$")).map_or(true, |part| part.is_match(PROBE)))
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::world::plane;
    use super::hidden_by;

    #[test]
    fn only_a_flag_that_leaves_the_probe_out_hides_it() {
        let check = |flags: &str, expected: Option<&str>| {
            let object = plane(&format!("controllerManager: {{extraArgs: {{{flags}}}}}"));
            assert_eq!(hidden_by(&object), expected, "{flags}");
        };
        check("v: '4'", None);
        check("skipped-propagating-namespaces: 'kube-.*,velero'", None);
        check("skipped-propagating-namespaces: 'kube-.*,cluster.*'", Some("skipped-propagating-namespaces"));
        check("skipped-propagating-namespaces: 'clusterwright'", None);
        check("skipped-propagating-namespaces: '['", Some("skipped-propagating-namespaces"));
        check("skipped-propagating-apis: 'apps;networking.k8s.io/v1/Ingress'", None);
        check("skipped-propagating-apis: 'v1/Secret'", None);
        check("skipped-propagating-apis: 'apps;v1/Secret,configmap'", Some("skipped-propagating-apis"));
    }
}
