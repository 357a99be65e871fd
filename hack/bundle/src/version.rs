//! Versions: their order, and the minor of Kubernetes that one is of.

/// What versions are ordered by: their numbers, a release after its candidates, and the text without a `v`.
pub type Rank<'a> = (Vec<u64>, bool, &'a str);

/// The version's place in the order of versions; equal for no other version.
pub fn rank(version: &str) -> Rank<'_> {
    let text = version.trim_start_matches('v');
    let (release, candidate) = text.split_once('-').unwrap_or((text, ""));
    let numbers = release.split('.').map(|part| part.parse().unwrap_or(0)).collect();
    (numbers, candidate.is_empty(), text)
}

/// Whether both are the same version, with a `v` in front or without.
pub fn same(one: &str, other: &str) -> bool {
    one.trim_start_matches('v') == other.trim_start_matches('v')
}

/// The minor of a version of Kubernetes, e.g. `1.35` of `1.35.4`. `None`: it is no version of three numbers.
pub fn minor(version: &str) -> Option<String> {
    let parts: Vec<&str> = version.split('.').collect();
    let numbers = parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    (parts.len() == 3 && numbers).then(|| format!("{}.{}", parts[0], parts[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_comes_after_nine_and_a_release_after_its_candidate() {
        let mut versions = ["1.10.0", "v1.9.1", "1.9.1-rc.1", "1.9.0"];
        versions.sort_by(|one, other| rank(one).cmp(&rank(other)));
        assert_eq!(versions, ["1.9.0", "1.9.1-rc.1", "v1.9.1", "1.10.0"]);
    }

    #[test]
    fn tags_without_numbers_differ() {
        assert_ne!(rank("latest"), rank("stable"));
        assert_eq!(rank("v1.2"), rank("1.2"));
    }

    #[test]
    fn a_minor_is_of_three_numbers() {
        assert_eq!(minor("1.35.4").as_deref(), Some("1.35"));
        for wrong in ["1.35", "v1.35.4", "1.35.x", "1..4", "1.35.4-rc.1"] {
            assert_eq!(minor(wrong), None, "{wrong}");
        }
    }
}
