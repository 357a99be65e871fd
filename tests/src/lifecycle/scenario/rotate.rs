//! The authorities and keys of a running cluster are rotated, under a client that writes and with Pods that talk to the
//! API.

mod encryption;
mod stored;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use crds::names::{annotation, condition};
use crds::step::Role;
use crds::{ClusterDeployment, Conditions};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenReview, TokenReviewSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;

use super::Seen;
use super::control_plane::no_longer_than_an_election;
use crate::client::client_of;
use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::lifecycle::stage::{CLUSTER, Stage};
use crate::lifecycle::whole::whole;
use crate::lifecycle::writer::{Writer, Written};
use crate::own_authorities::Company;
use crate::workload::{self, node_names};
use stored::StoredSecret;

const CA: &str = "ca";
/// The Secret with the owner's.
const OWN: &str = "own";
const ETCD_CA: &str = "etcd-ca";
const SERVICE_ACCOUNT_KEY: &str = "service-account-key";
const ENCRYPTION_KEY: &str = "encryption-key";
/// Each machine three times, control planes one after the other, and once more for Pods that are started anew.
const ROTATED: Duration = Duration::from_secs(2400);
/// How long an API server may go on by what it has read.
const FORGOTTEN: Duration = Duration::from_secs(90);

/// All of them, one after the other; then what is encrypted, and by what; then those of the owner, which another
/// authority has issued.
pub async fn all(stage: &mut Stage<'_>) -> Result<Seen> {
    let seen = each(stage, &["front-proxy-ca", ETCD_CA, ENCRYPTION_KEY, SERVICE_ACCOUNT_KEY, CA]).await?;
    let began = Instant::now();
    let planes = stage.members(Role::ControlPlane).await?.len();
    let told = encryption::edits(stage, planes).await?;
    whole(stage, planes).await?;
    guards::hold(&stage.machines)?;
    let text = format!("{}; encryption: {}", seen.text, told.join(", "));
    let since = Instant::now();
    let gap = to_the_owners(stage, &["front-proxy-ca", ETCD_CA, CA]).await?;
    let text = format!("{text}; the owner's {:.0} s, gap {:.1} s", since.elapsed().as_secs_f64(), gap.as_secs_f64());
    Ok(Seen { took: seen.took + began.elapsed(), text })
}

/// The owner brings these in a Secret: they are rotated to one after the other, and what the former one signed is
/// refused in the end.
async fn to_the_owners(stage: &mut Stage<'_>, stems: &[&str]) -> Result<Duration> {
    let planes = stage.members(Role::ControlPlane).await?.len();
    let old = Held::by(stage).await?;
    let own = Company::make()?.issue(stems)?;
    own.put(stage.scenario, OWN).await?;
    stage.wish["spec"]["certificates"]["caRef"] = json!({"name": OWN});
    stage.apply().await?;
    let mut writing = Writing::begin(stage).await?;
    eventually("the cluster has the owner's authorities", ROTATED * 2, async || {
        writing.follow(stage).await?;
        let said = stage.deployment().await?.condition(condition::AUTHORITIES_ROTATED).cloned();
        let Some(said) = said else { return Ok(Look::Waiting("nothing is said of it yet".to_owned())) };
        if said.reason == "WaitingForApproval" {
            approve(stage, &said.message).await?;
        }
        for stem in stems {
            if !own.is_all_of(stage.scenario, CLUSTER, stem).await? {
                return Ok(Look::Waiting(format!("{stem}: {}", said.message)));
            }
        }
        let is_over = said.reason == "Rotated" && said.message.contains("are those of Secret");
        Ok(if is_over { Look::Done(()) } else { Look::Waiting(said.message) })
    })
    .await?;
    let written = writing.end();
    written.iter().try_for_each(no_longer_than_an_election)?;
    stage.ready(planes + stage.workers_wished()).await?;
    whole(stage, planes).await?;
    old.counts_as_it_should(stage, CA).await?;
    for machine in stage.members(Role::ControlPlane).await? {
        let machine = stage.machine_of(&machine)?;
        own.is_on(stage.scenario, &machine, "/etc/kubernetes/pki/ca.crt", CA).await?;
    }
    Ok(written.iter().map(|written| written.gap).max().unwrap_or_default())
}

/// Types what the message says.
async fn approve(stage: &Stage<'_>, message: &str) -> Result<()> {
    let asked = message.rsplit_once(&format!("{}=", annotation::APPROVE));
    let (_, value) = asked.with_context(|| format!("no command to approve it: {message}"))?;
    stage.say(annotation::APPROVE, value).await
}

/// Those that machines of etcd have, or are reached with.
pub async fn of_etcd_and_cluster(stage: &mut Stage<'_>) -> Result<Seen> {
    each(stage, &[ETCD_CA, CA]).await
}

/// That of the API servers, which whoever looks after the endpoint believes as well.
pub async fn of_cluster(stage: &mut Stage<'_>) -> Result<Seen> {
    each(stage, &[CA]).await
}

async fn each(stage: &mut Stage<'_>, subjects: &[&str]) -> Result<Seen> {
    let began = Instant::now();
    let planes = stage.members(Role::ControlPlane).await?.len();
    let mut told = Vec::new();
    let secret = match subjects.contains(&ENCRYPTION_KEY) {
        true => Some(StoredSecret::write(stage).await?),
        false => None,
    };
    for subject in subjects {
        let old = Held::by(stage).await?;
        let begun = Instant::now();
        let (gap, messages) = rotated(stage, subject, planes).await?;
        if let Some(secret) = secret.as_ref().filter(|_| *subject == ENCRYPTION_KEY) {
            secret.is_kept(stage, planes, &messages).await?;
        }
        told.push(format!("{subject} {:.0} s, gap {:.1} s", begun.elapsed().as_secs_f64(), gap.as_secs_f64()));
        stage.ready(planes + stage.workers_wished()).await?;
        whole(stage, planes).await?;
        old.counts_as_it_should(stage, subject).await?;
    }
    let took = began.elapsed();
    let client = stage.client().await?;
    let nodes = stage.ready(planes + stage.workers_wished()).await?;
    let nodes = node_names(&nodes);
    let [first, .., last] = nodes.as_slice() else { bail!("there is one Node: {nodes:?}") };
    // kube-proxy, or what stands in its place, and CoreDNS have learnt of a Service that is new.
    workload::service_answers(&client, first, last, Duration::from_secs(120)).await?;
    stage.stays_without_kube_proxy().await?;
    guards::hold(&stage.machines)?;
    Ok(Seen { took, text: told.join("; ") })
}

/// Asks for the rotation, approves what it asks for, and waits until it is over; the longest time between two writes,
/// which is an election at most where there are several control planes, and what STATUS has said.
async fn rotated(stage: &Stage<'_>, subject: &str, planes: usize) -> Result<(Duration, Vec<String>)> {
    stage.say(annotation::ROTATE, &format!("{subject}.1")).await?;
    let mut writing = Writing::begin(stage).await?;
    let api = stage.scenario.api::<ClusterDeployment>();
    let mut messages: Vec<String> = Vec::new();
    eventually(&format!("{subject} is rotated"), ROTATED, async || {
        writing.follow(stage).await?;
        let deployment = api.get(CLUSTER).await?;
        let said = deployment.condition(condition::AUTHORITIES_ROTATED).cloned();
        let message = deployment.status.and_then(|status| status.message).unwrap_or_default();
        if messages.last() != Some(&message) {
            stage.scenario.say(&message);
            messages.push(message.clone());
        }
        let Some(said) = said else { return Ok(Look::Waiting(message)) };
        if said.reason == "WaitingForApproval" {
            approve(stage, &said.message).await?;
        }
        let is_over = said.reason == "Rotated" && said.message.starts_with(&format!("{subject}.1"));
        Ok(if is_over { Look::Done(()) } else { Look::Waiting(message) })
    })
    .await?;
    let written = writing.end();
    if planes > 1 {
        written.iter().try_for_each(no_longer_than_an_election)?;
    }
    Ok((written.iter().map(|written| written.gap).max().unwrap_or_default(), messages))
}

/// A client that writes all the time, with the kubeconfig that the operator keeps.
struct Writing {
    kubeconfig: String,
    writer: Writer,
    before: Vec<Written>,
}

impl Writing {
    async fn begin(stage: &Stage<'_>) -> Result<Self> {
        let kubeconfig = stage.scenario.kubeconfig(CLUSTER).await?;
        Ok(Self { kubeconfig, writer: Writer::to(stage.scenario, CLUSTER).await?, before: Vec::new() })
    }

    /// People take the new one once there is one.
    async fn follow(&mut self, stage: &Stage<'_>) -> Result<()> {
        let now = stage.scenario.kubeconfig(CLUSTER).await?;
        if now != self.kubeconfig {
            self.before.push(self.writer.written());
            (self.kubeconfig, self.writer) = (now, Writer::to(stage.scenario, CLUSTER).await?);
        }
        Ok(())
    }

    /// What was written with each kubeconfig.
    fn end(self) -> Vec<Written> {
        self.before.into_iter().chain([self.writer.written()]).collect()
    }
}

/// What somebody holds from before a rotation.
struct Held {
    kubeconfig: String,
    token: String,
}

impl Held {
    async fn by(stage: &Stage<'_>) -> Result<Self> {
        let client = stage.client().await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
        let request =
            accounts.create_token_request("default", &PostParams::default(), &TokenRequest::default()).await?;
        let token = request.status.context("there is no token")?.token;
        Ok(Self { kubeconfig: stage.scenario.kubeconfig(CLUSTER).await?, token })
    }

    /// What the former one signed is refused, and nothing else.
    async fn counts_as_it_should(&self, stage: &Stage<'_>, rotated: &str) -> Result<()> {
        let client = stage.client().await?;
        let is_refused = rotated == SERVICE_ACCOUNT_KEY;
        eventually("what the former one signed is refused, and nothing else", FORGOTTEN, async || {
            let believed = is_believed(&client, &self.token).await?;
            Ok(if believed != is_refused { Look::Done(()) } else { Look::Waiting(format!("the token: {believed}")) })
        })
        .await?;
        let old = client_of(&self.kubeconfig).await?;
        let answer = Api::<Namespace>::all(old).get("default").await;
        ensure!(answer.is_ok() != (rotated == CA), "with the kubeconfig of before: {answer:?}");
        Ok(())
    }
}

async fn is_believed(client: &Client, token: &str) -> Result<bool> {
    let reviews: Api<TokenReview> = Api::all(client.clone());
    let spec = TokenReviewSpec { token: Some(token.to_owned()), ..TokenReviewSpec::default() };
    let review = reviews.create(&PostParams::default(), &TokenReview { spec, ..TokenReview::default() }).await?;
    Ok(review.status.unwrap_or_default().authenticated == Some(true))
}
