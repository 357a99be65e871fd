//! Signs a certificate in the very name of its authority. Names of authorities from elsewhere may repeat an attribute
//! (`DC=example,DC=com`) or have several in one place, and whoever verifies compares the bytes.

use rcgen::{CertificateParams, Error, Issuer, KeyIdMethod, KeyPair, SigningKey};
use x509_parser::asn1_rs::Any;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::certificate::Certificate;
use super::private_key::{element, pem};

const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;

/// The certificate of the key, PEM, signed by the authority.
pub(super) fn sign(
    params: &CertificateParams,
    key: &KeyPair,
    authority: &Certificate,
    authority_key: &KeyPair,
) -> Result<String, Error> {
    let above = authority.x509().map_err(|_| Error::CouldNotParseCertificate)?;
    let mut named = CertificateParams::default();
    if let Some(id) = above.iter_extensions().find_map(key_id) {
        named.key_identifier_method = KeyIdMethod::PreSpecified(id);
    }
    let signed = params.signed_by(key, &Issuer::from_params(&named, authority_key))?;
    let der = renamed(signed.der(), above.subject().as_raw(), authority_key)?;
    Ok(pem("CERTIFICATE", &der))
}

/// The identifier by which what an authority signed names its key.
fn key_id(extension: &x509_parser::extensions::X509Extension<'_>) -> Option<Vec<u8>> {
    match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
        _ => None,
    }
}

/// The same certificate from an issuer of this name, signed anew.
fn renamed(der: &[u8], name: &[u8], key: &KeyPair) -> Result<Vec<u8>, Error> {
    let unreadable = |_| Error::CouldNotParseCertificate;
    let (_, certificate) = X509Certificate::from_der(der).map_err(unreadable)?;
    let (body, issuer) = (certificate.tbs_certificate.as_ref(), certificate.issuer().as_raw());
    let body_content = content(body)?;
    let at = body_content.windows(issuer.len()).position(|window| window == issuer);
    let at = at.ok_or(Error::CouldNotParseCertificate)?;
    let (before, rest) = body_content.split_at(at);
    let after = rest.get(issuer.len()..).unwrap_or_default();
    let body_of_name = element(SEQUENCE, &[before, name, after].concat());
    // Between the body and the signature stands the algorithm.
    let old_signature = element(BIT_STRING, &[&[0], certificate.signature_value.data.as_ref()].concat());
    let algorithm = content(der)?.get(body.len()..).and_then(|rest| rest.strip_suffix(old_signature.as_slice()));
    let algorithm = algorithm.ok_or(Error::CouldNotParseCertificate)?;
    let signature = element(BIT_STRING, &[&[0], key.sign(&body_of_name)?.as_slice()].concat());
    Ok(element(SEQUENCE, &[body_of_name.as_slice(), algorithm, &signature].concat()))
}

/// What an element holds.
fn content(der: &[u8]) -> Result<&[u8], Error> {
    let (_, any) = Any::from_der(der).map_err(|_| Error::CouldNotParseCertificate)?;
    Ok(any.data)
}
