//! Contact with an API.

/// Contact with an API.
#[derive(Clone, Debug, PartialEq)]
pub enum Contact<Seen> {
    /// It was not looked at: there is nothing to look with yet.
    NotMade,
    /// It does not answer; what it said last.
    Lost(String),
    /// It was looked at.
    Made(Seen),
}

impl<Seen> Contact<Seen> {
    /// What was seen, if there was contact.
    pub fn seen(&self) -> Option<&Seen> {
        match self {
            Self::Made(seen) => Some(seen),
            Self::NotMade | Self::Lost(_) => None,
        }
    }
}
