//! The checksum files that projects publish beside their releases.

use anyhow::{Context, Result, bail};

use crate::digest::is_digest;

/// The SHA-256 that a checksum file gives for the file of that name: its only word, or the line that has the name.
/// Signatures around the lines are passed over. `place` is named in errors.
pub fn find(text: &str, name: &str, place: &str) -> Result<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let [digest] = words[..] {
        return checked(digest, place);
    }
    let listed = text.lines().filter_map(|line| {
        let (digest, file) = line.trim().split_once(char::is_whitespace)?;
        let file = file.trim_start().trim_start_matches('*');
        let file = file.rsplit('/').next().unwrap_or(file);
        (is_digest(digest) && file == name).then_some(digest)
    });
    let found: Vec<&str> = listed.collect();
    let first = found.first().with_context(|| format!("{place} has no checksum of {name}"))?;
    if found.iter().any(|other| !other.eq_ignore_ascii_case(first)) {
        bail!("{place} has several checksums of {name}");
    }
    checked(first, place)
}

fn checked(digest: &str, place: &str) -> Result<String> {
    if !is_digest(digest) {
        bail!("{place} has no SHA-256, but {:?}", digest.chars().take(80).collect::<String>());
    }
    Ok(digest.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<char, &str>) {
        let found = find(text, "runc.amd64", "https://x/sums").map_err(|error| error.to_string());
        match expected {
            Ok(digit) => assert_eq!(found, Ok(digit.to_string().repeat(64))),
            Err(said) => assert!(found.as_ref().is_err_and(|error| error.contains(said)), "{found:?}"),
        }
    }

    #[test]
    fn the_formats_of_the_projects_are_read() {
        let (a, b, upper) = ("a".repeat(64), "b".repeat(64), "A".repeat(64));
        check(&a, Ok('a'));
        check(&format!("{upper}\n"), Ok('a'));
        check(&format!("{b}  runc.arm64\n{a}  runc.amd64\n"), Ok('a'));
        check(&format!("{a} *./release/runc.amd64\n"), Ok('a'));
        check(&format!("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{a}  runc.amd64\n-----BEGIN"), Ok('a'));
    }

    #[test]
    fn what_gives_no_single_checksum_is_refused() {
        let (a, b) = ("a".repeat(64), "b".repeat(64));
        check("", Err("https://x/sums has no checksum of runc.amd64"));
        check("Not-Found", Err("has no SHA-256, but \"Not-Found\""));
        check("<html>404 Not Found</html>", Err("has no checksum of runc.amd64"));
        check(&format!("{a}  runc.arm64\n{a}  runc.amd64.asc\n"), Err("has no checksum of runc.amd64"));
        check(&format!("{a}  runc.amd64\n{b}  runc.amd64\n"), Err("has several checksums of runc.amd64"));
    }
}
