//! The calls to all machines of a run, side by side.

use std::collections::BTreeMap;
use std::time::Duration;

use crds::inputs::{FENCE_CLAIM_EPOCH, RunInputs};
use crds::playbook_run::Fence;
use crds::step::Step;
use futures::StreamExt;
use serde_json::Value;
use tracing::{info, warn};

use super::GUARD_FAILED;
use super::answer::{self, Answer};
use super::binary::Binary;
use super::call::{self, Begin, Call};
use super::exchange::exchange;
use crate::ansible::Ansible;
use crate::inputs::Inputs;
use crate::place::Place;
use crate::ssh::{Route, Ssh};
use crate::unreachable::Unreachable;

/// Machines that are called at once.
const AT_ONCE: usize = 50;
/// To connect, and to wait until what an earlier run left has ended or was ended.
const BEGIN: Duration = Duration::from_secs(120);
/// To end what this run left.
const END: Duration = Duration::from_secs(55);
/// To connect, twice if need be, and to read a file.
const READ: Duration = Duration::from_secs(45);

/// Who is called, how, and for which run.
pub struct Machines<'a> {
    /// Starts ssh.
    pub ansible: &'a Ansible,
    /// The private directory.
    pub place: &'a Place,
    /// The ways.
    pub ssh: &'a Ssh,
    /// The run.
    pub inputs: &'a Inputs,
    /// The run's token.
    pub token: i64,
    /// The attempt.
    pub attempt: i32,
    /// Where the guard is on the machines.
    pub directory: &'a str,
}

/// The fence of a run on a host.
pub fn fence(model: &RunInputs, host: &str, token: i64) -> Fence {
    let epoch = model.hosts.get(host).map_or(0, |host| host.claim_epoch);
    Fence { epoch, token }
}

/// The claim that must have left each machine, for a run that fences. No claim has the epoch 0: without the variable,
/// no machine is the one that was meant.
pub fn expected_epoch(model: &RunInputs) -> Option<i64> {
    let epoch = || model.vars.get(FENCE_CLAIM_EPOCH).and_then(Value::as_i64);
    model
        .steps
        .contains(&Step::Fence)
        .then(|| epoch().unwrap_or_default())
}

impl Machines<'_> {
    /// The fence of this run on a host.
    pub fn fence(&self, host: &str) -> Fence {
        fence(&self.inputs.model, host, self.token)
    }

    /// Takes the machines over: the guard is there, knows this run's fence, and what lower ones left has ended.
    pub async fn begin(
        &self,
        guard: &Binary,
        hosts: Vec<String>,
    ) -> BTreeMap<String, Result<(), Unreachable>> {
        self.each(hosts, async |host, route| {
            self.begin_one(guard, host, route).await
        })
        .await
    }

    async fn begin_one(&self, guard: &Binary, host: &str, route: &Route) -> Result<(), Unreachable> {
        let asked = self.asked(host);
        let short = call::begin(&route.root, self.directory, &guard.sha256, &asked);
        let answer = match self.call(route, &short, BEGIN).await? {
            Answer::Missing => {
                let long = call::install(&route.root, self.directory, &guard.sha256, &guard.content, &asked);
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
                    reason: GUARD_FAILED,
                    message: "the guard on the machine did not say that it has begun".to_owned(),
                })
            }
        }
    }

    /// Ends what this run left on the machines; well where the guard says that nothing is at work any more.
    pub async fn end(&self, hosts: Vec<String>) -> BTreeMap<String, Result<(), Unreachable>> {
        self.each(hosts, async |host, route| {
            let fence = self.fence(host);
            let end = call::end(&route.root, self.directory, fence.epoch, fence.token);
            match self.call(route, &end, END).await? {
                Answer::Done(said) if said.get("quiet") == Some(&true.into()) => Ok(()),
                _ => Err(Unreachable {
                    reason: GUARD_FAILED,
                    message: "something of this run is still at work".to_owned(),
                }),
            }
        })
        .await
    }

    /// Reads the highest fence that each machine knows; the lowest where there is no guard.
    pub async fn read(&self, hosts: Vec<String>) -> BTreeMap<String, Result<Fence, Unreachable>> {
        let read = call::read(self.directory);
        self.each(hosts, async |_, route| {
            match self.call(route, &read, READ).await? {
                Answer::Done(said) => Ok(answer::fence(&said)),
                Answer::Missing => Ok(Fence::default()),
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
            attempt: self.attempt,
            steps: model.steps.iter().map(|step| step.name().to_owned()).collect(),
            expected_epoch: expected_epoch(model),
        }
    }

    async fn call(&self, route: &Route, call: &Call, patience: Duration) -> Result<Answer, Unreachable> {
        exchange(self.ansible, self.place, route, call, patience).await
    }

    async fn each<T>(
        &self,
        hosts: Vec<String>,
        one: impl AsyncFn(&str, &Route) -> Result<T, Unreachable>,
    ) -> BTreeMap<String, Result<T, Unreachable>> {
        let one = &one;
        let calls = hosts.into_iter().filter_map(|host| {
            let route = self.ssh.routes.get(&host)?;
            Some(async move {
                let result = one(&host, route).await;
                if let Err(why) = &result {
                    warn!(
                        host,
                        reason = why.reason,
                        message = why.message,
                        "a call to a machine's guard failed"
                    );
                }
                (host, result)
            })
        });
        futures::stream::iter(calls)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await
    }
}

#[cfg(test)]
mod tests {
    use crds::inputs::FENCE_CLAIM_EPOCH;
    use crds::step::Step;
    use serde_json::json;

    use super::expected_epoch;

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
