//! Where programs, images and packages come from.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::references::LocalRef;

/// Where programs and images come from: a bundle, whose `url` is given, or upstream's own servers.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.url) || self.url.startsWith('https://') || (!has(self.caRef) && !has(self.credentialsRef))")
    .message("caRef and credentialsRef need an https URL: a login is never sent, and a server never known, over plain HTTP")
    .field_path(".url"))]
#[x_kube(validation = Rule::new("has(self.url) || (!has(self.indexSHA256) && !has(self.credentialsRef) && !has(self.osPackages))")
    .message("indexSHA256, credentialsRef and osPackages are of a bundle: give its url, or leave them out")
    .field_path(".url"))]
#[x_kube(validation = Rule::new("!has(self.url) || !has(self.lockRef)")
    .message("lockRef is for upstream's servers, and a bundle's index has the digests: give url or lockRef")
    .field_path(".lockRef"))]
pub struct Artifacts {
    /// URL of the artifact bundle: the directory that holds `index.json`. http or https, no user or password in it.
    /// Absent: upstream's own servers, over HTTPS, by the catalogue of `wright bundle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 8, max = 512),
        regex(pattern = r"^https?://[A-Za-z0-9\[][-A-Za-z0-9.:\[\]]*(/[-A-Za-z0-9._~/]*)?$")
    )]
    pub url: Option<String>,
    /// A ConfigMap with the lock of what is downloaded from upstream in key `bundle.lock`, as `wright bundle lock`
    /// writes it: nothing is taken that it has no digest of. Only without a URL. Absent: programs are held to the
    /// checksums that upstream publishes, and images to what their registries answer the first time, which preflight
    /// reports (`artifacts-unlocked`); what the cluster has then stays that very file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_ref: Option<LocalRef>,
    /// SHA-256 of the bundle's `index.json` as 64 lower-case hexadecimal digits (`sha256sum index.json`): with it every
    /// program and image is what the bundle's maker meant, whoever is on the way. Another index is `DigestMismatch`.
    /// Absent with an http URL, preflight warns (`artifacts-unverified`).
    #[serde(default, rename = "indexSHA256", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub index_sha256: Option<String>,
    /// A ConfigMap with the certificate authority of the bundle's server in key `ca.crt` (PEM), or, without a URL, with
    /// that of a proxy which looks into TLS. It alone is believed then. Absent: the machines' own authorities. Not with
    /// an http URL.
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
