//! The plane's authorities and keys.

use crds::names::pki_secret;
use crds::{KarmadaDeployment, ObjectExt, commands};

use crate::pki::{Halves, PkiRow, entries};
use crate::rotation::Subject;

/// The authorities and keys of a plane. No program of it gets the private key of an authority: the operator issues all
/// certificates.
pub const TABLE: &[PkiRow] = &[
    PkiRow { subject: Subject::Ca, common_name: Some("karmada"), control_planes: Halves::Public, etcd: Halves::None },
    PkiRow {
        subject: Subject::FrontProxyCa,
        common_name: Some("front-proxy-ca"),
        control_planes: Halves::Public,
        etcd: Halves::None,
    },
    PkiRow {
        subject: Subject::EtcdCa,
        common_name: Some("karmada-etcd-ca"),
        control_planes: Halves::Public,
        etcd: Halves::Public,
    },
    PkiRow { subject: Subject::ServiceAccountKey, common_name: None, control_planes: Halves::Both, etcd: Halves::None },
    PkiRow { subject: Subject::EncryptionKey, common_name: None, control_planes: Halves::Both, etcd: Halves::None },
];

/// What is missing where the keys of a plane are gone that was made already, and how it is brought back.
pub fn missing(object: &KarmadaDeployment) -> String {
    let secret = pki_secret(object.name());
    format!(
        "Secret {secret} with the plane's certificate authorities and keys is gone. It is never made anew for a plane that is there, whose members and data depend on it: restore it from a backup (keys {}): {}; if the plane holds nothing yet, delete the KarmadaDeployment and make it again",
        entries(TABLE).join(", "),
        commands::create_secret(object.namespace(), &secret)
    )
}
