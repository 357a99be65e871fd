//! What is kept of planes between two reconciles: clients of them and of their members, what was seen of their leaders
//! and of what was made for them, and which members did not answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kube::Client;
use parking_lot::Mutex;
use plan::cluster::components::LeaseSeen;
use plan::karmada_deployment::Component;

use super::clients::{Clients, User};
use super::etcd::Reach;
use super::inventory::kept::Inventories;
use super::members::silences::Silences;
use crate::error::Error;
use crate::kubeconfig::check::Checked;
use crate::leader::Gate;
use crate::objects::Server;

/// What was seen of leaders, by component.
pub(super) type Leases = BTreeMap<Component, LeaseSeen>;

/// The planes by the UIDs of their KarmadaDeployments; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Planes {
    pub(super) clients: Clients,
    pub(super) silences: Silences,
    pub(super) inventories: Inventories,
    leases: Arc<Mutex<HashMap<String, Leases>>>,
    reaches: Arc<Mutex<HashMap<String, Reach>>>,
}

impl Planes {
    /// The client that this kubeconfig makes: the one there is, or a new one in place of an older kubeconfig's.
    pub(super) fn connect(&self, uid: &str, title: &str, checked: &Checked, gate: &Gate) -> Result<Client, Error> {
        self.clients.connect((&Server::Plane(uid.to_owned()), User::Operator), title, checked, gate)
    }

    /// What was seen of its leaders last.
    pub(super) fn leases(&self, uid: &str) -> Leases {
        self.leases.lock().get(uid).cloned().unwrap_or_default()
    }

    /// What was seen of its leaders now.
    pub(super) fn saw(&self, uid: &str, leases: Leases) {
        self.leases.lock().insert(uid.to_owned(), leases);
    }

    /// How the Pods of its etcd are reached.
    pub(super) fn reach(&self, uid: &str) -> Reach {
        self.reaches.lock().get(uid).cloned().unwrap_or_default()
    }

    /// The KarmadaDeployment goes.
    pub(super) fn forget(&self, uid: &str) {
        self.clients.retain(uid, |_| false);
        self.silences.retain(uid, |_| false);
        self.inventories.retain(uid, |_| false);
        self.leases.lock().remove(uid);
    }

    /// A client of a plane, whatever its kubeconfig says.
    #[cfg(test)]
    pub(crate) fn put(&self, uid: &str, client: Client) {
        self.clients.put(Server::Plane(uid.to_owned()), User::Operator, client);
    }

    /// Who answers in place of the Pods of a plane's etcd.
    #[cfg(test)]
    pub(crate) fn put_etcd(&self, uid: &str, router: axum::Router) {
        self.reaches.lock().insert(uid.to_owned(), Reach::StandIn(router));
    }

    /// A client of a member, whatever its kubeconfig and Karmada's token say.
    #[cfg(test)]
    pub(crate) fn put_member(&self, uid: &str, name: &str, client: &Client) {
        for user in [User::Operator, User::Karmada] {
            let server = Server::Member { plane: uid.to_owned(), name: name.to_owned() };
            self.clients.put(server, user, client.clone());
        }
    }
}
