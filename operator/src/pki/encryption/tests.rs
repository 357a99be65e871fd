//! What encrypts is replaced by a key, a plug-in, or with other resources.

use crds::cluster_deployment::KmsPlugin;
use k8s_openapi::ByteString;
use plan::encryption::Scheme;
use plan::rotation::{Move, Stage};

use super::scheme::{EncryptionKey, Provider};
use super::{EncryptionKeys, FORMER, KEY, NEXT};
use crate::pki::material::Data;

fn data(keys: &EncryptionKeys) -> Data {
    keys.entries().into_iter().map(|(name, value)| (name, ByteString(value.into()))).collect()
}

fn read(data: &Data) -> Result<EncryptionKeys, String> {
    EncryptionKeys::from_data("a-pki", data).map_err(|error| error.to_string())
}

fn secret_of(keys: &EncryptionKeys) -> String {
    let Provider::Secretbox(key) = &keys.key.provider else { panic!("it is a plug-in") };
    key.secret.clone()
}

fn scheme(resources: &[&str], plugin: Option<&str>) -> Scheme {
    let endpoint = |name: &str| format!("unix:///run/kms/{name}.sock");
    let kms = plugin.map(|name| KmsPlugin { name: name.into(), endpoint: endpoint(name), timeout_seconds: 3 });
    Scheme { resources: resources.iter().map(|name| (*name).to_owned()).collect(), kms }
}

#[test]
fn each_stage_decrypts_what_the_one_before_and_the_one_after_encrypt_and_former_keys_are_kept_and_not_brought() {
    let first = EncryptionKeys::generate(&Scheme::default());
    assert_eq!(first.lines(), secret_of(&first), "as it was before there were others");
    let mut seen = vec![first.clone()];
    for number in [1, 2] {
        for next in [Move::Begin(number), Move::Sign, Move::Complete] {
            let keys = seen.last().unwrap().clone().rotated(next, &Scheme::default());
            assert!(read(&data(&keys)) == Ok(keys.clone()));
            assert_eq!(keys.clone().rotated(next, &Scheme::default()).lines(), keys.lines(), "it is made once");
            seen.push(keys);
        }
    }
    let stages: Vec<Stage> = seen.iter().map(|keys| keys.seen().stage).collect();
    let round = [Stage::Trust, Stage::Sign, Stage::Settled];
    assert_eq!(stages, [&[Stage::Settled][..], &round, &round].concat());
    for pair in seen.windows(2) {
        let (one, other) = (pair[0].seen(), pair[1].seen());
        assert!(one.trusted.contains(&other.signer) && other.trusted.contains(&one.signer));
    }
    let last = seen.last().unwrap();
    assert!(last.lines().starts_with("key-") && !last.lines().contains('\n'), "one, with its name");
    let names: Vec<String> = data(last).into_keys().collect();
    let second = &seen[3].key.provider.name();
    assert_eq!(names, [&format!("encryption-retired-{second}.key"), "encryption-retired-key1.key", KEY]);
    assert!(seen[1].lines().lines().count() == 2 && seen[2].lines().starts_with(second.as_str()));
}

#[test]
fn a_former_key_that_comes_back_has_its_name_and_one_that_a_person_brings_one_of_its_own() {
    let first = EncryptionKeys::generate(&Scheme::default());
    let rotated = [Move::Begin(1), Move::Sign, Move::Complete]
        .into_iter()
        .fold(first.clone(), |keys, next| keys.rotated(next, &Scheme::default()));
    let mut back = data(&rotated);
    back.insert(NEXT.into(), back["encryption-retired-key1.key"].clone());
    let back = read(&back).unwrap();
    assert_eq!((back.seen().stage, back.other().unwrap().provider.name()), (Stage::Trust, "key1".to_owned()));
    assert_eq!(back.seen().trusted, [first.seen().signer, rotated.seen().signer].into());
    let back = back.rotated(Move::Sign, &Scheme::default()).rotated(Move::Complete, &Scheme::default());
    assert!(back.key == first.key && back.retired == [rotated.key.provider.clone()]);

    let mut own = data(&first);
    own.insert(NEXT.into(), ByteString(format!("{}\n", EncryptionKey::make()).into()));
    assert!(read(&own).unwrap().other().unwrap().provider.name().starts_with("key-"), "not key1 once more");
}

#[test]
fn what_cannot_be_used_is_told_and_not_shown() {
    let good = data(&EncryptionKeys::generate(&Scheme::default()));
    let with = |name: &str, value: &str| {
        let mut data = good.clone();
        data.insert(name.into(), ByteString(value.into()));
        read(&data).map(|_| ()).unwrap_err()
    };
    for (name, value) in [(KEY, "hunter2"), (NEXT, "key-1:hunter2"), (FORMER, ":"), (KEY, "aHVudGVyMg==")] {
        let error = with(name, value);
        assert!(error.starts_with(&format!("{name} of Secret a-pki cannot be used")), "{error}");
        assert!(!error.contains("hunter") && !error.contains("aHVu"), "{error}");
    }
    let other = EncryptionKey::make();
    assert!(with(FORMER, &other).contains("two keys have the name key1"));
    let mut both = data(&EncryptionKeys::generate(&Scheme::default()).rotated(Move::Begin(1), &Scheme::default()));
    both.insert(FORMER.into(), ByteString(format!("key-0:{other}").into()));
    assert!(read(&both).map(|_| ()).unwrap_err().contains("both encryption-next.key and encryption-former.key"));
}

/// An edit of the spec, to its end; what machines have in between.
fn edited(keys: EncryptionKeys, wanted: &Scheme) -> (EncryptionKeys, Vec<String>) {
    let mut lines = Vec::new();
    let keys = [Move::Adopt, Move::Sign, Move::Complete].into_iter().fold(keys, |keys, next| {
        let before = keys.seen();
        let keys = keys.rotated(next, wanted);
        assert!(read(&data(&keys)) == Ok(keys.clone()), "{:?}", keys.succession());
        assert!(keys.seen().trusted.contains(&before.signer) && before.stage != keys.seen().stage);
        lines.push(keys.lines());
        keys
    });
    assert_eq!(keys.succession().to, *wanted);
    (keys, lines)
}

#[test]
fn another_list_of_resources_takes_the_place_of_the_one_before_with_the_same_key() {
    let first = EncryptionKeys::generate(&Scheme::default());
    let secret = secret_of(&first);
    let (more, lines) = edited(first.clone(), &scheme(&["configmaps", "secrets"], None));
    let json = format!(r#"{{"secretbox":{{"name":"key1","secret":"{secret}"}},"resources":["configmaps","secrets"]}}"#);
    assert_eq!(lines, [format!("{secret}\n{json}"), format!("{json}\n{secret}"), json.clone()]);
    assert!(more.retired.is_empty(), "the key is in use");
    let begun = more.clone().rotated(Move::Begin(1), &Scheme::default());
    assert!(!begun.succession().is_edit && begun.succession().to == more.succession().to, "a key alone");
    assert!(read(&data(&begun)) == Ok(begun.clone()));
    let (fewer, lines) = edited(more.clone(), &Scheme::default());
    assert_eq!(lines, [format!("{json}\n{secret}"), format!("{secret}\n{json}"), secret]);
    assert!(fewer == first, "to the byte");

    let wanted = scheme(&["configmaps", "secrets"], None);
    let begun = first.clone().rotated(Move::Adopt, &wanted);
    assert!(begun.succession().is_edit && begun.rotated(Move::Withdraw, &wanted) == first, "it is taken back");
    assert!(first.clone().rotated(Move::Adopt, &Scheme::default()) == first, "there is nothing to do");
    let mine = first.clone().rotated(Move::Begin(1), &wanted);
    assert!(mine.clone().rotated(Move::Withdraw, &wanted) == mine, "a rotation is not");
}

#[test]
fn a_plugin_takes_the_place_of_a_key_which_is_kept_and_a_key_that_of_a_plugin() {
    let first = EncryptionKeys::generate(&Scheme::default());
    let vault = scheme(&["secrets"], Some("vault"));
    let (by_plugin, lines) = edited(first.clone(), &vault);
    let kms = r#"{"kms":{"name":"vault","endpoint":"unix:///run/kms/vault.sock","timeoutSeconds":3}}"#;
    assert_eq!(lines[2], kms);
    assert_eq!(data(&by_plugin).into_keys().collect::<Vec<_>>(), ["encryption-retired-key1.key", KEY]);

    let anew = by_plugin.clone().rotated(Move::Begin(4), &vault);
    assert!(read(&data(&anew)) == Ok(anew.clone()) && anew.seen().trusted.len() == 2 && !anew.succession().is_edit);
    let anew = anew.rotated(Move::Sign, &vault).rotated(Move::Complete, &vault);
    assert!(anew.seen().signer != by_plugin.seen().signer, "everything is to be written anew");
    assert_eq!(anew.retired.len(), 1);

    let (back, _) = edited(anew, &Scheme::default());
    assert!(secret_of(&back) != secret_of(&first), "another key");
    let names: Vec<String> = data(&back).into_keys().collect();
    assert_eq!(names, ["encryption-retired-key1.key", "encryption-retired-kms-vault.key", KEY]);
    let mut again = data(&back);
    again.insert(NEXT.into(), again["encryption-retired-kms-vault.key"].clone());
    let again = read(&again).unwrap();
    assert!(again.succession().to == vault && !again.succession().is_edit, "for a backup of then");
    assert_eq!(again.succession().plugins.len(), 1);
    let mut elsewhere = vault;
    elsewhere.kms.as_mut().unwrap().endpoint = "unix:///run/kms/other.sock".into();
    assert_eq!(back.succession().same_name(&elsewhere).unwrap().endpoint, "unix:///run/kms/vault.sock");
}
