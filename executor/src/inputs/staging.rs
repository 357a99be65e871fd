//! Checks what a run gets of the backup that it brings to the machines: it is there where a step does that, with the
//! secrets that it needs.

use crds::backup::{IDENTITY_SECRET, PKI_SECRET};
use crds::inputs::RunInputs;
use crds::step::Step;

use super::backup::{all_there, of_storage};
use super::error::InputsError;
use crate::secrets::Secrets;

/// Characters of the name that the directories on the machines have.
const ID: usize = 8;

pub(super) fn check(model: &RunInputs, secrets: &Secrets) -> Result<(), InputsError> {
    let invalid =
        |at: &str, problem: &str| Err(InputsError::Invalid { at: at.to_owned(), problem: problem.to_owned() });
    let staging = match (&model.staging, model.steps.contains(&Step::StageBackup)) {
        (None, false) => return Ok(()),
        (None, true) => return invalid("staging", "step stage-backup needs to be told of the backup that it stages"),
        (Some(_), false) => return invalid("staging", "there is no step that stages it: stage-backup is missing"),
        (Some(staging), true) => staging,
    };
    // It becomes part of a path, and of a command.
    if staging.id.len() != ID || !staging.id.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9')) {
        return invalid("staging.id", "8 characters are needed, each a-z or 0-9: make a new EtcdRestore");
    }
    let mut needed: Vec<String> = [IDENTITY_SECRET, PKI_SECRET].map(str::to_owned).into();
    needed.extend(of_storage(&staging.storage));
    all_there("staging", &needed, secrets)
}

#[cfg(test)]
mod tests {
    use crds::inputs::RunInputs;
    use crds::step::{Intent, Step};
    use serde_json::{Value, json};

    use super::super::examples::{self, s3};
    use super::check;

    const SECRETS: [&str; 4] =
        ["restore.identity", "restore.pki.json", "storage.accessKeyID", "storage.secretAccessKey"];

    fn model(storage: Value) -> RunInputs {
        let staging = json!({"storage": storage, "location": "a/b", "id": "k3x9a0b1", "restore": "r", "cluster": "c"});
        let mut model = crate::example::model();
        (model.intent, model.steps) = (Intent::Stage, vec![Step::StageBackup]);
        model.staging = Some(serde_json::from_value(staging).unwrap());
        model
    }

    fn refused(model: &RunInputs, without: &str) -> String {
        examples::refused(check, model, &SECRETS, without)
    }

    #[test]
    fn a_backup_that_is_staged_has_its_step_and_a_step_its_backup() {
        let mut model = model(s3());
        assert_eq!(refused(&model, ""), "");
        let staging = model.staging.take();
        assert!(refused(&model, "").contains("stage-backup needs"));
        (model.staging, model.steps) = (staging, vec![Step::ProbeHost]);
        assert!(refused(&model, "").contains("stage-backup is missing"));
        model.staging = None;
        assert_eq!(refused(&model, ""), "");
    }

    #[test]
    fn the_secrets_that_it_needs_are_named_where_they_are_missing() {
        for name in SECRETS {
            assert_eq!(refused(&model(s3()), name), format!("staging: the secret {name} is missing or empty"));
        }
        let volume = model(json!({"directory": "/backups"}));
        assert_eq!(refused(&volume, "storage.accessKeyID"), "");
    }

    #[test]
    fn an_id_that_is_more_than_a_name_is_refused() {
        for id in ["", "k3x9a0b", "k3x9a0b12", "../../..", "k3x9a0b'", "K3X9A0B1", "k3x9 0b1"] {
            let mut model = model(s3());
            model.staging.as_mut().unwrap().id = id.to_owned();
            assert!(refused(&model, "").starts_with("staging.id: 8 characters"), "{id:?}");
        }
    }
}
