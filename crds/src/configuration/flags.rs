//! Further flags of the control plane's components: those that no field of ours has, and that the cluster does not
//! depend on.

use kube::core::{Message, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CEL: a flag's name, without its dashes.
pub(crate) const NAMES_RULE: &str = "self.all(k, k.matches('^[a-z][a-z0-9-]{0,62}$'))";
pub(crate) const NAMES_MESSAGE: &str =
    "a flag's name is lower-case letters, digits and -, without the dashes before it: max-requests-inflight";

/// CEL: a feature gate's name.
pub(crate) const GATES_RULE: &str = "self.all(k, k.matches('^[A-Z][A-Za-z0-9]{1,62}$'))";
pub(crate) const GATES_MESSAGE: &str =
    "a feature gate's name is letters and digits, and begins with a capital: MutatingAdmissionPolicy";

/// The value of a flag: printable ASCII, at most 1024 characters.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(transparent)]
pub struct FlagValue(#[schemars(length(max = 1024), regex(pattern = r"^[ -~]*$"))] pub String);

/// Refuses flags that have a field, and names that for each. The message is the same whichever it is: nothing bounds
/// the length of a map's keys, so that an expression over them costs more than the API server allows.
pub(super) fn without_typed(fields: &[(&str, &str)]) -> Rule {
    let names = list(fields.iter().map(|(flag, _)| *flag));
    let instead: Vec<String> = fields.iter().map(|(flag, field)| format!("{flag}: use {field}")).collect();
    let message = format!("extraArgs may not have a flag that has a field of its own: {}", instead.join("; "));
    Rule::new(format!("self.all(k, !(k in {names}))")).message(Message::Message(message))
}

/// Refuses flags on which the cluster depends, by their names, or by how these begin.
pub(super) fn without_owned(names: &[&str], prefixes: &[&str]) -> Rule {
    refuse("", "self", names, prefixes)
}

/// The same in a map that may be absent, e.g. `self.extraArgs`.
pub(crate) fn without_owned_in(map: &str, names: &[&str], prefixes: &[&str]) -> Rule {
    refuse(&format!("!has({map}) || "), map, names, prefixes)
}

fn refuse(unless: &str, map: &str, names: &[&str], prefixes: &[&str]) -> Rule {
    let (quoted, beginnings) = (list(names.iter().copied()), list(prefixes.iter().copied()));
    let any_of: Vec<String> = prefixes.iter().map(|prefix| format!("{prefix}*")).collect();
    let all: Vec<&str> = names.iter().copied().chain(any_of.iter().map(String::as_str)).collect();
    let message =
        format!("extraArgs may not have a flag on which the cluster depends; take it out: {}", all.join(", "));
    Rule::new(format!("{unless}{map}.all(k, !(k in {quoted} || {beginnings}.exists(p, k.startsWith(p))))"))
        .message(Message::Message(message))
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    format!("[{}]", quoted.join(", "))
}
