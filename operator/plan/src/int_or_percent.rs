//! What a count or a percentage comes to, rounded as Kubernetes does.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Which way a percentage is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounded {
    /// To the next whole one.
    Up,
    /// What is over a whole one is dropped.
    Down,
}

/// The count as it stands, or the percentage of `of`. What is neither comes to 0; the schema refuses it.
pub fn int_or_percent(wanted: &IntOrString, of: usize, rounded: Rounded) -> usize {
    match wanted {
        IntOrString::Int(count) => usize::try_from(*count).unwrap_or_default(),
        IntOrString::String(percent) => {
            let percent = percent.trim_end_matches('%').parse::<usize>().unwrap_or_default();
            let hundredfold = of.saturating_mul(percent.min(100));
            match rounded {
                Rounded::Up => hundredfold.div_ceil(100),
                Rounded::Down => hundredfold / 100,
            }
        }
    }
}

/// As it stands in the spec.
pub fn written(wanted: &IntOrString) -> String {
    match wanted {
        IntOrString::Int(count) => count.to_string(),
        IntOrString::String(percent) => percent.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::{IntOrString, Rounded, int_or_percent};

    #[test]
    fn a_percentage_is_rounded_and_a_count_is_not() {
        let check = |wanted: &str, of: usize, up: usize, down: usize| {
            let wanted = match wanted.parse() {
                Ok(count) => IntOrString::Int(count),
                Err(_) => IntOrString::String(wanted.into()),
            };
            assert_eq!(int_or_percent(&wanted, of, Rounded::Up), up, "{wanted:?} of {of}, up");
            assert_eq!(int_or_percent(&wanted, of, Rounded::Down), down, "{wanted:?} of {of}, down");
        };
        check("30%", 3, 1, 0);
        check("30%", 10, 3, 3);
        check("30%", 11, 4, 3);
        check("0%", 100, 0, 0);
        check("99%", 5000, 4950, 4950);
        check("2", 100, 2, 2);
        check("2", 0, 2, 2);
    }
}
