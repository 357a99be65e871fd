//! The page of reasons: a table by name.

use std::fmt::Write as _;

use crds::Reason;
use crds::reason::Severity;

const HEAD: &str = "\
# Reasons

Written from the table in `crds/src/reason/table.rs` by `make crds`. A reason stands in a condition, in an Event, or with
a failure in a PlaybookRun (`status.hosts[].failure.reason`). A failure's reason, and one that ends a run (`Failed`),
comes from there into the conditions that tell of the run: `Provisioned` and `Ready` of its Machine, `Ready` of the
cluster. A custom playbook may give reasons of its own; they are no part of this table.

- **Normal**: as it should be.
- **Progressing**: not there yet, and on its way; nothing has to be done.
- **Warning**: something is wrong; its Events are warnings. Where the last column begins with \"Nothing\", the operator
  deals with it by itself.

| reason | conditions | severity | means | what to do |
|---|---|---|---|---|
";

/// The whole page.
pub fn text() -> Result<String, std::fmt::Error> {
    let mut text = HEAD.to_owned();
    for reason in Reason::ALL {
        let spec = reason.spec();
        let conditions: Vec<String> = spec.conditions.iter().map(|type_| format!("`{type_}`")).collect();
        let severity = match spec.severity {
            Severity::Normal => "Normal",
            Severity::Progressing => "Progressing",
            Severity::Warning => "Warning",
        };
        let conditions = conditions.join(", ");
        writeln!(text, "| `{reason}` | {conditions} | {severity} | {} | {} |", spec.meaning, spec.remedy)?;
    }
    Ok(text)
}
