//! The credentials of an S3 storage, as a run's Secret has them.

use std::fmt;

use crds::backup::STORAGE_SECRETS;

/// Credentials of an S3 storage; a directory needs none.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// Who asks: `accessKeyID`.
    pub access_key_id: Option<String>,
    /// `secretAccessKey`.
    pub secret_access_key: Option<String>,
    /// `sessionToken`, of credentials that end.
    pub session_token: Option<String>,
}

impl Credentials {
    /// Reads the files named `accessKeyID`, `secretAccessKey` and `sessionToken`; others are ignored. White space at
    /// the ends does not count: Secrets are often made from files that end with a new line. What is empty or no
    /// printable text counts as missing, which [`Store::open`](crate::Store::open) reports.
    pub fn from_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut credentials = Self::default();
        let [access_key_id, secret_access_key, session_token] = STORAGE_SECRETS;
        for (name, content) in files {
            let text = std::str::from_utf8(content).map(str::trim).unwrap_or_default();
            let printable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
            let value = printable.then(|| text.to_owned());
            match name {
                _ if name == access_key_id => credentials.access_key_id = value,
                _ if name == secret_access_key => credentials.secret_access_key = value,
                _ if name == session_token => credentials.session_token = value,
                _ => (),
            }
        }
        credentials
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_without_the_new_lines_of_their_files_and_never_shown() {
        let files: [(&str, &[u8]); 4] = [
            ("accessKeyID", b"AKIA\n"),
            ("secretAccessKey", b" sec/ret+ \r\n"),
            ("sessionToken", b"\n"),
            ("other", b"x"),
        ];
        let read = Credentials::from_files(files);
        assert_eq!(read.access_key_id.as_deref(), Some("AKIA"));
        assert_eq!(read.secret_access_key.as_deref(), Some("sec/ret+"));
        assert_eq!(read.session_token, None);
        assert!(!format!("{read:?}").contains("AKIA"));
        assert_eq!(Credentials::from_files([("accessKeyID", &b"a\xffb"[..])]), Credentials::default());
    }
}
