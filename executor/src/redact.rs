//! Redacts secrets in text before it leaves: Ansible's output and the messages of its events. The second net: roles
//! mark secrets with `no_log`.

use std::collections::{BTreeMap, HashMap, HashSet};

use crds::backup::{BUNDLE_PREFIX, IDENTITY_SECRET, PKI_SECRET};
use k8s_openapi::ByteString;
use serde_json::Value;

use crate::secrets::{Secrets, without_newline};

/// Replaces each secret.
pub const MARK: &str = "[secret]";
/// Shorter ones would be found by chance in innocent text, and their marks would give them away.
const SHORTEST: usize = 8;
/// A piece of a longer one that is found wherever it stands: messages are cut, and keys are wrapped anew.
const PIECE: usize = 16;
/// How often JSON may stand in the text of JSON.
const NESTED: usize = 3;
/// Endings of messages that were cut.
const CUT: [&[u8]; 2] = [b" ...", "…".as_bytes()];

/// Finds every known secret in one pass over a text.
#[derive(Default)]
pub struct Redactor {
    /// Patterns by their first bytes, the longest first.
    patterns: HashMap<[u8; SHORTEST], Vec<Vec<u8>>>,
    /// All pieces of the patterns that are longer than one.
    pieces: HashSet<[u8; PIECE]>,
}

impl Redactor {
    /// A redactor of all of these secrets.
    pub fn new(secrets: &Secrets) -> Self {
        let mut redactor = Self::default();
        // What a backup takes along never reaches Ansible, and has lines that are no secrets: names, kinds, words.
        for (name, content) in secrets.iter().filter(|(name, _)| !name.starts_with(BUNDLE_PREFIX)) {
            if name.starts_with("password.") || name.starts_with("become-password.") {
                redactor.add(without_newline(content));
            }
            match name {
                PKI_SECRET => redactor.add_data(content),
                // The comments beside an identity have its public key, which messages name.
                IDENTITY_SECRET => redactor.add_lines(content, |line| !line.starts_with(b"#")),
                _ => redactor.add_lines(content, |_| true),
            }
        }
        for patterns in redactor.patterns.values_mut() {
            patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.len()));
            patterns.dedup();
        }
        redactor
    }

    /// The lines of a file, but for the frames of PEM.
    fn add_lines(&mut self, content: &[u8], is_secret: impl Fn(&[u8]) -> bool) {
        for line in content.split(|byte| *byte == b'\n') {
            let line = line.trim_ascii();
            if !line.starts_with(b"-----") && is_secret(line) {
                self.add(line);
            }
        }
    }

    /// The values of a Secret's data, as they are and in base64; its names are for messages.
    fn add_data(&mut self, content: &[u8]) {
        let encoded: BTreeMap<String, Value> = serde_json::from_slice(content).unwrap_or_default();
        let decoded: BTreeMap<String, ByteString> = serde_json::from_slice(content).unwrap_or_default();
        if decoded.is_empty() {
            return self.add_lines(content, |_| true);
        }
        for text in encoded.values().filter_map(Value::as_str) {
            self.add(text.as_bytes());
        }
        for ByteString(value) in decoded.values() {
            self.add_lines(value, |_| true);
        }
    }

    fn add(&mut self, secret: &[u8]) {
        if secret.len() < SHORTEST {
            return;
        }
        self.pattern(secret);
        let Ok(text) = std::str::from_utf8(secret) else {
            return;
        };
        // As it looks inside JSON text, which is what events are; and inside the text of such text.
        for escape in [plain_json as fn(&str) -> String, ascii_json] {
            let mut text = text.to_owned();
            for _ in 0..NESTED {
                let escaped = escape(&text);
                if escaped == text {
                    break;
                }
                self.pattern(escaped.as_bytes());
                text = escaped;
            }
        }
    }

    fn pattern(&mut self, pattern: &[u8]) {
        if let Some(start) = pattern.first_chunk::<SHORTEST>() {
            self.patterns.entry(*start).or_default().push(pattern.to_vec());
            let pieces = pattern.windows(PIECE).filter_map(|piece| piece.first_chunk::<PIECE>());
            self.pieces.extend(pieces);
        }
    }

    /// Redacts the secrets of a text in place.
    pub fn redact_text(&self, text: &mut String) {
        let clean = self.redact(text.as_bytes());
        if clean != text.as_bytes() {
            *text = String::from_utf8_lossy(&clean).into_owned();
        }
    }

    /// The text with each secret replaced by a mark, also one of which a cut left only a part.
    pub fn redact(&self, text: &[u8]) -> Vec<u8> {
        let mut clean = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some((first, tail)) = rest.split_first() {
            let length = self.secret(rest);
            if length > 0 {
                clean.extend_from_slice(MARK.as_bytes());
                rest = rest.get(length..).unwrap_or_default();
            } else {
                clean.push(*first);
                rest = tail;
            }
        }
        clean
    }

    /// The length of the secret that the text begins with; 0: with none.
    fn secret(&self, text: &[u8]) -> usize {
        if let Some(patterns) = text.first_chunk::<SHORTEST>().and_then(|start| self.patterns.get(start)) {
            if let Some(pattern) = patterns.iter().find(|pattern| text.starts_with(pattern)) {
                return pattern.len();
            }
            let end = CUT.iter().find_map(|mark| text.strip_suffix(*mark)).unwrap_or(text);
            if end.len() >= SHORTEST && patterns.iter().any(|pattern| pattern.starts_with(end)) {
                return end.len();
            }
        }
        let pieces = text
            .windows(PIECE)
            .take_while(|piece| piece.first_chunk().is_some_and(|piece| self.pieces.contains(piece)))
            .count();
        if pieces == 0 { 0 } else { pieces + PIECE - 1 }
    }
}

/// The text as a JSON writer escapes it.
fn plain_json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    let inner = quoted.strip_prefix('"').and_then(|quoted| quoted.strip_suffix('"'));
    inner.unwrap_or_default().to_owned()
}

/// The text as a JSON writer that keeps to ASCII escapes it.
fn ascii_json(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if character.is_ascii() {
            let quoted = serde_json::to_string(&character).unwrap_or_default();
            escaped.push_str(quoted.strip_prefix('"').and_then(|q| q.strip_suffix('"')).unwrap_or(""));
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::Redactor;
    use crate::secrets::Secrets;

    fn redactor(files: &[(&str, &str)]) -> Redactor {
        let secrets: Secrets =
            files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect();
        Redactor::new(&secrets)
    }

    #[test]
    fn known_secrets_are_taken_out_of_text() {
        let redactor = redactor(&[
            ("pki.ca.key", "-----BEGIN PRIVATE KEY-----\nMIIBVQIBADANBgkqhkiG\nshort\n-----END PRIVATE KEY-----\n"),
            ("password.x", "pass\"ß\\w😀\n"),
            ("join.w1.token", "abcdef.0123456789abcdef"),
        ]);
        let check = |text: &str, expected: &str| {
            assert_eq!(String::from_utf8(redactor.redact(text.as_bytes())).unwrap(), expected);
        };
        check("nothing here, short", "nothing here, short");
        check("key: MIIBVQIBADANBgkqhkiG!", "key: [secret]!");
        check(
            "-----BEGIN PRIVATE KEY-----\\nMIIBVQIBADANBgkqhkiG\\nshort",
            "-----BEGIN PRIVATE KEY-----\\n[secret]\\nshort",
        );
        check("--token abcdef.0123456789abcdef abcdef.0123456789abcdef", "--token [secret] [secret]");
        check("pass\"ß\\w😀", "[secret]");
        check(r#"{"msg":"pass\"ß\\w😀"}"#, r#"{"msg":"[secret]"}"#);
        check(r#"{"msg":"pass\"\u00df\\w\ud83d\ude00"}"#, r#"{"msg":"[secret]"}"#);
    }

    #[test]
    fn an_identity_and_the_keys_of_a_cluster_are_taken_out_and_their_names_stay() {
        let identity = "# created: 2026-11-24T08:00:00Z\r\n# public key: age1ql3z7hjy54pw3hyww5ayyfg7zqg\r\nAGE-SECRET-KEY-1ABC\r\n\
            AGE-SECRET-KEY-1DEF\n";
        let pki = r#"{"service-account.key":"LS0tLS1CRUdJTi0tLS0tCk1JSUJWUUlCQURBTg=="}"#;
        let redactor = redactor(&[("restore.identity", identity), ("restore.pki.json", pki)]);
        let check = |text: &str, expected: &str| {
            assert_eq!(String::from_utf8(redactor.redact(text.as_bytes())).unwrap(), expected);
        };
        check("AGE-SECRET-KEY-1ABC, AGE-SECRET-KEY-1DEF", "[secret], [secret]");
        check("for age1ql3z7hjy54pw3hyww5ayyfg7zqg", "for age1ql3z7hjy54pw3hyww5ayyfg7zqg");
        check("service-account.key: LS0tLS1CRUdJTi0tLS0tCk1JSUJWUUlCQURBTg==", "service-account.key: [secret]");
        check("MIIBVQIBADAN", "[secret]");
    }

    #[test]
    fn what_is_left_of_a_secret_that_was_cut_or_wrapped_is_taken_out() {
        let redactor =
            redactor(&[("pki.ca.key", "MIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7"), ("password.x", "correct horse")]);
        let check = |text: &str, expected: &str| {
            assert_eq!(String::from_utf8(redactor.redact(text.as_bytes())).unwrap(), expected);
        };
        check("the key MIIBVQIBADANBgkqhki ...", "the key [secret] ...");
        check("the key MIIBVQIBA ...", "the key [secret] ...");
        check("...ANBgkqhkiG9w0BAQEFAASCAT8wggE7!", "...[secret]!");
        check("IBVQIBADANBgkqhkiG\n9w0BAQEFAASCAT8wgg", "[secret]\n[secret]");
        check("it was correct h…", "it was [secret]…");
        check("it was correct", "it was correct");
        check("correct hostname", "correct hostname");
    }

    #[test]
    fn a_secret_is_found_in_json_that_is_text_in_json() {
        let secret = r#"pass"w'o\rd é"#;
        let redactor = redactor(&[("password.x", secret)]);
        let mut text = secret.to_owned();
        for _ in 0..3 {
            text = serde_json::to_string(&text).unwrap();
            let clean = String::from_utf8(redactor.redact(text.as_bytes())).unwrap();
            assert!(clean.contains("[secret]") && !clean.contains("pass"), "{clean}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_pass() {
        assert_eq!(redactor(&[]).redact(b"\xff\x00\xfe"), b"\xff\x00\xfe");
    }
}
