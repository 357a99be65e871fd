//! Installs, upgrades or uninstalls the release of a chart for the operator: by Helm, whose output is the Pod's log.

mod download;
mod failure;
mod fetch;
mod files;
mod helm;
mod login;
mod masked;
mod recover;

use std::path::Path;
use std::time::Duration;

use crds::Reason;
use crds::chart::{ChartInputs, ChartReport, ChartVerb, INPUTS_FILE, VALUES_FILE};
use crds::names::KUBECONFIG_KEY;
use tracing::error;

use crate::cli::Chart;
use crate::outcome::{INPUTS_REFUSED, INTERNAL};
use crate::sanitize::clean;
use crate::secrets::Secrets;
use failure::Failure;
use files::{directory_in, write};
use helm::Helm;

/// Longest message, in characters: with the rest it fits into a termination message.
const MESSAGE_LIMIT: usize = 900;

/// Does it, and writes what came of it; returns the exit code.
pub async fn run(args: &Chart) -> u8 {
    let secrets = Secrets::read(&args.inputs).inspect_err(|error| error!(%error, "failed to read --inputs"));
    let Ok(secrets) = secrets else { return INPUTS_REFUSED };
    let inputs = serde_json::from_slice::<ChartInputs>(secrets.get(INPUTS_FILE).unwrap_or_default());
    let inputs = inputs.inspect_err(|error| error!(%error, "{INPUTS_FILE} is nothing to do"));
    let Ok(inputs) = inputs else { return INPUTS_REFUSED };
    let report = match done(args, &secrets, &inputs).await {
        Ok(report) => report,
        Err(Failure { reason, message }) => {
            ChartReport { reason: Some(reason.into()), message: Some(message), ..ChartReport::default() }
        }
    };
    let written = serde_json::to_vec(&report).map_err(std::io::Error::from);
    match written.and_then(|text| std::fs::write(&args.termination_message, text)) {
        Ok(()) => 0,
        Err(error) => {
            error!(%error, file = %args.termination_message.display(), "failed to write what came out");
            INTERNAL
        }
    }
}

/// What was done.
async fn done(args: &Chart, secrets: &Secrets, inputs: &ChartInputs) -> Result<ChartReport, Failure> {
    let failed = |error: std::io::Error| Failure::new(Reason::ReleaseFailed, format!("cannot begin: {error}"));
    let place = directory_in(&args.work).map_err(failed)?;
    let kubeconfig = write(&place, KUBECONFIG_KEY, secrets.get(KUBECONFIG_KEY).unwrap_or_default()).map_err(failed)?;
    let masked = masked::masked(secrets);
    let limit = Duration::from_secs(args.deadline_seconds);
    let mut helm = Helm::new(&args.helm, &place, &kubeconfig, masked, limit).map_err(failed)?;
    let mut report = ChartReport::default();
    let result = match inputs.verb {
        ChartVerb::Upgrade => upgrade(&mut helm, &place, secrets, inputs, &mut report).await,
        ChartVerb::Uninstall => uninstall(&mut helm, inputs).await,
    };
    report.succeeded = result.is_ok();
    if let Err(Failure { reason, message }) = result {
        report.reason = Some(reason.into());
        report.message = Some(clean(&message, MESSAGE_LIMIT));
    }
    if inputs.verb == ChartVerb::Upgrade {
        report.revision = recover::newest(&mut helm, inputs).await.map(|newest| newest.revision);
    }
    Ok(report)
}

async fn upgrade(
    helm: &mut Helm,
    place: &Path,
    secrets: &Secrets,
    inputs: &ChartInputs,
    report: &mut ChartReport,
) -> Result<(), Failure> {
    let Some(chart) = &inputs.chart else {
        return Err(Failure::new(Reason::ReleaseFailed, format!("{INPUTS_FILE} names no chart")));
    };
    let archive = fetch::fetch(helm, place, secrets, chart).await?;
    report.digest = Some(archive.digest);
    if inputs.recover {
        recover::recover(helm, inputs).await?;
    }
    let failed = |error: std::io::Error| Failure::new(Reason::ReleaseFailed, format!("cannot begin: {error}"));
    let values = write(place, VALUES_FILE, secrets.get(VALUES_FILE).unwrap_or(b"{}")).map_err(failed)?;
    let timeout = format!("{}s", inputs.timeout_seconds);
    let (archive, values) = (archive.file.to_string_lossy(), values.to_string_lossy());
    let mut arguments = vec!["upgrade", &inputs.release, &archive, "--install", "--rollback-on-failure", "--wait"];
    arguments.extend(["--namespace", &inputs.namespace, "--create-namespace", "--reset-values", "--values", &values]);
    arguments.extend(["--timeout", &timeout, "--description", &inputs.description, "--server-side=true"]);
    if inputs.force_conflicts {
        arguments.push("--force-conflicts");
    }
    if inputs.take_ownership {
        arguments.push("--take-ownership");
    }
    helm.must(&arguments, Reason::ReleaseFailed).await
}

async fn uninstall(helm: &mut Helm, inputs: &ChartInputs) -> Result<(), Failure> {
    let timeout = format!("{}s", inputs.timeout_seconds);
    let arguments = ["uninstall", &inputs.release, "--namespace", &inputs.namespace, "--ignore-not-found", "--wait"];
    let arguments: Vec<&str> = arguments.into_iter().chain(["--timeout", &timeout]).collect();
    helm.must(&arguments, Reason::UninstallFailed).await
}

#[cfg(test)]
mod tests;
