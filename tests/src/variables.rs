//! What is asked of a test by variables of the environment.

use anyhow::{Context, Result};

/// The number in a variable, or none where it is not set.
pub fn number(variable: &str) -> Result<Option<u64>> {
    let Ok(text) = std::env::var(variable) else {
        return Ok(None);
    };
    Ok(Some(text.parse().with_context(|| format!("{variable}={text} is no number"))?))
}
