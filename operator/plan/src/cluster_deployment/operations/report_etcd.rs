//! Says what is known of etcd: its members and their sizes in the status, and what is wrong in a condition. A database
//! that is large is no part of Ready; data that differs and a quota that is used up are, by the report of
//! `defragment_etcd`.

use crds::conditions::Statement;
use crds::names::{annotation, condition};
use crds::{Reason, cluster_deployment::EtcdStatus};

use crate::attempts;
use crate::cluster_deployment::proposal::{Proposal, Record, Round};
use crate::cluster_deployment::state::ClusterState;
use crate::etcd::{self, Finding};
use crate::message::cut;

pub(super) fn propose(state: &ClusterState<'_>, _: &Round) -> Proposal {
    let status = state.etcd_status();
    let statement = statement(state, status.as_ref());
    let records = status.into_iter().map(|status| Record::Etcd(Box::new(status))).collect();
    Proposal { records, ..Proposal::default() }.condition(condition::ETCD_DATA_HEALTHY, statement)
}

fn statement(state: &ClusterState<'_>, status: Option<&EtcdStatus>) -> Option<Statement> {
    state.installed.as_ref()?;
    state.membership().etcd_role()?;
    let stated = |status: Option<bool>, reason: Reason, message: String| {
        Statement::new(condition::ETCD_DATA_HEALTHY, status, reason, cut(message))
    };
    let finding = status.and_then(etcd::finding);
    Some(match (finding, status.and_then(|status| status.looked_at.as_ref())) {
        (Some(finding), _) => stated(Some(false), finding.reason, advise(state, &finding)),
        (None, None) => {
            let message = "the machines of etcd's members have not been asked about it yet";
            stated(None, Reason::EtcdNotLookedAt, message.into())
        }
        (None, Some(_)) => {
            let message = "no member has an alarm, none is known to hold other data, and the database is below 80 % of \
                           its quota";
            stated(Some(true), Reason::EtcdDataHealthy, message.into())
        }
    })
}

/// What is wrong, and what is done about it or what to do.
pub(in crate::cluster_deployment) fn advise(state: &ClusterState<'_>, finding: &Finding) -> String {
    let annotations = state.deployment.metadata.annotations.as_ref();
    let value = attempts::next_value(annotations, annotation::DEFRAGMENT, state.generation());
    let command = state.annotate(annotation::DEFRAGMENT, &value);
    finding.advise(state.deployment.spec.etcd.defragmentation.is_some(), &command)
}
