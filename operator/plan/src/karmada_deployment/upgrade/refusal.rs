//! Upgrades that are not begun, whatever is approved: a version that is too far away, and one that the data has left
//! behind.

use crds::Reason;
use crds::karmada_deployment::KarmadaComponentChange;

use super::super::component::Component;
use super::state::{Upgrade, minor};
use super::text::title;
use crate::addon::Problem;

/// The first of etcd 3.5 whose data 3.6 takes over without members that come to life again.
const ETCD_35: (u32, u32, u32) = (3, 5, 26);

/// Why it is not begun; none: it may be.
pub(super) fn find(upgrade: &Upgrade) -> Option<Problem> {
    let changes = upgrade.record.changes.iter();
    let (reason, message) = not_reversible(upgrade).or_else(|| changes.clone().find_map(refused))?;
    Some(Problem { reason, message: format!("{}: {message}", title(&upgrade.record)) })
}

/// Controllers of a minor may have written what those of the one before do not understand.
fn not_reversible(upgrade: &Upgrade) -> Option<(Reason, String)> {
    let running = upgrade.running.get(&Component::ControllerManager)?;
    let wanted = upgrade.record.to.as_str();
    if upgrade.has_begun() || minor(wanted)? >= minor(running)? {
        return None;
    }
    let message = format!(
        "spec.version {wanted}: karmada-controller-manager of {running} has run, and what it wrote may not be understood by an older minor: set spec.version to {running}; the data of before comes back by restoring etcd from a backup alone"
    );
    Some((Reason::UpgradeNotReversible, message))
}

fn refused(change: &KarmadaComponentChange) -> Option<(Reason, String)> {
    let component = Component::from_name(&change.name)?;
    let (from, to) = (minor(&change.from)?, minor(&change.to)?);
    // Said of the plane, once.
    let field = match component.follows_plane() {
        true => "spec.version".to_owned(),
        false => format!("spec.{}.version", component.field()),
    };
    match component {
        _ if component.is_of_karmada() => skips(&field, change, (from, to)),
        _ if to < from => {
            let message = format!(
                "{field} {}: {} runs in {}, and goes back within its minor version alone: set it to {}.{} or newer",
                change.to, change.name, change.from, from.0, from.1
            );
            Some((Reason::UpgradeNotReversible, message))
        }
        Component::Etcd if from == (3, 5) && to > from && numbers(&change.from)? < ETCD_35 => {
            let message = format!(
                "{field} {}: etcd {} may bring removed members back on the way to 3.6: set it to 3.5.26-0 first",
                change.to, change.from
            );
            Some((Reason::VersionSkewNotAllowed, message))
        }
        _ => skips(&field, change, (from, to)),
    }
}

/// One minor at a time.
fn skips(
    field: &str,
    change: &KarmadaComponentChange,
    (from, to): ((u32, u32), (u32, u32)),
) -> Option<(Reason, String)> {
    if from.0 == to.0 && from.1.abs_diff(to.1) <= 1 {
        return None;
    }
    let next = if to > from { from.1 + 1 } else { from.1.saturating_sub(1) };
    let message = format!(
        "{field} {}: {} runs in {}, and moves one minor version at a time: set it to {}.{} first",
        change.to, change.name, change.from, from.0, next
    );
    Some((Reason::VersionSkewNotAllowed, message))
}

/// Major, minor and patch.
fn numbers(version: &str) -> Option<(u32, u32, u32)> {
    let core = version.split('-').next()?;
    let mut numbers = core.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use crds::Reason;
    use crds::karmada_deployment::KarmadaComponentChange;

    use super::refused;

    fn check(name: &str, from: &str, to: &str, expected: Option<(Reason, &str)>) {
        let change = KarmadaComponentChange { name: name.into(), from: from.into(), to: to.into() };
        let found = refused(&change);
        assert_eq!(found.as_ref().map(|(reason, _)| *reason), expected.map(|(reason, _)| reason), "{found:?}");
        if let (Some((_, message)), Some((_, part))) = (&found, expected) {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn no_minor_is_skipped_and_no_data_is_taken_back() {
        let skew = |part| Some((Reason::VersionSkewNotAllowed, part));
        check("karmada-webhook", "1.17.5", "1.18.2", None);
        check("karmada-webhook", "1.16.8", "1.18.2", skew("spec.version 1.18.2: karmada-webhook runs in 1.16.8"));
        check("karmada-webhook", "1.16.8", "1.18.2", skew("set it to 1.17 first"));
        check("karmada-webhook", "1.18.2", "1.16.8", skew("set it to 1.17 first"));
        check("kube-apiserver", "1.34.1", "1.35.2", None);
        check("kube-apiserver", "1.33.4", "1.35.2", skew("spec.apiServer.version 1.35.2"));
        let back = Some((Reason::UpgradeNotReversible, "goes back within its minor version alone"));
        check("kube-apiserver", "1.35.2", "1.34.1", back);
        check("kube-apiserver", "1.35.2", "1.35.0", None);
        check("etcd", "3.6.6-0", "3.5.26-0", back);
        check("etcd", "3.5.16-0", "3.6.6-0", skew("set it to 3.5.26-0 first"));
        check("etcd", "3.5.26-0", "3.6.6-0", None);
    }
}
