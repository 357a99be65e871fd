//! What was seen of a plane that begins with a backup, and of the one that was backed up.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::key_transfer::RestoringSeen;

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct RestoreSeen {
    /// The backup and its keys; nothing of a plane that stands.
    pub keys: RestoringSeen,
    /// The plane that was backed up, as far as it was asked for.
    pub former: FormerPlane,
    /// All Works of the plane, as they are; `None`: nobody has asked, or it does not answer.
    pub works: Option<Vec<Value>>,
    /// What each member has of what the Works carry, by its name. A member that is not in it was not named in the spec.
    pub members: BTreeMap<String, MemberLook>,
}

/// The objects of a member that Karmada has, or would have: those that `karmada.io/managed` says it has put there, of
/// the kinds of `restore::kinds()`, and those of `restore::carried()` that are there without it. They have `apiVersion`
/// and `kind`. An error says why the member does not answer.
pub type MemberLook = Result<Vec<Value>, String>;

/// The plane that was backed up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FormerPlane {
    /// Nobody has asked yet.
    #[default]
    NotAsked,
    /// Nothing says that it runs: why.
    Silent(String),
    /// An API server that trusts its authority answers at its endpoint, and is not this plane's.
    Answers,
}
