//! Whether a certificate from elsewhere can be an authority of a cluster: what API servers, kubelets, etcd and kubeadm
//! ask of one.

use plan::rotation::Subject;
use x509_parser::extensions::{ExtendedKeyUsage, KeyUsage};
use x509_parser::oid_registry::{OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_PKCS1_RSAENCRYPTION};
use x509_parser::pem::Pem;
use x509_parser::prelude::X509Certificate;
use x509_parser::public_key::PublicKey;

use super::certificate::Certificate;
use super::private_key::pem;

/// Bits of an RSA key.
const RSA: std::ops::RangeInclusive<usize> = 2048..=4096;

/// The one certificate in the text, laid out as the operator keeps it; else what is wrong with it.
pub(super) fn certificate(what: &str, text: &str, subject: Subject) -> Result<String, String> {
    if text.contains("PRIVATE KEY-----") {
        return Err("it holds a private key: give the certificate alone".to_owned());
    }
    let blocks: Result<Vec<Pem>, _> = Pem::iter_from_buffer(text.as_bytes()).collect();
    let blocks = blocks.map_err(|_| "the certificate is cut off, or damaged".to_owned())?;
    let certificates: Vec<&Pem> = blocks.iter().filter(|block| block.label == "CERTIFICATE").collect();
    let text = match certificates.as_slice() {
        [] => return Err("it holds no certificate in PEM".to_owned()),
        [one] => pem("CERTIFICATE", &one.contents),
        more => {
            return Err(format!(
                "it holds {} certificates: give that of the authority alone, since whatever those above it sign would be believed as well",
                more.len()
            ));
        }
    };
    let parsed = Certificate::parse(what, &text).map_err(|_| "the certificate is cut off, or damaged".to_owned())?;
    let x509 = parsed.x509().map_err(|_| "the certificate is cut off, or damaged".to_owned())?;
    is_authority(&x509)?;
    signs_for(&x509, subject)?;
    has_known_key(&x509)?;
    Ok(text)
}

fn is_authority(x509: &X509Certificate<'_>) -> Result<(), String> {
    if !x509.is_ca() {
        return Err("it is no certificate of an authority: its basic constraints have to say CA:TRUE".to_owned());
    }
    if !usage(x509)?.is_none_or(KeyUsage::key_cert_sign) {
        return Err("its key usage has to allow to sign certificates (keyCertSign)".to_owned());
    }
    Ok(())
}

fn usage<'a>(x509: &'a X509Certificate<'_>) -> Result<Option<&'a KeyUsage>, String> {
    let found = x509.key_usage().map_err(|_| "its key usage is there more than once".to_owned())?;
    Ok(found.map(|found| found.value))
}

/// What is limited above is refused below: Go looks at each certificate of a chain, the last one among them.
fn signs_for(x509: &X509Certificate<'_>, subject: Subject) -> Result<(), String> {
    let limits = x509.extended_key_usage().map_err(|_| "its extended key usage is there more than once".to_owned())?;
    let serves = subject != Subject::FrontProxyCa;
    let allows = |usage: &ExtendedKeyUsage<'_>| usage.any || usage.client_auth && (usage.server_auth || !serves);
    if !limits.is_none_or(|limits| allows(limits.value)) {
        let wanted = if serves { "serverAuth and clientAuth" } else { "clientAuth" };
        return Err(format!("its extended key usage has to allow {wanted}, or to be absent"));
    }
    let constraints =
        x509.name_constraints().map_err(|_| "its name constraints are there more than once".to_owned())?;
    if constraints.is_some() {
        return Err("it has name constraints, and the names and addresses of a cluster's machines and Services are not known ahead: give one without".to_owned());
    }
    Ok(())
}

/// kubeadm reads keys of RSA and of elliptic curves only.
fn has_known_key(x509: &X509Certificate<'_>) -> Result<(), String> {
    let key = x509.public_key();
    let algorithm = &key.algorithm.algorithm;
    let curve = key.algorithm.parameters.as_ref().and_then(|parameters| parameters.as_oid().ok());
    let is_known = if *algorithm == OID_PKCS1_RSAENCRYPTION {
        matches!(key.parsed(), Ok(PublicKey::RSA(key)) if RSA.contains(&key.key_size()))
    } else {
        let curves = [OID_EC_P256, OID_NIST_EC_P384];
        *algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY && curve.is_some_and(|curve| curves.contains(&curve))
    };
    match is_known {
        true => Ok(()),
        false => Err("its key is neither RSA of 2048 to 4096 bits nor ECDSA P-256 or P-384".to_owned()),
    }
}
