//! What a Pod that runs Helm is given, and what it says of it: the JSON of its termination message.

use serde::{Deserialize, Serialize};

/// File with the inputs, in the directory that the Pod's Secret is mounted at.
pub const INPUTS_FILE: &str = "release.json";
/// File with the chart's values, as JSON.
pub const VALUES_FILE: &str = "values.json";
/// File with the texts that no log may have, as a list in JSON.
pub const MASKED_FILE: &str = "masked.json";
/// File with the authorities that the chart's server may have a certificate of, in PEM.
pub const CA_FILE: &str = "ca.crt";
/// Files with the login at the chart's server.
pub const USERNAME_FILE: &str = "username";
/// See [`USERNAME_FILE`].
pub const PASSWORD_FILE: &str = "password";
/// File with the token for a bundle's server.
pub const TOKEN_FILE: &str = "token";

/// The most that the archive of a chart may have, in bytes.
pub const LARGEST_ARCHIVE: usize = 32 << 20;

/// What is asked of a Pod that runs Helm. Its Secret also has the cluster's kubeconfig.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChartInputs {
    /// What is done.
    pub verb: ChartVerb,
    /// Name of the release.
    pub release: String,
    /// Its namespace.
    pub namespace: String,
    /// How long Helm waits, in seconds.
    pub timeout_seconds: u32,
    /// The chart that is installed. None: with `Uninstall`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<ChartPlace>,
    /// The description that the release gets, by which the operator knows it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether fields are taken over that other field managers have set.
    #[serde(default)]
    pub force_conflicts: bool,
    /// Whether objects are taken over that no release has.
    #[serde(default)]
    pub take_ownership: bool,
    /// Whether what an interrupted Helm has left is put in order first.
    #[serde(default)]
    pub recover: bool,
}

/// What is done with a release.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChartVerb {
    /// It is installed or upgraded, and rolled back if that fails.
    Upgrade,
    /// It is uninstalled.
    Uninstall,
}

/// Where a chart is.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChartPlace {
    /// `oci://...`, with the chart's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<String>,
    /// URL of a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The chart's name there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// URL of the archive itself, in a bundle; it has a digest then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// Its version.
    pub version: String,
    /// SHA-256 of its archive, `sha256:` and hexadecimal. None: whatever is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Whether a registry is asked without TLS.
    #[serde(default, rename = "plainHTTP")]
    pub plain_http: bool,
}

/// What came of it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartReport {
    /// Whether it is done.
    pub succeeded: bool,
    /// CamelCase; none where it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The end of what Helm said, in one line; none where it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The revision that the release has now, as Helm counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// SHA-256 of the chart's archive, `sha256:` and hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::{ChartInputs, ChartReport};

    #[test]
    fn a_report_that_says_nothing_is_no_success_and_unknown_inputs_are_refused() {
        let report = |text: &str| serde_json::from_str::<ChartReport>(text).unwrap();
        assert!(!report("{}").succeeded);
        assert!(report(r#"{"succeeded": true, "new": 1}"#).succeeded);
        let inputs = |more: &str| {
            let text =
                format!(r#"{{"verb": "Uninstall", "release": "a", "namespace": "b", "timeoutSeconds": 3{more}}}"#);
            serde_json::from_str::<ChartInputs>(&text)
        };
        assert!(inputs("").is_ok());
        assert!(inputs(r#", "new": 1"#).is_err());
    }
}
