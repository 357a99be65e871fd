use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::ClusterDeployment;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use plan::cluster_deployment::pki::TABLE;
use plan::rotation::{Move, Stage, Subject};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, KeyPair,
    KeyUsagePurpose, NameConstraints, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
};

use super::{Own, decided, fingerprint, parse, seen};
use crate::cluster_deployment::pki_owner;
use crate::fake_api::FakeApi;
use crate::pki::authority::Leaf;
use crate::pki::certificate::Certificate;
use crate::pki::fixtures::TWO;
use crate::pki::{self, Authority, rotation};

const ISSUING: &str = include_str!("fixtures/issuing.crt");
const ISSUING_KEY: &str = include_str!("fixtures/issuing.key");
const ROOT: &str = include_str!("fixtures/root.crt");

fn now() -> Timestamp {
    "2026-12-21T00:00:00Z".parse().unwrap()
}

/// A certificate and its key, changed before it is signed.
fn pair(change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
    pair_of(&KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap(), change)
}

fn pair_of(key: &KeyPair, change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "corp");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    change(&mut params);
    (params.self_signed(key).unwrap().pem(), key.serialize_pem())
}

fn secret(entries: &[(&str, &str)]) -> Secret {
    let data = entries.iter().map(|(name, value)| ((*name).to_owned(), ByteString(value.as_bytes().to_vec())));
    Secret { data: Some(data.collect()), ..Secret::default() }
}

fn read(entries: &[(&str, &str)]) -> Result<Own, String> {
    let read = parse("corp", TABLE, Some(&secret(entries)));
    read.map_err(|problem| {
        assert!(!problem.permanent && problem.message.starts_with("Secret corp of spec.certificates.caRef "));
        assert!(!problem.message.contains("BEGIN"), "{}", problem.message);
        format!("{}: {}", problem.reason, problem.message)
    })
}

fn refused(entries: &[(&str, &str)], expected: &str) {
    let said = read(entries).map(|own| own.len()).unwrap_err();
    assert!(said.contains(expected), "{said}\nand not: {expected}");
}

#[test]
fn what_is_missing_is_named() {
    let (certificate, key) = pair(|_| ());
    let problem = parse("corp", TABLE, None).unwrap_err();
    assert_eq!(problem.reason, crds::Reason::SecretNotFound);
    assert!(problem.message.contains("etcd-ca.crt with etcd-ca.key"), "{}", problem.message);
    refused(
        &[],
        "SecretNotFound: Secret corp of spec.certificates.caRef holds no authority: add one or more of ca.crt",
    );
    refused(
        &[("ca.crt", &certificate)],
        "SecretNotFound: Secret corp of spec.certificates.caRef has ca.crt and lacks ca.key",
    );
    refused(&[("etcd-ca.key", &key)], "has etcd-ca.key and lacks etcd-ca.crt: add it, in PEM, or remove etcd-ca.key");
    refused(&[("ca.crt", &certificate), ("ca.key", " \n")], "lacks ca.key");
    let stray = [("ca.crt", certificate.as_str()), ("ca.key", &key), ("sa.key", &key)];
    refused(
        &stray,
        "InvalidAuthority: Secret corp of spec.certificates.caRef has the entry sa.key, which nothing reads",
    );
}

#[test]
fn a_certificate_that_cannot_be_an_authority_says_why() {
    let check = |change: fn(&mut CertificateParams), expected: &str| {
        let (certificate, key) = pair(change);
        refused(
            &[("ca.crt", &certificate), ("ca.key", &key)],
            &format!("InvalidAuthority: Secret corp of spec.certificates.caRef cannot be used: ca.crt: {expected}"),
        );
    };
    check(
        |params| params.is_ca = IsCa::ExplicitNoCa,
        "it is no certificate of an authority: its basic constraints have to say CA:TRUE",
    );
    check(|params| params.is_ca = IsCa::NoCa, "it is no certificate of an authority");
    check(
        |params| params.key_usages = vec![KeyUsagePurpose::DigitalSignature],
        "its key usage has to allow to sign certificates (keyCertSign)",
    );
    check(
        |params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth],
        "its extended key usage has to allow serverAuth and clientAuth",
    );
    check(
        |params| {
            let permitted_subtrees = vec![GeneralSubtree::DnsName("example.com".into())];
            params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
        },
        "it has name constraints",
    );
    let ed25519 = pair_of(&KeyPair::generate_for(&PKCS_ED25519).unwrap(), |_| ());
    refused(
        &[("ca.crt", &ed25519.0), ("ca.key", &ed25519.1)],
        "its key is neither RSA of 2048 to 4096 bits nor ECDSA P-256 or P-384",
    );
    let (_, key) = pair(|_| ());
    refused(&[("ca.crt", "hello"), ("ca.key", &key)], "ca.crt: it holds no certificate in PEM");
    refused(&[("ca.crt", &key), ("ca.key", &key)], "ca.crt: it holds a private key");
    refused(&[("ca.crt", &ISSUING[..200]), ("ca.key", ISSUING_KEY)], "ca.crt: the certificate is cut off, or damaged");
    let damaged = pki::private_key::pem("CERTIFICATE", b"hello");
    refused(&[("ca.crt", &damaged), ("ca.key", ISSUING_KEY)], "ca.crt: the certificate is cut off, or damaged");
    let chain = format!("{ISSUING}{ROOT}");
    refused(
        &[("ca.crt", &chain), ("ca.key", ISSUING_KEY)],
        "ca.crt: it holds 2 certificates: give that of the authority alone",
    );
}

#[test]
fn a_key_that_cannot_be_used_is_told_without_a_word_of_it() {
    let (certificate, key) = pair(|_| ());
    let (_, other) = pair(|_| ());
    let check = |key: &str, expected: &str| {
        let said = read(&[("ca.crt", &certificate), ("ca.key", key)]).map(|own| own.len()).unwrap_err();
        assert!(said.contains(&format!("cannot be used: ca.key: {expected}")), "{said}");
        assert!(!said.contains("canary"), "{said}");
    };
    check(&other, "it is damaged, or does not belong to the certificate beside it");
    check(ISSUING_KEY, "it is damaged, or does not belong to the certificate beside it");
    check("canary", "it holds no private key in PEM");
    check(&certificate, "it holds no private key in PEM");
    check(&key[..key.len() - 40], "the private key is cut off, or damaged");
    check(&format!("{key}{other}"), "it holds several private keys");
    check(&pki::private_key::pem("ENCRYPTED PRIVATE KEY", b"canary"), "it is protected by a passphrase");
    check(&pki::private_key::pem("OPENSSH PRIVATE KEY", b"canary"), "it is of a kind that is not known");
    check(&pki::private_key::pem("PRIVATE KEY", b"canary"), "it is damaged");
}

#[test]
fn one_key_is_no_two_authorities() {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
    let (one, other) = (pair_of(&key, |_| ()), pair_of(&key, |_| ()));
    let entries = [
        ("ca.crt", one.0.as_str()),
        ("ca.key", &one.1),
        ("front-proxy-ca.crt", &other.0),
        ("front-proxy-ca.key", &other.1),
    ];
    refused(&entries, "has one key for ca and front-proxy-ca: give each a key of its own");
}

/// The pair signs a leaf that whoever has its certificate verifies.
fn signs(own: &Authority) {
    let certificate = Certificate::parse("own", own.certificate()).unwrap();
    let leaf = Leaf { common_name: "m1".into(), dns_names: vec!["m1".into()], serves: true, ..Leaf::default() };
    let issued = own.issue(&leaf, SignedDuration::from_hours(24), now()).unwrap();
    let issued = Certificate::parse("leaf", &issued.certificate).unwrap();
    assert!(issued.is_signed_by(&certificate));
    assert_eq!(issued.not_after().unwrap(), now() + SignedDuration::from_hours(24));
    assert!(issued.alternative_names().unwrap().0.contains("m1"));
}

#[test]
fn keys_are_taken_as_openssl_and_kubeadm_write_them_and_leaves_bear_the_very_name_of_their_authority() {
    let (certificate, key) = pair(|_| ());
    let own = read(&[("ca.crt", &certificate), ("ca.key", &key)]).unwrap();
    signs(&own[&Subject::Ca]);
    // PKCS #1, a name with repeated attributes and several in one place, and text around the certificate.
    let with_text = format!("Certificate:\n    Data:\n{}", ISSUING.replace('\n', "\r\n"));
    let own = read(&[("etcd-ca.crt", &with_text), ("etcd-ca.key", ISSUING_KEY)]).unwrap();
    let issuing = &own[&Subject::EtcdCa];
    assert_eq!(issuing.certificate(), ISSUING, "laid out as the operator does");
    assert!(issuing.key().starts_with("-----BEGIN PRIVATE KEY-----\n"));
    assert!(Certificate::parse("own", issuing.certificate()).unwrap().x509().unwrap().subject().iter().count() == 5);
    signs(issuing);
    // SEC 1, as openssl writes it: after the parameters of the curve.
    let pair384 = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
    let (certificate, _) =
        pair_of(&pair384, |params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
    let pkcs8 = pair384.serialize_der();
    let at = pkcs8.windows(6).position(|window| window[0] == 0x30 && window[3..] == [0x02, 0x01, 0x01]).unwrap();
    let parameters = pki::private_key::pem("EC PARAMETERS", &STANDARD.decode("BgUrgQQAIg==").unwrap());
    let sec1 = parameters + &pki::private_key::pem("EC PRIVATE KEY", &pkcs8[at..]);
    let own = read(&[("front-proxy-ca.crt", &certificate), ("front-proxy-ca.key", &sec1)]).unwrap();
    signs(&own[&Subject::FrontProxyCa]);
}

fn deployment(api: &FakeApi) -> ClusterDeployment {
    api.put("clusterdeployments", "{apiVersion: clusterwright.dev/v1alpha1, kind: ClusterDeployment, metadata: {name: a, namespace: fleet}, spec: {kubernetesVersion: 1.35.4, controlPlane: {replicas: 1}, artifacts: {url: 'http://x'}, certificates: {caRef: {name: corp}}}}");
    api.list("clusterdeployments").remove(0)
}

fn put(api: &FakeApi, entries: &[(&str, &str)]) {
    let data: BTreeMap<&str, String> = entries.iter().map(|(name, value)| (*name, STANDARD.encode(value))).collect();
    let data = serde_json::to_string(&data).unwrap();
    api.put(
        "secrets",
        &format!("{{apiVersion: v1, kind: Secret, metadata: {{name: corp, namespace: fleet}}, data: {data}}}"),
    );
}

fn keys(api: &FakeApi) -> Secret {
    serde_json::from_value(api.get("secrets/fleet/a-pki").unwrap()).unwrap()
}

fn read_with_fingerprints(entries: &[(&str, &str)]) -> (Own, BTreeMap<Subject, String>) {
    let own = read(entries).unwrap();
    let fingerprints = own.iter().map(|(subject, authority)| (*subject, fingerprint(authority))).collect();
    (own, fingerprints)
}

#[test]
fn only_the_authorities_of_the_table_may_be_brought() {
    let (certificate, key) = pair(|_| ());
    let given = [("front-proxy-ca.crt", certificate.as_str()), ("front-proxy-ca.key", key.as_str())];
    assert_eq!(read(&given).unwrap().len(), 1);
    let problem = parse("corp", TWO, Some(&secret(&given))).unwrap_err();
    let said = "remove it; allowed are ca.crt with ca.key, etcd-ca.crt with etcd-ca.key";
    assert!(problem.message.ends_with(said), "{}", problem.message);
}

#[tokio::test]
async fn what_was_decided_on_is_taken_then_rotated_to_and_what_was_retired_is_known_again_by_its_key() {
    let api = FakeApi::default();
    let (ctx, cd) = (api.context(), pki_owner(&deployment(&api)));
    let ((one, one_key), (two, two_key)) = (pair(|_| ()), pair(|_| ()));
    let first = [("ca.crt", one.as_str()), ("ca.key", one_key.as_str())];
    put(&api, &first);
    let (own, given) = read_with_fingerprints(&first);
    let other = [(Subject::Ca, "another".to_owned())].into();
    assert!(decided(&ctx, &cd, &other).await.is_err(), "the Secret has another one by now");
    pki::make(&ctx, &cd, &decided(&ctx, &cd, &given).await.unwrap(), now()).await.unwrap();
    let made = keys(&api);
    assert_eq!(made.data.as_ref().unwrap()["ca.crt"].0, own[&Subject::Ca].certificate().as_bytes());
    let is_retired = |own: &Own, secret: &Secret| seen(own, TABLE, Some(secret)).unwrap()[&Subject::Ca].is_retired;
    let ring = || rotation::seen(&keys(&api), TABLE).rings[&Subject::Ca].clone();
    // However it is laid out, it is the same one.
    let crlf = one.replace('\n', "\r\n");
    let (laid_out, _) = read_with_fingerprints(&[("ca.crt", &crlf), ("ca.key", &one_key)]);
    assert_eq!(seen(&laid_out, TABLE, Some(&made)).unwrap()[&Subject::Ca].fingerprint, ring().signer);
    assert!(!is_retired(&own, &made));

    let second = [("ca.crt", two.as_str()), ("ca.key", two_key.as_str())];
    put(&api, &second);
    let (next, given) = read_with_fingerprints(&second);
    assert!(rotation::take(&ctx, &cd, Subject::Ca, "another").await.is_err());
    rotation::take(&ctx, &cd, Subject::Ca, &given[&Subject::Ca]).await.unwrap();
    assert_eq!((ring().stage, ring().trusted.contains(&given[&Subject::Ca])), (Stage::Trust, true));
    let begun = keys(&api);
    rotation::take(&ctx, &cd, Subject::Ca, &given[&Subject::Ca]).await.unwrap();
    assert_eq!(keys(&api).data, begun.data, "it is taken once");
    for step in [Move::Sign, Move::Complete] {
        rotation::make(&ctx, &cd, Subject::Ca, step, now()).await.unwrap();
    }
    assert_eq!((ring().stage, ring().signer), (Stage::Settled, given[&Subject::Ca].clone()));
    let rotated = keys(&api);
    assert!(is_retired(&own, &rotated) && !is_retired(&next, &rotated));
    assert!(!serde_json::to_string(&rotated.metadata).unwrap().contains("BEGIN"));
    // Another certificate of a key that was retired, and of the one that signs.
    let again = |key: &str| {
        let key = KeyPair::from_pem(key).unwrap();
        let (certificate, text) = pair_of(&key, |params| params.key_usages = Vec::new());
        read_with_fingerprints(&[("ca.crt", &certificate), ("ca.key", &text)]).0
    };
    assert!(is_retired(&again(&one_key), &rotated) && !is_retired(&again(&two_key), &rotated));
}

#[tokio::test]
async fn the_secret_of_the_clusters_keys_is_none_of_the_owners() {
    let api = FakeApi::default();
    let mut cd = deployment(&api);
    cd.spec.certificates.ca_ref = Some(crds::references::LocalRef::new("a-pki"));
    let problem = super::read(&api.context(), &pki_owner(&cd)).await.unwrap().unwrap().unwrap_err();
    assert_eq!(problem.reason, crds::Reason::InvalidAuthority);
    assert!(problem.message.contains("put the pairs into another one"), "{}", problem.message);
    cd.spec.certificates.ca_ref = None;
    assert!(super::read(&api.context(), &pki_owner(&cd)).await.unwrap().is_none());
}
