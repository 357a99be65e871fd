//! The operator's rights equal what it calls, and an executor does nothing but say how its run goes: read from the audit log
//! of the lab after every other test has passed there.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use e2e::audit::{self, Request};
use e2e::client::client_of;
use e2e::rights::{Right, beyond_own_run, granted, refused, unused};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding, RoleRef, Subject};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use lab::Lab;
use tokio::task::block_in_place;

const NAMESPACE: &str = "clusterwright-system";
const ACCOUNT: &str = "clusterwright-operator";

/// Rights that no request asks for, or only a rare fault needs: verb, resource, and why it is granted nevertheless.
const EXCEPTIONS: [(&str, &str, &str); 3] = [
    ("update", "clusterdeployments/finalizers", OWNERS),
    ("update", "machinesets/finalizers", OWNERS),
    ("update", "playbookruns/finalizers", OWNERS),
];
const OWNERS: &str = "asked for by the admission plugin OwnerReferencesPermissionEnforcement, which is on in the lab: without \
                      it, making what these own is refused, and this test fails by that";

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_has_the_rights_that_it_uses_and_executors_report_and_nothing_else() -> Result<()> {
    let lab = block_in_place(Lab::open)?;
    let client = client_of(&std::fs::read_to_string(lab.kubeconfig())?).await?;
    let requests = block_in_place(|| audit::read(&lab.metadata().audit()))?;
    let operator = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let (operators, executors): (Vec<Request>, Vec<Request>) =
        requests.into_iter().partition(|request| request.user == operator);
    let rights = rights(&client).await?;
    println!(
        "{} rights, {} requests of the operator, {} of executors",
        rights.len(),
        operators.len(),
        executors.len()
    );

    let reports = executors.iter().filter(|request| request.code == 200).count();
    let beyond = lines(beyond_own_run(&executors));
    ensure!(
        beyond.is_empty(),
        "executors asked for more than to report on their run:\n{beyond}"
    );
    let refusals = lines(refused(&operators));
    ensure!(refusals.is_empty(), "the operator lacks rights:\n{refusals}");
    let excepted = |right: &&Right| {
        EXCEPTIONS
            .iter()
            .any(|(verb, resource, _)| right.verb == *verb && right.resource == *resource)
    };
    let unused: Vec<&Right> = unused(&rights, &operators);
    let (known, unused): (Vec<&Right>, Vec<&Right>) = unused.into_iter().partition(excepted);
    let text: Vec<String> = unused.iter().map(|right| format!("  {right}")).collect();
    ensure!(
        unused.is_empty(),
        "the operator never used these rights, in {} requests (did all tests run before this one?):\n{}",
        operators.len(),
        text.join("\n")
    );
    ensure!(
        known.len() == EXCEPTIONS.len(),
        "an exception is used, or not granted: take it off the list"
    );
    ensure!(
        reports > 0,
        "no executor has reported anything: did the tests run before this one?"
    );
    Ok(())
}

/// Each different request once, without the names of objects.
fn lines(requests: Vec<&Request>) -> String {
    let line = |request: &&Request| {
        let Request {
            user,
            verb,
            group,
            resource,
            code,
            message,
            ..
        } = *request;
        format!("  {user}: {verb} {group}/{resource}: {code} {message}")
    };
    let lines: BTreeSet<String> = requests.iter().map(line).collect();
    lines.into_iter().take(30).collect::<Vec<_>>().join("\n")
}

/// What the roles bound to the operator's ServiceAccount grant it, as the API server has them.
async fn rights(client: &Client) -> Result<BTreeSet<Right>> {
    let mut rights = BTreeSet::new();
    let everywhere: Api<ClusterRoleBinding> = Api::all(client.clone());
    for binding in everywhere.list(&ListParams::default()).await? {
        if ours(binding.subjects.as_deref()) {
            rights.extend(rights_of(client, &binding.role_ref, None).await?);
        }
    }
    let somewhere: Api<RoleBinding> = Api::all(client.clone());
    for binding in somewhere.list(&ListParams::default()).await? {
        if ours(binding.subjects.as_deref()) {
            let namespace = binding.namespace();
            rights.extend(rights_of(client, &binding.role_ref, namespace.as_deref()).await?);
        }
    }
    ensure!(
        rights.len() > 20,
        "the operator is not installed: {} rights",
        rights.len()
    );
    Ok(rights)
}

fn ours(subjects: Option<&[Subject]>) -> bool {
    let ours = |subject: &Subject| {
        subject.kind == "ServiceAccount"
            && subject.name == ACCOUNT
            && subject.namespace.as_deref() == Some(NAMESPACE)
    };
    subjects.is_some_and(|subjects| subjects.iter().any(ours))
}

async fn rights_of(client: &Client, role: &RoleRef, namespace: Option<&str>) -> Result<BTreeSet<Right>> {
    let rules = match (role.kind.as_str(), namespace) {
        ("Role", Some(namespace)) => {
            Api::<Role>::namespaced(client.clone(), namespace)
                .get(&role.name)
                .await?
                .rules
        }
        _ => {
            Api::<ClusterRole>::all(client.clone())
                .get(&role.name)
                .await?
                .rules
        }
    };
    Ok(granted(&rules.unwrap_or_default(), namespace))
}
