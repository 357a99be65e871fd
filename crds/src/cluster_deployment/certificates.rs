//! How long certificates last, when they are renewed, and whose authorities sign them.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::references::LocalRef;

const SECONDS_A_DAY: i64 = 24 * 3600;

/// How long the leaf certificates of a cluster last, and when they are renewed: those of the API servers and of etcd,
/// of their clients, and of the kubeconfigs of control planes and of the operator. Authorities that are made last ten
/// years, and no leaf outlasts its authority.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.renewBeforeDays) || self.renewBeforeDays < self.validityDays")
    .message("certificates.renewBeforeDays must be less than certificates.validityDays: a certificate that was made just now is not renewed"))]
pub struct Certificates {
    /// How many days a certificate lasts from the day on which it is made, 1 to 1825. It holds for those that are made
    /// from now on. Default 365.
    #[serde(default = "default_validity_days")]
    #[schemars(range(min = 1, max = 1825))]
    pub validity_days: i32,
    /// A certificate with so many days left, or less, is renewed: 1 to 1824, and less than `validityDays`. Absent: once
    /// a third of `validityDays` is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1824))]
    pub renew_before_days: Option<i32>,
    /// Name of a Secret with authorities of your own, e.g. that your company's PKI has issued: `ca.crt` with `ca.key`
    /// (API servers, kubelets, clients), `etcd-ca.crt` with `etcd-ca.key`, `front-proxy-ca.crt` with
    /// `front-proxy-ca.key`; each pair in PEM, the certificate alone, without those above it, and the key without a
    /// passphrase: RSA of 2048 to 4096 bits, ECDSA P-256 or P-384. It holds nothing else. Those that it lacks are made.
    /// Another pair there is the wish to have that authority rotated to it, once all machines are well. Absent: all are
    /// made; a cluster keeps what it has when the reference is taken away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_ref: Option<LocalRef>,
}

fn default_validity_days() -> i32 {
    365
}

impl Default for Certificates {
    fn default() -> Self {
        Self { validity_days: default_validity_days(), renew_before_days: None, ca_ref: None }
    }
}

impl Certificates {
    /// How many seconds a certificate lasts.
    pub fn validity_seconds(&self) -> i64 {
        i64::from(self.validity_days) * SECONDS_A_DAY
    }

    /// How many seconds before its end a certificate is renewed.
    pub fn renew_before_seconds(&self) -> i64 {
        self.renew_before_days.map_or(self.validity_seconds() / 3, |days| i64::from(days) * SECONDS_A_DAY)
    }
}
