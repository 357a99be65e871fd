//! Approval: what a person writes to let one thing be done that is not done unasked. The value names the thing, and a
//! digest binds it to the object, its generation and the very acts: it is an approval for nothing else, and never for
//! the next time. Several stand beside each other, separated by commas.

use crds::names::annotation;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::naming::short_hash;

/// Length of a digest.
const DIGEST: usize = 12;
/// Approvals of before that a new one is written beside.
const KEPT: usize = 3;

/// What needs one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Going down to one member of etcd.
    Shrink,
    /// Going on with one member of an etcd that has lost its majority.
    QuorumLoss,
    /// Repairs although too many machines are unhealthy at once.
    Repair,
    /// Setting etcd back to a backup.
    Restore,
    /// Taking that back.
    Undo,
    /// Deleting an EtcdBackup without what it has stored.
    Leave,
    /// Going on although machines know more than the metadata cluster.
    Store,
    /// Disrupting machines for what was changed.
    Plan,
    /// That what was signed by a former authority or key counts no more.
    Rotate,
    /// Bringing a Karmada control plane to another version; or going on with that although Works are missing.
    Upgrade,
}

impl What {
    const ALL: [What; 10] = [
        What::Shrink,
        What::QuorumLoss,
        What::Repair,
        What::Restore,
        What::Undo,
        What::Leave,
        What::Store,
        What::Plan,
        What::Rotate,
        What::Upgrade,
    ];

    /// The value with this digest.
    pub fn value(self, digest: &str) -> String {
        format!("{}.{digest}", self.name())
    }

    fn name(self) -> &'static str {
        match self {
            What::Shrink => "shrink",
            What::QuorumLoss => "quorum-loss",
            What::Repair => "repair",
            What::Restore => "restore",
            What::Undo => "undo",
            What::Leave => "leave",
            What::Store => "store",
            What::Plan => "plan",
            What::Rotate => "rotate",
            What::Upgrade => "upgrade",
        }
    }
}

/// `<what>.<digest12>`.
pub fn value(what: What, object: &ObjectMeta, acts: &[&str]) -> String {
    let generation = object.generation.unwrap_or_default().to_string();
    let acts: Vec<&str> = [generation.as_str()].into_iter().chain(acts.iter().copied()).collect();
    lasting_value(what, object, &acts)
}

/// The value that approves this in any generation: the acts say all that it is for.
pub fn lasting_value(what: What, object: &ObjectMeta, acts: &[&str]) -> String {
    let uid = object.uid.as_deref().unwrap_or_default();
    let parts: Vec<&str> = [uid, what.name()].into_iter().chain(acts.iter().copied()).collect();
    what.value(&short_hash(&parts, DIGEST))
}

/// The digest in a value.
pub fn digest_of(value: &str) -> String {
    value.split_once('.').map_or_else(String::new, |(_, digest)| digest.to_owned())
}

/// Whether the object carries this very approval.
pub fn is_given(object: &ObjectMeta, value: &str) -> bool {
    given(object).any(|given| given == value)
}

/// What is to be written for it: those that are there stay, as far as they are approvals.
pub fn to_write(object: &ObjectMeta, value: &str) -> String {
    let mut all: Vec<&str> = given(object).filter(|given| *given != value && is_approval(given)).collect();
    let stale = all.len().saturating_sub(KEPT);
    all.drain(..stale);
    all.push(value);
    all.join(",")
}

fn given(object: &ObjectMeta) -> impl Iterator<Item = &str> {
    let there = object.annotations.as_ref().and_then(|all| all.get(annotation::APPROVE));
    there.into_iter().flat_map(|text| text.split(',')).map(str::trim)
}

fn is_approval(text: &str) -> bool {
    let Some((what, digest)) = text.split_once('.') else {
        return false;
    };
    let known = What::ALL.iter().any(|known| known.name() == what);
    known && digest.len() == DIGEST && digest.chars().all(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::{What, is_given, to_write, value};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    fn object(uid: &str, generation: i64, approve: &str) -> ObjectMeta {
        ObjectMeta {
            uid: Some(uid.into()),
            generation: Some(generation),
            annotations: Some([("clusterwright.dev/approve".to_owned(), approve.to_owned())].into()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn an_approval_is_for_one_thing_of_one_object_in_one_generation() {
        let of = |what, uid, generation, acts: &[&str]| value(what, &object(uid, generation, ""), acts);
        let shrink = of(What::Shrink, "u", 7, &["3"]);
        assert!(shrink.starts_with("shrink.") && shrink.len() == 7 + 12, "{shrink}");
        for other in [
            of(What::QuorumLoss, "u", 7, &["3"]),
            of(What::Repair, "u", 7, &["3"]),
            of(What::Shrink, "v", 7, &["3"]),
            of(What::Shrink, "u", 8, &["3"]),
            of(What::Shrink, "u", 7, &["5"]),
            "7".into(),
            "7.2".into(),
            String::new(),
        ] {
            assert!(!is_given(&object("u", 7, &other), &shrink), "{other}");
        }
        assert!(is_given(&object("u", 7, &format!("repair.x, {shrink}")), &shrink));
    }

    #[test]
    fn approvals_that_are_there_stay_and_what_is_none_goes() {
        let with = |there: &str| to_write(&object("u", 1, there), "repair.000000000000");
        assert_eq!(with(""), "repair.000000000000");
        assert_eq!(with("7.2,shrink.0123456789ab"), "shrink.0123456789ab,repair.000000000000");
        assert_eq!(with("repair.000000000000"), "repair.000000000000");
    }
}
