//! A cluster whose certificates have all ended comes back by itself.

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use crds::names::{self, condition};
use crds::step::Role;
use crds::{Conditions, conditions};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::Api;
use lab::machines::Machine;

use super::Seen;
use crate::certificates;
use crate::eventually::{Look, eventually};
use crate::lifecycle::guards;
use crate::lifecycle::stage::{CLUSTER, Stage};
use crate::lifecycle::whole::whole;

/// Until nobody is believed any more, and until it is said.
const NOTICED: Duration = Duration::from_secs(180);
/// One control plane after the other.
const RENEWED: Duration = Duration::from_secs(900);
const SCRIPT: &str = include_str!("end_certificates.sh");
const AUTHORITIES: [&str; 3] = ["ca", "front-proxy-ca", "etcd-ca"];

/// All leaves of all control planes have ended a week ago: they are renewed over SSH, though no API is reached.
pub async fn renewed(stage: &mut Stage<'_>) -> Result<Seen> {
    let members = stage.members(Role::ControlPlane).await?;
    let planes: Vec<Machine> = members.iter().map(|member| stage.machine_of(member)).collect::<Result<_>>()?;
    let client = stage.client().await?;
    let command = command(stage).await?;
    for plane in &planes {
        stage.scenario.ssh(plane, &command).await?;
    }
    let began = Instant::now();
    eventually("the API server's certificate is not believed", NOTICED, async || {
        // A connection of its own: those that are open stay so.
        let new = stage.client().await?;
        Ok(match Api::<Namespace>::all(new).get("default").await {
            Err(error) => Look::Done(error),
            Ok(_) => Look::Waiting("it is".into()),
        })
    })
    .await
    .map(|error| stage.scenario.say(&format!("its client says: {error}")))?;
    drop(client);
    certificates::look(stage.scenario, CLUSTER, &planes).await?;
    let said = eventually("it is said that certificates have ended", NOTICED, async || {
        let found = stage.deployment().await?;
        let said = found.condition(condition::CERTIFICATES_VALID).context("nothing is said of certificates")?;
        let told = format!("{}: {}", said.reason, said.message);
        let is_so = said.reason == "Expired" || said.reason == "RenewingCertificates";
        Ok(if is_so { Look::Done(told) } else { Look::Waiting(told) })
    })
    .await?;
    stage.scenario.say(&said);
    certificates::end_after(stage.scenario, CLUSTER, SignedDuration::from_hours(24 * 300), RENEWED).await?;
    let renewed = began.elapsed();
    stage.ready(planes.len() + stage.workers_wished()).await?;
    whole(stage, planes.len()).await?;
    let status = stage.deployment().await?.status.unwrap_or_default();
    ensure!(
        conditions::find(&status.conditions, condition::CERTIFICATES_VALID).is_some_and(|said| said.reason == "Valid"),
        "the certificates are not said to be valid: {:?}",
        status.conditions
    );
    guards::hold(&stage.machines)?;
    Ok(Seen::since(began, format!("{} control planes renewed after {:.0} s", planes.len(), renewed.as_secs_f64())))
}

/// What ends them, with the authorities that sign.
async fn command(stage: &Stage<'_>) -> Result<String> {
    let secret = stage.scenario.api::<Secret>().get(&names::pki_secret(CLUSTER)).await?;
    let data = secret.data.context("the Secret is empty")?;
    let mut command = String::from("set -e; umask 077; export AUTHORITIES=$(mktemp -d)\n");
    for name in AUTHORITIES {
        for kind in ["crt", "key"] {
            let file = format!("{name}.{kind}");
            let pem = &data.get(&file).with_context(|| format!("the Secret has no {file}"))?.0;
            writeln!(command, "cat >\"$AUTHORITIES/{file}\" <<'PEM'\n{}\nPEM", std::str::from_utf8(pem)?.trim_end())?;
        }
    }
    Ok(command + SCRIPT)
}
