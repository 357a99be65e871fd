//! The calls to all machines of a run, side by side.

use crds::Reason;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use crds::inputs::{FENCE_CLAIM_EPOCH, HostIdentity, RunInputs};
use crds::playbook_run::{Fence, FenceOwner};
use crds::step::Step;
use futures::StreamExt;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use tracing::{info, warn};

use super::answer::{self, Answer};
use super::binary::Guards;
use super::call::{self, Begin, Call};
use super::end_budget::{AT_ONCE as ENDED_AT_ONCE, end_budget};
use super::exchange::exchange;
use super::identity;
use crate::ansible::Ansible;
use crate::inputs::Inputs;
use crate::ssh::{Route, Ssh};
use crate::unreachable::Unreachable;
use crate::workdir::Workdir;

/// Machines that are called at once.
const AT_ONCE: usize = 50;
/// To connect, and to wait until the processes of an earlier run have ended or were ended.
const BEGIN: Duration = Duration::from_secs(120);
/// To connect, twice if need be, and to read a file.
const READ: Duration = Duration::from_secs(45);

/// The machines of a run, and how they are called.
pub struct Machines<'a> {
    /// Starts ssh.
    pub ansible: &'a Ansible,
    /// The private directory.
    pub workdir: &'a Workdir,
    /// The ways.
    pub ssh: &'a Ssh,
    /// The run.
    pub inputs: &'a Inputs,
    /// The UID of the PlaybookRun, if it is known.
    pub uid: Option<&'a str>,
    /// The run's token.
    pub token: i64,
    /// The attempt.
    pub attempt: i32,
    /// Where the guard is on the machines.
    pub directory: &'a str,
}

/// The highest fence that a machine knows, and whose it is.
pub type KnownFence = (Fence, Option<FenceOwner>);

/// The fence of a run on a host.
pub fn fence(model: &RunInputs, host: &str, token: i64) -> Fence {
    let epoch = model.hosts.get(host).map_or(0, |host| host.claim_epoch);
    Fence { epoch, token }
}

/// The claim that must have left each machine, for a run that fences. No claim has the epoch 0: without the variable,
/// no machine is the one that was meant.
pub fn expected_epoch(model: &RunInputs) -> Option<i64> {
    let epoch = || model.vars.get(FENCE_CLAIM_EPOCH).and_then(Value::as_i64);
    model.steps.contains(&Step::Fence).then(|| epoch().unwrap_or_default())
}

impl Machines<'_> {
    /// The fence of this run on a host.
    pub fn fence(&self, host: &str) -> Fence {
        fence(&self.inputs.model, host, self.token)
    }

    /// Takes the machines over: the guard is there, knows this run's fence, and the processes of lower ones have ended.
    pub async fn begin(&self, guards: &Guards, hosts: Vec<String>) -> BTreeMap<String, Result<(), Unreachable>> {
        self.each(hosts, async |host, route| self.begin_one(guards, host, route).await).await
    }

    async fn begin_one(&self, guards: &Guards, host: &str, route: &Route) -> Result<(), Unreachable> {
        let asked = self.asked(host);
        let short = call::begin(&route.root, self.directory, guards, &asked);
        let answer = match self.call(route, &short, BEGIN).await? {
            Answer::Missing(uname) => {
                let guard = guards.for_machine(&uname);
                let guard = guard.map_err(|message| Unreachable { reason: Reason::GuardFailed, message })?;
                let long = call::install(&route.root, self.directory, guard, &asked);
                self.call(route, &long, BEGIN).await?
            }
            done => done,
        };
        match answer {
            Answer::Done(said) if answer::fence(&said) == self.fence(host) => {
                info!(host, %said, "the guard has taken the machine over");
                Ok(())
            }
            answer => {
                warn!(host, ?answer, "the guard's answer is none");
                Err(Unreachable {
                    reason: Reason::GuardFailed,
                    message: "the guard on the machine did not say that it has begun".to_owned(),
                })
            }
        }
    }

    /// Ends the processes that this run left on the machines, until this moment; `Ok` where the guard reports that none
    /// is left. Machines that have not answered by then are not among the results.
    pub async fn end(&self, hosts: Vec<String>, until: Instant) -> BTreeMap<String, Result<(), Unreachable>> {
        let each = end_budget(hosts.len(), until.saturating_duration_since(Instant::now()));
        let calls = self.calls(hosts, async |host, route| {
            let end = call::end(&route.root, self.directory, self.fence(host), self.uid, &each);
            match self.call(route, &end, each.timeout).await? {
                Answer::Done(said) if said.get("quiet") == Some(&true.into()) => Ok(()),
                _ => Err(Unreachable {
                    reason: Reason::GuardFailed,
                    message: "something of this run is still at work".to_owned(),
                }),
            }
        });
        answers_until(calls, ENDED_AT_ONCE, until).await
    }

    /// Reads the highest fence that each machine knows, and whose it is; the lowest where there is no guard.
    pub async fn read(&self, hosts: Vec<String>) -> BTreeMap<String, Result<KnownFence, Unreachable>> {
        self.each(hosts, async |host, route| {
            let read = call::read(self.directory, self.identity(host));
            match self.call(route, &read, READ).await? {
                Answer::Done(said) => Ok((answer::fence(&said), answer::owner(&said))),
                Answer::Missing(_) => Ok((Fence::default(), None)),
            }
        })
        .await
    }

    fn asked(&self, host: &str) -> Begin {
        let (model, fence) = (&self.inputs.model, self.fence(host));
        Begin {
            epoch: fence.epoch,
            token: fence.token,
            cluster: model.cluster_name.clone().unwrap_or_default(),
            host: host.to_owned(),
            run: format!("{}/{}", model.namespace, model.run),
            uid: self.uid.map(str::to_owned),
            claim: model.hosts.get(host).and_then(|host| host.claim_uid.clone()),
            attempt: self.attempt,
            steps: model.steps.iter().map(|step| step.name().to_owned()).collect(),
            comparisons: model.hosts.get(host).map(|host| host.comparisons.clone()).unwrap_or_default(),
            expected_epoch: expected_epoch(model),
            identity: self.identity(host).cloned(),
        }
    }

    /// The identity of the machine that was claimed.
    fn identity(&self, host: &str) -> Option<&HostIdentity> {
        self.inputs.model.hosts.get(host)?.identity.as_ref()
    }

    async fn call(&self, route: &Route, call: &Call, time_limit: Duration) -> Result<Answer, Unreachable> {
        exchange(self.ansible, self.workdir, route, call, time_limit).await
    }

    async fn each<T>(
        &self,
        hosts: Vec<String>,
        one: impl AsyncFn(&str, &Route) -> Result<T, Unreachable>,
    ) -> BTreeMap<String, Result<T, Unreachable>> {
        let calls = self.calls(hosts, one);
        futures::stream::iter(calls).buffer_unordered(AT_ONCE).collect().await
    }

    /// A call to each of the machines, not begun yet.
    fn calls<T>(
        &self,
        hosts: Vec<String>,
        one: impl AsyncFn(&str, &Route) -> Result<T, Unreachable>,
    ) -> impl Iterator<Item = impl Future<Output = (String, Result<T, Unreachable>)>> {
        let one = Rc::new(one);
        hosts.into_iter().filter_map(move |host| {
            let route = self.ssh.routes.get(&host)?;
            let one = Rc::clone(&one);
            Some(async move {
                let result = one(&host, route).await;
                let result = result.map_err(|why| identity::explain(self.identity(&host), why));
                if let Err(why) = &result {
                    warn!(
                        host,
                        reason = %why.reason,
                        message = why.message,
                        "a call to a machine's guard failed"
                    );
                }
                (host, result)
            })
        })
    }
}

/// The answers that come until this moment.
async fn answers_until<T>(
    calls: impl Iterator<Item = impl Future<Output = (String, T)>>,
    at_once: usize,
    until: Instant,
) -> BTreeMap<String, T> {
    let mut answered = BTreeMap::new();
    let answers = futures::stream::iter(calls).buffer_unordered(at_once);
    let all = answers.for_each(|(host, answer)| {
        answered.insert(host, answer);
        std::future::ready(())
    });
    // Answers that come later do not count.
    let _ = timeout_at(until, all).await;
    answered
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crds::inputs::FENCE_CLAIM_EPOCH;
    use crds::step::Step;
    use serde_json::json;
    use tokio::time::{Instant, sleep};

    use super::{ENDED_AT_ONCE, answers_until, end_budget, expected_epoch};

    #[tokio::test(start_paused = true)]
    async fn stopping_five_hundred_hosts_fits_what_their_pod_has_left() {
        let (begun, left) = (Instant::now(), Duration::from_secs(70));
        let each = end_budget(500, left);
        // Each needs all of its time, and one in ten is dead: only its timeout ends that.
        let calls = (0..500u64).map(|number| async move {
            let dead = number % 10 == 0;
            sleep(if dead { each.timeout } else { each.wait + each.kill_after }).await;
            (format!("h{number}"), !dead)
        });
        let answered = answers_until(calls, ENDED_AT_ONCE, begun + left).await;
        assert!(begun.elapsed() <= left, "{:?}", begun.elapsed());
        assert_eq!(answered.values().filter(|quiet| **quiet).count(), 450);
    }

    #[tokio::test(start_paused = true)]
    async fn machines_that_never_answer_are_not_waited_for() {
        let begun = Instant::now();
        let calls = (0..3u64).map(|number| async move {
            if number > 0 {
                std::future::pending::<()>().await;
            }
            (format!("h{number}"), ())
        });
        let answered = answers_until(calls, 1, begun + Duration::from_secs(9)).await;
        assert_eq!(answered.len(), 1);
        assert_eq!(begun.elapsed(), Duration::from_secs(9));
    }

    #[test]
    fn a_run_that_fences_expects_the_claim_that_it_was_given_and_without_one_none() {
        let mut model = crate::example::model();
        assert_eq!(expected_epoch(&model), None);
        model.vars.insert(FENCE_CLAIM_EPOCH.to_owned(), json!(3));
        assert_eq!(expected_epoch(&model), None);
        model.steps = vec![Step::Fence];
        assert_eq!(expected_epoch(&model), Some(3));
        for none in [json!("3"), json!(null), json!(2.5)] {
            model.vars.insert(FENCE_CLAIM_EPOCH.to_owned(), none);
            assert_eq!(expected_epoch(&model), Some(0));
        }
    }
}
