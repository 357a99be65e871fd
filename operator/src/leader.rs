//! The Lease that makes one of several operators the leader. What to do with it is decided in `plan::leader`; here it
//! is read, written, renewed and given back. The Lease has a client of its own: the only one that no gate stands
//! before.

mod clock;
mod gate;
mod record;
#[cfg(test)]
mod tests;
mod wire;

pub use clock::Clock;
pub use gate::{Gate, HeldBack};
pub use wire::GatedWire;

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use plan::leader::{Candidate, Decision, Loss, Times, Write};
use rand::Rng;
use tokio::sync::watch;

use crate::error::chain;

/// How long giving the Lease back may take.
const RELEASE_DEADLINE: Duration = Duration::from_secs(5);

/// Where an operator stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has not read the Lease yet.
    Unknown,
    /// This one leads; empty: nobody does.
    Standby(String),
    /// It leads itself.
    Leads,
}

/// One operator's part in who leads.
pub struct Election {
    leases: Api<Lease>,
    namespace: String,
    name: String,
    me: String,
    times: Times,
    candidate: Candidate,
    gate: Gate,
    seen: Option<Lease>,
    /// The store was set back, and the Lease does not say so yet.
    is_set_back: bool,
    standing: watch::Sender<Standing>,
    resumed: watch::Sender<Option<Timestamp>>,
    problem: Option<String>,
}

/// An answer that did not come, or was no good.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("no answer within {0:?}")]
    Silence(Duration),
    #[error(transparent)]
    Api(#[from] kube::Error),
}

impl Election {
    /// For this Lease, by this client. The gate opens while the Lease is held.
    pub fn new(client: Client, namespace: &str, name: &str, me: &str, times: Times, gate: Gate) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            me: me.to_owned(),
            times,
            candidate: Candidate::new(me, times),
            gate,
            seen: None,
            is_set_back: false,
            standing: watch::channel(Standing::Unknown).0,
            resumed: watch::channel(None).0,
            problem: None,
        }
    }

    /// Where this operator stands, from now on.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// When an operator took the metadata cluster up again after nobody had renewed the Lease for long, from now on.
    pub fn resumed(&self) -> watch::Receiver<Option<Timestamp>> {
        self.resumed.subscribe()
    }

    /// The Lease's namespace and name.
    pub fn place(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The Lease as last seen.
    pub fn lease(&self) -> Option<&Lease> {
        self.seen.as_ref()
    }

    /// The name under which this operator holds it.
    pub fn me(&self) -> &str {
        &self.me
    }

    /// Ends when this operator leads.
    pub async fn win(&mut self) {
        while self.candidate.holds_until().is_none() {
            self.turn().await;
        }
    }

    /// Renews it; ends when this operator leads no more, or the store was set back: what its caches hold is newer than
    /// the store then, and is dropped with the process.
    pub async fn keep(&mut self) -> Loss {
        loop {
            let lost = self.turn().await;
            if self.is_set_back {
                self.gate.close();
                self.say_set_back().await;
                return Loss::SetBack;
            }
            if let Some(loss) = lost {
                self.gate.close();
                return loss;
            }
        }
    }

    /// Has the Lease say that its store was taken up again, whoever holds it there: the next to lead looks at the
    /// machines before it does anything. Nobody else may know it, so it is tried until it is said.
    async fn say_set_back(&mut self) {
        let patience = self.times.renew_deadline() / 2;
        loop {
            match tokio::time::timeout(patience, self.mark_set_back()).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => self.complain("write", &error.into()),
                Err(_) => self.complain("write", &Problem::Silence(patience)),
            }
            tokio::time::sleep(self.times.retry(chance())).await;
        }
    }

    async fn mark_set_back(&self) -> Result<(), kube::Error> {
        // Who makes one that is gone takes the store for an old one by that.
        let Some(lease) = self.leases.get_opt(&self.name).await? else { return Ok(()) };
        let marked = record::taken_up_again(lease);
        self.leases.replace(&self.name, &PostParams::default(), &marked).await.map(drop)
    }

    async fn turn(&mut self) -> Option<Loss> {
        let now = self.gate.clock().now();
        match self.candidate.decide(now) {
            Decision::Lost(loss) => return Some(loss),
            Decision::WaitUntil(moment) => tokio::time::sleep(moment.since(now)).await,
            Decision::Look => self.look().await,
            Decision::Acquire(write) | Decision::Renew(write) => self.write(&write).await,
        }
        None
    }

    async fn look(&mut self) {
        let (leases, name) = (self.leases.clone(), self.name.clone());
        let sent = self.gate.clock().now();
        match self.answer(async move { leases.get_opt(&name).await }).await {
            Ok(lease) => {
                let answered = self.gate.clock().now();
                self.candidate.saw(lease.as_ref().map(record::read), answered, chance());
                self.remember(lease);
            }
            Err(problem) => {
                self.complain("read", &problem);
                self.candidate.failed(sent, chance());
            }
        }
    }

    async fn write(&mut self, write: &Write) {
        // Without a version there is no Lease, whatever was seen of an earlier one.
        let before = self.seen.as_ref().filter(|_| write.version.is_some());
        let lease = record::held(before, &self.name, &self.me, write, &self.times, self.is_set_back);
        let (leases, name, creates) = (self.leases.clone(), self.name.clone(), write.version.is_none());
        let sent = self.gate.clock().now();
        let request = async move {
            match creates {
                true => leases.create(&PostParams::default(), &lease).await,
                false => leases.replace(&name, &PostParams::default(), &lease).await,
            }
        };
        // Somebody else wrote, made or removed it. A namespace that is not there is nobody's doing.
        let others: &[u16] = if creates { &[409] } else { &[404, 409] };
        match self.answer(request).await {
            Ok(lease) => {
                let answered = self.gate.clock().now();
                self.is_set_back = false;
                self.candidate.wrote(record::read(&lease), sent, answered, chance());
                if let Some(until) = self.candidate.holds_until() {
                    self.gate.open_until(until);
                }
                self.remember(Some(lease));
            }
            Err(Problem::Api(kube::Error::Api(status))) if others.contains(&status.code) => {
                self.candidate.was_refused(self.gate.clock().now());
            }
            Err(problem) => {
                self.complain("write", &problem);
                self.candidate.failed(sent, chance());
            }
        }
    }

    /// Waits for an answer, so long that another try remains, and never beyond the end of our time.
    async fn answer<T>(&self, request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Problem> {
        let patience = self.times.renew_deadline() / 2;
        let left = self.candidate.holds_until().map(|until| until.since(self.gate.clock().now()));
        let patience = left.map_or(patience, |left| left.min(patience));
        match tokio::time::timeout(patience, request).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Problem::Silence(patience)),
        }
    }

    fn remember(&mut self, lease: Option<Lease>) {
        if self.seen.as_ref().zip(lease.as_ref()).is_some_and(|(before, lease)| record::is_older(lease, before)) {
            tracing::warn!(lease = self.place(), "it is older than it was: the metadata cluster was set back");
            self.is_set_back = true;
        }
        self.seen = lease;
        self.resumed.send_replace(self.seen.as_ref().and_then(record::resumed_at));
        self.problem = None;
        let holder = self.candidate.record().and_then(|record| record.holder.clone());
        let standing = match self.candidate.holds_until() {
            Some(_) => Standing::Leads,
            None => Standing::Standby(holder.unwrap_or_default()),
        };
        if *self.standing.borrow() == standing {
            return;
        }
        let lease = self.place();
        match &standing {
            Standing::Leads => tracing::info!(lease, me = self.me, "this operator leads"),
            Standing::Standby(holder) if holder.is_empty() => tracing::info!(lease, "nobody leads"),
            Standing::Standby(holder) => tracing::info!(lease, holder, "another operator leads: standing by"),
            Standing::Unknown => {}
        }
        self.standing.send_replace(standing);
    }

    /// Says what went wrong, once for as long as it stays the same.
    fn complain(&mut self, verb: &str, problem: &Problem) {
        let text = format!("failed to {verb} Lease {}: {}", self.place(), chain(problem));
        if self.problem.as_ref() != Some(&text) {
            tracing::warn!("{text}");
            self.problem = Some(text);
        }
    }

    /// Gives the Lease back, if it is ours, so that another one takes it at once. Whatever this operator did must have
    /// ended: the gate is closed first.
    pub async fn release(&mut self) {
        self.gate.close();
        match tokio::time::timeout(RELEASE_DEADLINE, self.give_back()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.complain("release", &error.into()),
            Err(_) => self.complain("release", &Problem::Silence(RELEASE_DEADLINE)),
        }
    }

    async fn give_back(&self) -> Result<(), kube::Error> {
        loop {
            // A renewal may have been under way: the record that counts is the one that is there now.
            let lease = self.leases.get_opt(&self.name).await?;
            let Some(lease) = lease.filter(|lease| record::read(lease).holder.as_ref() == Some(&self.me)) else {
                return Ok(());
            };
            let released = record::released(lease);
            match self.leases.replace(&self.name, &PostParams::default(), &released).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(error),
                Ok(_) => {
                    tracing::info!(lease = self.place(), "released");
                    return Ok(());
                }
            }
        }
    }
}

fn chance() -> f64 {
    rand::rng().random()
}
