//! The page docs/faults.md says which test proves which cell of the fault matrix: it names every cell, and tests that
//! are there.

#[cfg(test)]
mod page {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    const COLUMNS: [&str; 3] = ["Jo", "Rm", "Rd"];
    const ROWS: [u32; 21] = [1, 2, 3, 4, 5, 10, 13, 14, 15, 18, 20, 21, 22, 23, 28, 29, 30, 35, 37, 42, 43];
    /// Of backups and restores.
    const OF_BACKUPS: [&str; 2] = ["Bk", "Rs"];
    const ROWS_OF_BACKUPS: [u32; 46] = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
        31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 44, 45, 46, 47, 48,
    ];
    /// Of upgrades, and of configuration and certificates.
    const OF_CHANGES: [&str; 2] = ["Up", "Ce"];
    const ROWS_OF_CHANGES: [u32; 46] = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
        31, 32, 33, 34, 35, 36, 37, 38, 39, 41, 42, 44, 45, 46, 47, 48,
    ];
    /// Of Karmada control planes.
    const OF_PLANES: [&str; 1] = ["Ka"];
    const ROWS_OF_PLANES: [u32; 46] = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
        31, 32, 33, 34, 35, 36, 37, 38, 40, 41, 43, 44, 45, 46, 47, 48,
    ];
    /// Faults that cannot come to what is done.
    const IMPOSSIBLE: [&str; 2] = ["42 Jo", "43 Rm"];

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// Each cell of the page, as `<row> <column>`, with the tests that it names.
    fn cells(page: &str) -> Vec<(String, Vec<String>)> {
        let lines = page.lines().filter_map(|line| line.strip_prefix("| "));
        let cell = |line: &str| {
            let columns: Vec<&str> = line.split('|').map(str::trim).collect();
            let [cell, _, tests, ..] = columns.as_slice() else {
                return None;
            };
            cell.starts_with(|first: char| first.is_ascii_digit()).then(|| {
                let names = tests.split('`').skip(1).step_by(2);
                ((*cell).to_owned(), names.map(str::to_owned).collect())
            })
        };
        lines.filter_map(cell).collect()
    }

    /// Names of all functions that are tests, in the sources of all crates.
    fn tests(directory: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                tests(&path, found);
            } else if name.ends_with(".rs") {
                found.extend(tests_of(&fs::read_to_string(&path).unwrap()));
            }
        }
    }

    /// A function is a test if the attribute stands before it, with nothing but other attributes between.
    fn tests_of(source: &str) -> Vec<String> {
        let (mut is_test, mut names) = (false, Vec::new());
        for line in source.lines().map(str::trim) {
            let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
            match name {
                _ if line.starts_with("#[test]") || line.starts_with("#[tokio::test") => is_test = true,
                Some(name) if is_test => {
                    let end = name.find(['(', '<']).unwrap_or(name.len());
                    names.extend(name.get(..end).map(str::to_owned));
                    is_test = false;
                }
                _ if line.starts_with("#[") || line.starts_with("//") => {}
                _ => is_test = false,
            }
        }
        names
    }

    #[test]
    fn every_cell_names_tests_that_are_there() {
        let page = fs::read_to_string(root().join("docs/faults.md")).unwrap();
        let mut there = BTreeSet::new();
        for directory in ["crds", "operator", "executor", "tests", "hack"] {
            tests(&root().join(directory), &mut there);
        }
        let cells = cells(&page);
        let of = |rows: &[u32], columns: &[&str]| -> Vec<String> {
            rows.iter().flat_map(|row| columns.iter().map(move |column| format!("{row} {column}"))).collect()
        };
        let sections = [
            of(&ROWS, &COLUMNS),
            of(&ROWS_OF_BACKUPS, &OF_BACKUPS),
            of(&ROWS_OF_CHANGES, &OF_CHANGES),
            of(&ROWS_OF_PLANES, &OF_PLANES),
        ];
        let wanted = sections.into_iter().flatten();
        let is_left_out = |cell: &String| IMPOSSIBLE.iter().any(|left_out| left_out == cell);
        let wanted: Vec<String> = wanted.filter(|cell| !is_left_out(cell)).collect();
        let named: Vec<&String> = cells.iter().map(|(cell, _)| cell).collect();
        assert_eq!(named, wanted.iter().collect::<Vec<_>>());
        for (cell, tests) in &cells {
            assert!(!tests.is_empty(), "{cell} names no test");
            for test in tests {
                assert!(there.contains(test), "{cell} names {test}, and there is no test of this name");
            }
        }
    }

    #[test]
    fn only_tests_are_taken_for_tests() {
        let source = "#[test]\nfn one() {}\nfn two() {}\n#[tokio::test(flavor = \"x\")]\n/// Why.\n#[ignore]\nasync fn three() {}\n#[test]\nstruct S;\nfn four() {}";
        assert_eq!(tests_of(source), ["one", "three"]);
    }
}
