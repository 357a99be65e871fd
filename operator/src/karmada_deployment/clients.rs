//! Clients of planes and of their members, made anew with their kubeconfigs.

use std::collections::HashMap;
use std::sync::Arc;

use kube::Client;
use parking_lot::Mutex;

use crate::error::Error;
use crate::kubeconfig::check::Checked;
use crate::leader::Gate;
use crate::objects::Server;
use crate::remote::{client_of, fingerprint};

/// Whose rights a client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum User {
    /// Those of the kubeconfig: the operator's.
    Operator,
    /// Those that Karmada is given.
    Karmada,
}

/// The clients by whose API they lead to; clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Clients(Arc<Mutex<HashMap<(Server, User), Known>>>);

struct Known {
    /// Of the kubeconfig: another one makes a new client. None: of a test's own, for whichever there is.
    fingerprint: Option<[u8; 32]>,
    client: Client,
}

impl Clients {
    /// The client that this kubeconfig makes: the one there is, or a new one in place of an older kubeconfig's.
    /// Messages call its API by `title`.
    pub(super) fn connect(
        &self,
        (server, user): (&Server, User),
        title: &str,
        checked: &Checked,
        gate: &Gate,
    ) -> Result<Client, Error> {
        let (key, fingerprint) = ((server.clone(), user), fingerprint(checked)?);
        let mut clients = self.0.lock();
        let known = clients.get(&key).filter(|known| known.fingerprint.is_none_or(|of| of == fingerprint));
        if let Some(known) = known {
            return Ok(known.client.clone());
        }
        let client = client_of(checked, title, gate)?;
        clients.insert(key, Known { fingerprint: Some(fingerprint), client: client.clone() });
        Ok(client)
    }

    /// Keeps, of a plane and its members, those alone for which `stays` holds.
    pub(super) fn retain(&self, plane: &str, stays: impl Fn(&Server) -> bool) {
        let is_of = |server: &Server| match server {
            Server::Plane(uid) => uid == plane,
            Server::Member { plane: uid, .. } => uid == plane,
            Server::Metadata | Server::Cluster(_) => false,
        };
        self.0.lock().retain(|(server, _), _| !is_of(server) || stays(server));
    }

    /// A client of an API, whatever its kubeconfig says.
    #[cfg(test)]
    pub(crate) fn put(&self, server: Server, user: User, client: Client) {
        self.0.lock().insert((server, user), Known { fingerprint: None, client });
    }
}
