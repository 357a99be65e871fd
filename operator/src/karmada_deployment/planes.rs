//! The planes that can be reached: a client of each, made anew with its kubeconfig, and what was seen of its leaders.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kube::Client;
use parking_lot::Mutex;
use plan::cluster::components::LeaseSeen;
use plan::karmada_deployment::Component;

use crate::error::Error;
use crate::kubeconfig::check::Checked;
use crate::leader::Gate;
use crate::remote::{client_of, fingerprint};

/// What was seen of leaders, by component.
pub(super) type Leases = BTreeMap<Component, LeaseSeen>;

/// The planes by the UIDs of their KarmadaDeployments; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Planes(Arc<Mutex<HashMap<String, Plane>>>);

struct Plane {
    /// Of the kubeconfig: another one makes a new client. None: of a test's own, for whichever there is.
    fingerprint: Option<[u8; 32]>,
    client: Client,
    leases: Leases,
}

impl Planes {
    /// The client that this kubeconfig makes: the one there is, or a new one in place of an older kubeconfig's.
    pub(super) fn connect(&self, uid: &str, title: &str, checked: &Checked, gate: &Gate) -> Result<Client, Error> {
        let fingerprint = fingerprint(checked)?;
        let mut planes = self.0.lock();
        let known = planes.get(uid);
        if let Some(plane) = known.filter(|plane| plane.fingerprint.is_none_or(|of| of == fingerprint)) {
            return Ok(plane.client.clone());
        }
        let leases = known.map(|plane| plane.leases.clone()).unwrap_or_default();
        let client = client_of(checked, title, gate)?;
        planes.insert(uid.to_owned(), Plane { fingerprint: Some(fingerprint), client: client.clone(), leases });
        Ok(client)
    }

    /// What was seen of its leaders last.
    pub(super) fn leases(&self, uid: &str) -> Leases {
        self.0.lock().get(uid).map(|plane| plane.leases.clone()).unwrap_or_default()
    }

    /// What was seen of its leaders now.
    pub(super) fn saw(&self, uid: &str, leases: Leases) {
        if let Some(plane) = self.0.lock().get_mut(uid) {
            plane.leases = leases;
        }
    }

    /// The KarmadaDeployment goes.
    pub(super) fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }

    /// A client of a plane, whatever its kubeconfig says.
    #[cfg(test)]
    pub(crate) fn put(&self, uid: &str, client: Client) {
        self.0.lock().insert(uid.to_owned(), Plane { fingerprint: None, client, leases: Leases::default() });
    }
}
