//! Links of the documentation: files that are there, and headings that are in them; and how wide its lines are.

#[path = "scan/sources.rs"]
mod sources;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every page below a directory.
fn pages(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(pages(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    Ok(found)
}

/// The text outside of blocks of code and of `code`.
fn prose(page: &str) -> String {
    let mut in_block = false;
    let lines = page.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    });
    lines.fold(String::new(), |text, line| {
        let outside: String = line.split('`').step_by(2).collect();
        text + &outside + "\n"
    })
}

/// Targets of the links to files and headings of this repository.
fn targets(page: &str) -> Vec<String> {
    let prose = prose(page);
    let links = prose.split("](").skip(1).filter_map(|after| after.split(')').next());
    let is_ours = |target: &&str| !target.contains("://") && !target.starts_with("mailto:");
    links.filter(is_ours).map(str::to_owned).collect()
}

/// Anchors of a page's headings, as GitHub makes them.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut in_block = false;
    for line in page.lines() {
        in_block ^= line.trim_start().starts_with("```");
        let Some(heading) = line.strip_prefix('#').filter(|_| !in_block) else {
            continue;
        };
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let repeated = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(repeated).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

/// Why a link of a page leads nowhere.
fn broken(page: &Path, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = match path {
        "" => page.to_owned(),
        path => page.parent().unwrap_or(page).join(path),
    };
    if !file.exists() {
        return Some("no such file".into());
    }
    if anchor.is_empty() || file.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    match fs::read_to_string(&file) {
        Ok(text) => (!anchors(&text).contains(anchor)).then(|| "no such heading".into()),
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn every_link_in_the_docs_leads_somewhere() {
    let mut all = pages(&root().join("docs")).unwrap();
    all.push(root().join("README.md"));
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for page in &all {
        let text = fs::read_to_string(page).unwrap();
        if text.trim().is_empty() {
            wrong.push(format!("{} is empty, and is linked or should be", page.display()));
        }
        for target in targets(&text) {
            looked_at += 1;
            if let Some(why) = broken(page, &target) {
                wrong.push(format!("{}: {target}: {why}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
    assert!(looked_at > 100, "only {looked_at} links were found: are they still read?");
}

#[test]
fn anchors_are_those_of_github() {
    let page = "# The cluster's keys\n```\n# no heading\n```\n## `Ready`, and more\n## a_b-c\n## Again\n## Again\n";
    let wanted = ["the-clusters-keys", "ready-and-more", "a_b-c", "again", "again-1"];
    assert_eq!(anchors(page), wanted.map(str::to_owned).into());
    assert_eq!(targets("see [one\ntwo](a.md#b) and `[x](y.md)`, [z](https://example.com)"), ["a.md#b"]);
}

/// As wide as the code is.
const COLUMNS: usize = 120;

/// Whether the line is too wide, and could be broken.
fn is_wide(line: &str) -> bool {
    let text = line.trim_start().trim_start_matches(['/', '!', '-', '*']).trim_start();
    line.chars().count() > COLUMNS && text.contains(' ')
}

#[test]
fn no_line_of_prose_is_wider_than_the_code() {
    let mut wide = Vec::new();
    let sources = sources::sources(&["crds", "operator", "executor", "tests", "hack"]).unwrap();
    let comments = sources.iter().flat_map(|(path, text)| {
        let lines = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"));
        lines.filter(|(_, line)| is_wide(line)).map(|(number, _)| format!("{}:{}", path.display(), number + 1))
    });
    wide.extend(comments);
    let generated = ["api.md", "fields.md", "reasons.md"];
    let written = pages(&root().join("docs")).unwrap().into_iter().chain([root().join("README.md")]);
    for page in written.filter(|page| !generated.iter().any(|name| page.ends_with(name))) {
        let mut in_block = false;
        for (number, line) in fs::read_to_string(&page).unwrap().lines().enumerate() {
            in_block ^= line.trim_start().starts_with("```");
            if !in_block && !line.starts_with(['|', '#']) && is_wide(line) {
                wide.push(format!("{}:{}", page.display(), number + 1));
            }
        }
    }
    assert!(sources.len() > 500, "only {} files were found: are they still read?", sources.len());
    assert!(wide.is_empty(), "lines of more than {COLUMNS} columns:\n{}", wide.join("\n"));
}
