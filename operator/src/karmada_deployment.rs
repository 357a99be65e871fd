//! KarmadaDeployment: looks at a Karmada plane, on its host cluster and through its own API server, makes its keys and
//! certificates, and applies what it consists of.

mod clients;
mod contents;
pub(crate) mod definitions;
mod etcd;
pub(crate) mod follow;
mod given_estimators;
mod host;
mod inventory;
mod machines;
mod material;
mod members;
mod neighbours;
mod pki_owner;
mod plane;
pub(crate) mod planes;
mod probe;
mod restore;
mod triggers;
mod way_in;

use std::sync::Arc;

use crds::names::{certificates_secret, condition, finalizer};
use crds::{
    Cluster, Conditions, EtcdBackup, EtcdBackupSchedule, EtcdRestore, KarmadaDeployment, KarmadaDeploymentStatus,
    ObjectExt, Reason,
};
use jiff::Timestamp;
use plan::addon::Problem;
use plan::cluster_addon::State;
use plan::cluster_addon::documents::Document;
use plan::karmada_deployment::{
    Action, Contact, HostFacts, HostSeen, LeafWanted, MachinesSeen, Material, Observed, Place, PlaneSeen,
    RestoreMaterial, RestoreSeen, Wanted, estimators_due, wanted,
};
use plan::transitions::transitions;
use tokio::task::JoinSet;

use crate::cache::refs;
use crate::context::Context;
use crate::controller;
use crate::error::Error;
use crate::objects::{Failure, Objects};
use crate::pki::leaves;
use crate::reconcile::{PlanOf, Reconcile, now};
use crate::{execute, key_transfer, kubeconfig, live, pki};
use etcd::EtcdDoor;
pub(crate) use host::objects as host_objects;
use inventory::{Inventory, touched};
use machines::Belongings;
pub(crate) use machines::part_files;
use material::Secrets;
use members::{Asked, Members};
use neighbours::{host_cluster, namesake, others, own_cluster};
pub(crate) use pki_owner::pki_owner;
use pki_owner::{ADMINISTRATOR, row};
use way_in::{in_plane, left_in_plane};

/// Starts the controller.
pub fn spawn(ctx: &Arc<Context>, tasks: &mut JoinSet<()>) {
    let controller = triggers::on_changes(ctx, controller::new(ctx, &ctx.cache.karmada_deployments));
    tasks.spawn(controller::run::<Observation>(ctx.clone(), controller));
}

/// What is known of a KarmadaDeployment.
pub(crate) struct Observation {
    now: Timestamp,
    object: Arc<KarmadaDeployment>,
    host_cluster: Option<Arc<Cluster>>,
    others: Vec<Arc<KarmadaDeployment>>,
    namesake: Option<String>,
    cluster: Option<Arc<Cluster>>,
    material: Material,
    definitions: Definitions,
    facts: HostFacts,
    kubeconfig: Option<String>,
    host: Contact<HostSeen>,
    plane: Contact<PlaneSeen>,
    backups: Vec<Arc<EtcdBackup>>,
    schedules: Vec<Arc<EtcdBackupSchedule>>,
    restores: Vec<Arc<EtcdRestore>>,
    restore: RestoreSeen,
    members: Members,
    machines: Belongings,
    /// The way to an etcd in Pods; there while its members are asked.
    etcd: Option<EtcdDoor>,
    /// How objects are written; there while there is contact.
    on_host: Option<Objects>,
    in_plane: Option<Objects>,
}

impl Observation {
    fn objects(&self, place: Place) -> Option<&Objects> {
        match place {
            Place::Host => self.on_host.as_ref(),
            Place::Plane => self.in_plane.as_ref(),
        }
    }

    /// How an object that is wanted is, now that something was done about it.
    fn see(&mut self, place: Place, index: usize, state: State) {
        let states = match (place, &mut self.host, &mut self.plane) {
            (Place::Host, Contact::Made(seen), _) => &mut seen.states,
            (Place::Plane, _, Contact::Made(seen)) => &mut seen.states,
            (Place::Host | Place::Plane, ..) => return,
        };
        if let Some(seen) = states.get_mut(index) {
            *seen = state;
        }
    }

    fn decide(&self, machines: MachinesSeen<'_>) -> PlanOf<Self> {
        let neighbours = self.members.neighbours.refs();
        plan::karmada_deployment::plan(&Observed {
            now: self.now,
            object: &self.object,
            host_cluster: self.host_cluster.as_deref(),
            others: &refs(&self.others),
            namesake: self.namesake.as_deref(),
            material: &self.material,
            crds: self.definitions.as_ref().map(|documents| documents.as_slice()),
            facts: &self.facts,
            kubeconfig: self.kubeconfig.as_deref(),
            host: &self.host,
            plane: &self.plane,
            cluster: self.cluster.as_deref(),
            backups: &refs(&self.backups),
            schedules: &refs(&self.schedules),
            restores: &refs(&self.restores),
            restore: &self.restore,
            members: self.members.seen(&neighbours),
            machines,
        })
    }

    async fn issue(&self, ctx: &Context, wanted: &[LeafWanted]) -> Result<(), Error> {
        let owner = pki_owner(&self.object);
        let pki = pki::get(ctx, &owner).await?;
        let rows: Vec<_> = wanted.iter().map(row).collect();
        let secret = certificates_secret(self.object.name());
        leaves::ensure(ctx, &owner, (&secret, "certificates"), &pki, &rows, self.now).await.map(drop)
    }
}

impl Reconcile for Observation {
    type Object = KarmadaDeployment;
    type Action = Action;

    /// What was applied is seen in the answers.
    const PLANS_AGAIN: bool = true;
    const LAST: Option<Action> = Some(Action::RemoveFinalizer);

    async fn observe(ctx: &Context, object: Arc<KarmadaDeployment>) -> Result<Option<Self>, Error> {
        let is_deleting = object.is_deleting();
        if is_deleting && !object.has_finalizer(finalizer::KARMADA) {
            return Ok(None);
        }
        let now = now();
        // The lock is in its status.
        let object = match object.spec.binary {
            None => object,
            Some(_) => match live::get::<KarmadaDeployment>(ctx, object.namespace(), object.name()).await? {
                Some(found) => Arc::new(found),
                None => return Ok(None),
            },
        };
        let is_on_machines = object.spec.binary.is_some();
        let machines = Belongings::cached(ctx, &object).await?;
        let on_host = if is_on_machines { None } else { host::objects(ctx, &object) };
        let namespace = Some(object.spec.host_namespace.as_str());
        let host_inventory = on_host.as_ref().map(|objects| Inventory::open(ctx, &object, objects, namespace, now));
        let facts = match &host_inventory {
            Some(inventory) => host::facts(inventory, &object).await,
            None if is_on_machines => Ok(HostFacts::of_machines(machines.seats(&object))),
            None => Ok(HostFacts::default()),
        };
        let mut known = facts.clone().unwrap_or_default();
        let restores = restore::restores(ctx, &object);
        let keys = restore::keys(ctx, &object, &refs(&restores)).await?;
        let mut secrets = secrets(ctx, &object, &known, now).await?;
        secrets.material.restore = RestoreMaterial::find(&keys).filter(|_| restore::makes_data(&object));
        let etcd = etcd::look(ctx, &object, (on_host.as_ref(), secrets.pki.as_ref()), &mut known, now).await;
        let in_plane = in_plane(ctx, &object, &known, &secrets)?;
        let (definitions, wanted) = wanted_of(ctx, &object, &secrets, &known).await?;
        let host = match (&host_inventory, &facts) {
            // It has none, and all that is there is seen.
            (None, _) if is_on_machines => Contact::Made(HostSeen::default()),
            (None, _) => Contact::NotMade,
            (Some(_), Err(contact)) => contact.clone(),
            (Some(inventory), Ok(_)) => host::look(inventory, &object, &wanted).await,
        };
        let inventory = in_plane.as_ref().map(|objects| Inventory::open(ctx, &object, objects, None, now));
        let asked = plane::Asked { object: &object, facts: &known, wanted: &wanted };
        let left = left_in_plane(ctx, &object, &secrets);
        let plane = match (inventory.as_ref().filter(|_| !is_deleting), &left) {
            (Some(inventory), _) => plane::look(ctx, inventory, &asked, now).await,
            (None, Some(objects)) => probe::look_for_left(objects).await.map_or_else(Contact::Lost, Contact::Made),
            (None, None) => Contact::NotMade,
        };
        let asked = Asked {
            object: &object,
            material: &secrets.material,
            pki: secrets.pki.as_ref(),
            on_host: host_inventory.as_ref(),
            host: host.seen(),
            estimators: estimators_due(&object, &known),
            in_plane: inventory.as_ref(),
            now,
        };
        let members = members::look(ctx, &asked).await?;
        let administrator = secrets.kubeconfig.as_ref().map(|kept| &kept.checked);
        let restore = restore::look(ctx, &object, keys, (in_plane.as_ref(), administrator), &members).await;
        Ok(Some(Self {
            now,
            host_cluster: host_cluster(ctx, &object),
            others: others(ctx, &object),
            namesake: namesake(ctx, &object),
            cluster: own_cluster(ctx, &object),
            material: secrets.material,
            definitions,
            facts: known,
            kubeconfig: secrets.kubeconfig.filter(|kept| kept.lasts).map(|kept| kept.checked.server),
            host,
            plane,
            backups: neighbours::backups(ctx, &object),
            schedules: neighbours::schedules(ctx, &object),
            restores,
            restore,
            members,
            machines,
            etcd,
            on_host,
            in_plane: in_plane.or(left),
            object,
        }))
    }

    fn object(&self) -> &KarmadaDeployment {
        &self.object
    }

    fn plan(&self) -> PlanOf<Self> {
        self.machines.look(|machines| self.decide(machines))
    }

    /// A Cluster that cannot be decoded is not one that is gone. Another plane that cannot be decoded takes nothing
    /// away: what is another one's on a host is not touched, whatever is known of it.
    fn hold(&self, ctx: &Context, plan: &PlanOf<Self>) -> Option<(String, KarmadaDeploymentStatus)> {
        let (name, host) = (self.object.name(), self.object.spec.host_cluster_ref.as_ref());
        let mut needed = vec![("ClusterDeployment", name), ("Cluster", name)];
        needed.extend(host.map(|host| ("Cluster", host.name.as_str())));
        let namespace = self.object.namespace();
        let of_machines = || self.object.spec.binary.as_ref().and_then(|_| ctx.cache.hold_of_cluster(namespace, name));
        let message = ctx.cache.hold_of(namespace, &needed).or_else(of_machines)?;
        let old = self.object.status.clone().unwrap_or_else(|| plan.status.clone());
        Some((message.clone(), KarmadaDeploymentStatus { message: Some(message), ..old }))
    }

    /// A lock that was lost is opened by what the API itself shows, and by that a plane is set back.
    fn must_refresh(&self, plan: &PlanOf<Self>) -> bool {
        let known = |status: Option<&KarmadaDeploymentStatus>| status.is_some_and(|s| s.last_token.is_some());
        let opens = known(Some(&plan.status)) && !known(self.object.status.as_ref());
        let restore = |status: Option<&KarmadaDeploymentStatus>| {
            status.and_then(|status| status.restored_from.as_ref()).and_then(|record| record.restore_uid.clone())
        };
        let begins = restore(Some(&plan.status)) != restore(self.object.status.as_ref());
        opens || begins || !plan.actions.is_empty()
    }

    /// The host, the plane and the Secrets were read just now; that it is still wanted so is asked again.
    async fn refresh(self, ctx: &Context, _: &PlanOf<Self>) -> Result<Option<Self>, Error> {
        let found = live::get::<KarmadaDeployment>(ctx, self.object.namespace(), self.object.name()).await?;
        let version =
            |object: &KarmadaDeployment| (object.metadata.uid.clone(), object.metadata.resource_version.clone());
        // Its change is on its way.
        if found.as_ref().map(version) != Some(version(&self.object)) {
            return Ok(None);
        }
        // So is the news that a cluster which is about to join is being deleted: it must not wait for one that joins
        // after it has asked who has.
        let is_going = neighbours::joins_while_it_goes(ctx, &self.object).await?;
        if is_going {
            return Ok(None);
        }
        let machines = self.machines.live(ctx, &self.object).await?;
        let restores = restore::live_restores(ctx, &self.object, self.restores).await?;
        Ok(Some(Self { machines, restores, ..self }))
    }

    async fn execute(&mut self, ctx: &Context, action: &Action) -> Result<(), Error> {
        let owner = || pki_owner(&self.object);
        match action {
            Action::AddFinalizer => execute::add_finalizer(ctx, &*self.object, finalizer::KARMADA).await,
            Action::RemoveFinalizer => {
                ctx.planes.forget(self.object.uid());
                ctx.following.retain(self.object.uid(), |_| false);
                execute::remove_finalizer(ctx, &*self.object, finalizer::KARMADA).await
            }
            Action::MakeKeys { given } => Box::pin(pki::make_with(ctx, &owner(), given, self.now)).await,
            Action::Rotate(act) => Box::pin(pki::rotation::execute(ctx, &owner(), act, self.now)).await,
            Action::FetchKeys(transfer) => key_transfer::fetch(ctx, transfer).await,
            Action::TakeKeys => key_transfer::take(ctx, &owner()).await,
            Action::DropKeyTransfer => key_transfer::discard(ctx, &owner()).await,
            Action::IssueCertificates(wanted) => self.issue(ctx, wanted).await,
            Action::MakeKubeconfig { server } => {
                let pki = pki::get(ctx, &owner()).await?;
                kubeconfig::ensure(ctx, &owner(), &ADMINISTRATOR, &pki, server, self.now).await.map(drop)
            }
            Action::Apply { place, index, object, manifest, force } => {
                let Some(objects) = self.objects(*place) else { return Ok(()) };
                touched(ctx, &self.object, Some(objects));
                let state = objects.apply(object, &manifest.0, *force).await?;
                self.see(*place, *index, state);
                Ok(())
            }
            Action::Delete { place, deletion } => {
                let Some(objects) = self.objects(*place) else { return Ok(()) };
                touched(ctx, &self.object, Some(objects));
                let deleted = objects.delete(deletion).await;
                deleted.map_err(|failure| Failure::lost(&format!("delete {}", deletion.object), failure.to_string()))
            }
            Action::Probe(manifest) => match (&self.in_plane, &mut self.plane) {
                (Some(objects), Contact::Made(PlaneSeen { probe: Some(seen), .. })) => {
                    probe::ask(objects, manifest, seen).await
                }
                _ => Ok(()),
            },
            Action::Etcd(act) => match &self.etcd {
                Some(door) => door.execute(act).await,
                None => Ok(()),
            },
            Action::CreateBackup(backup) => execute::create_ours(ctx, &**backup).await,
            Action::ApplyCluster(cluster) => execute::apply(ctx, &**cluster).await.map(drop),
            Action::Machines(act) => machines::execute(ctx, &self.object, act).await,
            Action::Member(_) => {
                self.serve_members(ctx, std::slice::from_ref(action)).await;
                Ok(())
            }
        }
    }

    /// What is done for several members is done at once.
    async fn execute_all(&mut self, ctx: &Context, actions: &[Action]) -> Result<(), Error> {
        let both_of_members = |a: &Action, b: &Action| matches!((a, b), (Action::Member(_), Action::Member(_)));
        for alike in actions.chunk_by(both_of_members) {
            match alike {
                [action] => self.execute(ctx, action).await?,
                of_members => self.serve_members(ctx, of_members).await,
            }
        }
        Ok(())
    }

    /// As a whole, and only if nobody else has written the object: the lock of its machines is in it, and the record of
    /// its upgrade, of which another operator's difference would leave a part.
    async fn write_status(&self, ctx: &Context, status: &KarmadaDeploymentStatus) -> Result<bool, Error> {
        if self.object.status.as_ref() == Some(status) {
            return Ok(false);
        }
        let mut wanted = (*self.object).clone();
        wanted.status = Some(status.clone());
        execute::replace_status(ctx, &wanted).await.map(|_| true)
    }

    async fn report(&self, ctx: &Context, plan: &PlanOf<Self>) {
        let told = [condition::READY, condition::MEMBERS_READY, condition::AUTHORITIES_ROTATED, condition::DELETING];
        for transition in transitions(self.object.conditions(), &plan.status.conditions, &told) {
            ctx.events.transition(&*self.object, &transition).await;
        }
    }
}

/// Keys that cannot be read hold no deletion up.
async fn secrets(
    ctx: &Context,
    object: &KarmadaDeployment,
    facts: &HostFacts,
    now: Timestamp,
) -> Result<Secrets, Error> {
    match material::read(ctx, object, facts, now).await {
        Err(_) if object.is_deleting() => Ok(Secrets::default()),
        read => read,
    }
}

type Definitions = Result<Arc<Vec<Document>>, Problem>;

/// The definitions, and all that is wanted of the plane; nothing of one that is being deleted.
async fn wanted_of(
    ctx: &Context,
    object: &KarmadaDeployment,
    secrets: &Secrets,
    facts: &HostFacts,
) -> Result<(Definitions, Vec<Wanted>), Error> {
    if object.is_deleting() {
        let problem = Problem { reason: Reason::Deleting, message: "it is being deleted".into() };
        return Ok((Err(problem), Vec::new()));
    }
    let definitions = definitions::read(ctx, object).await?;
    let documents = definitions.as_ref().map(|documents| documents.as_slice()).unwrap_or_default();
    let wanted = wanted(object, &secrets.material, facts, documents);
    Ok((definitions, wanted))
}

#[cfg(test)]
mod tests;
