//! The frozen inputs of a run: read once, compared with their digest, parsed, and checked. What has passed is
//! an [`Inputs`]; nothing behind it looks at names, addresses or limits again.

mod backup;
mod checked;
mod error;
#[cfg(test)]
mod examples;
mod staging;

use std::path::Path;
use std::{fs, io};

use crds::inputs::{MODEL_FILE, RunInputs};
use sha2::{Digest, Sha256};

use crate::secrets::Secrets;

pub(crate) use backup::address;
pub use error::InputsError;

/// Longest model, in bytes; a ConfigMap holds less.
const MODEL_LIMIT: u64 = 4 << 20;

/// Inputs that may be worked from.
#[derive(Debug)]
pub struct Inputs {
    /// The steps, hosts and variables of the run.
    pub model: RunInputs,
    /// `sha256:<hex>` of the model's text.
    pub digest: String,
    /// Keys and credentials.
    pub secrets: Secrets,
}

/// Reads and checks the inputs below a directory: `model/inputs.json` and `secrets/*`.
pub fn read(directory: &Path, announced_digest: Option<&str>) -> Result<Inputs, InputsError> {
    let path = directory.join("model").join(MODEL_FILE);
    let text = read_model(&path).map_err(|source| InputsError::Read { path: path.clone(), source })?;
    let digest = digest(&text);
    if let Some(announced) = announced_digest
        && announced != digest
    {
        return Err(InputsError::DigestMismatch { announced: announced.to_owned(), found: digest });
    }
    let model: RunInputs = serde_json::from_slice(&text).map_err(InputsError::Parse)?;
    let path = directory.join("secrets");
    let secrets = Secrets::read(&path).map_err(|source| InputsError::Read { path: path.clone(), source })?;
    checked::check(&model, &secrets)?;
    backup::check(&model, &secrets)?;
    staging::check(&model, &secrets)?;
    Ok(Inputs { model, digest, secrets })
}

/// The digest of a model's text.
pub fn digest(text: &[u8]) -> String {
    format!("sha256:{}", hex_sha256(text))
}

/// SHA-256 in hex.
pub fn hex_sha256(content: &[u8]) -> String {
    let hash = Sha256::digest(content);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Inputs {
    /// Refuses the inputs of another run than `namespace/name`.
    pub fn belong_to(&self, run: &str) -> Result<(), InputsError> {
        let found = format!("{}/{}", self.model.namespace, self.model.run);
        if found == run { Ok(()) } else { Err(InputsError::OtherRun { expected: run.to_owned(), found }) }
    }
}

fn read_model(path: &Path) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.len() > MODEL_LIMIT {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the model is larger than 4 MiB"));
    }
    fs::read(path)
}

#[cfg(test)]
mod tests {
    use super::{InputsError, digest, read};

    const MODEL: &str = r#"{"namespace": "fleet", "run": "r", "intent": "Probe", "steps": ["probe-host"], "hosts": {"a": {
        "address": "10.0.0.1", "port": 22, "user": "root", "useSudo": false, "credential": "k",
        "credentialKind": "SshKey", "hostKeyPolicy": "TrustOnFirstUse"}}}"#;

    fn directory(model: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("model")).unwrap();
        std::fs::create_dir(directory.path().join("secrets")).unwrap();
        std::fs::write(directory.path().join("model/inputs.json"), model).unwrap();
        std::fs::write(directory.path().join("secrets/ssh-privatekey.k"), "key").unwrap();
        directory
    }

    #[test]
    fn inputs_with_the_announced_digest_are_read() {
        let directory = directory(MODEL);
        let inputs = read(directory.path(), Some(&digest(MODEL.as_bytes()))).unwrap();
        assert_eq!(inputs.model.run, "r");
        assert!(inputs.belong_to("fleet/r").is_ok());
        assert!(matches!(inputs.belong_to("fleet/s"), Err(InputsError::OtherRun { .. })));
    }

    #[test]
    fn inputs_that_were_changed_are_refused() {
        let directory = directory(&MODEL.replace("10.0.0.1", "10.0.0.2"));
        let error = read(directory.path(), Some(&digest(MODEL.as_bytes()))).unwrap_err();
        assert_eq!(error.reason(), "InputsChanged");
    }

    #[test]
    fn what_is_no_model_is_refused() {
        let check = |model: &str| {
            assert!(matches!(read(directory(model).path(), None), Err(InputsError::Parse(_))), "{model}");
        };
        check("");
        check("[]");
        check(&MODEL.replace("\"run\"", "\"unknown\": 1, \"run\""));
        check(&MODEL.replace("22", "\"22\""));
        check(&MODEL.replace("22", "65536"));
        check(&MODEL.replace("22", "-22"));
        check(&MODEL.replace("probe-host", "format-disks"));
    }

    #[test]
    fn inputs_that_are_not_there_are_named() {
        let error = read("/nowhere".as_ref(), None).unwrap_err();
        assert_eq!(error.reason(), "InputsUnreadable");
        assert!(error.to_string().contains("/nowhere/model/inputs.json"));
    }
}
