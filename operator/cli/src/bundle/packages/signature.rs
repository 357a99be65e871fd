//! Who signs repositories: GnuPG, since apt reads what it writes, and since a key may be on a card.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// What a key that is made here is called.
const NAME: &str = "Clusterwright packages";

/// One key.
pub struct Signer {
    home: PathBuf,
    fingerprint: String,
    public_key: String,
}

impl Signer {
    /// The key of that fingerprint, or the only one of GnuPG's directory, which is made if it is not there.
    pub fn open(home: &Path, fingerprint: Option<&str>) -> Result<Self> {
        fs::create_dir_all(home).with_context(|| format!("failed to create {}", home.display()))?;
        fs::set_permissions(home, Permissions::from_mode(0o700))
            .with_context(|| format!("failed to keep others out of {}", home.display()))?;
        // GnuPG takes no directory that is relative.
        let home = home.canonicalize().with_context(|| format!("failed to find {}", home.display()))?;
        let mut signer = Self { home, fingerprint: String::new(), public_key: String::new() };
        signer.fingerprint = signer.choose(fingerprint)?;
        signer.public_key = signer.gpg(&["--armor", "--export", &signer.fingerprint], "")?;
        ensure!(!signer.public_key.is_empty(), "GnuPG exports no key {}", signer.fingerprint);
        Ok(signer)
    }

    /// In armor, as apt reads it.
    pub fn public_key(&self) -> &str {
        &self.public_key
    }

    /// The text with its signature, as `InRelease`.
    pub fn sign(&self, text: &str) -> Result<String> {
        self.gpg(&["--local-user", &self.fingerprint, "--digest-algo", "SHA512", "--clear-sign"], text)
    }

    fn choose(&self, wanted: Option<&str>) -> Result<String> {
        let mut there = self.fingerprints()?;
        let at = self.home.display();
        if let Some(wanted) = wanted {
            let found = there.iter().find(|known| known.ends_with(&wanted.to_uppercase()));
            return found.cloned().with_context(|| {
                format!(
                    "{at} has no secret key {wanted}, but {}",
                    if there.is_empty() { "none".into() } else { there.join(", ") }
                )
            });
        }
        if there.is_empty() {
            self.gpg(&["--quick-generate-key", NAME, "ed25519", "sign", "never"], "")?;
            there = self.fingerprints()?;
            println!("a key that signs packages was made in {at}: keep it, since machines believe it");
        }
        match &there[..] {
            [only] => Ok(only.clone()),
            _ => bail!("{at} has several secret keys: say which with --signing-key, one of {}", there.join(", ")),
        }
    }

    fn fingerprints(&self) -> Result<Vec<String>> {
        Ok(fingerprints(&self.gpg(&["--with-colons", "--list-secret-keys"], "")?))
    }

    fn gpg(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut gpg = Command::new("gpg");
        gpg.arg("--homedir").arg(&self.home);
        gpg.args(["--batch", "--quiet", "--no-tty", "--pinentry-mode", "loopback", "--passphrase", ""]).args(arguments);
        gpg.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = gpg.spawn().context("failed to run gpg: install the package gnupg")?;
        if let Some(mut stdin) = process.stdin.take() {
            stdin.write_all(input.as_bytes()).context("gpg reads nothing")?;
        }
        let output = process.wait_with_output().context("failed to wait for gpg")?;
        if !output.status.success() {
            bail!("gpg failed in {}: {}", self.home.display(), String::from_utf8_lossy(&output.stderr).trim());
        }
        String::from_utf8(output.stdout).context("gpg printed no text")
    }
}

impl Drop for Signer {
    fn drop(&mut self) {
        // Its agent would stay.
        let _ = Command::new("gpgconf").arg("--homedir").arg(&self.home).args(["--kill", "gpg-agent"]).status();
    }
}

/// The fingerprints of primary keys in GnuPG's list with colons.
fn fingerprints(list: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_primary = false;
    for line in list.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        match fields.first() {
            Some(&"sec") => is_primary = true,
            Some(&"ssb") => is_primary = false,
            Some(&"fpr") if is_primary => {
                found.extend(fields.get(9).map(|text| (*text).to_owned()));
                is_primary = false;
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_those_of_primary_keys() {
        let list = "sec:u:255:22:AB:1:::u:::scESC:::+::ed25519:::0:\nfpr:::::::::AAAA:\nuid:u::::1::x::n::::::::::0:\n\
                    ssb:u:255:18:CD:1::::::e:::+::cv25519::\nfpr:::::::::BBBB:\n";
        assert_eq!(fingerprints(list), ["AAAA"]);
    }

    #[test]
    fn a_key_is_made_once_and_signs() {
        let home = tempfile::tempdir().unwrap();
        let signed = Signer::open(home.path(), None).unwrap().sign("Origin: x\n").unwrap();
        assert!(signed.starts_with("-----BEGIN PGP SIGNED MESSAGE-----") && signed.contains("Origin: x"), "{signed}");
        let again = Signer::open(home.path(), None).unwrap();
        assert!(again.public_key().starts_with("-----BEGIN PGP PUBLIC KEY BLOCK-----"));
        assert_eq!(again.fingerprints().unwrap().len(), 1);
        let error = Signer::open(home.path(), Some("0123")).err().unwrap().to_string();
        assert!(error.contains("has no secret key 0123, but "), "{error}");
    }
}
