//! The etcd of a plane in Pods, asked and told through the API of its host: by a port that is forwarded to one of its
//! Pods, so nothing is opened, and another cluster's Pods are reached as well. Its gateway takes JSON over TLS.

mod answer;
mod reach;
mod session;

use std::sync::Arc;
use std::time::Duration;

use crds::cluster_addon::AppliedObject;
use crds::{KarmadaDeployment, ObjectExt};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use plan::karmada_deployment::etcd::{claims_asked, etcd_doors, members_are_asked};
use plan::karmada_deployment::{EtcdAct, HostFacts, Membership};
use plan::rotation::Subject;
use rustls::ClientConfig;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::context::Context;
use crate::error::Error;
use crate::objects::{Failure, Found, Objects};
use crate::pki::Pki;
use crate::pki::authority::Leaf;
use answer::{Refusal, membership};
pub(crate) use reach::Reach;
use session::{Session, configuration};

/// How long etcd may take to answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long it may take where a majority has to agree.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long the certificate of a look lasts: it is in no Secret.
const VALIDITY: SignedDuration = SignedDuration::from_mins(10);
/// The codes of gRPC: what is asked for is not the time; there is no such member.
const FAILED_PRECONDITION: i64 = 9;
const NOT_FOUND: i64 = 5;

/// The way to a plane's etcd.
pub(super) struct EtcdDoor {
    client: Client,
    namespace: String,
    /// Each Pod, and the name that its certificate is for.
    pods: Vec<(String, String)>,
    tls: Arc<ClientConfig>,
    reach: Reach,
}

/// Adds what etcd says of its members, and which volumes of former ones are there, where that is asked; the way to it.
pub(super) async fn look(
    ctx: &Context,
    object: &KarmadaDeployment,
    (objects, pki): (Option<&Objects>, Option<&Pki>),
    facts: &mut HostFacts,
    now: Timestamp,
) -> Option<EtcdDoor> {
    let (objects, pki) = objects.zip(pki).filter(|_| members_are_asked(object, facts))?;
    let door = match EtcdDoor::new(ctx, object, objects, pki, facts, now) {
        Ok(door) => door,
        Err(why) => {
            facts.etcd.members = Some(Err(why));
            return None;
        }
    };
    let read = match look_at_claims(object, objects, facts).await {
        Ok(()) => door.membership().await,
        Err(failure) => Err(failure.to_string()),
    };
    facts.etcd.members = Some(read);
    Some(door)
}

async fn look_at_claims(object: &KarmadaDeployment, objects: &Objects, facts: &mut HostFacts) -> Result<(), Failure> {
    for (ordinal, name) in claims_asked(object, facts) {
        let claim = AppliedObject {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "PersistentVolumeClaim".to_owned(),
            namespace: Some(object.spec.host_namespace.clone()),
            name,
        };
        if let Found::Object(mut found) = objects.get(&claim).await? {
            found["apiVersion"] = claim.api_version().into();
            found["kind"] = claim.kind.into();
            facts.etcd.claims.insert(ordinal, *found);
        }
    }
    Ok(())
}

impl EtcdDoor {
    fn new(
        ctx: &Context,
        object: &KarmadaDeployment,
        objects: &Objects,
        pki: &Pki,
        facts: &HostFacts,
        now: Timestamp,
    ) -> Result<Self, String> {
        let authority = pki.authority(Subject::EtcdCa).map_err(|error| error.to_string())?;
        let leaf = Leaf { common_name: "clusterwright-operator".into(), ..Leaf::default() };
        let client = authority.signer().issue(&leaf, VALIDITY, now).map_err(|error| error.to_string())?;
        Ok(Self {
            client: objects.client(),
            namespace: object.spec.host_namespace.clone(),
            pods: etcd_doors(object, facts),
            tls: Arc::new(configuration(&authority.trusted(), &client)?),
            reach: ctx.planes.reach(object.uid()),
        })
    }

    /// The members, as the first Pod that answers has them; or why none does.
    async fn membership(&self) -> Result<Membership, String> {
        let (mut why, mut stale) = ("it has no Pods".to_owned(), None);
        for (pod, _) in &self.pods {
            match timeout(DEADLINE, self.read(pod)).await {
                Ok(Ok(read)) if read.is_stale => stale = stale.or(Some(read)),
                Ok(Ok(read)) => return Ok(read),
                Ok(Err(refusal)) => why = format!("Pod {pod}: {refusal}"),
                Err(_) => why = format!("Pod {pod}: no answer within {} s", DEADLINE.as_secs()),
            }
        }
        stale.ok_or(why)
    }

    /// As a majority has them; where there is none, as the member of this Pod knows them.
    async fn read(&self, pod: &str) -> Result<Membership, Refusal> {
        let mut session = self.session(pod).await?;
        let list = "/v3/cluster/member/list";
        let asked = timeout(PATIENCE, session.post(list, &json!({ "linearizable": true }))).await;
        let (listed, is_stale) = match asked {
            Ok(Ok(listed)) => (listed, false),
            Ok(Err(Refusal::Silent(why))) => return Err(Refusal::Silent(why)),
            Ok(Err(Refusal::Answered { .. })) | Err(_) => {
                session = self.session(pod).await?;
                (session.post(list, &json!({ "linearizable": false })).await?, true)
            }
        };
        let status = session.post("/v3/maintenance/status", &json!({})).await?;
        let read = membership(&listed, &status, is_stale);
        if read.members.is_empty() {
            return Err(Refusal::Silent("it names no member".to_owned()));
        }
        Ok(read)
    }

    /// Does this. What was done already is well, and so is a vote that comes too early.
    pub async fn execute(&self, act: &EtcdAct) -> Result<(), Error> {
        let (path, body, passed_over) = match act {
            EtcdAct::AddLearner { peer_url } => {
                ("/v3/cluster/member/add", json!({ "peerURLs": [peer_url], "isLearner": true }), None)
            }
            EtcdAct::Promote { id } => ("/v3/cluster/member/promote", json!({ "ID": id }), Some(FAILED_PRECONDITION)),
            EtcdAct::MoveLeader { to, .. } => ("/v3/maintenance/transfer-leadership", json!({ "targetID": to }), None),
            EtcdAct::Remove { id } => ("/v3/cluster/member/remove", json!({ "ID": id }), Some(NOT_FOUND)),
        };
        let pods: Vec<&str> = match act {
            EtcdAct::MoveLeader { pod, .. } => vec![pod.as_str()],
            _ => self.pods.iter().map(|(pod, _)| pod.as_str()).collect(),
        };
        let failed = |why: String| Failure::lost(&format!("change the members of etcd ({path})"), why);
        let told = timeout(DEADLINE, self.tell(&pods, path, &body)).await;
        match told.map_err(|_| failed(format!("no answer within {} s", DEADLINE.as_secs())))? {
            Err(Refusal::Answered { code, .. }) if Some(code) == passed_over => Ok(()),
            told => told.map_err(|refusal| failed(refusal.to_string())),
        }
    }

    /// Tells the first of these Pods that can be connected to; once one was told, no other is.
    async fn tell(&self, pods: &[&str], path: &str, body: &Value) -> Result<(), Refusal> {
        let mut why = Refusal::Silent("it has no Pods".to_owned());
        for pod in pods {
            match self.session(pod).await {
                Ok(mut session) => return session.post(path, body).await.map(drop),
                Err(refusal) => why = refusal,
            }
        }
        Err(why)
    }

    async fn session(&self, pod: &str) -> Result<Session, Refusal> {
        let name = self.pods.iter().find(|(known, _)| known == pod).map_or(pod, |(_, name)| name.as_str());
        match &self.reach {
            Reach::Forwarded => Session::forwarded(&self.client, &self.namespace, (pod, name), self.tls.clone()).await,
            #[cfg(test)]
            Reach::StandIn(router) => Session::with(router.clone()).await,
        }
    }
}
