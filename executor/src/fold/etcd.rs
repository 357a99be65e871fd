//! What a machine says of etcd, cut to what the schema takes.

use crds::playbook_run::{EtcdHashSeen, EtcdMemberHash, EtcdSeen};
use serde_json::Value;

use super::text::field;
use crate::sanitize::clean;

/// Members that are reported.
const MEMBERS_LIMIT: usize = 16;
const ALARMS_LIMIT: usize = 4;

pub(super) fn etcd(value: &Value) -> EtcdSeen {
    EtcdSeen {
        member_id: field(value, "memberID", 16).filter(|id| id.chars().all(|c| c.is_ascii_hexdigit())),
        well: flag(value, "well"),
        message: field(value, "message", 256),
        well_peers: texts(value, "wellPeers", 63, MEMBERS_LIMIT),
        sick_peers: texts(value, "sickPeers", 63, MEMBERS_LIMIT),
        version: field(value, "version", 32),
        size_bytes: number(value, "sizeBytes"),
        in_use_bytes: number(value, "inUseBytes"),
        quota_bytes: number(value, "quotaBytes"),
        is_leader: flag(value, "isLeader"),
        is_learner: flag(value, "isLearner"),
        raft_term: number(value, "raftTerm"),
        applied_index: number(value, "appliedIndex"),
        alarms: texts(value, "alarms", 16, ALARMS_LIMIT),
        hash_check: value.get("hashCheck").filter(|found| found.is_object()).map(hash_check),
    }
}

fn hash_check(value: &Value) -> EtcdHashSeen {
    let members = value.get("members").and_then(Value::as_array).into_iter().flatten();
    let member =
        |member: &Value| Some(EtcdMemberHash { host: field(member, "host", 63)?, hash: number(member, "hash")? });
    EtcdHashSeen {
        revision: number(value, "revision"),
        members: members.filter_map(member).take(MEMBERS_LIMIT).collect(),
        message: field(value, "message", 256),
    }
}

fn texts(value: &Value, key: &str, limit: usize, most: usize) -> Vec<String> {
    let texts = value.get(key).and_then(Value::as_array).into_iter().flatten();
    let texts = texts.filter_map(Value::as_str).map(|text| clean(text, limit));
    texts.filter(|text| !text.is_empty()).take(most).collect()
}

fn flag(value: &Value, key: &str) -> Option<bool> {
    value.get(key).and_then(Value::as_bool)
}

/// A number that a machine can mean: none of them is below zero.
fn number(value: &Value, key: &str) -> Option<i64> {
    value.get(key).and_then(Value::as_i64).filter(|number| *number >= 0)
}
