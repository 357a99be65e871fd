//! The status of a stored backup that is verified.

use crds::conditions::{self, Statement};
use crds::etcd_backup::Verification as Verified;
use crds::kstatus::Standing;
use crds::names::condition;
use crds::{EtcdBackupStatus, ObjectExt, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::sentence::sentence;
use crate::attempts::backoff;
use crate::etcd_backup::observed::Observed;
use crate::etcd_backup::verification::{Verification, failures};
use crate::message::cut;
use crate::moment::{after, clock};

/// What is said of one that was stored this moment.
pub(super) fn pending() -> Statement {
    Statement::new(condition::VERIFIED, false, Reason::VerificationPending, "it is verified next")
}

/// The status of one that is verified.
pub(in crate::etcd_backup) fn verifying(observed: &Observed<'_>, verification: &Verification) -> EtcdBackupStatus {
    let old = observed.backup.status.clone().unwrap_or_default();
    let now = Time(observed.now);
    let tries = failures(observed.backup) + 1;
    let (is_good, reason, message) = match verification {
        // What was said of the last attempt holds until the next.
        Verification::Retries(_) => return old,
        Verification::Begins(job) => (false, Reason::VerificationPending, format!("Job {} begins", job.name())),
        Verification::UnderWay(message) => (false, Reason::VerificationPending, message.clone()),
        Verification::Good(message) => (true, Reason::Verified, message.clone()),
        Verification::Damaged(message) => (false, Reason::VerificationFailed, message.clone()),
        Verification::NotMade(why) => {
            let next = clock(after(observed.now, backoff(tries)));
            (false, Reason::VerificationNotMade, format!("{why}; tried again at {next}"))
        }
    };
    let shown = shown(&old, verification, &message);
    let verified = Statement::new(condition::VERIFIED, is_good, reason, cut(message));
    let (mut conditions, mut statements) = (old.conditions.clone(), vec![verified.clone()]);
    let is_damaged = matches!(verification, Verification::Damaged(_));
    // It was as it was wanted once it was stored; one that is damaged is not, and nothing is done about that.
    Standing::new(!is_damaged, is_damaged).report(&verified, &mut conditions, &mut statements);
    let ended = || observed.backup.spec.verify.as_ref().map(|verify| Verified { at: now.clone(), how: verify.how });
    let is_not_made = matches!(verification, Verification::NotMade(_));
    let generation = observed.backup.metadata.generation;
    EtcdBackupStatus {
        observed_generation: generation,
        message: Some(cut(shown)),
        verified: is_good.then(ended).flatten(),
        damaged: is_damaged.then(ended).flatten(),
        verification_tried_at: is_not_made.then(|| now.clone()).or(old.verification_tried_at.clone()),
        verification_failures: match is_not_made {
            true => i32::try_from(tries).ok(),
            false => old.verification_failures,
        },
        conditions: conditions::state(&conditions, &statements, generation, &now),
        ..old
    }
}

/// The sentence of the STATUS column: the worst first.
fn shown(old: &EtcdBackupStatus, verification: &Verification, message: &str) -> String {
    let content = old.backup.as_ref().map(sentence).unwrap_or_default();
    match verification {
        Verification::Damaged(_) => format!("damaged, take another backup: {message}"),
        Verification::NotMade(_) => format!("{content}; not verified: {message}"),
        Verification::Good(_) => format!("{content}; verified"),
        Verification::Begins(_) | Verification::UnderWay(_) | Verification::Retries(_) => {
            format!("{content}; being verified")
        }
    }
}
