//! Tables of operations, and the files beside them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A file in `operations` of this module that no row of its table calls would never do anything.
pub fn every_file_has_its_row(module: &str) {
    let source = Path::new("src").join(module);
    let text = fs::read_to_string(source.join("operations.rs")).unwrap();
    let table = text.split("#[cfg(test)]").next().unwrap();
    let calls = table.split("::propose").filter_map(|before| {
        let name = before.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
        (!name.is_empty()).then(|| name.to_owned())
    });
    let rows: BTreeSet<String> = calls.collect();
    let files = fs::read_dir(source.join("operations")).unwrap();
    let files = files.filter_map(|file| {
        let name = file.unwrap().file_name().into_string().unwrap();
        name.strip_suffix(".rs").map(str::to_owned)
    });
    assert_eq!(rows, files.collect());
}
