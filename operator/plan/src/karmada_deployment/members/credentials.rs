//! What Karmada is given of a member's credentials, and when it was given others than before: its programs may go on
//! with those that they began with.

use crds::KarmadaDeployment;
use crds::names::{annotation, label};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::names::is_made_for;
use super::observed::PlaneSeen;

/// The fields of the Secret that programs keep.
const KEPT: [&str; 2] = ["token", "caBundle"];

/// Whether this Secret in the plane has the credentials of its member.
fn is_credentials(secret: &Value) -> bool {
    let metadata = &secret["metadata"];
    secret["kind"] == "Secret" && metadata["name"] == metadata["labels"][label::KARMADA_MEMBER]
}

/// Leaves in what is wanted when the credentials that are there were changed.
pub(super) fn keep_change(wanted: &mut Value, there: Option<&Value>) {
    let changed = there.map(|there| &there["metadata"]["annotations"][annotation::CREDENTIALS_CHANGED_AT]);
    if let Some(changed) = changed.filter(|changed| changed.is_string()) {
        wanted["metadata"]["annotations"] = json!({ (annotation::CREDENTIALS_CHANGED_AT): changed });
    }
}

/// Writes into what is applied over credentials that they are others from now on, if they are.
pub(super) fn note_change(applied: &mut Value, there: &Value, now: Timestamp) {
    let differs = |field: &str| there["data"][field].is_string() && there["data"][field] != applied["data"][field];
    if is_credentials(applied) && KEPT.iter().any(|field| differs(field)) {
        applied["metadata"]["annotations"] = json!({ (annotation::CREDENTIALS_CHANGED_AT): now.to_string() });
    }
}

/// The members whose credentials were changed while they were members, and when that was last.
pub(in super::super) fn changes<'a>(object: &KarmadaDeployment, plane: &'a PlaneSeen) -> Vec<(&'a str, Timestamp)> {
    let own = plane.listed.iter().filter(|live| is_made_for(live, object) && is_credentials(live));
    let change = |live: &'a Value| {
        let metadata = &live["metadata"];
        let at = metadata["annotations"][annotation::CREDENTIALS_CHANGED_AT].as_str()?.parse().ok()?;
        Some((metadata["name"].as_str()?, at))
    };
    own.filter_map(change).collect()
}
