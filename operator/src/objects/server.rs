//! Whose API it is.

use crate::remote::Key;

/// An API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Server {
    /// The metadata cluster's.
    Metadata,
    /// A Cluster's.
    Cluster(Key),
    /// A plane's: that of the KarmadaDeployment of this UID.
    Plane(String),
    /// A member's of a plane.
    Member {
        /// UID of the KarmadaDeployment.
        plane: String,
        /// Its name in the plane.
        name: String,
    },
}
