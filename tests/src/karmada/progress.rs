//! How far a KarmadaDeployment of a scenario is, said as its status says it.

use std::time::Duration;

use anyhow::Result;
use crds::{KarmadaDeployment, conditions, names};
use kube::ResourceExt;
use kube::api::DeleteParams;

use crate::eventually::{Look, eventually};
use crate::scenario::Scenario;

/// Waits until a look at it finds what is waited for, and says each sentence that it shows meanwhile.
pub async fn until<T>(
    scenario: &Scenario,
    name: &str,
    what: &str,
    deadline: Duration,
    mut look: impl AsyncFnMut(KarmadaDeployment) -> Result<Look<T>>,
) -> Result<T> {
    let planes = scenario.api::<KarmadaDeployment>();
    let mut said = Said::default();
    eventually(&format!("{name} {what}"), deadline, async || {
        let plane = planes.get(name).await?;
        said.say(scenario, &plane);
        look(plane).await
    })
    .await
}

/// The sentence that was said last.
#[derive(Default)]
struct Said(String);

impl Said {
    fn say(&mut self, scenario: &Scenario, plane: &KarmadaDeployment) {
        let message = plane.status.as_ref().and_then(|status| status.message.as_deref()).unwrap_or_default();
        if message != self.0 {
            scenario.say(&format!("{}: {message}", plane.name_any()));
            message.clone_into(&mut self.0);
        }
    }
}

/// Whether all of it is there and works as its present generation wishes it.
pub fn is_ready(plane: &KarmadaDeployment) -> bool {
    let Some(status) = &plane.status else { return false };
    let is = |condition: &str| conditions::is_true(&status.conditions, condition);
    status.observed_generation == plane.metadata.generation
        && is(names::condition::READY)
        && is(names::condition::UP_TO_DATE)
}

/// Deletes it, and waits until it is gone.
pub async fn delete(scenario: &Scenario, name: &str, deadline: Duration) -> Result<()> {
    let planes = scenario.api::<KarmadaDeployment>();
    planes.delete(name, &DeleteParams::default()).await?;
    let mut said = Said::default();
    eventually(&format!("{name} is gone"), deadline, async || {
        let Some(plane) = planes.get_opt(name).await? else { return Ok(Look::Done(())) };
        said.say(scenario, &plane);
        Ok(Look::Waiting(said.0.clone()))
    })
    .await
}
