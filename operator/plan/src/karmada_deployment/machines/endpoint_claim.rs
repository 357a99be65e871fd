//! The endpoint of a plane among those of all clusters and planes: who was first with its address or router id.

use crds::KarmadaDeployment;

use crate::endpoint_claims::{EndpointClaim, Standing};

/// The endpoint that a plane asks for; none: it asks for none.
pub(crate) fn claim(plane: &KarmadaDeployment) -> Option<EndpointClaim<'_>> {
    let endpoint = plane.spec.binary.as_ref()?.endpoint.as_ref()?;
    let standing = match &plane.status {
        Some(status) if status.first_installed_at.is_some() => Standing::Installed,
        Some(status) if status.last_token.is_some_and(|token| token > 0) => Standing::Begun,
        _ => Standing::Wished,
    };
    Some(EndpointClaim { kind: "KarmadaDeployment", metadata: &plane.metadata, standing, endpoint })
}
