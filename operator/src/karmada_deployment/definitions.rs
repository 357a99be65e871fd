//! A plane's CustomResourceDefinitions, out of the bundle. They are many and long, and always the same of one file:
//! parsed once, they are kept.

mod kept;

use std::sync::Arc;

use crds::{KarmadaDeployment, ObjectExt, Reason};
use plan::addon::Problem;
use plan::addon::bundle::{EntryKind, EntryWanted};
use plan::cluster_addon::documents::{Document, in_order, parse};
use plan::karmada_deployment::DEFINITIONS_ENTRY;

use crate::addon::bundle::{Access, entry};
use crate::context::Context;
use crate::error::Error;
pub(crate) use kept::Definitions;

const FIELD: &str = "spec.crds";

/// The definitions of the plane's version; or why they cannot be had.
pub(super) async fn read(
    ctx: &Context,
    object: &KarmadaDeployment,
) -> Result<Result<Arc<Vec<Document>>, Problem>, Error> {
    let crds = &object.spec.crds;
    let (ca, credentials) = (crds.ca_ref.as_ref(), crds.credentials_ref.as_ref());
    let access = Access { namespace: object.namespace(), field: FIELD, ca, credentials };
    let wanted = EntryWanted {
        field: FIELD,
        place: crds.bundle.clone(),
        kind: EntryKind::Manifests,
        name: DEFINITIONS_ENTRY.to_owned(),
        version: object.spec.version.as_str().to_owned(),
    };
    let (found, file) = match entry(ctx, &access, &wanted, true).await? {
        Ok(found) => found,
        Err(problem) => return Ok(Err(problem)),
    };
    if let Some(known) = ctx.definitions.find(&found.sha256) {
        return Ok(Ok(known));
    }
    let place = format!("{FIELD}: {} of {}", wanted.title(), crds.bundle.url);
    let parsed = String::from_utf8(file)
        .map_err(|_| format!("{place}: it is no text"))
        .and_then(|text| in_order(parse(&place, &text, None)?));
    Ok(match parsed {
        Ok(documents) => {
            let documents = Arc::new(documents);
            ctx.definitions.keep(found.sha256, documents.clone());
            Ok(documents)
        }
        Err(message) => Err(Problem { reason: Reason::BundleInvalid, message }),
    })
}
