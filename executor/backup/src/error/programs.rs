//! How the bundle may fail that etcd's programs come from.

/// Kinds of failures of the bundle that etcd's programs come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramsFailure {
    /// It does not answer, or refuses the login.
    Unavailable,
    /// It does not have them.
    NotFound,
    /// It has others than were meant.
    Mismatch,
    /// Its index or its archive cannot be read.
    Invalid,
}

impl ProgramsFailure {
    /// The reason, in CamelCase.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Unavailable => "ArtifactSourceUnavailable",
            Self::NotFound => "ArtifactNotFound",
            Self::Mismatch => "DigestMismatch",
            Self::Invalid => "ArtifactInvalid",
        }
    }
}
