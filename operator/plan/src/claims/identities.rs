//! Identities: what tells two Hosts that are one machine. Two clusters must not get one machine under two names.

use std::collections::HashMap;

use crds::Host;
use crds::ObjectExt;
use crds::Reason;
use jiff::Timestamp;

use crate::inputs::address_in_cluster;

/// Something that only one machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Identity<'a> {
    /// Where SSH answers: behind which bastion, at which address and port.
    Door(Option<&'a str>, &'a str, i32),
    /// Its address in the cluster's network, behind which bastion.
    Inside(Option<&'a str>, &'a str),
    /// A public host key.
    Key(&'a str),
}

impl Identity<'_> {
    fn key(&self) -> String {
        match self {
            Self::Door(bastion, address, port) => format!("door {} {address} {port}", bastion.unwrap_or_default()),
            Self::Inside(bastion, address) => format!("inside {} {address}", bastion.unwrap_or_default()),
            Self::Key(key) => format!("key {key}"),
        }
    }
}

/// Which Host comes first for each identity: one that is claimed, then the oldest, then by name.
#[derive(Debug, Default)]
pub struct Identities<'a> {
    first: HashMap<Identity<'a>, &'a Host>,
}

/// A Host that is the machine of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Double<'a> {
    /// The Host that comes first.
    pub of: &'a str,
    /// What both have: the address, or else a host key.
    pub address: bool,
}

impl Double<'_> {
    /// CamelCase.
    pub fn reason(&self) -> Reason {
        if self.address { Reason::SameAddress } else { Reason::SameHostKey }
    }

    /// What it is and what to do.
    pub fn message(&self) -> String {
        let of = self.of;
        if self.address {
            return format!("Host {of} has the same address: one machine is one Host, delete one of them");
        }
        format!(
            "Host {of} has the same host key: one machine is one Host, delete one of them; if they are two machines, give each its own host key"
        )
    }
}

impl<'a> Identities<'a> {
    /// Of all Hosts of a namespace.
    pub fn new(hosts: impl IntoIterator<Item = &'a Host>) -> Self {
        let mut first: HashMap<Identity<'a>, &'a Host> = HashMap::new();
        for host in hosts {
            for identity in identities(host) {
                let place = first.entry(identity).or_insert(host);
                if rank(host) < rank(place) {
                    *place = host;
                }
            }
        }
        Self { first }
    }

    /// The Host whose machine this one is, if another comes first.
    pub fn double(&self, host: &'a Host) -> Option<Double<'a>> {
        let doubles = identities(host).filter_map(|identity| {
            let first = self.first.get(&identity)?.name();
            let address = !matches!(identity, Identity::Key(_));
            (first != host.name()).then_some((!address, first))
        });
        let (key, of) = doubles.min()?;
        Some(Double { of, address: !key })
    }
}

/// What only one machine has, as text: the identities of a Host, and its machine-id, which clones of an image share.
/// Hosts that have none of them in common have nothing to do with each other.
pub fn identity_keys(host: &Host) -> Vec<String> {
    let facts = host.status.as_ref().and_then(|status| status.facts.as_ref());
    let machine_id = facts.map(|facts| facts.machine_id.as_str()).filter(|id| !id.is_empty());
    let machine_id = machine_id.map(|id| format!("machine-id {id}"));
    identities(host).map(|identity| identity.key()).chain(machine_id).collect()
}

/// Whether two Hosts are one machine.
pub fn is_one_machine(one: &Host, other: &Host) -> bool {
    identities(one).any(|identity| identities(other).any(|candidate| candidate == identity))
}

fn rank(host: &Host) -> (bool, Option<Timestamp>, &str) {
    let created = host.created_at().map(|time| time.0);
    (host.spec.claim_ref.is_none(), created, host.name())
}

fn identities(host: &Host) -> impl Iterator<Item = Identity<'_>> {
    let ssh = &host.spec.ssh;
    let bastion = ssh.bastion_ref.as_ref().map(|bastion| bastion.name.as_str());
    let pinned = host.status.iter().flat_map(|status| &status.host_keys);
    [Identity::Door(bastion, &host.spec.address, ssh.port), Identity::Inside(bastion, address_in_cluster(host))]
        .into_iter()
        .chain(ssh.host_keys.iter().chain(pinned).map(|key| Identity::Key(without_comment(key))))
}

/// `ssh-ed25519 AAAA` of `ssh-ed25519 AAAA root@n1`.
pub(crate) fn without_comment(key: &str) -> &str {
    let key = key.trim();
    match key.match_indices(' ').nth(1) {
        Some((end, _)) => &key[..end],
        None => key,
    }
}

#[cfg(test)]
mod tests {
    use super::Identities;
    use crds::Host;

    fn host(name: &str, age: &str, spec: &str) -> Host {
        let yaml = format!(
            "{{apiVersion: clusterwright.dev/v1alpha1, kind: Host, metadata: {{name: {name}, creationTimestamp: '{age}'}}, spec: {{{spec}}}}}"
        );
        serde_yaml::from_str(&yaml).unwrap()
    }

    const OLD: &str = "2026-01-01T00:00:00Z";
    const NEW: &str = "2026-01-02T00:00:00Z";

    #[test]
    fn the_second_host_of_a_machine_is_told_by_age_then_name_and_one_that_is_claimed_is_the_first() {
        let ssh = |more: &str| format!("ssh: {{credentialsRef: {{name: k}}{more}}}");
        let at = |address: &str, more: &str| format!("address: {address}, {}", ssh(more));
        let check = |a: Host, b: Host, expected: [Option<&str>; 2]| {
            let identities = Identities::new([&a, &b]);
            let told = [&a, &b].map(|host| {
                let double = identities.double(host)?;
                Some(format!("{} {}", double.of, double.reason()))
            });
            assert_eq!(told.each_ref().map(Option::as_deref), expected, "{a:?} {b:?}");
        };
        let (one, two) = (at("10.0.0.1", ""), at("10.0.0.2", ""));
        check(host("a", OLD, &one), host("b", OLD, &two), [None, None]);
        check(host("a", OLD, &one), host("b", OLD, &one), [None, Some("a SameAddress")]);
        check(host("a", NEW, &one), host("b", OLD, &one), [Some("b SameAddress"), None]);
        let mut claimed = host("a", NEW, &one);
        claimed.spec.claim_ref = Some(serde_yaml::from_str("{kind: Machine, name: m, uid: u}").unwrap());
        check(claimed, host("b", OLD, &one), [None, Some("a SameAddress")]);
        let inside = at("203.0.113.9, internalAddress: 10.0.0.1", "");
        check(host("a", OLD, &one), host("b", NEW, &inside), [None, Some("a SameAddress")]);
        check(host("a", OLD, &one), host("b", NEW, &at("10.0.0.1", ", bastionRef: {name: jump}")), [None, None]);
        check(
            host("a", OLD, &at("10.0.0.1", ", hostKeys: ['ssh-ed25519 AAAA root@a']")),
            host("b", NEW, &at("10.0.0.2", ", hostKeys: ['ssh-rsa BBBB', 'ssh-ed25519 AAAA']")),
            [None, Some("a SameHostKey")],
        );
        let mut trusted = host("b", NEW, &at("10.0.0.2", ", hostKeyPolicy: TrustOnFirstUse"));
        trusted.status = Some(serde_yaml::from_str("{hostKeys: ['ssh-ed25519 AAAA']}").unwrap());
        check(
            host("a", OLD, &at("10.0.0.1", ", hostKeys: ['ssh-ed25519 AAAA']")),
            trusted,
            [None, Some("a SameHostKey")],
        );
    }
}
