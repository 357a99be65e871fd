//! What the tests of what a run gets of a backup share.

use crds::inputs::RunInputs;
use serde_json::{Value, json};

use super::error::InputsError;
use crate::secrets::Secrets;

/// A bucket.
pub(super) fn s3() -> Value {
    json!({"s3": {"endpoint": "https://s3", "bucket": "b", "region": "r", "pathStyle": true}})
}

/// The refusal of a check that has all of these secrets but one; empty where it has none.
pub(super) fn refused(
    check: impl Fn(&RunInputs, &Secrets) -> Result<(), InputsError>,
    model: &RunInputs,
    names: &[&str],
    without: &str,
) -> String {
    let names = names.iter().filter(|name| **name != without);
    let secrets: Secrets = names.map(|name| ((*name).to_owned(), b"x\n".to_vec())).collect();
    check(model, &secrets).err().map_or(String::new(), |error| error.to_string())
}
