//! The authorities and keys of clusters: what each machine has of them, and that whoever must believes whom.

use std::collections::{BTreeMap, BTreeSet};

use crds::step::{Role, Step};
use crds::{Machine, ObjectExt, PlaybookRun};

use super::world::World;
use crate::encryption::{Scheme, Succession};
use crate::lifecycle::is_provisioned;
use crate::rotation::{Act, Authorities, Move, Ring, Stage, Subject};
use crate::settings::authorities::of_role;
use crate::settings::digest;

/// What the machines of all clusters have.
#[derive(Clone, Debug, Default)]
pub struct MachineAuthorities {
    /// By Host.
    machines: BTreeMap<String, BTreeMap<Subject, Ring>>,
    /// What the Pods of each Node trust.
    pods: BTreeMap<String, BTreeSet<String>>,
    /// What was in the Secret when each run was frozen.
    runs: BTreeMap<String, Authorities>,
    /// By cluster, the keys that values in its etcd may be encrypted with.
    stored: BTreeMap<String, BTreeSet<String>>,
}

/// As they are made, with what is wanted of encryption.
pub fn made(wanted: &Scheme) -> Authorities {
    made_with(wanted, &BTreeMap::new())
}

/// With these in the place of those that are made.
pub fn made_with(wanted: &Scheme, given: &BTreeMap<Subject, String>) -> Authorities {
    let signer = |subject: &Subject| given.get(subject).cloned().unwrap_or_else(|| format!("{}-0", subject.name()));
    let ring =
        |subject: &Subject| Ring { stage: Stage::Settled, signer: signer(subject), trusted: [signer(subject)].into() };
    let rings = Subject::ALL.iter().map(|subject| (*subject, ring(subject)));
    let encryption = Succession { from: wanted.clone(), to: wanted.clone(), ..Succession::default() };
    Authorities { rings: rings.collect(), rotated: BTreeMap::new(), encryption }
}

/// Does this, as the operator does in the Secret. `wanted`: of encryption.
pub fn execute(authorities: &mut Authorities, act: Act, wanted: &Scheme) {
    match act {
        Act::Move { subject, next } => rotate(authorities, subject, next, wanted),
        Act::Take { subject, fingerprint } => take(authorities, subject, fingerprint),
    }
}

fn take(authorities: &mut Authorities, subject: Subject, fingerprint: String) {
    let ring = authorities.rings.get_mut(&subject).unwrap();
    if ring.stage == Stage::Settled {
        ring.stage = Stage::Trust;
        ring.trusted.insert(fingerprint);
    }
}

fn rotate(authorities: &mut Authorities, subject: Subject, next: Move, wanted: &Scheme) {
    let ring = authorities.rings.get_mut(&subject).unwrap();
    let encryption = &mut authorities.encryption;
    if ring.stage != next.from() {
        return;
    }
    match next {
        Move::Adopt => {
            assert!(encryption.to != *wanted && subject == Subject::EncryptionKey);
            (encryption.to, encryption.is_edit) = (wanted.clone(), true);
            ring.stage = Stage::Trust;
            ring.trusted.insert(format!("{}-{}", ring.signer, digest(&wanted.to_string())));
        }
        Move::Withdraw => {
            assert!(encryption.is_edit && subject == Subject::EncryptionKey);
            (encryption.to, encryption.is_edit) = (encryption.from.clone(), false);
            ring.stage = Stage::Settled;
            ring.trusted = [ring.signer.clone()].into();
        }
        Move::Begin(number) => {
            ring.stage = Stage::Trust;
            ring.trusted.insert(format!("{}-{number}", subject.name()));
            authorities.rotated.insert(subject, number);
        }
        Move::Sign => {
            ring.stage = Stage::Sign;
            let next = ring.trusted.iter().find(|one| **one != ring.signer).cloned();
            ring.signer = next.unwrap();
            encryption.is_edit = false;
        }
        Move::Complete => {
            ring.stage = Stage::Settled;
            ring.trusted = [ring.signer.clone()].into();
            if subject == Subject::EncryptionKey {
                encryption.from = encryption.to.clone();
            }
        }
    }
}

impl World {
    /// The Secret of a run has what there is by now.
    pub(super) fn freeze_authorities(&mut self, run: &PlaybookRun) -> Authorities {
        let now = self.cluster_of(run).map(|cluster| cluster.authorities.clone()).unwrap_or_default();
        self.authorities.runs.entry(run.name().to_owned()).or_insert(now).clone()
    }

    /// The steps of a run that a machine has done bring to it what their run has.
    pub(super) fn bring_authorities(&mut self, run: &PlaybookRun, host: &str, done: usize) {
        let Some(brought) = self.authorities.runs.get(run.name()).cloned() else { return };
        let Some(role) = self.role_of(host) else { return };
        for step in run.spec.steps.iter().take(done) {
            let is_first = (*step == Step::ControlPlane && role == Role::ControlPlane)
                || (*step == Step::Node && role == Role::Worker);
            let subjects: &[Subject] = if is_first || (*step == Step::CertificateAuthorities && role != Role::Etcd) {
                of_role(role)
            } else if *step == Step::Etcd {
                &[Subject::EtcdCa]
            } else {
                &[]
            };
            let rings = subjects.iter().filter_map(|subject| Some((*subject, brought.rings.get(subject)?.clone())));
            self.authorities.machines.entry(host.to_owned()).or_default().extend(rings);
            let trusted = brought.rings.get(&Subject::Ca).map(|ring| ring.trusted.clone()).unwrap_or_default();
            if *step == Step::RewriteSecrets {
                self.rewrite_secrets(run, host);
            }
            if *step == Step::RestartPods {
                self.authorities.pods.insert(host.to_owned(), trusted);
            } else if !subjects.is_empty() && role != Role::Etcd {
                self.authorities.pods.entry(host.to_owned()).or_insert(trusted);
            }
            self.write_secrets(run.spec.cluster_name.as_deref().unwrap_or_default());
        }
    }

    /// An API server reads all that any of them has written by now, and writes it anew. Others go on writing as they
    /// do.
    fn rewrite_secrets(&mut self, run: &PlaybookRun, host: &str) {
        let name = run.spec.cluster_name.as_deref().unwrap_or_default();
        let ring = self.authorities.machines.get(host).and_then(|has| has.get(&Subject::EncryptionKey)).cloned();
        let Some(ring) = ring else { return };
        assert!(self.stored(name).is_subset(&ring.trusted), "{host} reads {ring:?}\n{}", self.report());
        self.authorities.stored.insert(name.to_owned(), [ring.signer].into());
        self.write_secrets(name);
    }

    /// All API servers of the cluster write.
    fn write_secrets(&mut self, name: &str) {
        let has = |machine: &&Machine| {
            let host = &machine.spec.host_ref.as_ref()?.name;
            Some(self.authorities.machines.get(host)?.get(&Subject::EncryptionKey)?.signer.clone())
        };
        let signers: Vec<String> = self.machines_of(name).iter().filter_map(has).collect();
        self.authorities.stored.entry(name.to_owned()).or_default().extend(signers);
    }

    /// The keys that values in the cluster's etcd may be encrypted with.
    fn stored(&self, name: &str) -> BTreeSet<String> {
        self.authorities.stored.get(name).cloned().unwrap_or_default()
    }

    pub(super) fn wipe_authorities(&mut self, host: &str) {
        self.authorities.machines.remove(host);
        self.authorities.pods.remove(host);
    }

    /// In an installed cluster every machine believes every other one, Pods believe each API server, and each API
    /// server decrypts whatever any of them has stored.
    pub(super) fn check_authorities(&self) {
        for cluster in self.clusters.iter().filter(|cluster| cluster.is_installed() && cluster.stays()) {
            let stays = |machine: &&Machine| is_provisioned(machine) && !machine.is_deleting();
            let provisioned = self.machines_of(cluster.name()).into_iter().filter(stays);
            let hosts: Vec<&String> =
                provisioned.filter_map(|machine| Some(&machine.spec.host_ref.as_ref()?.name)).collect();
            let rings: Vec<(&String, &BTreeMap<Subject, Ring>)> =
                hosts.iter().filter_map(|host| Some((*host, self.authorities.machines.get(*host)?))).collect();
            let of = |subject: Subject| rings.iter().filter_map(move |(host, has)| Some((*host, has.get(&subject)?)));
            let stored = self.stored(cluster.name());
            for (host, ring) in of(Subject::EncryptionKey) {
                let reads = stored.is_subset(&ring.trusted);
                assert!(reads, "{host} does not decrypt all of {stored:?}: {ring:?}\n{}", self.report());
            }
            for subject in Subject::ALL {
                let signers: BTreeMap<&String, &String> =
                    of(subject).map(|(host, ring)| (&ring.signer, host)).collect();
                for ((signer, other), (host, ring)) in
                    signers.iter().flat_map(|one| of(subject).map(move |has| (one, has)))
                {
                    let trusts = ring.trusted.contains(*signer);
                    assert!(trusts, "{host} does not believe {signer} of {other}: {ring:?}\n{}", self.report());
                }
                for (signer, other) in signers.iter().filter(|_| subject == Subject::Ca) {
                    let pods = hosts.iter().filter_map(|host| Some((host, self.authorities.pods.get(*host)?)));
                    for (host, trusted) in pods {
                        assert!(trusted.contains(*signer), "Pods of {host} do not believe {other}\n{}", self.report());
                    }
                }
            }
        }
    }
}
