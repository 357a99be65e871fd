//! What was granted beside what was asked for: a right that nobody used is one too many, a refusal one too few.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::audit::Request;

/// One verb on one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The API group; the core group is empty.
    pub group: String,
    /// The plural, with `/SUBRESOURCE` if there is one.
    pub resource: String,
    /// The verb.
    pub verb: String,
    /// In this namespace; `None`: in all.
    pub namespace: Option<String>,
    /// On objects of these names; empty: of any.
    pub names: Vec<String>,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = if self.group.is_empty() { "core" } else { &self.group };
        write!(f, "{} {group}/{}", self.verb, self.resource)?;
        if let Some(namespace) = &self.namespace {
            write!(f, " in {namespace}")?;
        }
        if !self.names.is_empty() {
            write!(f, " named {}", self.names.join(", "))?;
        }
        Ok(())
    }
}

impl Right {
    fn covers(&self, request: &Request) -> bool {
        let names = &self.names;
        self.group == request.group
            && self.resource == request.resource
            && verbs_of(request).contains(&self.verb.as_str())
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == request.namespace)
            && (names.is_empty() || names.contains(&request.name))
    }
}

/// Applying or replacing what is not there makes it: the API server asks for both rights then.
fn verbs_of(request: &Request) -> Vec<&str> {
    match (request.verb.as_str(), request.code) {
        (verb @ ("patch" | "update"), 201) => vec![verb, "create"],
        (verb, _) => vec![verb],
    }
}

/// Every single right in the rules of a role, which counts in a namespace or in all.
pub fn granted(rules: &[PolicyRule], namespace: Option<&str>) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                rights.extend(rule.verbs.iter().map(|verb| Right {
                    group: group.clone(),
                    resource: resource.clone(),
                    verb: verb.clone(),
                    namespace: namespace.map(str::to_owned),
                    names: rule.resource_names.clone().unwrap_or_default(),
                }));
            }
        }
    }
    rights
}

/// The rights that none of the requests needed.
pub fn unused<'a>(rights: &'a BTreeSet<Right>, requests: &[Request]) -> Vec<&'a Right> {
    let used = |right: &&Right| !requests.iter().any(|request| right.covers(request));
    rights.iter().filter(used).collect()
}

/// The requests for which a right was missing. A namespace that is going and a full quota refuse too, whatever the
/// rights.
pub fn refused(requests: &[Request]) -> Vec<&Request> {
    let of_rights = |request: &&Request| {
        request.code == 403
            && !request.message.contains("because it is being terminated")
            && !request.message.contains("exceeded quota")
    };
    requests.iter().filter(of_rights).collect()
}

/// What executors asked for beyond the status of their own run, and the Secret that the keys of a backup are fetched
/// into: a run's ServiceAccount has its name, and so has that of the Secret.
pub fn beyond_own_run(requests: &[Request]) -> Vec<&Request> {
    let own = |request: &&Request| {
        let account = request.user.strip_prefix("system:serviceaccount:");
        let status = (request.group.as_str(), request.resource.as_str(), request.verb.as_str());
        let allowed = [("clusterwright.dev", "playbookruns/status", "patch"), ("", "secrets", "patch")];
        account.and_then(|account| account.split_once(':')) == Some((&request.namespace, &request.name))
            && allowed.contains(&status)
            && request.code != 403
    };
    requests.iter().filter(|request| !own(request)).collect()
}

#[cfg(test)]
mod tests {
    use super::{beyond_own_run, granted, refused, unused};
    use crate::audit::Request;
    use k8s_openapi::api::rbac::v1::PolicyRule;

    fn rules(text: &str) -> Vec<PolicyRule> {
        serde_yaml::from_str(text).unwrap()
    }

    /// `USER VERB GROUP/RESOURCE NAMESPACE/NAME CODE`, the user without its prefix.
    fn asked(text: &str) -> Request {
        let words: Vec<&str> = text.split(' ').collect();
        let (group, resource) = words[2].split_once('/').unwrap();
        let (namespace, name) = words[3].split_once('/').unwrap();
        Request {
            user: format!("system:serviceaccount:{}", words[0]),
            verb: words[1].into(),
            group: group.into(),
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
            code: words[4].parse().unwrap(),
            message: String::new(),
            at: "2026-11-21T05:00:00Z".parse().unwrap(),
        }
    }

    fn check(rule: &str, namespace: Option<&str>, requests: &[&str], expected: &[&str]) {
        let rights = granted(&rules(rule), namespace);
        let requests: Vec<_> = requests.iter().map(|text| asked(text)).collect();
        let unused: Vec<String> = unused(&rights, &requests).iter().map(|right| right.to_string()).collect();
        assert_eq!(unused, expected, "{rule}");
    }

    #[test]
    fn a_right_that_nobody_used_is_named() {
        let jobs = "[{apiGroups: [batch], resources: [jobs, jobs/status], verbs: [get, delete]}]";
        let used = ["s:o get batch/jobs f/a 404", "s:o delete batch/jobs f/a 200", "s:o get batch/jobs/status f/a 200"];
        check(jobs, None, &used, &["delete batch/jobs/status"]);
        check(
            jobs,
            None,
            &["s:o get apps/jobs f/a 200"],
            &["delete batch/jobs", "get batch/jobs", "delete batch/jobs/status", "get batch/jobs/status"],
        );
    }

    #[test]
    fn a_right_counts_in_its_namespace_and_for_its_names() {
        let leases = "[{apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [a], verbs: [get]}]";
        let unused = ["get coordination.k8s.io/leases in s named a"];
        check(leases, Some("s"), &["s:o get coordination.k8s.io/leases s/a 200"], &[]);
        check(leases, Some("s"), &["s:o get coordination.k8s.io/leases t/a 200"], &unused);
        check(leases, Some("s"), &["s:o get coordination.k8s.io/leases s/b 200"], &unused);
    }

    #[test]
    fn applying_what_is_not_there_needs_the_right_to_create_it() {
        let secrets = "[{apiGroups: [''], resources: [secrets], verbs: [create, patch]}]";
        check(secrets, None, &["s:o patch /secrets f/a 200"], &["create core/secrets"]);
        check(secrets, None, &["s:o patch /secrets f/a 201"], &[]);
    }

    #[test]
    fn a_refusal_for_want_of_a_right_is_told_from_others() {
        let plain = asked("s:o get /secrets f/a 403");
        let mut going = plain.clone();
        going.message = "unable to create new content in namespace f because it is being terminated".into();
        let mut full = plain.clone();
        full.message = "pods \"a\" is forbidden: exceeded quota: small".into();
        let requests = [going, full, plain.clone(), asked("s:o get /secrets f/a 404")];
        assert_eq!(refused(&requests), [&plain]);
    }

    #[test]
    fn an_executor_patches_the_status_of_its_own_run_and_nothing_else() {
        let check = |text: &str, good: bool| assert_eq!(beyond_own_run(&[asked(text)]).is_empty(), good, "{text}");
        check("f:run patch clusterwright.dev/playbookruns/status f/run 200", true);
        check("f:run patch clusterwright.dev/playbookruns/status f/run 404", true);
        check("f:run patch clusterwright.dev/playbookruns/status f/run 403", false);
        check("f:run patch clusterwright.dev/playbookruns/status f/other 200", false);
        check("f:run patch clusterwright.dev/playbookruns/status g/run 200", false);
        check("f:run patch clusterwright.dev/playbookruns f/run 200", false);
        check("f:run get /secrets f/run 200", false);
    }
}
