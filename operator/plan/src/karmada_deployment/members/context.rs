//! One member, and all that is known of it.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::commands;
use crds::karmada_deployment::{KarmadaMemberPhase, KarmadaMemberStatus, SyncMode};
use crds::names::annotation;
use crds::{ObjectExt, Reason};
use serde_json::Value;

use super::super::contact::Contact;
use super::super::contents::Files;
use super::super::files::{flat, key};
use super::action::Act;
use super::cluster::impersonator_secret;
use super::estimator::on_host;
use super::observed::{Basis, Facts, Member, MemberSeen, Observed, PlaneSeen};
use super::target::{Target, Wish, has_begun};
use crate::addon::Problem;

/// One member, and all that is known of it.
pub(super) struct Context<'a> {
    pub observed: &'a Observed<'a>,
    /// All members.
    pub roster: &'a [Target],
    pub target: &'a Target,
    /// As the status has it.
    pub known: Option<&'a KarmadaMemberStatus>,
    pub member: Option<&'a Member>,
    /// What was seen in it; none: it does not answer.
    pub seen: Option<&'a MemberSeen>,
    /// What was seen in the plane; none: it does not answer.
    pub plane: Option<&'a PlaneSeen>,
    /// Whether it may begin to join or to leave now.
    pub may_begin: bool,
}

/// How far a member is, and what is done.
pub(super) struct Outcome {
    pub phase: KarmadaMemberPhase,
    pub problem: Problem,
    pub acts: Vec<Act>,
    /// Set once it begins to join.
    pub uid: Option<String>,
    /// Whether Karmada reaches it.
    pub is_joined: bool,
    /// Whether it leaves.
    pub is_leaving: bool,
    /// Whether nothing of it is left.
    pub is_gone: bool,
}

impl<'a> Context<'a> {
    pub fn new(
        observed: &'a Observed<'a>,
        (roster, target): (&'a [Target], &'a Target),
        known: &BTreeMap<&str, &'a KarmadaMemberStatus>,
        may_begin: bool,
    ) -> Self {
        let member =
            observed.seen.members.get(&target.name).filter(|member| member.target.reached_by == target.reached_by);
        Self {
            observed,
            roster,
            target,
            known: known.get(target.name.as_str()).copied(),
            member,
            seen: member.and_then(Member::seen),
            plane: observed.seen.plane.seen(),
            may_begin,
        }
    }

    /// Whether Karmada has reached it since it joined.
    pub fn has_joined(&self) -> bool {
        self.known.is_some_and(|known| known.joined_at.is_some())
    }

    /// Whether it has begun to leave.
    pub fn is_leaving(&self) -> bool {
        self.known.is_some_and(|known| known.leaving_since.is_some())
    }

    pub fn has_begun(&self) -> bool {
        self.known.is_some_and(has_begun)
    }

    /// Its Cluster in the plane, if it was made here.
    pub fn cluster(&self) -> Option<&'a Value> {
        self.plane?.own_cluster(self.observed.object, &self.target.name)
    }

    /// The phase that the status has.
    pub fn phase(&self) -> KarmadaMemberPhase {
        self.known.map(|known| known.phase).unwrap_or_default()
    }

    /// Whether a person has given it up: `force-remove: member.<name>`.
    pub fn is_given_up(&self) -> bool {
        let value = self.observed.object.annotation(annotation::FORCE_REMOVE).unwrap_or_default();
        value.split(',').any(|one| one.trim().strip_prefix("member.") == Some(&self.target.name))
    }

    pub fn outcome(&self, phase: KarmadaMemberPhase, reason: Reason, message: impl Into<String>) -> Outcome {
        let written = || self.cluster()?["spec"]["id"].as_str().map(str::to_owned);
        let leaves = self.target.wish == Wish::Leave;
        let uid = self.known.and_then(|known| known.cluster_uid.clone()).or_else(|| written().filter(|_| leaves));
        let problem = Problem { reason, message: message.into() };
        Outcome { phase, problem, acts: Vec::new(), uid, is_joined: false, is_leaving: false, is_gone: false }
    }

    pub fn leaving(&self, reason: Reason, message: String) -> Outcome {
        Outcome { is_leaving: true, ..self.outcome(KarmadaMemberPhase::Leaving, reason, message) }
    }

    /// The command that gives the member up, beside those that are given up already.
    pub fn give_up_command(&self) -> String {
        let object = self.observed.object;
        let own = format!("member.{}", self.target.name);
        let there = object.annotation(annotation::FORCE_REMOVE).unwrap_or_default().split(',').map(str::trim);
        let others = there.filter(|one| one.starts_with("member.") && *one != own).map(str::to_owned);
        let value: Vec<String> = others.chain([own.clone()]).collect();
        let target = commands::Target::KarmadaDeployment;
        commands::annotate(target, &object.metadata, annotation::FORCE_REMOVE, value.join(","))
    }
}

/// What a member is, and how Karmada is to reach it: as it says itself; of one that does not answer as the plane
/// and the host have it, so that what is put back there is what was. `None`: nobody knows.
pub fn facts(basis: &Basis<'_>, target: &Target, contact: &Contact<MemberSeen>, plane: &PlaneSeen) -> Option<Facts> {
    let object = basis.object;
    if let Some(seen) = contact.seen() {
        return Some(seen.facts.clone());
    }
    let cluster = plane.own_cluster(object, &target.name)?;
    let text = |field: &str| cluster["spec"][field].as_str().map(str::to_owned);
    let made_for = plane.made_for(object, &target.name);
    let entry = |secret: &str, key: &str| {
        let is_it = |live: &&&Value| live["kind"] == "Secret" && live["metadata"]["name"] == secret;
        decoded(&made_for.iter().find(is_it)?["data"][key])
    };
    // What its estimator was given is on the host, or beside the KarmadaDeployment.
    let given = |file: &str| {
        let kept = basis.material.estimators.get(&target.name);
        kept.and_then(|given| given.files.get(&flat(file))).map(<[u8]>::to_vec).or_else(|| {
            let secret = on_host(basis, &target.name).find(|live| live["kind"] == "Secret")?;
            decoded(&secret["data"][key(file)])
        })
    };
    let entries = [("ca", given("member/ca.crt")), ("estimator", given("member/token"))];
    let mut files: BTreeMap<String, Vec<u8>> =
        entries.into_iter().filter_map(|(name, content)| Some((name.to_owned(), content?))).collect();
    if target.sync_mode == SyncMode::Push {
        let impersonator = impersonator_secret(&target.name);
        let entries = [
            ("ca", entry(&target.name, "caBundle")),
            ("token", entry(&target.name, "token")),
            ("impersonator", entry(&impersonator, "token")),
        ];
        files.extend(entries.into_iter().filter_map(|(name, content)| Some((name.to_owned(), content?))));
    }
    Some(Facts { uid: text("id")?, server: text("apiEndpoint")?, files: Files(files), token_accepted: None })
}

fn decoded(value: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(value.as_str()?).ok()
}
