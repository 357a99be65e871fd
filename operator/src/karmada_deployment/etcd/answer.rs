//! What etcd's gateway answers.

use plan::karmada_deployment::{EtcdMember, Membership};
use serde_json::Value;

/// Why there is no answer, or none that says yes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    /// It was not reached, or what came back is none of etcd's answers.
    #[error("{0}")]
    Silent(String),
    /// It has said no.
    #[error("{message}")]
    Answered {
        /// The code of gRPC.
        code: i64,
        /// In its words.
        message: String,
    },
}

/// An answer: what it says, or that it says no.
pub(super) fn answer(is_success: bool, body: &[u8]) -> Result<Value, Refusal> {
    let read: Result<Value, _> = serde_json::from_slice(body);
    match read {
        Ok(value) if is_success => Ok(value),
        Ok(value) if value["code"].is_i64() => {
            let message = value["message"].as_str().or(value["error"].as_str()).unwrap_or("it says no").to_owned();
            Err(Refusal::Answered { code: value["code"].as_i64().unwrap_or_default(), message })
        }
        Ok(_) | Err(_) => {
            let text: String = String::from_utf8_lossy(body).chars().take(200).collect();
            Err(Refusal::Silent(format!("an answer that is none of etcd's: {text}")))
        }
    }
}

/// The members, by the answers to `member/list` and `maintenance/status`. What is zero, empty or false is left out of
/// these.
pub(super) fn membership(listed: &Value, status: &Value, is_stale: bool) -> Membership {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let member = |member: &Value| EtcdMember {
        id: text(&member["ID"]),
        name: text(&member["name"]),
        peer_urls: member["peerURLs"].as_array().into_iter().flatten().map(text).collect(),
        is_learner: member["isLearner"] == true,
    };
    Membership {
        members: listed["members"].as_array().into_iter().flatten().map(member).collect(),
        leader: status["leader"].as_str().filter(|leader| *leader != "0").map(str::to_owned),
        is_stale,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Refusal, answer, membership};

    #[test]
    fn members_are_read_as_the_gateway_writes_them() {
        let listed = json!({
            "header": { "cluster_id": "1", "member_id": "2", "raft_term": "3" },
            "members": [
                { "ID": "9372538179322589801", "name": "k1-etcd-0", "peerURLs": ["https://a:2380"], "clientURLs": ["https://a:2379"] },
                { "ID": "2", "peerURLs": ["https://b:2380"], "isLearner": true },
            ],
        });
        let read = membership(&listed, &json!({ "leader": "9372538179322589801", "raftTerm": "2" }), false);
        assert_eq!(read.leader.as_deref(), Some("9372538179322589801"));
        let seen: Vec<_> = read.members.iter().map(|one| (one.name.as_str(), one.is_learner)).collect();
        assert_eq!(seen, [("k1-etcd-0", false), ("", true)]);
        assert_eq!(read.members[1].peer_urls, ["https://b:2380"]);
        assert_eq!(membership(&listed, &json!({}), true).leader, None);
    }

    #[test]
    fn what_says_no_is_told_from_what_is_no_answer() {
        let refused = answer(false, br#"{"error":"etcdserver: x","code":9,"message":"etcdserver: x"}"#);
        assert_eq!(refused, Err(Refusal::Answered { code: 9, message: "etcdserver: x".into() }));
        assert!(matches!(answer(false, b"404 page not found"), Err(Refusal::Silent(_))));
        assert!(matches!(answer(true, b"<html>"), Err(Refusal::Silent(_))));
        assert_eq!(answer(true, b"{}"), Ok(json!({})));
    }
}
