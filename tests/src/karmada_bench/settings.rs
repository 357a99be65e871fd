//! Settings that a measurement changes, in one table: what is set and what is printed beside the figures is the same.

use serde_json::{Map, Value, json};

use super::table::table;

/// A flag of a program.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Whose it is: of a plane's component its field in the spec.
    pub of: &'static str,
    pub flag: &'static str,
    pub value: &'static str,
    /// What holds without it.
    pub default: &'static str,
}

/// The flags of one of them, as a program takes them.
pub fn flags(settings: &[Setting], of: &str) -> Vec<(&'static str, String)> {
    settings.iter().filter(|one| one.of == of).map(|one| (one.flag, one.value.to_owned())).collect()
}

/// The fields of a plane's spec that have the flags of its components.
pub fn spec(settings: &[Setting]) -> Map<String, Value> {
    let mut spec = Map::new();
    for Setting { of, flag, value, .. } in settings {
        let component = spec.entry(*of).or_insert_with(|| json!({"extraArgs": {}}));
        component["extraArgs"][*flag] = json!(value);
    }
    spec
}

/// What is set, and what it is by default.
pub fn render(settings: &[Setting]) -> String {
    let head = ["of", "setting", "default"].map(str::to_owned).to_vec();
    let row = |one: &Setting| vec![one.of.to_owned(), format!("{}={}", one.flag, one.value), one.default.to_owned()];
    table(&[vec![head], settings.iter().map(row).collect()].concat())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Setting, flags, render, spec};

    const SETTINGS: [Setting; 3] = [
        Setting { of: "webhook", flag: "a", value: "true", default: "false" },
        Setting { of: "scheduler", flag: "b", value: "2", default: "1" },
        Setting { of: "scheduler", flag: "c", value: "3", default: "1" },
    ];

    #[test]
    fn what_is_printed_is_what_is_set() {
        let spec = Value::Object(spec(&SETTINGS));
        let expected =
            json!({"webhook": {"extraArgs": {"a": "true"}}, "scheduler": {"extraArgs": {"b": "2", "c": "3"}}});
        assert_eq!(spec, expected);
        assert_eq!(flags(&SETTINGS, "scheduler"), [("b", "2".to_owned()), ("c", "3".to_owned())]);
        let text = render(&SETTINGS);
        assert!(SETTINGS.iter().all(|one| text.contains(&format!("{}={}", one.flag, one.value))), "{text}");
    }
}
