//! The page of fields: what an edit of each does.

use std::error::Error;
use std::fmt::Write as _;

use super::effect::Effect;
use super::rows::Row;
use super::{clusters, declared, leaves, rows, sets};

const HEAD: &str = "\
# What an edit of a field does

<!-- Generated from the types in `crds` and the planners in `operator/plan`: make crds -->

What happens in a running cluster when a field of its spec is edited. What each field means is in [api.md](api.md); how
a change is rolled out and watched, in [change a running cluster](operations/change.md). Machines that join later come
with what is wanted then, whatever the effect; a paused cluster follows once it is no longer paused. Remarks on a
restart or a drain begin with what restarts.

| effect | what happens |
|---|---|
";

const SETS: &str = "
## MachineSet

For a set of its own, which no ClusterDeployment made. Those of a ClusterDeployment are written by the operator: it
takes an edit back, but for `mode`, `deletion`, and `replicas` where the ClusterDeployment leaves them out.
";

/// The rows of ClusterDeployment.
pub fn of_clusters() -> Result<Vec<Row>, Box<dyn Error>> {
    let schema = leaves::schema("ClusterDeployment").ok_or("there is no kind ClusterDeployment")?;
    rows::rows(&schema, clusters::known, declared::CLUSTERS)
}

/// The rows of MachineSet.
pub fn of_sets() -> Result<Vec<Row>, Box<dyn Error>> {
    let schema = leaves::schema("MachineSet").ok_or("there is no kind MachineSet")?;
    rows::rows(&schema, sets::known, declared::SETS)
}

/// The whole page.
pub fn text() -> Result<String, Box<dyn Error>> {
    let mut text = HEAD.to_owned();
    for (effect, means) in Effect::ALL {
        writeln!(text, "| {effect} | {means} |")?;
    }
    text.push_str("\n## ClusterDeployment\n");
    table(&mut text, &of_clusters()?)?;
    text.push_str(SETS);
    table(&mut text, &of_sets()?)?;
    Ok(text)
}

fn table(text: &mut String, rows: &[Row]) -> std::fmt::Result {
    text.push_str("\n| field of `spec` | effect | step | remarks |\n|---|---|---|---|\n");
    for Row { field, effect, steps, remark } in rows {
        let steps: Vec<String> = steps.iter().map(|step| format!("`{step}`")).collect();
        writeln!(text, "| `{field}` | {effect} | {} | {remark} |", steps.join(", "))?;
    }
    Ok(())
}
