//! What Helm's output may not have: the logins of the kubeconfig and of the chart's server, and values of Secrets.

use crds::chart::{MASKED_FILE, PASSWORD_FILE, TOKEN_FILE};
use crds::names::KUBECONFIG_KEY;
use serde_json::Value;

use crate::redact::Redactor;
use crate::secrets::{Secrets, without_newline};

/// Masks all of them.
pub(super) fn masked(secrets: &Secrets) -> Redactor {
    let kubeconfig = serde_yaml::from_slice::<Value>(secrets.get(KUBECONFIG_KEY).unwrap_or_default());
    let mut texts = kubeconfig.as_ref().map(|config| strings(&config["users"])).unwrap_or_default();
    texts.extend(serde_json::from_slice::<Vec<String>>(secrets.get(MASKED_FILE).unwrap_or(b"[]")).unwrap_or_default());
    for file in [PASSWORD_FILE, TOKEN_FILE] {
        let secret = secrets.get(file).map(without_newline).unwrap_or_default();
        texts.push(String::from_utf8_lossy(secret).into_owned());
    }
    let files = texts.into_iter().enumerate().map(|(index, text)| (index.to_string(), text.into_bytes()));
    Redactor::new(&files.collect::<Secrets>())
}

fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(map) => map.values().flat_map(strings).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
