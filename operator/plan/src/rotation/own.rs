//! Authorities that the cluster's owner brings, as far as everybody may know of them.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Subject;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAuthority {
    /// Of its certificate, as rings have it.
    pub fingerprint: String,
    /// When its certificate begins.
    pub begins: Timestamp,
    /// When it ends.
    pub ends: Timestamp,
    /// Whether no other authority stands above it.
    pub is_self_signed: bool,
    /// Whether the cluster had its key before, and has another one now.
    pub is_retired: bool,
}

/// Each, by what it is; there is one at least.
pub type OwnAuthorities = BTreeMap<Subject, OwnAuthority>;
