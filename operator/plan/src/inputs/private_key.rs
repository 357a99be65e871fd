//! The mistakes that people make with a private key of SSH, told from its text before anything is tried with it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A key of more than this is none.
const LARGEST: usize = 64 << 10;
const CUT_OFF: &str = "cut off, or damaged";
const PASSPHRASE: &str = "protected by a passphrase";
const DSA: &str = "a DSA key, which SSH no longer takes";
/// Object identifier 1.2.840.10040.4.1.
const DSA_IDENTIFIER: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x01];

/// What the text is instead of a private key that SSH takes without a question; none of the text is in the answer.
pub(super) fn mistake(key: &[u8]) -> Option<&'static str> {
    if key.len() > LARGEST {
        return Some("larger than 64 KiB");
    }
    if key.starts_with(b"\xef\xbb\xbf") || key.starts_with(b"\xff\xfe") || key.starts_with(b"\xfe\xff") {
        return Some("preceded by a byte order mark");
    }
    let Ok(text) = std::str::from_utf8(key) else {
        return Some("no text");
    };
    if text.contains('\r') {
        return Some("written with carriage returns");
    }
    let text = text.trim_ascii();
    if ["ssh-", "ecdsa-", "sk-"].iter().any(|kind| text.starts_with(kind)) || text.contains("PUBLIC KEY") {
        return Some("a public key");
    }
    let says = |words: &str| text.contains(words);
    if says("BEGIN DSA PRIVATE KEY") {
        return Some(DSA);
    }
    if says("Proc-Type: 4,ENCRYPTED") || says("BEGIN ENCRYPTED PRIVATE KEY") {
        return Some(PASSPHRASE);
    }
    if text.starts_with("PuTTY-User-Key-File") {
        return Some("a key of PuTTY, which is to be exported for OpenSSH");
    }
    if says("BEGIN CERTIFICATE") {
        return Some("a certificate");
    }
    in_armor(text)
}

/// The lines between `-----BEGIN X PRIVATE KEY-----` and its end.
fn in_armor(text: &str) -> Option<&'static str> {
    let label = |line: &str, which: &str| {
        let inner = line.trim_ascii().strip_prefix("-----")?.strip_suffix("-----")?;
        let label = inner.strip_prefix(which)?.strip_suffix("PRIVATE KEY")?;
        Some(label.trim_ascii().to_owned())
    };
    let lines: Vec<&str> = text.lines().collect();
    let Some(begin) = lines.first().and_then(|line| label(line, "BEGIN ")) else {
        return Some("no private key");
    };
    if lines.last().and_then(|line| label(line, "END ")) != Some(begin.clone()) {
        return Some(CUT_OFF);
    }
    let body: String = lines[1..lines.len() - 1]
        .iter()
        .filter(|line| !line.contains(':'))
        .flat_map(|line| line.split_ascii_whitespace())
        .collect();
    let Ok(bytes) = STANDARD.decode(body) else {
        return Some(CUT_OFF);
    };
    match begin.as_str() {
        "OPENSSH" => openssh(&bytes).unwrap_or(Some(CUT_OFF)),
        _ => der(&bytes),
    }
}

/// OpenSSH's own form; the outer `None` says that it ends too early.
fn openssh(bytes: &[u8]) -> Option<Option<&'static str>> {
    let mut rest = bytes.strip_prefix(b"openssh-key-v1\0")?;
    let cipher = string(&mut rest)?;
    let _kdf = string(&mut rest)?;
    let _options = string(&mut rest)?;
    let (count, after) = rest.split_first_chunk::<4>()?;
    rest = after;
    let mut first = None;
    for _ in 0..u32::from_be_bytes(*count).min(8) {
        let mut public = string(&mut rest)?;
        first = first.or(string(&mut public));
    }
    string(&mut rest)?;
    Some(match (cipher, first) {
        (b"none", Some(b"ssh-dss")) => Some(DSA),
        (b"none", _) => None,
        _ => Some(PASSPHRASE),
    })
}

fn string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (string, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(string)
}

/// What is wrong with a sequence in DER, which says itself how long it is.
pub(super) fn der(bytes: &[u8]) -> Option<&'static str> {
    let (length, body) = match bytes {
        [0x30, short @ 0..=0x7f, body @ ..] => (usize::from(*short), body),
        [0x30, 0x81, a, body @ ..] => (usize::from(*a), body),
        [0x30, 0x82, a, b, body @ ..] => (usize::from(u16::from_be_bytes([*a, *b])), body),
        _ => return Some(CUT_OFF),
    };
    if body.len() != length {
        return Some(CUT_OFF);
    }
    let beginning = body.get(..32).unwrap_or(body);
    let is_dsa = beginning.windows(DSA_IDENTIFIER.len()).any(|window| window == DSA_IDENTIFIER);
    is_dsa.then_some(DSA)
}

/// A key in OpenSSH's form that nobody uses.
#[cfg(test)]
pub(super) fn example(cipher: &str, kind: &str) -> String {
    let string = |bytes: &[u8]| [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat();
    let public = [string(kind.as_bytes()), string(&[7; 32])].concat();
    let bytes = [
        b"openssh-key-v1\0".to_vec(),
        string(cipher.as_bytes()),
        string(b"none"),
        string(b""),
        1_u32.to_be_bytes().to_vec(),
        string(&public),
        string(&[9; 136]),
    ]
    .concat();
    armored("OPENSSH ", &bytes)
}

#[cfg(test)]
fn armored(label: &str, bytes: &[u8]) -> String {
    let body = STANDARD.encode(bytes);
    let lines: Vec<&str> = body.as_bytes().chunks(70).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}PRIVATE KEY-----\n{}\n-----END {label}PRIVATE KEY-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{DSA_IDENTIFIER, armored, example, mistake};

    #[test]
    fn keys_that_ssh_takes_are_taken() {
        let check = |key: &str| assert_eq!(mistake(key.as_bytes()), None, "{key}");
        check(&example("none", "ssh-ed25519"));
        check(&example("none", "ssh-rsa"));
        check(example("none", "ssh-ed25519").trim());
        let sequence = [vec![0x30, 0x82, 0x01, 0x00], vec![2; 256]].concat();
        for label in ["RSA ", "EC ", ""] {
            check(&armored(label, &sequence));
        }
        check(&armored("", &[vec![0x30, 0x30], vec![2; 48]].concat()));
    }

    #[test]
    fn each_mistake_is_named() {
        let good = example("none", "ssh-ed25519");
        let dsa = [vec![0x30, 0x20], DSA_IDENTIFIER.to_vec(), vec![0; 25]].concat();
        let half = [vec![0x30, 0x82, 0x01, 0x00], vec![2; 200]].concat();
        let check = |key: &str, kind: &str| {
            let found = mistake(key.as_bytes()).unwrap_or("nothing");
            assert!(found.contains(kind), "{found}, not {kind}: {key}");
        };
        check("ssh-ed25519 AAAAC3 root@x", "a public key");
        check("ecdsa-sha2-nistp256 AAAA", "a public key");
        check("sk-ssh-ed25519@openssh.com AAAA", "a public key");
        check("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "a public key");
        check("---- BEGIN SSH2 PUBLIC KEY ----\nAAAA", "a public key");
        check(&example("aes256-ctr", "ssh-ed25519"), "a passphrase");
        check("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA\n-----END ENCRYPTED PRIVATE KEY-----", "a passphrase");
        check(
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAA\n-----END RSA PRIVATE KEY-----",
            "a passphrase",
        );
        check(&example("none", "ssh-dss"), "DSA");
        check("-----BEGIN DSA PRIVATE KEY-----\nAA\n-----END DSA PRIVATE KEY-----", "DSA");
        check(&armored("", &dsa), "DSA");
        check(&good.replace('\n', "\r\n"), "carriage returns");
        check(&format!("\u{feff}{good}"), "byte order mark");
        check("\u{feff}ssh-ed25519 AAAA", "byte order mark");
        check(&format!("{good}{}", " ".repeat(64 << 10)), "larger than 64 KiB");
        check("PuTTY-User-Key-File-3: ssh-ed25519", "PuTTY");
        check("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "a certificate");
        check("hunter2", "no private key");
        check(&armored("RSA ", &half), "cut off");
        check("-----BEGIN RSA PRIVATE KEY-----\n-----END RSA PRIVATE KEY-----", "cut off");
        assert_eq!(mistake(b"\xff\xfe-\0-\0"), Some("preceded by a byte order mark"));
        assert_eq!(mistake(b"\x80\x81"), Some("no text"));
    }

    #[test]
    fn a_key_cut_off_anywhere_is_none() {
        let good = example("none", "ssh-ed25519");
        let lines: Vec<&str> = good.lines().collect();
        for length in 1..good.trim_end().len() {
            assert!(mistake(&good.as_bytes()[..length]).is_some(), "{length}");
        }
        for missing in 0..lines.len() {
            let rest: Vec<&str> = (0..lines.len()).filter(|line| *line != missing).map(|line| lines[line]).collect();
            assert!(mistake(rest.join("\n").as_bytes()).is_some(), "line {missing}");
        }
    }
}
