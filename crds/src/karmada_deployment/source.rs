//! Where a plane's CustomResourceDefinitions come from.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::addon::BundlePlace;
use crate::references::LocalRef;

const SECRET_RULE: &str = "self.bundle.url.startsWith('https://') || (!has(self.caRef) && !has(self.credentialsRef))";
const SECRET_MESSAGE: &str =
    "crds: caRef and credentialsRef need a bundle with an https URL: a login is never sent over plain HTTP";

/// An artifact bundle with an entry of the kind `manifests`, the name `karmada-crds` and the version of
/// `spec.version`: the files of the release's `crds.tar.gz` in one.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new(SECRET_RULE).message(SECRET_MESSAGE).field_path(".bundle"))]
pub struct KarmadaCrds {
    /// Where the bundle is, and who vouches for it.
    pub bundle: BundlePlace,
    /// A ConfigMap with `ca.crt`, the authorities in PEM that the server's certificate may come from; it alone is
    /// believed then. Default: those of the operator's image. Only with an https URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_ref: Option<LocalRef>,
    /// A Secret with `username` and `password` (Basic), or with `token` (Bearer). Default: nobody logs in. Only with an
    /// https URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_ref: Option<LocalRef>,
}
