//! Objects are counted, a page at a time; nothing of them is kept.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;

use super::{Failure, Kind, Objects, within};

/// How many objects are counted by one call.
const PAGE: u32 = 500;

/// How many objects there are.
#[derive(Default)]
pub(crate) struct Census {
    /// All of them.
    pub all: usize,
    /// Those that are being deleted.
    pub terminating: usize,
    /// Namespace and name of the first of these: `karmada-es-m1/nginx`.
    pub first_terminating: Option<String>,
}

impl Census {
    fn add(&mut self, metadata: &ObjectMeta) {
        self.all += 1;
        if metadata.deletion_timestamp.is_some() {
            self.terminating += 1;
            self.first_terminating.get_or_insert_with(|| {
                let place = metadata.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
                format!("{place}{}", metadata.name.as_deref().unwrap_or_default())
            });
        }
    }
}

impl Objects {
    /// How many objects of a kind there are in a namespace; `None`: the kind is not known.
    pub async fn count(&self, kind: Kind<'_>, namespace: &str) -> Result<Option<usize>, Failure> {
        Ok(self.census(kind, Some(namespace)).await?.map(|census| census.all))
    }

    /// How many objects of a kind there are in a namespace, or in all of them; `None`: the kind is not known.
    pub async fn census(
        &self,
        (group, version, kind): Kind<'_>,
        namespace: Option<&str>,
    ) -> Result<Option<Census>, Failure> {
        let Some(known) = self.kind(group, version, kind).await? else { return Ok(None) };
        let api = self.all(&known, namespace);
        let (mut census, mut params) = (Census::default(), ListParams::default().limit(PAGE));
        loop {
            let page = within(api.list_metadata(&params)).await?;
            page.items.iter().for_each(|object| census.add(&object.metadata));
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                return Ok(Some(census));
            }
        }
    }
}
