//! An entry of an artifact bundle that an Addon applies or installs.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::references::LocalRef;

/// CEL: somebody vouches for what the bundle has.
const VOUCHED_RULE: &str = "self.url.startsWith('https://') || has(self.indexSHA256) || has(self.signedBy)";
const VOUCHED_MESSAGE: &str =
    "indexSHA256 or signedBy is required with an http URL: nobody else vouches for what the bundle has";
const SECRET_RULE: &str = "self.url.startsWith('https://') || (!has(self.caRef) && !has(self.credentialsRef))";
const SECRET_MESSAGE: &str =
    "caRef and credentialsRef need an https URL: a login is never sent, and a server never known, over plain HTTP";

/// Where a bundle is, and who vouches for what it has.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(VOUCHED_RULE).message(VOUCHED_MESSAGE).field_path(".url"))]
pub struct BundlePlace {
    /// URL of the artifact bundle: the directory that holds `index.json`. http or https, no user or password in it.
    #[schemars(
        length(min = 8, max = 512),
        regex(pattern = r"^https?://[A-Za-z0-9\[][-A-Za-z0-9.:\[\]]*(/[-A-Za-z0-9._~/]*)?$")
    )]
    pub url: String,
    /// SHA-256 of the bundle's `index.json` as 64 lower-case hexadecimal digits. Another index is
    /// `BundleDigestMismatch`. Default: whatever index is there.
    #[serde(default, rename = "indexSHA256", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub index_sha256: Option<String>,
    /// The public key that the entry is signed with: Ed25519, in PEM (`openssl pkey -pubout`). An entry that has no
    /// signature of it is `BundleNotSigned`. Default: a signature is not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 256),
        regex(pattern = r"^-----BEGIN PUBLIC KEY-----\n[A-Za-z0-9+/=]+\n-----END PUBLIC KEY-----\n?$")
    )]
    pub signed_by: Option<String>,
}

/// Manifests that a bundle has: an entry of the kind `manifests`.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(VOUCHED_RULE).message(VOUCHED_MESSAGE).field_path(".url"))]
#[x_kube(validation = Rule::new(SECRET_RULE).message(SECRET_MESSAGE).field_path(".url"))]
pub struct BundleManifests {
    /// URL of the artifact bundle: the directory that holds `index.json`. http or https, no user or password in it.
    #[schemars(
        length(min = 8, max = 512),
        regex(pattern = r"^https?://[A-Za-z0-9\[][-A-Za-z0-9.:\[\]]*(/[-A-Za-z0-9._~/]*)?$")
    )]
    pub url: String,
    /// SHA-256 of the bundle's `index.json` as 64 lower-case hexadecimal digits. Another index is
    /// `BundleDigestMismatch`. Default: whatever index is there.
    #[serde(default, rename = "indexSHA256", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub index_sha256: Option<String>,
    /// The public key that the entry is signed with: Ed25519, in PEM (`openssl pkey -pubout`). An entry that has no
    /// signature of it is `BundleNotSigned`. Default: a signature is not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 256),
        regex(pattern = r"^-----BEGIN PUBLIC KEY-----\n[A-Za-z0-9+/=]+\n-----END PUBLIC KEY-----\n?$")
    )]
    pub signed_by: Option<String>,
    /// Name of the entry, as `wright bundle add manifests` was given it.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[A-Za-z0-9][-A-Za-z0-9._]*$"))]
    pub name: String,
    /// Its version, exactly.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9._+-]*[A-Za-z0-9])?$"))]
    pub version: String,
    /// A ConfigMap with `ca.crt`, the authorities in PEM that the server's certificate may come from; it alone is
    /// believed then. Default: those of the operator's image. Only with an https URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_ref: Option<LocalRef>,
    /// A Secret with `username` and `password` (Basic), or with `token` (Bearer). Default: nobody logs in. Only with an
    /// https URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<LocalRef>,
}

impl BundleManifests {
    /// Where the bundle is.
    pub fn place(&self) -> BundlePlace {
        BundlePlace {
            url: self.url.clone(),
            index_sha256: self.index_sha256.clone(),
            signed_by: self.signed_by.clone(),
        }
    }
}
