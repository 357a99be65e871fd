//! A host cluster and a plane as an API server and its controllers make them: what is applied is there at once, what
//! runs is ready a moment later.

mod etcd;

use std::collections::{BTreeMap, BTreeSet};

use crds::karmada_deployment::{KarmadaRestoredFrom, KarmadaUpgradeStatus};
use crds::names::finalizer;
use crds::{Cluster, EtcdBackup, EtcdBackupSchedule, EtcdRestore, KarmadaDeployment, ObjectExt};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::etcd::{EtcdSeen, EtcdWorkload, claims_asked, members_are_asked};
use super::super::machines::tests::fleet::Fleet;
use super::super::members::tests::world::Sight;
use super::super::place::{Hold, object_of};
use super::super::{
    Action, Contact, DEFINITIONS, Files, Forbidden, GivenEstimator, HostFacts, HostSeen, LeafWanted, MachinesSeen,
    Material, Observed, Place, PlaneSeen, Planned, ProbeSeen, Propagated, RestoreMaterial, RestoreSeen, Wanted,
    is_left_without_probe, is_probed, is_upgrading, leaves, names, plan, probe_binding, probe_template, removal,
    running_versions, seats, wanted,
};
use crate::addon::Problem;
use crate::cluster_addon::documents::{Document, parse};
use crate::cluster_addon::health::{Health, health};
use crate::cluster_addon::{State, Trial};
use crate::encryption::Scheme;
use crate::inputs::InputsProblem;
use crate::key_transfer::KeysSeen;
use crate::rotation::own::OwnAuthorities;
use crate::rotation::{Act, Authorities, Ring, Subject};
use crate::testing::{authorities, backup_keys};

pub use etcd::Etcd;

const CLAIM: &str = "PersistentVolumeClaim";

/// Kind, namespace and name.
pub type Key = (String, String, String);

/// The least that a KarmadaDeployment has, with these further fields of its spec, in YAML's flow style. The first may
/// be its version.
pub fn plane(more: &str) -> KarmadaDeployment {
    let crds = "crds: {bundle: {url: 'https://bundle.example.com'}}";
    let metadata = "{name: k1, namespace: fleet, uid: uid-1, generation: 1, creationTimestamp: '2026-11-27T08:00:00Z'}";
    let version = if more.starts_with("version: ") { "" } else { "version: 1.18.2, " };
    let more = if more.is_empty() { String::new() } else { format!("{more}, ") };
    serde_yaml::from_str(&format!(
        "{{apiVersion: clusterwright.dev/v1alpha1, kind: KarmadaDeployment, metadata: {metadata}, spec: {{{version}{more}{crds}}}}}"
    ))
    .unwrap()
}

/// Definitions of the release, as short as can be.
pub fn definitions() -> Vec<Document> {
    let one = |name: &str| {
        let (plural, group) = name.split_once('.').unwrap();
        format!(
            "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: {name}, labels: {{own: kept}}}}, spec: {{group: {group}, names: {{plural: {plural}}}}}}}"
        )
    };
    let text = DEFINITIONS.map(one).join("\n---\n");
    parse("karmada-crds", &text, None).unwrap()
}

#[derive(Clone)]
pub struct World {
    pub object: KarmadaDeployment,
    pub now: Timestamp,
    pub host_cluster: Option<Cluster>,
    /// The Cluster that stands for the plane.
    pub cluster: Option<Cluster>,
    pub members: Sight,
    pub others: Vec<KarmadaDeployment>,
    pub namesake: Option<String>,
    pub keys: bool,
    /// What there is of each of them.
    pub authorities: Authorities,
    /// What the Secret of `certificates.caRef` holds.
    pub own: Option<Result<OwnAuthorities, InputsProblem>>,
    pub issued: Vec<LeafWanted>,
    /// How often certificates were issued: each time those that are new are others.
    pub issues: usize,
    /// With which of these each was issued, and by whom.
    issued_with: BTreeMap<String, (usize, String)>,
    pub renewal_due: bool,
    pub kubeconfig: Option<String>,
    /// The state of the authority that it was made with.
    kubeconfig_authority: Option<Ring>,
    pub sources: BTreeMap<String, Files>,
    pub crds: Result<Vec<Document>, Problem>,
    pub host: BTreeMap<Key, Value>,
    pub plane: BTreeMap<Key, Value>,
    /// What was applied last, to which nothing was done since.
    pub applied: BTreeMap<(Place, Key), Value>,
    pub host_lost: bool,
    pub host_forbids: Option<Forbidden>,
    /// Workloads that never become ready.
    pub stuck: BTreeSet<String>,
    pub pods: Vec<Value>,
    pub refused: BTreeMap<Key, String>,
    pub policy_refused: Option<String>,
    /// Whether karmada-controller-manager makes ResourceBindings while it runs.
    pub makes_bindings: bool,
    /// What the plane propagates.
    pub propagated: Propagated,
    /// When the first certificate ends.
    pub first_end: Option<Timestamp>,
    pub backups: Vec<EtcdBackup>,
    pub schedules: Vec<EtcdBackupSchedule>,
    /// The EtcdRestores of it.
    pub restores: Vec<EtcdRestore>,
    /// The backup that it begins with, or is set back to.
    pub restore: RestoreSeen,
    /// What was done, in words.
    pub log: Vec<String>,
    /// Its machines, where it is on machines.
    pub fleet: Fleet,
    /// Its etcd, where that is in Pods.
    pub etcd: Etcd,
    /// What the estimators of members are given there.
    pub given: BTreeMap<String, GivenEstimator>,
    made: u32,
}

impl World {
    pub fn new(object: KarmadaDeployment) -> Self {
        Self {
            object,
            now: "2026-11-27T09:00:00Z".parse().unwrap(),
            host_cluster: None,
            cluster: None,
            members: Sight::none(),
            others: Vec::new(),
            namesake: None,
            keys: false,
            authorities: Authorities::default(),
            own: None,
            issued: Vec::new(),
            issues: 0,
            issued_with: BTreeMap::new(),
            renewal_due: false,
            kubeconfig: None,
            kubeconfig_authority: None,
            sources: BTreeMap::new(),
            crds: Ok(definitions()),
            host: BTreeMap::new(),
            plane: BTreeMap::new(),
            applied: BTreeMap::new(),
            host_lost: false,
            host_forbids: None,
            stuck: BTreeSet::new(),
            pods: Vec::new(),
            refused: BTreeMap::new(),
            policy_refused: None,
            makes_bindings: true,
            propagated: Propagated { works: 10, ..Propagated::default() },
            first_end: None,
            backups: Vec::new(),
            schedules: Vec::new(),
            restores: Vec::new(),
            restore: RestoreSeen::default(),
            log: Vec::new(),
            fleet: Fleet::default(),
            etcd: Etcd::default(),
            given: BTreeMap::new(),
            made: 0,
        }
    }

    pub fn material(&self) -> Material {
        let file = |name: &str, content: String| (name.to_owned(), content.into_bytes());
        let pair = |leaf: &LeafWanted| {
            let (issued, signer) = self.issued_with.get(&leaf.stem).cloned().unwrap_or_default();
            let content = |ending: &str| format!("by {signer} {} {ending} {issued} {:?}", leaf.stem, leaf.dns_names);
            ["crt", "key"].map(|ending| file(&format!("{}.{ending}", leaf.stem), content(ending)))
        };
        let is_signed = |leaf: &LeafWanted| {
            self.issued_with.get(&leaf.stem).is_some_and(|(_, signer)| *signer == self.signer(leaf.signer))
        };
        Material {
            keys: self.keys.then(|| self.keys()),
            leaves: Files(self.issued.iter().flat_map(pair).collect()),
            leaves_due: self.renewal_due
                || self.issued != leaves(&self.object, &self.facts())
                || !self.issued.iter().all(is_signed),
            first_end: self.first_end,
            secrets: self.sources.clone(),
            authorities: self.authorities.clone(),
            own_authorities: self.own.clone(),
            estimators: self.given.clone(),
            restore: RestoreMaterial::find(&self.restore.keys),
        }
    }

    /// Files of authorities say whom they trust, the one that signs first; those of keys whose they are.
    fn keys(&self) -> Files {
        let trusts = |subject: Subject| match self.authorities.rings.get(&subject) {
            None => "nobody".to_owned(),
            Some(ring) => {
                let others = ring.trusted.iter().filter(|one| **one != ring.signer);
                [&ring.signer].into_iter().chain(others).map(String::as_str).collect::<Vec<_>>().join(" ")
            }
        };
        let files = [
            ("ca.crt", trusts(Subject::Ca)),
            ("front-proxy-ca.crt", trusts(Subject::FrontProxyCa)),
            ("etcd-ca.crt", trusts(Subject::EtcdCa)),
            ("sa.pub", trusts(Subject::ServiceAccountKey)),
            ("sa.key", self.signer(Subject::ServiceAccountKey)),
            ("encryption.yaml", trusts(Subject::EncryptionKey)),
        ];
        Files(files.map(|(name, content)| (name.to_owned(), content.into_bytes())).into())
    }

    fn signer(&self, subject: Subject) -> String {
        self.authorities.rings.get(&subject).map(|ring| ring.signer.clone()).unwrap_or_default()
    }

    fn make_keys(&mut self, given: &BTreeMap<Subject, String>) {
        self.keys = true;
        self.authorities = authorities::made_with(&Scheme::default(), given);
    }

    pub fn facts(&self) -> HostFacts {
        if self.object.spec.binary.is_some() {
            return HostFacts::of_machines(self.fleet.look(|seen| seats(&self.object, seen)));
        }
        let key = ("Service".into(), self.object.spec.host_namespace.clone(), names::api_server_service(&self.object));
        let workloads = self.listed(Place::Host, &removal::kinds_of_host(&self.object));
        let mut facts = HostFacts {
            service: self.host.get(&key).cloned(),
            versions: running_versions(&self.object, &workloads),
            etcd: EtcdSeen { workload: EtcdWorkload::find(&self.object, &workloads), ..EtcdSeen::default() },
            ..HostFacts::default()
        };
        facts.etcd.members = members_are_asked(&self.object, &facts).then(|| self.etcd.read());
        let claim = |(ordinal, name): (i32, String)| {
            let claim = self.etcd.claims.get(&name).or_else(|| self.find(Place::Host, CLAIM, &name))?;
            Some((ordinal, claim.clone()))
        };
        facts.etcd.claims = claims_asked(&self.object, &facts).into_iter().filter_map(claim).collect();
        facts
    }

    pub fn wanted(&self) -> Vec<Wanted> {
        wanted(&self.object, &self.material(), &self.facts(), self.crds.as_deref().unwrap_or_default())
    }

    fn at(&self, place: Place) -> &BTreeMap<Key, Value> {
        match place {
            Place::Host => &self.host,
            Place::Plane => &self.plane,
        }
    }

    /// The object of a kind and a name, wherever it is.
    pub fn find(&self, place: Place, kind: &str, name: &str) -> Option<&Value> {
        self.at(place).iter().find(|(key, _)| key.0 == kind && key.2 == name).map(|(_, live)| live)
    }

    pub fn key(manifest: &Value) -> Key {
        let object = object_of(manifest);
        (object.kind, object.namespace.unwrap_or_default(), object.name)
    }

    fn states(&self, wanted: &[Wanted], place: Place) -> Vec<State> {
        let state = |one: &Wanted| {
            let key = Self::key(&one.manifest.0);
            if let Some(why) = self.refused.get(&key) {
                return State::Refused(why.clone());
            }
            let Some(live) = self.at(place).get(&key) else { return State::Missing };
            let is_same = self.applied.get(&(place, key)) == Some(&one.manifest.0);
            let trial = if is_same { Trial::Same } else { Trial::Differs };
            State::There { live: Box::new(live.clone()), trial }
        };
        wanted.iter().filter(|one| one.place == place).map(state).collect()
    }

    /// None of a StatefulSet that is gone.
    fn etcd_pods(&self) -> Vec<Value> {
        let is_there = self.find(Place::Host, "StatefulSet", "k1-etcd").is_some();
        if is_there { self.etcd.pods(&self.object) } else { Vec::new() }
    }

    fn listed(&self, place: Place, kinds: &[removal::Kind]) -> Vec<Value> {
        let is_listed = |live: &&Value| kinds.iter().any(|kind| live["kind"] == kind.2);
        self.at(place).values().filter(is_listed).cloned().collect()
    }

    pub fn is_healthy(&self, place: Place, kind: &str, name: &str) -> bool {
        self.find(place, kind, name).is_some_and(|live| health(live) == Health::Healthy)
    }

    pub fn plan(&self) -> Planned {
        self.observe(plan)
    }

    /// All that there is to see.
    pub fn observe<T>(&self, with: impl FnOnce(&Observed<'_>) -> T) -> T {
        self.fleet.look(|seen| self.observe_with(*seen, with))
    }

    fn observe_with<T>(&self, machines: MachinesSeen<'_>, with: impl FnOnce(&Observed<'_>) -> T) -> T {
        let (material, wanted) = (self.material(), self.wanted());
        let host = match (self.host_lost, &self.host_forbids) {
            (true, _) => Contact::Lost("connection refused".to_owned()),
            (false, Some(forbidden)) => Contact::Forbidden(forbidden.clone()),
            (false, None) => Contact::Made(HostSeen {
                states: self.states(&wanted, Place::Host),
                listed: self.listed(Place::Host, &removal::kinds_of_host(&self.object)),
                pods: self.pods.iter().cloned().chain(self.etcd_pods()).collect(),
            }),
        };
        let answers = match self.object.spec.binary.is_some() {
            true => self.fleet.serves("apiserver"),
            false => self.is_healthy(Place::Host, "Deployment", "k1-apiserver"),
        };
        let plane = match (&self.kubeconfig, answers) {
            (None, _) => Contact::NotMade,
            (_, false) => Contact::Lost("connection refused".to_owned()),
            (_, true) => Contact::Made(PlaneSeen {
                states: self.states(&wanted, Place::Plane),
                listed: self.listed(Place::Plane, &removal::KINDS_OF_PLANE),
                leaders: Vec::new(),
                policy_refused: self.policy_refused.clone(),
                propagated: is_upgrading(&self.object, &self.facts()).then(|| self.propagated.clone()),
                probe: is_probed(&self.object, &self.facts()).then(|| self.probe()),
                left: self
                    .find(Place::Plane, "Namespace", names::PROBE)
                    .cloned()
                    .filter(|_| is_left_without_probe(&self.object)),
            }),
        };
        with(&Observed {
            now: self.now,
            object: &self.object,
            host_cluster: self.host_cluster.as_ref(),
            others: &self.others.iter().collect::<Vec<_>>(),
            namesake: self.namesake.as_deref(),
            material: &material,
            crds: self.crds.as_deref(),
            facts: &self.facts(),
            kubeconfig: self
                .kubeconfig
                .as_deref()
                .filter(|_| self.kubeconfig_authority.as_ref() == self.authorities.rings.get(&Subject::Ca)),
            host: &host,
            plane: &plane,
            cluster: self.cluster.as_ref(),
            backups: &self.backups.iter().collect::<Vec<_>>(),
            schedules: &self.schedules.iter().collect::<Vec<_>>(),
            restores: &self.restores.iter().collect::<Vec<_>>(),
            restore: &self.restore,
            members: self.members.seen(),
            machines,
        })
    }

    fn probe(&self) -> ProbeSeen {
        let find = |kind: &str, name: &str| self.find(Place::Plane, kind, name).cloned();
        let (template, binding) = (probe_template(), probe_binding());
        let key = (template.kind.clone(), names::PROBE.to_owned(), template.name.clone());
        ProbeSeen {
            template: find(&template.kind, &template.name),
            binding: find(&binding.kind, &binding.name),
            refused: self.refused.get(&key).cloned(),
        }
    }

    /// What karmada-controller-manager makes of the probe's template.
    fn bind(&mut self) {
        let runs = match self.object.spec.binary.is_some() {
            true => self.fleet.serves("controller-manager"),
            false => self
                .find(Place::Host, "Deployment", "k1-controller-manager")
                .is_some_and(|live| live["status"]["readyReplicas"].as_i64() > Some(0)),
        };
        let Some(template) = self.probe().template.filter(|_| runs && self.makes_bindings) else { return };
        if self.find(Place::Plane, "PropagationPolicy", names::PROBE).is_none() {
            return;
        }
        let (of, name) = (&template["metadata"], probe_binding().name);
        let resource = json!({ "uid": of["uid"], "resourceVersion": of["resourceVersion"] });
        let key = (probe_binding().kind, names::PROBE.to_owned(), name);
        self.plane.insert(key, json!({ "kind": probe_binding().kind, "spec": { "resource": resource } }));
    }

    pub fn apply(&mut self, action: &Action) {
        match action {
            Action::AddFinalizer => self.object.metadata.finalizers = Some(vec![finalizer::KARMADA.to_owned()]),
            Action::RemoveFinalizer => self.object.metadata.finalizers = None,
            Action::MakeKeys { given } => {
                assert!(self.object.spec.restore_from.is_none(), "it has keys of a backup, or none");
                self.make_keys(given);
            }
            Action::Rotate(act) => {
                self.log.push(match act {
                    Act::Move { subject, next } => format!("{next:?} {}", subject.name()),
                    Act::Take { subject, fingerprint } => format!("take {fingerprint} for {}", subject.name()),
                });
                authorities::execute(&mut self.authorities, act.clone(), &Scheme::default());
            }
            Action::FetchKeys(transfer) => {
                self.log.push("fetch keys".to_owned());
                self.restore.keys.jobs.push(transfer.job.clone());
            }
            Action::TakeKeys => {
                assert!(!self.keys, "keys that are there are never replaced");
                self.make_keys(&BTreeMap::new());
                self.restore.keys.keys = KeysSeen::InPlace;
            }
            Action::DropKeyTransfer => {
                backup_keys::drop_all(&mut self.restore.keys);
            }
            Action::IssueCertificates(leaves) => {
                self.issues += 1;
                for leaf in leaves {
                    let (signer, kept) = (self.signer(leaf.signer), self.issued_with.get(&leaf.stem));
                    let is_kept = kept.is_some_and(|(_, by)| *by == signer) && self.issued.contains(leaf);
                    if self.renewal_due || !is_kept {
                        self.issued_with.insert(leaf.stem.clone(), (self.issues, signer));
                    }
                }
                self.issued = leaves.clone();
                self.renewal_due = false;
            }
            Action::MakeKubeconfig { server } => {
                self.kubeconfig = Some(server.clone());
                self.kubeconfig_authority = self.authorities.rings.get(&Subject::Ca).cloned();
            }
            Action::Etcd(act) => {
                let said = self.etcd.act(act);
                self.log.push(said);
            }
            Action::ApplyCluster(cluster) => self.cluster = Some((**cluster).clone()),
            Action::CreateBackup(backup) => {
                self.log.push(format!("create EtcdBackup {}", backup.name()));
                self.backups.push((**backup).clone());
            }
            Action::Member(action) => panic!("there is no member {}", action.member),
            Action::Machines(act) => self.log.extend(self.fleet.play(act)),
            Action::Apply { place, manifest, .. } => self.write(*place, &manifest.0),
            // It is never the same, and nobody compares it.
            Action::Probe(manifest) => {
                let policy = self.find(Place::Plane, "PropagationPolicy", names::PROBE);
                assert!(policy.is_some(), "whoever has a policy of all ConfigMaps would propagate it");
                self.made += 1;
                let (key, mut live) = (Self::key(&manifest.0), manifest.0.clone());
                live["metadata"]["uid"] = json!("uid-of-template");
                live["metadata"]["resourceVersion"] = json!(self.made.to_string());
                self.plane.insert(key, live);
            }
            Action::Delete { place, deletion } => {
                let object = &deletion.object;
                self.log.push(format!("delete {} {}", object.kind, object.name));
                let key = (object.kind.clone(), object.namespace.clone().unwrap_or_default(), object.name.clone());
                if let Some(claim) = self.etcd.claims.remove(&object.name) {
                    return assert_eq!(claim["metadata"]["uid"], *deletion.uid);
                }
                let at = if *place == Place::Host { &mut self.host } else { &mut self.plane };
                assert_eq!(at.get(&key).map(|live| live["metadata"]["uid"].clone()), Some(json!(deletion.uid)));
                at.remove(&key);
                at.retain(|one, _| object.kind != "Namespace" || one.1 != object.name);
                self.applied.remove(&(*place, key));
            }
        }
    }

    fn write(&mut self, place: Place, manifest: &Value) {
        let key = Self::key(manifest);
        self.log.push(format!("apply {} {}", key.0, key.2));
        self.made += 1;
        let at = if place == Place::Host { &mut self.host } else { &mut self.plane };
        let old = at.get(&key).cloned();
        let mut live = manifest.clone();
        let uid = old.as_ref().map_or(json!(format!("uid-{}", self.made)), |old| old["metadata"]["uid"].clone());
        live["metadata"]["uid"] = uid;
        if let Some(old) = old {
            let changed = i64::from(old["spec"] != manifest["spec"]);
            live["metadata"]["generation"] = json!(old["metadata"]["generation"].as_i64().unwrap_or(1) + changed);
            live["status"] = old["status"].clone();
        }
        if key.0 == "Service" && place == Place::Host {
            live["spec"]["clusterIP"] = json!("10.0.0.9");
            let is_free = live["spec"]["ports"][0]["nodePort"].is_null();
            if live["spec"]["type"] == "NodePort" && is_free {
                live["spec"]["ports"][0]["nodePort"] = json!(31443);
            }
        }
        at.insert(key.clone(), live);
        self.applied.insert((place, key), manifest.clone());
    }

    /// Controllers do what is theirs.
    pub fn tick(&mut self) {
        if self.object.spec.binary.is_some() {
            self.now += jiff::SignedDuration::from_secs(1);
        }
        self.fleet.tick(&self.object, self.now);
        for ((kind, _, name), live) in &mut self.host {
            let replicas = live["spec"]["replicas"].as_i64().unwrap_or_default();
            let generation = live["metadata"]["generation"].as_i64().unwrap_or(1);
            match kind.as_str() {
                "Deployment" if !self.stuck.contains(name) => {
                    live["metadata"]["generation"] = json!(generation);
                    live["status"] = json!({
                        "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
                        "availableReplicas": replicas, "readyReplicas": replicas,
                    });
                }
                "Job" if !self.stuck.contains(name) => {
                    live["status"] = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
                }
                "Service" if live["spec"]["type"] == "LoadBalancer" => {
                    live["status"] = json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.7" }] } });
                }
                _ => {}
            }
        }
        self.bind();
        if !self.stuck.contains("k1-etcd") {
            self.etcd.tick(&self.object, self.now, &mut self.host);
        }
        for ((kind, _, _), live) in &mut self.plane {
            let types: &[&str] = match kind.as_str() {
                "CustomResourceDefinition" => &["NamesAccepted", "Established"],
                "APIService" => &["Available"],
                _ => &[],
            };
            if !types.is_empty() {
                let conditions: Vec<Value> = types
                    .iter()
                    .map(|type_| json!({ "type": type_, "status": "True", "reason": "", "message": "" }))
                    .collect();
                live["status"] = json!({ "conditions": conditions });
            }
        }
    }

    /// Whatever an act needs that comes before it.
    fn check(&self, wanted: &[Wanted], action: &Action) {
        let Action::Apply { place, object, manifest, .. } = action else { return };
        let found = wanted.iter().find(|one| one.place == *place && one.manifest == **manifest);
        let stage = found.map(|one| one.stage).expect("what is applied is wanted");
        for before in wanted.iter().filter(|one| one.stage < stage && one.hold == Hold::Free) {
            let live = self.at(before.place).get(&Self::key(&before.manifest.0));
            let live = live.unwrap_or_else(|| panic!("{object} is applied before {}", before.object));
            let says_so = ["Deployment", "StatefulSet", "CustomResourceDefinition", "APIService"];
            let works = !says_so.contains(&before.object.kind.as_str()) || health(live) == Health::Healthy;
            assert!(works, "{object} is applied before {} works", before.object);
        }
        // The rules that matter most, each by itself.
        let is_configuration = object.kind.ends_with("WebhookConfiguration");
        let webhook_works = match self.object.spec.binary.is_some() {
            true => self.fleet.serves("webhook"),
            false => self.is_healthy(Place::Host, "Deployment", "k1-webhook"),
        };
        assert!(!is_configuration || webhook_works, "{object} before the webhook works");
        let is_asked = self.find(Place::Plane, "ValidatingWebhookConfiguration", "validating-config").is_some();
        let controls = ["k1-controller-manager", "k1-scheduler"].contains(&object.name.as_str());
        assert!(!controls || object.kind != "Deployment" || is_asked, "{object} before the webhook is asked");
    }

    /// Does all of a plan, each act in its order.
    pub fn play(&mut self, actions: &[Action]) {
        let wanted = self.wanted();
        for action in actions {
            self.check(&wanted, action);
            self.apply(action);
        }
    }

    /// A look, and what follows from it; whether anything has changed.
    pub fn turn(&mut self) -> bool {
        let before = (self.host.clone(), self.plane.clone(), self.records());
        let etcd = self.etcd.clone();
        let fleet = self.fleet.shape(&self.object);
        let planned = self.plan();
        self.object.status = Some(planned.status);
        self.play(&planned.actions);
        if planned.actions.is_empty() {
            self.tick();
        }
        !planned.actions.is_empty()
            || (&self.host, &self.plane, &self.records()) != (&before.0, &before.1, &before.2)
            || etcd != self.etcd
            || fleet != self.fleet.shape(&self.object)
    }

    /// What the next turn is decided by, of what the status has.
    fn records(&self) -> (Option<KarmadaUpgradeStatus>, Option<KarmadaRestoredFrom>) {
        let restored = self.object.status.as_ref().and_then(|status| status.restored_from.clone());
        (self.upgrade(), restored)
    }

    /// The upgrade, as the status has it.
    pub fn upgrade(&self) -> Option<KarmadaUpgradeStatus> {
        self.object.status.as_ref()?.upgrade.clone()
    }

    /// Plays until nothing is left to do; how many turns it took.
    pub fn settle(&mut self) -> usize {
        for turn in 0..if self.object.spec.binary.is_some() { 900 } else { 200 } {
            if !self.turn() {
                let planned = self.plan();
                self.object.status = Some(planned.status);
                return turn;
            }
        }
        panic!("it has not come to rest; the last was {:?}", self.log.iter().rev().take(8).collect::<Vec<_>>());
    }

    pub fn condition(&self, type_: &str) -> (String, String, String) {
        let conditions = &self.object.status.as_ref().unwrap().conditions;
        let found = crds::conditions::find(conditions, type_).unwrap();
        (found.status.clone(), found.reason.clone(), found.message.clone())
    }

    pub fn is_ready(&self) -> bool {
        self.condition("Ready").0 == "True"
    }

    /// What there is, without what the server adds.
    pub fn shape(&self) -> Vec<(Place, Key, Value)> {
        self.applied.iter().map(|((place, key), manifest)| (*place, key.clone(), manifest.clone())).collect()
    }
}

/// One that has come to rest.
pub fn settled(more: &str) -> World {
    let mut world = World::new(plane(more));
    if more.contains("external") {
        let files =
            ["ca.crt", "tls.crt", "tls.key"].map(|name| (name.to_owned(), format!("given {name}").into_bytes()));
        world.sources.insert("etcd-client".to_owned(), Files(files.into()));
    }
    if more.contains("pullSecretRefs") {
        let files = [(".dockerconfigjson".to_owned(), b"{}".to_vec())];
        world.sources.insert("registry".to_owned(), Files(files.into()));
    }
    if more.contains("hostClusterRef") {
        let cluster = "{apiVersion: clusterwright.dev/v1alpha1, kind: Cluster, metadata: {name: host-a, namespace: fleet}, spec: {kubeconfigRef: {name: x}}}";
        world.host_cluster = Some(serde_yaml::from_str(cluster).unwrap());
    }
    world.settle();
    world
}
