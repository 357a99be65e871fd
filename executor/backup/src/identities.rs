//! The identities that decrypt backups, as `age-keygen` writes them. Nothing of what is read here is ever in a message.

use std::str::FromStr;

use age::x25519::Identity;

use crate::error::BackupError;
use crate::object_key::{KnownKey, ObjectKey};

/// Public keys that a message names.
const NAMED: usize = 3;
/// How an identity begins, in upper case.
const KEY: &str = "AGE-SECRET-KEY-";

/// At least one identity, or the key of one object: any of them may decrypt. There is no `Debug` of it.
#[derive(Clone)]
pub struct Identities {
    identities: Vec<Identity>,
    known: Option<KnownKey>,
}

impl Identities {
    /// Reads a file of `age-keygen`: an identity a line, comments and empty lines between them. Line ends of Windows
    /// and a byte order mark do no harm. Errors name the line and what stands there instead (`IdentityInvalid`).
    pub fn parse(file: &[u8]) -> Result<Self, BackupError> {
        let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
        if file.starts_with(b"age-encryption.org/") || file.starts_with(b"-----BEGIN AGE ENCRYPTED FILE-----") {
            return Err(invalid("it is encrypted, with a passphrase perhaps: decrypt it first, with age -d"));
        }
        let text = std::str::from_utf8(file).map_err(|_| invalid("it is no text"))?;
        let mut identities = Vec::new();
        for (index, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match Identity::from_str(line) {
                Ok(identity) => identities.push(identity),
                Err(_) => return Err(invalid(&format!("line {} {}", index + 1, instead(line)))),
            }
        }
        match identities.is_empty() {
            true => Err(invalid("it holds none: no line begins with AGE-SECRET-KEY-1")),
            false => Ok(Self { identities, known: None }),
        }
    }

    /// The key of one object, as [`object_key`](crate::object_key) read it: it decrypts that one and nothing else.
    pub fn of_object(key: ObjectKey) -> Self {
        Self { identities: Vec::new(), known: Some(KnownKey(key)) }
    }

    /// Each, as the decryption takes them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &dyn age::Identity> {
        let known = self.known.iter().map(|known| known as &dyn age::Identity);
        self.identities.iter().map(|identity| identity as &dyn age::Identity).chain(known)
    }

    /// Their public keys, for a message.
    pub(crate) fn public_keys(&self) -> String {
        if self.known.is_some() {
            return "the key of one object".to_owned();
        }
        let keys: Vec<_> =
            self.identities.iter().take(NAMED).map(|identity| identity.to_public().to_string()).collect();
        let others = self.identities.len().saturating_sub(NAMED);
        if others == 0 { keys.join(" or ") } else { format!("{} or {others} more", keys.join(" or ")) }
    }
}

/// What a line is that is no identity.
fn instead(line: &str) -> &'static str {
    let begins = |prefix: &str| line.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    if begins("AGE-SECRET-KEY-PQ-") {
        "is a post-quantum identity: backups are encrypted for X25519 keys, AGE-SECRET-KEY-1..."
    } else if begins(KEY) {
        "was cut or mistyped: an identity is AGE-SECRET-KEY-1 and 58 more characters"
    } else if begins("AGE-PLUGIN-") {
        "is an identity of a plugin of age: backups are encrypted for X25519 keys, AGE-SECRET-KEY-1..."
    } else if begins("age1") {
        "is a recipient, the public half: the identity begins with AGE-SECRET-KEY-1"
    } else if begins("ssh-") || (begins("-----BEGIN ") && line.contains("PRIVATE KEY")) {
        "is of an SSH key or another private key: backups are encrypted for age X25519 keys, AGE-SECRET-KEY-1..."
    } else {
        "is no identity: AGE-SECRET-KEY-1 and 58 more characters are expected"
    }
}

fn invalid(problem: &str) -> BackupError {
    BackupError::Identity { problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use age::secrecy::ExposeSecret;

    fn key(identity: &Identity) -> String {
        identity.to_string().expose_secret().to_owned()
    }

    #[test]
    fn a_file_of_age_keygen_is_read_whatever_an_editor_did_to_its_lines() {
        let (one, other) = (Identity::generate(), Identity::generate());
        let file = format!(
            "\u{feff}# created: 2026-11-24T08:00:00Z\r\n# public key: {}\r\n  {}\t\r\n\r\n{}",
            one.to_public(),
            key(&one),
            key(&other)
        );
        let read = Identities::parse(file.as_bytes()).unwrap();
        assert_eq!(read.public_keys(), format!("{} or {}", one.to_public(), other.to_public()));
        let many = format!("{}\n", key(&one)).repeat(5);
        assert!(Identities::parse(many.as_bytes()).unwrap().public_keys().ends_with(" or 2 more"));
    }

    #[test]
    fn what_is_no_identity_is_named_by_its_kind_and_never_shown() {
        let identity = Identity::generate();
        let (key, public) = (key(&identity), identity.to_public().to_string());
        let mistyped = key.replace("KEY-1", "KEY-1Q");
        let check = |file: &[u8], expected: &str| {
            let refused = Identities::parse(file).err().unwrap();
            let text = refused.to_string();
            assert!(text.contains(expected), "{text}");
            assert_eq!((refused.reason(), refused.retriable()), ("IdentityInvalid", false));
            let shown: Vec<_> =
                key.as_bytes().windows(8).skip(12).filter_map(|part| std::str::from_utf8(part).ok()).collect();
            assert!(shown.iter().all(|part| !format!("{text} {refused:?}").contains(part)), "{text}");
        };
        check(b"", "it holds none");
        check(b"# public key: age1\n\n", "it holds none");
        check(format!("# a\n{mistyped}").as_bytes(), "line 2 was cut or mistyped");
        check(&key.as_bytes()[..40], "line 1 was cut or mistyped");
        check(format!("{key}\n{}", &key[..30]).as_bytes(), "line 2 was cut or mistyped");
        check(format!("{key} {key}").as_bytes(), "line 1 was cut or mistyped");
        check(public.as_bytes(), "line 1 is a recipient");
        check(b"age-encryption.org/v1\n-> scrypt x 18\n\xff", "decrypt it first");
        check(b"-----BEGIN AGE ENCRYPTED FILE-----\n", "decrypt it first");
        check(b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\n", "is of an SSH key");
        check(b"ssh-ed25519 AAAA", "is of an SSH key");
        check(b"AGE-PLUGIN-YUBIKEY-1Q", "plugin");
        check(b"AGE-SECRET-KEY-PQ-1Q", "post-quantum");
        check(&key.as_bytes()[16..], "line 1 is no identity");
        check(b"\xff\xfe\0A", "it is no text");
    }
}
