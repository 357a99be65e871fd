//! Contact with an API.

/// Contact with an API.
#[derive(Clone, Debug, PartialEq)]
pub enum Contact<Seen> {
    /// It was not looked at: there is nothing to look with yet.
    NotMade,
    /// It does not answer; what it said last.
    Lost(String),
    /// It answers, and does not let the operator look.
    Forbidden(Forbidden),
    /// It was looked at.
    Made(Seen),
}

/// What an API does not let the operator do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forbidden {
    /// Whom it takes the operator for; `None`: it does not say.
    pub user: Option<String>,
    /// What it said.
    pub message: String,
}

/// Why nothing is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unseen<'a> {
    /// There is nothing to look with yet.
    NotMade,
    /// It does not answer.
    Lost(&'a str),
    /// It does not let the operator look.
    Forbidden(&'a Forbidden),
}

impl<Seen> Contact<Seen> {
    /// What was seen, if there was contact.
    pub fn seen(&self) -> Option<&Seen> {
        match self {
            Self::Made(seen) => Some(seen),
            Self::NotMade | Self::Lost(_) | Self::Forbidden(_) => None,
        }
    }

    /// What was seen, or why nothing was.
    pub(super) fn look(&self) -> Result<&Seen, Unseen<'_>> {
        match self {
            Self::Made(seen) => Ok(seen),
            Self::NotMade => Err(Unseen::NotMade),
            Self::Lost(why) => Err(Unseen::Lost(why)),
            Self::Forbidden(forbidden) => Err(Unseen::Forbidden(forbidden)),
        }
    }
}
