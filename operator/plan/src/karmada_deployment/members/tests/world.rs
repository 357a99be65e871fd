//! A plane and its members as the planner's tests have them: APIs that keep objects, Karmada as far as it matters here,
//! clusters that go away and come back.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::karmada_deployment::{KarmadaMemberPhase, UnjoinPolicy};
use crds::{Host, KarmadaDeployment, KarmadaDeploymentStatus, Reason};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::super::super::contact::Contact;
use super::super::super::contents::Files;
use super::super::super::given_estimator::GivenEstimator;
use super::super::super::host_seen::HostSeen;
use super::super::super::material::Material;
use super::super::super::names::{MEMBERS_NAMESPACE, is_made_for};
use super::super::super::restore::revision::BUMP;
use super::super::EstimatorsSeen;
use super::super::*;
use crate::cluster_addon::{State, Trial};

/// An API: its objects, without order.
#[derive(Clone, Default)]
pub struct Api {
    pub objects: Vec<Value>,
    made: u64,
}

impl Api {
    pub fn find(&self, kind: &str, name: &str) -> Option<&Value> {
        self.objects.iter().find(|live| live["kind"] == kind && live["metadata"]["name"] == name)
    }

    fn at(&self, wanted: &Value) -> Option<usize> {
        fn key(object: &Value) -> [&Value; 3] {
            [&object["kind"], &object["metadata"]["namespace"], &object["metadata"]["name"]]
        }
        let wanted = key(wanted);
        self.objects.iter().position(|live| key(live) == wanted)
    }

    fn state(&self, wanted: &Value) -> State {
        let Some(at) = self.at(wanted) else { return State::Missing };
        let live = Box::new(self.objects[at].clone());
        let trial = if is_within(wanted, &live) { Trial::Same } else { Trial::Differs };
        State::There { live, trial }
    }

    pub fn apply(&mut self, wanted: &Value) {
        self.made += 1;
        let at = self.at(wanted).unwrap_or_else(|| {
            let mut new = wanted.clone();
            new["metadata"]["uid"] = json!(format!("u{}", self.made));
            self.objects.push(new);
            self.objects.len() - 1
        });
        merge(&mut self.objects[at], wanted);
        self.objects[at]["metadata"]["resourceVersion"] = json!(self.made.to_string());
    }

    fn patch(&mut self, wanted: &Value, patch: &Value) {
        let Some(at) = self.at(wanted) else { return };
        let fits = |field: &str| self.objects[at]["metadata"][field] == patch["metadata"][field];
        if fits("uid") && fits("resourceVersion") {
            self.made += 1;
            let finalizers = patch["metadata"]["finalizers"].clone();
            merge(&mut self.objects[at], patch);
            if finalizers.is_array() {
                self.objects[at]["metadata"]["finalizers"] = finalizers;
            }
            self.objects[at]["metadata"]["resourceVersion"] = json!(self.made.to_string());
            self.collect();
        }
    }

    pub fn delete(&mut self, kind: &str, name: &str) {
        for live in self.objects.iter_mut().filter(|live| live["kind"] == kind && live["metadata"]["name"] == name) {
            live["metadata"]["deletionTimestamp"] = json!("2026-11-27T00:00:00Z");
        }
        self.collect();
    }

    /// What is being deleted and held by nothing is gone; so is what it owned.
    fn collect(&mut self) {
        let is_held = |live: &Value| live["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        self.objects.retain(|live| live["metadata"]["deletionTimestamp"].is_null() || is_held(live));
        let uids: BTreeSet<String> =
            self.objects.iter().filter_map(|live| live["metadata"]["uid"].as_str().map(str::to_owned)).collect();
        self.objects.retain(|live| {
            let owner = live["metadata"]["ownerReferences"][0]["uid"].as_str();
            owner.is_none_or(|owner| uids.contains(owner))
        });
    }
}

fn merge(live: &mut Value, wanted: &Value) {
    let Value::Object(fields) = wanted else {
        *live = wanted.clone();
        return;
    };
    for (field, value) in fields {
        let there = &mut live[field];
        match (value, &*there) {
            (Value::Object(_), Value::Object(_)) => merge(there, value),
            (Value::Array(new), Value::Array(old)) if field == "finalizers" => {
                let more: Vec<Value> = new.iter().filter(|one| !old.contains(one)).cloned().collect();
                *there = old.iter().cloned().chain(more).collect();
            }
            _ => *there = value.clone(),
        }
    }
}

fn is_within(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(fields), Value::Object(_)) => {
            fields.iter().all(|(field, value)| field == "finalizers" || is_within(value, &live[field]))
        }
        _ => wanted == live,
    }
}

/// What was seen of members.
#[derive(Clone)]
pub struct Sight {
    neighbours: Neighbours<'static>,
    own: OwnClusters,
    plane: Contact<PlaneSeen>,
    members: BTreeMap<String, Member>,
    estimators: EstimatorDue,
    host: Option<HostSeen>,
}

impl Sight {
    /// Nothing.
    pub fn none() -> Self {
        let (neighbours, own) = (Neighbours::default(), OwnClusters::default());
        let estimators = EstimatorDue::Now("1.18.2".to_owned());
        Self { neighbours, own, plane: Contact::NotMade, members: BTreeMap::new(), estimators, host: None }
    }

    pub fn seen(&self) -> Seen<'_> {
        let Self { neighbours, own, plane, members, estimators, .. } = self;
        Seen { neighbours, own, plane, members, estimators }
    }
}

/// A cluster that may be a member.
#[derive(Clone)]
pub struct Site {
    pub api: Api,
    pub uid: String,
    pub is_up: bool,
    /// What Karmada has brought there.
    pub workloads: usize,
    /// Whether it has lost one.
    pub has_lost: bool,
}

#[derive(Clone)]
pub struct World {
    pub now: Timestamp,
    pub object: KarmadaDeployment,
    pub plane: Api,
    pub plane_is_up: bool,
    pub host: Api,
    pub host_is_up: bool,
    /// Whether what runs on the host becomes ready.
    pub host_works: bool,
    pub pods: Vec<Value>,
    pub estimators: EstimatorDue,
    pub host_is_known: bool,
    pub sites: BTreeMap<String, Site>,
    pub neighbours: Neighbours<'static>,
    /// The Pull members whose agents do not reach the plane; Karmada has not noticed.
    pub away: BTreeSet<String>,
    /// What runs have brought to the machines of a plane of which estimators; none: it is in Pods.
    pub machines: Option<BTreeMap<String, GivenEstimator>>,
    /// Why estimators on machines do not work.
    pub sick: BTreeMap<String, String>,
    /// What failed for members.
    pub failures: BTreeMap<String, String>,
    works: BTreeMap<String, usize>,
    certificates: BTreeSet<(String, &'static str)>,
    material: Material,
    /// The Hosts of the namespace.
    pub hosts: BTreeMap<String, Host>,
    /// What was read on Hosts, by member.
    pub read: BTreeMap<String, HostAccess>,
    /// Why a run that reads a kubeconfig on a Host fails: reason and message.
    pub unreadable: BTreeMap<String, (String, String)>,
    /// Members whose API refuses what was read last.
    pub refusing: BTreeSet<String>,
}

/// What nobody may ever delete in a member.
const OTHERS: [(&str, &str); 3] =
    [("ServiceAccount", "somebody"), ("ClusterRoleBinding", "somebody"), ("Namespace", "karmada-cluster")];

impl World {
    pub fn new(policy: Option<UnjoinPolicy>, names: &[&str]) -> Self {
        let object = json!({
            "apiVersion": "clusterwright.dev/v1alpha1", "kind": "KarmadaDeployment",
            "metadata": { "name": "k1", "namespace": "fleet", "uid": "plane-uid", "generation": 1 },
            "spec": {
                "version": "1.18.2", "unjoinPolicy": policy,
                "apiServer": { "serviceType": "NodePort", "loadBalancerApiserverIp": "10.0.0.9" },
                "crds": { "bundle": { "url": "https://bundle.example" } },
            },
            "status": {
                "endpoint": "https://10.0.0.9:30443",
                "conditions": [{
                    "type": "ComponentsReady", "status": "True", "reason": "AllReady", "message": "well",
                    "lastTransitionTime": "2026-11-27T00:00:00Z",
                }],
            },
        });
        let site = |(number, name): (usize, &&str)| {
            let mut api = Api::default();
            for (kind, other) in OTHERS {
                api.apply(&json!({ "kind": kind, "metadata": { "name": other } }));
            }
            let uid = format!("cluster-{number}");
            ((*name).to_owned(), Site { api, uid, is_up: true, workloads: 0, has_lost: false })
        };
        let keys = Files([("ca.crt".to_owned(), b"authority".to_vec())].into());
        Self {
            now: "2026-11-27T00:00:00Z".parse().unwrap(),
            object: serde_json::from_value(object).unwrap(),
            plane: Api::default(),
            plane_is_up: true,
            host: Api::default(),
            host_is_up: true,
            host_works: true,
            pods: Vec::new(),
            estimators: EstimatorDue::Now("1.18.2".to_owned()),
            host_is_known: true,
            sites: names.iter().enumerate().map(site).collect(),
            neighbours: Neighbours::default(),
            away: BTreeSet::new(),
            machines: None,
            sick: BTreeMap::new(),
            failures: BTreeMap::new(),
            works: BTreeMap::new(),
            certificates: BTreeSet::new(),
            material: Material { keys: Some(keys), ..Material::default() },
            hosts: names.iter().map(|name| (format!("h-{name}"), spare_host(&format!("h-{name}")))).collect(),
            read: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            refusing: BTreeSet::new(),
        }
    }

    /// Puts a member into the spec; its kubeconfig is read on the Host `h-<name>`.
    pub fn name_by_host(&mut self, name: &str, mode: &str) {
        self.forget(name);
        let member = json!({ "name": name, "syncMode": mode, "hostRef": { "name": format!("h-{name}") } });
        self.object.spec.members.push(serde_json::from_value(member).unwrap());
    }

    /// What there is to see of a kubeconfig that is read for a member.
    fn host_access(&self, target: &Target) -> Option<HostAccess> {
        let before = self.row(&target.name).and_then(|row| row.host_ref.clone()).map(|host| host.name);
        let host = target.reached_by.host_ref().map(|host| host.name).or(before)?;
        let read = self.read.get(&target.name).cloned().unwrap_or_default();
        let is_refused = self.refusing.contains(&target.name) && read.kept.is_some();
        Some(HostAccess { host: self.hosts.get(&host).cloned(), is_refused, ..read })
    }

    /// Runs that were made come to their end.
    fn play_runs(&mut self) {
        for access in self.read.values_mut() {
            let Some(run) = access.runs.last_mut().filter(|run| run.status.is_none()) else { continue };
            let failure = self.unreadable.get(&run.spec.hosts[0]);
            let phase = if failure.is_some() { "Failed" } else { "Succeeded" };
            let mut status = json!({ "phase": phase, "finishedAt": self.now.to_string() });
            if let Some((reason, message)) = failure {
                let failure = json!({ "step": "read-kubeconfig", "task": "t", "reason": reason, "message": message });
                status["hosts"] = json!([{ "name": run.spec.hosts[0], "failure": failure }]);
            }
            run.status = Some(serde_json::from_value(status).unwrap());
            access.brought = if failure.is_some() { Brought::Nothing } else { Brought::Usable };
        }
    }

    /// The plane is on machines.
    pub fn on_machines(mut self) -> Self {
        let binary = json!({ "controlPlane": { "replicas": 1 }, "artifacts": { "url": "https://bundle.example" } });
        self.object.spec.mode = crds::karmada_deployment::KarmadaMode::Binary;
        self.object.spec.binary = serde_json::from_value(binary).unwrap();
        self.machines = Some(BTreeMap::new());
        self
    }

    /// Runs bring the machines what their estimators are to have.
    pub fn bring_estimators(&mut self) {
        self.machines = Some(self.material.estimators.clone());
    }

    /// What the estimator of a member is given.
    pub fn given(&self, name: &str) -> Option<&GivenEstimator> {
        self.material.estimators.get(name)
    }

    /// Puts a member into the spec; a Secret of its name leads to it.
    pub fn name(&mut self, name: &str, mode: &str) {
        self.forget(name);
        let member = json!({ "name": name, "syncMode": mode, "kubeConfigSecretName": name });
        self.object.spec.members.push(serde_json::from_value(member).unwrap());
    }

    pub fn forget(&mut self, name: &str) {
        self.object.spec.members.retain(|member| member.name != name);
    }

    pub fn annotate(&mut self, value: &str) {
        let annotations = self.object.metadata.annotations.get_or_insert_default();
        annotations.insert(crds::names::annotation::FORCE_REMOVE.to_owned(), value.to_owned());
    }

    pub fn phase(&self, name: &str) -> Option<KarmadaMemberPhase> {
        self.row(name).map(|row| row.phase)
    }

    pub fn row(&self, name: &str) -> Option<&crds::karmada_deployment::KarmadaMemberStatus> {
        self.object.status.as_ref()?.members.iter().find(|member| member.name == name)
    }

    /// Phase and reason of a member.
    pub fn said(&self, name: &str) -> (KarmadaMemberPhase, String) {
        let row = self.row(name).unwrap();
        (row.phase, row.reason.clone())
    }

    /// What the join made in a member, namespaces aside.
    pub fn made_in(&self, name: &str) -> usize {
        let ours = |live: &&Value| is_made_for(live, &self.object) && live["kind"] != "Namespace";
        self.sites[name].api.objects.iter().filter(ours).count()
    }

    pub fn has_certificate(&self, name: &str, owner: &'static str) -> bool {
        self.certificates.contains(&(name.to_owned(), owner))
    }

    pub fn seen_members(&self) -> BTreeMap<String, Member> {
        self.look(&self.material).members
    }

    pub fn made_on_host(&self, name: &str) -> usize {
        let label = crds::names::label::KARMADA_MEMBER;
        self.host.objects.iter().filter(|live| live["metadata"]["labels"][label] == name).count()
    }

    pub fn made_in_plane(&self, name: &str) -> usize {
        let label = crds::names::label::KARMADA_MEMBER;
        self.plane.objects.iter().filter(|live| live["metadata"]["labels"][label] == name).count()
    }

    /// One look and what follows from it; the number of actions.
    pub fn turn(&mut self) -> usize {
        self.now = self.now.checked_add(SignedDuration::from_secs(20)).unwrap();
        let planned = self.plan();
        for action in &planned.actions {
            self.act(action);
            self.check();
        }
        self.object.status.get_or_insert_with(KarmadaDeploymentStatus::default).members = planned.status;
        self.play_runs();
        self.karmada();
        self.check();
        planned.actions.len()
    }

    /// Turns until nothing is done any more; a silence of a minute is waited for.
    pub fn rest(&mut self) {
        let mut quiet = 0;
        for _ in 0..400 {
            quiet = if self.turn() == 0 { quiet + 1 } else { 0 };
            if quiet > 6 {
                return;
            }
        }
        panic!("it has not come to rest: {:?}", self.object.status.as_ref().unwrap().members);
    }

    pub fn plan(&self) -> Planned {
        let sight = self.look(&self.material);
        let (now, object, material) = (self.now, &self.object, &self.material);
        let on_machines = self.machines.as_ref().map(|brought| EstimatorsSeen {
            is_settled: *brought == self.material.estimators,
            is_probed: *brought == self.material.estimators,
            sick: self.sick.clone(),
        });
        let host = sight.host.as_ref();
        plan(&Observed { now, object, others: &[], material, host, seen: sight.seen(), on_machines })
    }

    /// What there is to see of members, and of the plane for their sake.
    pub fn look(&self, material: &Material) -> Sight {
        let neighbours = self.neighbours.clone();
        let seen = self.plane_seen();
        let mut members = BTreeMap::new();
        let host = self.host_is_up.then(|| HostSeen {
            listed: self.labelled(&self.host),
            pods: self.pods.clone(),
            ..HostSeen::default()
        });
        let basis = Basis { object: &self.object, material, host: host.as_ref(), estimators: &self.estimators };
        for target in roster(&self.object, &neighbours, seen.as_ref()) {
            let host_access = self.host_access(&target);
            let is_by_host = matches!(target.reached_by, ReachedBy::Host(_));
            let kept = host_access.as_ref().and_then(|access| access.kept.as_ref()).filter(|_| is_by_host);
            let has_kubeconfig = !is_by_host || kept.is_some();
            let lets_in = has_kubeconfig && !(is_by_host && self.refusing.contains(&target.name));
            let site = self.sites.get(&target.name).filter(|site| site.is_up && lets_in);
            let mut contact = Contact::Lost("no route".to_owned());
            let certificate = |leaf: Leaf| {
                let stem = leaf.owner();
                let is_there = self.certificates.contains(&(target.name.clone(), stem));
                let pair = || Files(["crt", "key"].map(|end| (format!("{stem}.{end}"), b"pair".to_vec())).into());
                Certificate { files: is_there.then(pair), is_due: !is_there }
            };
            let estimator = match has_estimator(&basis, &target) {
                true => certificate(Leaf::Estimator),
                false => Certificate::default(),
            };
            let certificates = Certificates { agent: certificate(Leaf::Agent), estimator };
            if let Some(site) = site {
                contact = Contact::Made(MemberSeen { facts: self.facts(&target, site), ..MemberSeen::default() });
            }
            let plane = seen.clone().unwrap_or_default();
            let known = facts(&basis, &target, &contact, &plane);
            let wanted = known.map(|facts| wanted(&basis, &target, &facts, &certificates, &plane));
            let of =
                |place: Place| wanted.clone().unwrap_or_default().into_iter().filter(move |one| one.place == place);
            if let (Contact::Made(seen), Some(site)) = (&mut contact, site) {
                seen.states = of(Place::Member).map(|one| site.api.state(&one.manifest.0)).collect();
                seen.listed = self.labelled(&site.api);
            }
            let in_plane = of(Place::Plane).map(|one| self.plane.state(&one.manifest.0)).collect();
            let on_host =
                self.host_is_up.then(|| of(Place::Host).map(|one| self.host.state(&one.manifest.0)).collect());
            let failure = self.failures.get(&target.name).cloned();
            let missing = || Problem { reason: Reason::SecretNotFound, message: "no Secret".to_owned() };
            let kubeconfig = (!has_kubeconfig).then(missing);
            let member = Member { target, contact, kubeconfig, host_access, in_plane, on_host, certificates, failure };
            members.insert(member.target.name.clone(), member);
        }
        let own_host = self.host_is_known.then(|| "host".to_owned());
        let own = OwnClusters { host: own_host, plane: Some("plane".to_owned()) };
        let plane = seen.map_or(Contact::Lost("silent".to_owned()), Contact::Made);
        Sight { neighbours, own, plane, members, estimators: self.estimators.clone(), host }
    }

    fn labelled(&self, api: &Api) -> Vec<Value> {
        api.objects.iter().filter(|live| is_made_for(live, &self.object)).cloned().collect()
    }

    fn leases(&self) -> Vec<Value> {
        let targets = roster(&self.object, &self.neighbours, None);
        let is_looked_at = |live: &&Value| live["kind"] == "Lease" && agents_are_awaited(&self.object, &targets);
        self.plane.objects.iter().filter(is_looked_at).cloned().collect()
    }

    fn plane_seen(&self) -> Option<PlaneSeen> {
        let is_cluster = |live: &&Value| live["kind"] == "Cluster";
        self.plane_is_up.then(|| PlaneSeen {
            clusters: self.plane.objects.iter().filter(is_cluster).cloned().collect(),
            listed: self.labelled(&self.plane).into_iter().filter(|live| live["kind"] != "Cluster").collect(),
            works: self.works.clone(),
            leases: self.leases(),
        })
    }

    fn facts(&self, target: &Target, site: &Site) -> Facts {
        let mut files: BTreeMap<String, Vec<u8>> = [("ca".to_owned(), b"authority".to_vec())].into();
        let accounts = [("token", token_secret(&target.name)), ("impersonator", IMPERSONATOR.to_owned())];
        let tokens = accounts.into_iter().chain([("estimator", ESTIMATOR_ACCOUNT.to_owned())]);
        files.extend(tokens.filter_map(|(key, name)| Some((key.to_owned(), token(site, &name)?.into()))));
        let token_accepted = files.contains_key("token").then_some(Ok(()));
        let server = format!("https://{}.example:6443", target.name);
        Facts { uid: site.uid.clone(), server, files: Files(files), token_accepted }
    }

    pub fn act(&mut self, action: &Action) {
        let name = &action.member;
        match &action.act {
            Act::IssueCertificate(leaf, wanted) => {
                let user = match leaf {
                    Leaf::Agent => format!("system:karmada:agent:{name}"),
                    Leaf::Estimator => "system:karmada:scheduler-estimator".to_owned(),
                };
                assert_eq!(wanted.common_name, user);
                self.certificates.insert((name.clone(), leaf.owner()));
            }
            Act::ReadKubeconfig(run) => {
                let read = self.read.entry(name.clone()).or_default();
                assert!(read.runs.iter().all(|there| there.status.is_some()), "two runs for {name}");
                let mut run = (**run).clone();
                run.metadata.creation_timestamp = Some(Time(self.now));
                read.runs.push(run);
            }
            Act::KeepKubeconfig { run, host } => {
                let server = Some("https://127.0.0.1:6443".to_owned());
                let kept = ReadFrom { host: host.clone(), run: run.clone(), at: Some(Time(self.now)), server };
                self.read.entry(name.clone()).or_default().kept = Some(kept);
                self.refusing.remove(name);
            }
            Act::ForgetRun(run) => {
                let read = self.read.entry(name.clone()).or_default();
                read.runs.retain(|there| there.metadata.name != run.metadata.name);
            }
            Act::DeleteKubeconfig => self.read.entry(name.clone()).or_default().kept = None,
            Act::DeleteCertificate(leaf) => drop(self.certificates.remove(&(name.clone(), leaf.owner()))),
            Act::GiveEstimator(given) => {
                let mut others = self.material.estimators.iter().filter(|(other, _)| *other != name);
                assert!(others.all(|(_, other)| other.port != given.port), "{name} has the port of another one");
                self.material.estimators.insert(name.clone(), given.clone());
            }
            Act::TakeEstimator => drop(self.material.estimators.remove(name).unwrap()),
            Act::Apply { place, manifest, .. } => self.api(name, *place).apply(&manifest.0),
            Act::Patch { place, object, patch } => {
                let wanted = json!({
                    "kind": object.kind, "metadata": { "name": object.name, "namespace": object.namespace },
                });
                self.api(name, *place).patch(&wanted, &patch.0);
            }
            Act::Delete { place, deletion } => {
                if deletion.object.kind == "Cluster" {
                    self.check_deletion(name);
                }
                let (kind, object) = (&deletion.object.kind, &deletion.object.name);
                let live = self.api(name, *place).find(kind, object).unwrap().clone();
                assert_eq!(live["metadata"]["uid"], deletion.uid.as_str());
                assert!(is_made_for(&live, &self.object), "{kind} {object} is somebody else's");
                self.api(name, *place).delete(kind, object);
            }
        }
    }

    fn api(&mut self, name: &str, place: Place) -> &mut Api {
        match place {
            Place::Plane => &mut self.plane,
            Place::Host => {
                assert!(self.host_is_up, "the host does not answer");
                &mut self.host
            }
            Place::Member => {
                let site = self.sites.get_mut(name).unwrap();
                assert!(site.is_up, "{name} does not answer");
                &mut site.api
            }
        }
    }

    /// A Cluster is deleted only while its Works are settled as the policy says.
    fn check_deletion(&self, name: &str) {
        let cluster = self.plane.find("Cluster", name).unwrap();
        let is_ready = cluster["status"]["conditions"][0]["status"] == "True";
        let preserves = self.object.spec.unjoin_policy != Some(UnjoinPolicy::Delete);
        match is_ready {
            true => assert!(!preserves, "{name} would lose what it runs"),
            false => assert!(!self.may_write(name), "{name} may come back and lose what it runs"),
        }
    }

    /// No member has lost what it is to keep.
    pub fn check(&self) {
        for (name, site) in &self.sites {
            for (kind, other) in OTHERS {
                assert!(site.api.find(kind, other).is_some(), "{name} has lost {kind} {other}");
            }
            let preserves = self.object.spec.unjoin_policy != Some(UnjoinPolicy::Delete);
            assert!(!preserves || !site.has_lost, "{name} has lost what it ran");
        }
    }

    /// Whether Karmada, or the member's agent, could write to it, if it answered.
    fn may_write(&self, name: &str) -> bool {
        let site = &self.sites[name];
        let cluster = self.plane.find("Cluster", name);
        match cluster.is_some_and(|cluster| cluster["spec"]["syncMode"] == "Pull") {
            true => {
                let has_agent = site.api.find("Deployment", "karmada-agent").is_some();
                let in_member = site.api.find("ClusterRoleBinding", "karmada-agent").is_some();
                let right = format!("system:karmada:{name}:agent");
                has_agent && in_member && self.plane.find("ClusterRoleBinding", &right).is_some()
            }
            false => {
                let right = format!("karmada-controller-manager:karmada-{name}");
                let secret = self.plane.find("Secret", name).and_then(|secret| secret["data"]["token"].as_str());
                let token = token(site, &token_secret(name)).map(|token| STANDARD.encode(token));
                secret.is_some() && secret == token.as_deref() && site.api.find("ClusterRoleBinding", &right).is_some()
            }
        }
    }

    /// What runs on the host is ready as it is wanted.
    fn run_host(&mut self) {
        let works = self.host_works;
        for live in self.host.objects.iter_mut().filter(|live| live["kind"] == "Deployment") {
            let (replicas, version) = (live["spec"]["replicas"].clone(), live["metadata"]["resourceVersion"].clone());
            let is_new = live["status"]["of"] != version;
            if works {
                live["status"] = json!({
                    "replicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas,
                    "readyReplicas": replicas, "of": version,
                });
            } else if is_new {
                live["status"] = json!({ "replicas": replicas, "updatedReplicas": replicas, "of": version });
            }
        }
    }

    /// The plane begins with a backup of itself that was taken just now: this object is a new one.
    pub fn restore(&mut self) {
        let record = json!({
            "backup": "nightly", "plane": "k0", "planeUID": "plane-uid", "storageRef": { "name": "bucket" },
            "location": "l", "takenAt": self.now.to_string(), "revision": self.plane.made, "size": 9, "sha256": "a0",
            "etcdVersion": "3.6.6", "dnsDomain": "cluster.local",
        });
        let status = self.object.status.as_mut().unwrap();
        status.restored_from = Some(serde_json::from_value(record).unwrap());
        status.members.clear();
        self.plane.made += u64::try_from(BUMP).unwrap();
    }

    /// The agent of a Pull member renews its Lease.
    fn renew(&mut self, name: &str) {
        let lease = json!({ "kind": "Lease", "metadata": { "name": name, "namespace": MEMBERS_NAMESPACE } });
        self.plane.apply(&lease);
    }

    /// What Karmada does meanwhile.
    pub fn karmada(&mut self) {
        self.run_host();
        let names: Vec<String> = self.sites.keys().cloned().collect();
        for name in names {
            if self.away.contains(&name) {
                continue;
            }
            let reached = self.may_write(&name) && self.sites[&name].is_up;
            let Some(at) = self
                .plane
                .objects
                .iter()
                .position(|live| live["kind"] == "Cluster" && live["metadata"]["name"] == name.as_str())
            else {
                continue;
            };
            if reached && self.plane.objects[at]["spec"]["syncMode"] == "Pull" {
                self.renew(&name);
            }
            let cluster = &mut self.plane.objects[at];
            let was_ready = cluster["status"]["conditions"][0]["status"] == "True";
            let status = if reached { "True" } else { "False" };
            if was_ready != reached || cluster["status"].is_null() {
                cluster["status"] = json!({ "conditions": [{
                    "type": "Ready", "status": status, "reason": "Seen", "message": "so", "lastTransitionTime": self.now.to_string(),
                }] });
            }
            let site = self.sites.get_mut(&name).unwrap();
            let works = self.works.entry(name.clone()).or_default();
            if cluster["metadata"]["deletionTimestamp"].is_null() {
                let own = json!({ "metadata": { "finalizers": ["karmada.io/cluster-controller"] } });
                merge(cluster, &own);
                if was_ready && reached {
                    (*works, site.workloads) = (2, 2);
                }
                continue;
            }
            // By what stood there, not by what is so: that is its danger.
            if was_ready && reached && *works > 0 {
                *works -= 1;
                (site.workloads, site.has_lost) = (site.workloads.saturating_sub(1), true);
            } else if !was_ready {
                *works = 0;
            }
            if *works == 0 {
                let finalizers = cluster["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
                let others = finalizers.into_iter().filter(|one| one != "karmada.io/cluster-controller");
                cluster["metadata"]["finalizers"] = others.collect();
                self.plane.delete("Namespace", &format!("karmada-es-{name}"));
            }
        }
        self.plane.collect();
    }
}

/// A Host that nobody has claimed, and that no cluster is given.
fn spare_host(name: &str) -> Host {
    let host = json!({
        "apiVersion": "clusterwright.dev/v1alpha1", "kind": "Host",
        "metadata": { "name": name, "namespace": "fleet", "uid": name, "generation": 1 },
        "spec": { "address": "192.0.2.7", "unschedulable": true, "ssh": { "credentialsRef": { "name": "k" } } },
    });
    serde_json::from_value(host).unwrap()
}

/// The token of a ServiceAccount, if its Secret is there.
fn token(site: &Site, name: &str) -> Option<String> {
    site.api.find("Secret", name)?;
    let account = site.api.find("ServiceAccount", name)?;
    Some(format!("token of {} of {}", account["metadata"]["uid"], site.uid))
}
