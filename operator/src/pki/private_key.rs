//! Private keys as tools write them, in the one form that the operator keeps: PKCS #8. Nothing of a key is ever said.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::KeyPair;
use x509_parser::asn1_rs::Any;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;

use super::certificate::Certificate;

const SEQUENCE: u8 = 0x30;
const OCTET_STRING: u8 = 0x04;
/// `INTEGER 0`: the version of PKCS #8.
const VERSION: [u8; 3] = [0x02, 0x01, 0x00];
const PEM_LINE: usize = 64;

/// The key of the certificate as a PEM block `PRIVATE KEY`, from one of these, or from `RSA PRIVATE KEY` (PKCS #1) or
/// `EC PRIVATE KEY` (SEC 1); else what is wrong with it.
pub(super) fn of_certificate(text: &str, certificate: &Certificate) -> Result<String, String> {
    let blocks: Vec<Pem> = Pem::iter_from_buffer(text.as_bytes()).filter_map(Result::ok).collect();
    // Some tools write the parameters of an elliptic curve, or the certificate, beside its key.
    let mut keys = blocks.iter().filter(|block| block.label.ends_with("PRIVATE KEY"));
    let block = match (keys.next(), keys.next()) {
        (Some(block), None) => block,
        (None, _) => return Err(missing(text).to_owned()),
        (Some(_), Some(_)) => return Err("it holds several private keys: give the one of the certificate".to_owned()),
    };
    if block.label == "ENCRYPTED PRIVATE KEY" || text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err("it is protected by a passphrase: give it without one".to_owned());
    }
    let der = match block.label.as_str() {
        "PRIVATE KEY" => block.contents.clone(),
        "RSA PRIVATE KEY" | "EC PRIVATE KEY" => in_pkcs8(&block.contents, certificate)?,
        _ => return Err("it is of a kind that is not known: give it as PEM block PRIVATE KEY (PKCS #8)".to_owned()),
    };
    let text = pem("PRIVATE KEY", &der);
    let foreign = || "it is damaged, or does not belong to the certificate beside it".to_owned();
    let pair = KeyPair::from_pem(&text).map_err(|_| foreign())?;
    match certificate.has_key(&pair) {
        true => Ok(text),
        false => Err(foreign()),
    }
}

fn missing(text: &str) -> &'static str {
    match text.contains("PRIVATE KEY-----") {
        true => "the private key is cut off, or damaged",
        false => "it holds no private key in PEM",
    }
}

/// A key of PKCS #1 or SEC 1 says less of its algorithm than PKCS #8 does: it is that of its certificate.
fn in_pkcs8(key: &[u8], certificate: &Certificate) -> Result<Vec<u8>, String> {
    let x509 = certificate.x509().map_err(|error| error.to_string())?;
    let algorithm = algorithm(x509.public_key().raw).ok_or("the certificate beside it is damaged")?;
    let key = element(OCTET_STRING, key);
    Ok(element(SEQUENCE, &[&VERSION[..], algorithm, &key].concat()))
}

/// The first element of what a public key's own element holds.
fn algorithm(public: &[u8]) -> Option<&[u8]> {
    let (_, whole) = Any::from_der(public).ok()?;
    let (rest, _) = Any::from_der(whole.data).ok()?;
    whole.data.strip_suffix(rest)
}

/// An element of DER.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let bytes: Vec<u8> = length.to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
    let head = match length {
        0..0x80 => vec![tag, u8::try_from(length).unwrap_or_default()],
        _ => [&[tag, 0x80 | u8::try_from(bytes.len()).unwrap_or_default()], bytes.as_slice()].concat(),
    };
    [head.as_slice(), content].concat()
}

/// A PEM block.
pub(super) fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(PEM_LINE).map(|line| std::str::from_utf8(line).unwrap_or_default()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
