//! Names that follow from what an object is for: making it twice is impossible, and who reads it finds its owner.

use crds::step::Intent;
use jiff::SignedDuration;
use sha2::{Digest, Sha256};

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// `length` characters (at most 25) that follow from the parts; the parts are kept apart.
pub fn short_hash(parts: &[&str], length: usize) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().iter().take(length).map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}

/// A place in a window of so many seconds that follows from the text: the same at every time, and another one for every
/// text. 0 to less than the window.
pub fn offset(text: &str, window_seconds: u64) -> SignedDuration {
    let digest = Sha256::digest(text.as_bytes());
    let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let place = number.checked_rem(window_seconds).unwrap_or_default();
    SignedDuration::from_secs(i64::try_from(place).unwrap_or_default())
}

/// Name of the Machine of an ordinal of a set.
pub fn machine(set: &str, set_uid: &str, ordinal: u32) -> String {
    format!("{set}-{}", short_hash(&[set_uid, &ordinal.to_string()], 6))
}

/// Name of the run of a cluster for an intent on some machines (their UIDs, in any order) in an attempt.
pub fn run<'a>(
    cluster: &str,
    cluster_uid: &str,
    intent: Intent,
    machine_uids: impl IntoIterator<Item = &'a str>,
    attempt: i32,
) -> String {
    let mut uids: Vec<&str> = machine_uids.into_iter().collect();
    uids.sort_unstable();
    let mut parts = vec![cluster_uid, intent.spec().slug];
    parts.extend(uids);
    format!("{cluster}-{}-{}-{attempt}", intent.spec().slug, short_hash(&parts, 6))
}

/// Name of the Addon that `spec.addons` of a ClusterDeployment becomes. Names of clusters are short enough for it.
pub fn own_addon(cluster: &str) -> String {
    format!("{cluster}-addons")
}

/// Name of the ClusterAddon of an Addon on a cluster.
pub fn cluster_addon(addon: &str, cluster: &str) -> String {
    let whole = format!("{addon}-{cluster}");
    match whole.len() <= 63 && !cluster.contains('.') {
        true => whole,
        false => {
            let cluster: String = cluster.chars().take(14).collect();
            let cluster = cluster.trim_end_matches(['-', '.']).replace('.', "-");
            format!("{addon}-{cluster}-{}", short_hash(&[&whole], 6))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{machine, run};
    use crds::step::Intent;

    #[test]
    fn a_name_follows_from_its_purpose_and_from_nothing_else() {
        let of = |uids: &[&str], attempt| run("a", "uid", Intent::Join, uids.iter().copied(), attempt);
        assert_eq!(of(&["x", "y"], 0), of(&["y", "x"], 0));
        assert_ne!(of(&["x", "y"], 0), of(&["x", "y"], 1));
        assert_ne!(of(&["x", "y"], 0), of(&["xy"], 0));
        assert_ne!(machine("a-w", "1", 11), machine("a-w", "11", 1));
    }

    #[test]
    fn the_longest_names_fit() {
        let set = format!("{}-{}", "c".repeat(32), "w".repeat(20));
        assert!(machine(&set, "uid", 4999).len() <= 63);
        assert!(run(&"c".repeat(32), "u", Intent::Install, ["m"], 99_999).len() <= 63);
    }
}
