//! The login at the place that a chart comes from.

use crds::chart::{PASSWORD_FILE, USERNAME_FILE};

use crate::secrets::{Secrets, without_newline};

/// The user's name and password, where both are given.
pub(super) fn login(secrets: &Secrets) -> Option<(String, String)> {
    text(secrets, USERNAME_FILE).zip(text(secrets, PASSWORD_FILE))
}

/// A secret of one line.
pub(super) fn text(secrets: &Secrets, name: &str) -> Option<String> {
    let value = secrets.get(name).map(without_newline)?;
    std::str::from_utf8(value).ok().map(str::to_owned)
}
