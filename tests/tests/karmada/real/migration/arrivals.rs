//! When the status of a moved plane says of a member that it is reached, against when its agent has come and what the
//! member has then.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Result, ensure};
use crds::karmada_deployment::KarmadaMemberPhase;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use kube::api::{Api, ListParams};

use super::super::World;
use super::super::members::Member;
use super::MODES;

/// What is looked at, as far as it has been seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Its agent has renewed its Lease in the plane.
    Agent,
    /// It has what was reported.
    Content,
    /// The status says that it is reached.
    Said,
}

/// A look at the members of a plane, again and again.
pub(super) struct Arrivals<'a> {
    moved: &'a World,
    members: &'a [Member],
    /// The versions that Leases have in the backup: nobody renews them before the approval.
    before: BTreeMap<String, Option<String>>,
    start: Instant,
    /// When each was seen first, in seconds.
    seen: RefCell<BTreeMap<(&'static str, What), f32>>,
    /// What was said and was not so.
    untrue: RefCell<Vec<String>>,
}

impl<'a> Arrivals<'a> {
    /// Just before the approval.
    pub(super) async fn begin(moved: &'a World, members: &'a [Member]) -> Result<Self> {
        let before = leases(moved).await?;
        ensure!(before.len() == MODES.iter().filter(|mode| **mode == "pull").count(), "Leases: {before:?}");
        let (seen, untrue) = (RefCell::default(), RefCell::default());
        Ok(Self { moved, members, before, start: Instant::now(), seen, untrue })
    }

    /// Whether all are said to be reached. What is said is looked at first: what it says has to be so by then.
    pub(super) async fn are_all_said(&self) -> Result<bool> {
        let status = self.moved.planes().get(self.moved.name).await?.status.unwrap_or_default();
        let is_joined = |name: &str| {
            status.members.iter().any(|member| member.name == name && member.phase == KarmadaMemberPhase::Joined)
        };
        let leases = leases(self.moved).await.unwrap_or_else(|_| self.before.clone());
        for (member, mode) in self.members.iter().zip(MODES) {
            let name = member.name();
            let has_come = mode == "push" || leases.get(name) != self.before.get(name);
            let (is_said, has_content) = (is_joined(name), has_what_was_reported(member).await?);
            for (what, is_so) in [(What::Agent, has_come), (What::Content, has_content), (What::Said, is_said)] {
                if is_so {
                    self.seen.borrow_mut().entry((name, what)).or_insert(self.start.elapsed().as_secs_f32());
                }
            }
            if is_said && !(has_come && has_content) {
                let seconds = self.start.elapsed().as_secs_f32();
                let untrue = format!("{seconds:.1} s: {name}: agent has come: {has_come}, content: {has_content}");
                self.untrue.borrow_mut().push(untrue);
            }
        }
        Ok(self.members.iter().all(|member| is_joined(member.name())))
    }

    /// Nothing was said that was not so.
    pub(super) fn are_true(&self) -> Result<()> {
        for ((name, what), seconds) in self.seen.borrow().iter() {
            println!("{name}: {what:?} {seconds:.1} s after the approval");
        }
        let untrue = self.untrue.borrow();
        ensure!(untrue.is_empty(), "said to be reached: {untrue:?}");
        Ok(())
    }
}

/// The versions of the Leases that agents renew, by member.
async fn leases(moved: &World) -> Result<BTreeMap<String, Option<String>>> {
    let leases: Api<Lease> = Api::namespaced(moved.plane().await?, "karmada-cluster");
    let listed = leases.list(&ListParams::default()).await?;
    Ok(listed.into_iter().map(|lease| (lease.name_any(), lease.resource_version())).collect())
}

/// As the report has it: of `going` only the first has a Work.
async fn has_what_was_reported(member: &Member) -> Result<bool> {
    let maps = member.api("", "ConfigMap");
    let is_there = async |name: &str| anyhow::Ok(maps.get_opt(name).await?.is_some());
    let is_back = maps.get("settings").await?.data["data"]["a"] == "b";
    let keeps = is_there("going").await? == (member.name() != "m1");
    Ok(is_back && keeps && is_there("added").await? && is_there("removed").await?)
}
