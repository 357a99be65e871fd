//! What an interrupted Helm has left: a revision that is pending, which no other Helm touches.

use crds::Reason;
use crds::chart::ChartInputs;
use serde::Deserialize;

use super::failure::Failure;
use super::helm::Helm;

/// A revision of a release.
#[derive(Deserialize, Clone, Debug, PartialEq, Eq)]
pub(super) struct Revision {
    pub revision: i64,
    pub status: String,
}

/// What is done about it.
#[derive(Debug, PartialEq, Eq)]
enum Remedy {
    Nothing,
    RollBack(i64),
    Uninstall,
}

/// Sets a release that is pending back to the revision that served last, or away.
pub(super) async fn recover(helm: &mut Helm, inputs: &ChartInputs) -> Result<(), Failure> {
    let timeout = format!("{}s", inputs.timeout_seconds);
    let of_release = ["--namespace", &inputs.namespace, "--timeout", &timeout];
    match remedy(&history(helm, inputs).await) {
        Remedy::Nothing => Ok(()),
        Remedy::RollBack(revision) => {
            let revision = revision.to_string();
            let arguments: Vec<&str> = ["rollback", &inputs.release, &revision].into_iter().chain(of_release).collect();
            helm.must(&arguments, Reason::ReleaseFailed).await
        }
        Remedy::Uninstall => {
            let arguments = ["uninstall", &inputs.release, "--ignore-not-found"];
            let arguments: Vec<&str> = arguments.into_iter().chain(of_release).collect();
            helm.must(&arguments, Reason::ReleaseFailed).await
        }
    }
}

/// The newest revision.
pub(super) async fn newest(helm: &mut Helm, inputs: &ChartInputs) -> Option<Revision> {
    history(helm, inputs).await.into_iter().max_by_key(|one| one.revision)
}

async fn history(helm: &mut Helm, inputs: &ChartInputs) -> Vec<Revision> {
    let arguments = ["history", &inputs.release, "--namespace", &inputs.namespace, "--output", "json"];
    let answer = helm.ask(&arguments).await.unwrap_or_default();
    serde_json::from_str(&answer).unwrap_or_default()
}

fn remedy(history: &[Revision]) -> Remedy {
    let with = |status: &str| {
        let found = history.iter().filter(|one| one.status == status).map(|one| one.revision);
        found.max()
    };
    let Some(newest) = history.iter().max_by_key(|one| one.revision) else { return Remedy::Nothing };
    match (newest.status.as_str(), with("deployed").or_else(|| with("superseded"))) {
        ("uninstalling", _) => Remedy::Uninstall,
        (status, _) if !status.starts_with("pending-") => Remedy::Nothing,
        (_, Some(served)) => Remedy::RollBack(served),
        (_, None) => Remedy::Uninstall,
    }
}

#[cfg(test)]
mod tests {
    use super::{Remedy, Revision, remedy};

    #[test]
    fn what_is_pending_goes_back_to_what_served_last() {
        let check = |statuses: &[&str], expected: Remedy| {
            let history =
                statuses.iter().zip(1..).map(|(status, revision)| Revision { revision, status: (*status).into() });
            assert_eq!(remedy(&history.collect::<Vec<_>>()), expected, "{statuses:?}");
        };
        check(&[], Remedy::Nothing);
        check(&["superseded", "deployed"], Remedy::Nothing);
        check(&["failed"], Remedy::Nothing);
        check(&["pending-install"], Remedy::Uninstall);
        check(&["failed", "pending-install"], Remedy::Uninstall);
        check(&["superseded", "deployed", "pending-upgrade"], Remedy::RollBack(2));
        check(&["superseded", "superseded", "failed", "pending-rollback"], Remedy::RollBack(2));
        check(&["deployed", "uninstalling"], Remedy::Uninstall);
    }
}
