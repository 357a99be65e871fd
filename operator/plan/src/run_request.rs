//! A run that an object asks for on machines of the cluster that it forms: its steps, its name, and what it remembers.

use std::collections::BTreeMap;

use crds::PlaybookRun;
use crds::names::annotation;
use crds::playbook_run::KarmadaPart;
use crds::step::{Intent, Step};
use serde_json::Value;

use crate::attempts::TargetRecord;
use crate::cluster_machine::ClusterMachine;
use crate::naming;
use crate::run_owner::RunOwner;

/// Whether a run brings machines to the cluster, or makes them ready for that.
pub(crate) fn brings_machines(run: &PlaybookRun) -> bool {
    [Intent::Prepare, Intent::Join].contains(&run.spec.intent)
}

/// A machine of a run, with the retry that it answers.
pub(crate) type Target<'a> = (ClusterMachine<'a>, Option<String>);

/// Which attempt a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attempt {
    /// How often the same was tried before.
    pub number: i32,
    /// It goes on where the one before it stopped.
    pub resume: bool,
}

impl Attempt {
    pub const FIRST: Self = Self::from_start(0);

    /// All steps are played.
    pub const fn from_start(number: i32) -> Self {
        Self { number, resume: false }
    }
}

/// Who asks for a run, and what it wants by then.
pub(crate) struct Asker<'a> {
    pub owner: &'a RunOwner,
    /// Generation of its spec.
    pub generation: i64,
    /// A digest of all that it wants of its machines.
    pub wanted: &'a str,
}

/// A run on machines of a cluster, which it remembers.
pub(crate) struct RunRequest<'r, 'a> {
    pub intent: Intent,
    pub steps: Vec<Step>,
    pub targets: &'r [Target<'a>],
    pub attempt: Attempt,
    /// What its name follows from, where that is not the machines that it works on.
    pub name_of: Option<Vec<String>>,
    /// Variables that it has before those of its cluster.
    pub vars: BTreeMap<String, Value>,
    /// The parts of a Karmada control plane that it brings, in their order.
    pub parts: Vec<KarmadaPart>,
    /// What it rolls out, where such runs differ from others by that.
    pub rolls_out: Option<String>,
}

impl<'r, 'a> RunRequest<'r, 'a> {
    /// These steps, on these machines.
    pub fn new(intent: Intent, steps: Vec<Step>, targets: &'r [Target<'a>], attempt: Attempt) -> Self {
        Self {
            intent,
            steps,
            targets,
            attempt,
            name_of: None,
            vars: BTreeMap::new(),
            parts: Vec::new(),
            rolls_out: None,
        }
    }

    /// The run.
    pub fn run(self, asker: &Asker<'_>) -> PlaybookRun {
        let Self { intent, attempt, .. } = self;
        let target = |(machine, retry): &Target<'_>| {
            let target = TargetRecord {
                uid: machine.uid().to_owned(),
                retry: retry.clone(),
                host_generation: machine.host.and_then(|host| host.metadata.generation),
            };
            Some((machine.host_name()?.to_owned(), target))
        };
        let targets: BTreeMap<String, TargetRecord> = self.targets.iter().filter_map(target).collect();
        let uids = || targets.values().map(|target| target.uid.clone()).collect();
        let parts: Vec<String> = self.name_of.unwrap_or_else(uids);
        let parts = parts.iter().map(String::as_str);
        let name = naming::run(&asker.owner.name, &asker.owner.uid, intent, parts, attempt.number);
        let hosts = targets.keys().cloned().collect();
        let mut run = asker.owner.run(&name, intent, self.steps, hosts, attempt.number);
        run.spec.resume = attempt.resume;
        run.spec.vars.extend(self.vars);
        match <[KarmadaPart; 1]>::try_from(self.parts) {
            Ok([part]) => run.spec.karmada = Some(part),
            Err(several) => run.spec.karmada_parts = several,
        }
        let annotations = run.metadata.annotations.get_or_insert_default();
        annotations.extend([
            (annotation::MACHINES.to_owned(), serde_json::to_string(&targets).unwrap_or_default()),
            (annotation::GENERATION.to_owned(), asker.generation.to_string()),
            (annotation::WANTED.to_owned(), asker.wanted.to_owned()),
        ]);
        annotations.extend(self.rolls_out.map(|key| (annotation::ROLLS_OUT.to_owned(), key)));
        run
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crds::references::controller_ref;
    use crds::step::{Intent, Step};
    use crds::{ClusterKind, Host, Machine, ObjectExt};
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::{Asker, Attempt, RunRequest};
    use crate::attempts::{attempt_of, targets};
    use crate::cluster_machine::gather;
    use crate::run_owner::RunOwner;

    #[test]
    fn a_run_of_whatever_object_remembers_its_machines_and_what_was_wanted_of_them() {
        let object: ConfigMap =
            serde_yaml::from_str("{metadata: {name: plane, namespace: fleet, uid: plane-uid}}").unwrap();
        let owner = RunOwner::new(&object, ClusterKind::KarmadaDeployment, controller_ref(&object));
        let machine: Machine = serde_yaml::from_str(
            "{apiVersion: clusterwright.dev/v1alpha1, kind: Machine, metadata: {name: m, namespace: fleet, uid: m-uid}, spec: {clusterName: plane, role: control-plane, hostRef: {name: h}}}",
        )
        .unwrap();
        let host: Host = serde_yaml::from_str(
            "{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {name: h, generation: 5}, spec: {address: 10.0.0.1, ssh: {credentialsRef: {name: key}}, claimRef: {kind: Machine, name: m, uid: m-uid}}}",
        )
        .unwrap();
        let (live, _) = gather(&[&machine], &[&host]);
        let chosen = [(live[0], Some("machine 4".to_owned()))];
        let asker = Asker { owner: &owner, generation: 7, wanted: "d1" };
        let request = |number, named: Option<&str>| RunRequest {
            name_of: named.map(|name| vec![name.to_owned()]),
            vars: BTreeMap::from([("etcd_members".to_owned(), json!([]))]),
            ..RunRequest::new(Intent::Join, vec![Step::Etcd], &chosen, Attempt { number, resume: true })
        };
        let run = request(2, None).run(&asker);
        let target = targets(&run).remove("h").unwrap();
        assert_eq!((target.uid.as_str(), target.host_generation), ("m-uid", Some(5)));
        assert_eq!(target.retry.as_deref(), Some("machine 4"));
        assert_eq!((attempt_of(&run), run.spec.resume, run.spec.hosts.as_slice()), (2, true, &["h".to_owned()][..]));
        let said = |key| run.annotation(key);
        assert_eq!((said("clusterwright.dev/wanted"), said("clusterwright.dev/generation")), (Some("d1"), Some("7")));
        assert_eq!(run.spec.vars["etcd_members"], json!([]));
        assert!(owner.owns(&run.metadata));
        // Who asks again for the same asks for the same run, and another attempt is another one.
        assert_eq!(run.name(), request(2, None).run(&asker).name());
        assert_ne!(run.name(), request(3, None).run(&asker).name());
        assert_ne!(run.name(), request(2, Some("member")).run(&asker).name());
    }
}
