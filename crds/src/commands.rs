//! Commands that messages print. They run as printed, wherever the reader's kubectl points: each names the namespace,
//! and the resource with its group, since other projects have `machines` and `clusterdeployments`, too.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::names::GROUP;
use crate::step::Step;

/// What a command works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A ClusterAddon.
    ClusterAddon,
    /// A ClusterDeployment.
    ClusterDeployment,
    /// An EtcdBackup.
    EtcdBackup,
    /// An EtcdRestore.
    EtcdRestore,
    /// A Host.
    Host,
    /// A KarmadaDeployment.
    KarmadaDeployment,
    /// A Machine.
    Machine,
}

impl Target {
    /// All targets.
    pub const ALL: [Target; 7] = [
        Target::ClusterAddon,
        Target::ClusterDeployment,
        Target::EtcdBackup,
        Target::EtcdRestore,
        Target::Host,
        Target::KarmadaDeployment,
        Target::Machine,
    ];

    /// `<plural>.<group>`.
    pub fn resource(self) -> String {
        let plural = match self {
            Target::ClusterAddon => "clusteraddons",
            Target::ClusterDeployment => "clusterdeployments",
            Target::EtcdBackup => "etcdbackups",
            Target::EtcdRestore => "etcdrestores",
            Target::Host => "hosts",
            Target::KarmadaDeployment => "karmadadeployments",
            Target::Machine => "machines",
        };
        format!("{plural}.{GROUP}")
    }
}

/// Sets an annotation of an object, also where it has another value.
pub fn annotate(target: Target, object: &ObjectMeta, key: &str, value: impl std::fmt::Display) -> String {
    let (namespace, name) = place(object);
    format!("kubectl -n {namespace} annotate --overwrite {} {name} {key}={value}", target.resource())
}

/// Deletes an object.
pub fn delete(target: Target, object: &ObjectMeta) -> String {
    let (namespace, name) = place(object);
    delete_all(target, namespace, &[name])
}

/// Deletes several objects of one namespace.
pub fn delete_all(target: Target, namespace: &str, names: &[&str]) -> String {
    let names = names.join(" ");
    format!("kubectl -n {namespace} delete {} {names}", target.resource())
}

/// Takes a field of an object's spec away.
pub fn remove_field(target: Target, object: &ObjectMeta, field: &str) -> String {
    let (namespace, name) = place(object);
    format!(
        "kubectl -n {namespace} patch {} {name} --type=merge -p '{{\"spec\":{{\"{field}\":null}}}}'",
        target.resource()
    )
}

/// Sets a field of an object's spec to yes or no.
pub fn set_field(target: Target, object: &ObjectMeta, field: &str, value: bool) -> String {
    let (namespace, name) = place(object);
    format!(
        "kubectl -n {namespace} patch {} {name} --type=merge -p '{{\"spec\":{{\"{field}\":{value}}}}}'",
        target.resource()
    )
}

/// Makes a run that plays steps again on a Host of a cluster.
pub fn play_again(cluster: &ObjectMeta, steps: &[Step], host: &str) -> String {
    let (namespace, name) = place(cluster);
    let steps: Vec<String> = steps.iter().map(|step| format!("\"{step}\"")).collect();
    format!(
        "echo '{{\"apiVersion\":\"{GROUP}/v1alpha1\",\"kind\":\"PlaybookRun\",\"metadata\":{{\"generateName\":\"{name}-again-\"}},\
         \"spec\":{{\"clusterName\":\"{name}\",\"intent\":\"Custom\",\"steps\":[{}],\"hosts\":[\"{host}\"]}}}}' | \
         kubectl -n {namespace} create -f -",
        steps.join(",")
    )
}

/// Makes a Secret of the files in a directory, which the reader names in the place of `DIRECTORY`.
pub fn create_secret(namespace: &str, name: &str) -> String {
    format!("kubectl -n {namespace} create secret generic {name} --from-file=DIRECTORY")
}

/// Deletes a Secret.
pub fn delete_secret(namespace: &str, name: &str) -> String {
    format!("kubectl -n {namespace} delete secret {name}")
}

/// Gives a user the rights of a ClusterRole in a namespace, by a RoleBinding of the role's name. A ServiceAccount is
/// named as its tokens have it: `system:serviceaccount:<namespace>:<name>`.
pub fn bind_role(namespace: &str, role: &str, user: &str) -> String {
    let subject = match user.strip_prefix("system:serviceaccount:") {
        Some(account) => format!("--serviceaccount={account}"),
        None => format!("--user={user}"),
    };
    format!("kubectl -n {namespace} create rolebinding {role} --clusterrole={role} {subject}")
}

fn place(object: &ObjectMeta) -> (&str, &str) {
    let namespace = object.namespace.as_deref().unwrap_or("default");
    (namespace, object.name.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::{Target, annotate, bind_role, create_secret, delete, delete_all, play_again, remove_field, set_field};
    use crate::{PlaybookRun, Step};

    #[test]
    fn a_command_names_the_namespace_and_the_resource_with_its_group() {
        let object = ObjectMeta { namespace: Some("fleet".into()), name: Some("a".into()), ..ObjectMeta::default() };
        assert_eq!(
            annotate(Target::ClusterDeployment, &object, "clusterwright.dev/retry", 7),
            "kubectl -n fleet annotate --overwrite clusterdeployments.clusterwright.dev a clusterwright.dev/retry=7"
        );
        assert_eq!(delete(Target::Machine, &object), "kubectl -n fleet delete machines.clusterwright.dev a");
        assert_eq!(
            delete_all(Target::Machine, "fleet", &["a", "b"]),
            "kubectl -n fleet delete machines.clusterwright.dev a b"
        );
        assert_eq!(
            remove_field(Target::Host, &object, "identity"),
            r#"kubectl -n fleet patch hosts.clusterwright.dev a --type=merge -p '{"spec":{"identity":null}}'"#
        );
        assert_eq!(
            set_field(Target::Host, &object, "unschedulable", true),
            r#"kubectl -n fleet patch hosts.clusterwright.dev a --type=merge -p '{"spec":{"unschedulable":true}}'"#
        );
        assert_eq!(
            create_secret("fleet", "a-pki"),
            "kubectl -n fleet create secret generic a-pki --from-file=DIRECTORY"
        );
    }

    #[test]
    fn a_role_is_bound_to_an_account_or_to_a_user() {
        let check = |user: &str, subject: &str| {
            let command = format!("kubectl -n planes create rolebinding r --clusterrole=r {subject}");
            assert_eq!(bind_role("planes", "r", user), command);
        };
        check("system:serviceaccount:ours:operator", "--serviceaccount=ours:operator");
        check("somebody", "--user=somebody");
    }

    #[test]
    fn what_plays_steps_again_is_a_run_as_the_api_takes_it() {
        let cluster = ObjectMeta { namespace: Some("fleet".into()), name: Some("a".into()), ..ObjectMeta::default() };
        let command = play_again(&cluster, &[Step::Prepare, Step::Node], "h1");
        let (made, rest) = command.strip_prefix("echo '").unwrap().split_once('\'').unwrap();
        assert_eq!(rest, " | kubectl -n fleet create -f -");
        let run: PlaybookRun = serde_json::from_str(made).unwrap();
        assert_eq!(run.spec.steps, [Step::Prepare, Step::Node]);
        assert_eq!(run.spec.cluster_name.as_deref(), Some("a"));
    }

    #[test]
    fn every_resource_that_a_command_names_is_defined() {
        let definitions = crate::manifests::all();
        for target in Target::ALL {
            let defined = |name: &Option<String>| name.as_deref() == Some(target.resource().as_str());
            assert!(definitions.iter().any(|one| defined(&one.metadata.name)), "{target:?}");
        }
    }
}
