//! Where programs, images and packages come from.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::references::LocalRef;

/// Where programs and images come from.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self.url.startsWith('https://') || (!has(self.caRef) && !has(self.credentialsRef))")
    .message("caRef and credentialsRef need an https URL: a login is never sent, and a server never known, over plain HTTP")
    .field_path(".url"))]
pub struct Artifacts {
    /// URL of the artifact bundle: the directory that holds `index.json`. http or https, no user or password in it.
    #[schemars(
        length(min = 8, max = 512),
        regex(pattern = r"^https?://[A-Za-z0-9\[][-A-Za-z0-9.:\[\]]*(/[-A-Za-z0-9._~/]*)?$")
    )]
    pub url: String,
    /// SHA-256 of the bundle's `index.json` as 64 lower-case hexadecimal digits (`sha256sum index.json`): with it every
    /// program and image is what the bundle's maker meant, whoever is on the way. Another index is `DigestMismatch`.
    /// Absent with an http URL, preflight warns (`artifacts-unverified`).
    #[serde(default, rename = "indexSHA256", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub index_sha256: Option<String>,
    /// A ConfigMap with the server's certificate authority in key `ca.crt` (PEM). It alone is believed then. Absent:
    /// the machines' own authorities. Only with an https URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_ref: Option<LocalRef>,
    /// A Secret with `username` and `password` (Basic), or with `token` (Bearer). Only with an https URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<LocalRef>,
    /// The packages that machines install from the bundle, and from nowhere else; apt's alone: a machine of the RHEL
    /// family that lacks one fails. Absent: they install what they lack from the sources that their apt or dnf has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_packages: Option<OsPackages>,
}

/// The bundle's repositories of operating systems' packages: `os/<ID><VERSION_ID>/<architecture>` below its URL.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OsPackages {
    /// The public key that signs them, in ASCII armor: the text of `packages.asc` beside `InRelease`. apt believes no
    /// other.
    #[schemars(
        length(max = 32768),
        regex(
            pattern = r"^-----BEGIN PGP PUBLIC KEY BLOCK-----\n[A-Za-z0-9+/=:.,() \n-]*-----END PGP PUBLIC KEY BLOCK-----\n?$"
        )
    )]
    pub signed_by: String,
}
