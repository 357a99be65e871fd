//! etcd's leaf certificates: a server and a peer certificate a member, and the clients' that health checks and API
//! servers use. They are kept in the Secret `<cluster>-etcd-certificates`.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use jiff::Timestamp;
use plan::rotation::Subject;

use super::PkiOwner;
use super::authority::Leaf;
use super::leaves::{self, LeafRow, pair_names};
use super::material::{Data, Pki};
use crate::context::Context;
use crate::error::Error;

/// A member of etcd: its Host's name, and where others reach it (IP addresses or DNS names).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub host: String,
    pub addresses: Vec<String>,
}

impl Member {
    /// Of each of these pairs of a Host's name and its address.
    pub fn all<'a>(pairs: impl IntoIterator<Item = &'a (String, String)>) -> Vec<Self> {
        let member = |(host, address): &(String, String)| Self { host: host.clone(), addresses: vec![address.clone()] };
        pairs.into_iter().map(member).collect()
    }
}

/// All leaf certificates of a cluster's etcd, by the names of the files that machines get.
#[derive(Clone, PartialEq, Eq)]
pub struct EtcdCertificates(Data);

impl EtcdCertificates {
    /// What a run gets in which these etcd machines are.
    pub fn files_of<'a>(&self, hosts: impl IntoIterator<Item = &'a str>) -> Data {
        let names = hosts.into_iter().flat_map(|host| {
            ["server", "peer"].into_iter().flat_map(move |kind| pair_names(&format!("etcd.{host}.{kind}")))
        });
        self.pick(names.chain(pair_names(HEALTHCHECK.0)))
    }

    /// What a run with control planes gets: the API servers' client certificate.
    pub fn apiserver_files(&self) -> Data {
        self.pick(pair_names(APISERVER.0))
    }

    fn pick(&self, names: impl IntoIterator<Item = String>) -> Data {
        let names = names.into_iter();
        names.filter_map(|name| self.0.get_key_value(&name).map(|(key, value)| (key.clone(), value.clone()))).collect()
    }
}

/// A client of etcd: what the names of its files begin with, and its common name.
pub type Client = (&'static str, &'static str);

const HEALTHCHECK: Client = ("etcd.healthcheck-client", "kube-etcd-healthcheck-client");
const APISERVER: Client = ("pki.apiserver-etcd-client", "kube-apiserver-etcd-client");

/// The certificates of these members (all of the owner's etcd) and of its clients, kept or made; written only when
/// something changed.
pub async fn ensure(
    ctx: &Context,
    owner: &PkiOwner,
    pki: &Pki,
    members: &[Member],
    now: Timestamp,
) -> Result<EtcdCertificates, Error> {
    let secret = owner.etcd_certificates_secret();
    let rows = rows(&[HEALTHCHECK, APISERVER], members);
    leaves::ensure(ctx, owner, (&secret, "etcd certificates"), pki, &rows, now).await.map(EtcdCertificates)
}

/// Those of an etcd with these clients and members.
pub fn rows(clients: &[Client], members: &[Member]) -> Vec<LeafRow> {
    let row = |stem: String, leaf: Leaf| LeafRow { stem, signer: Subject::EtcdCa, leaf };
    let client = |(stem, common_name): &Client| {
        let leaf = Leaf { common_name: (*common_name).into(), organization: Some("system:masters"), ..Leaf::default() };
        row((*stem).to_owned(), leaf)
    };
    let of_member = |member: &Member| {
        let leaf = leaf_of(member);
        ["server", "peer"].map(|kind| row(format!("etcd.{}.{kind}", member.host), leaf.clone()))
    };
    clients.iter().map(client).chain(members.iter().flat_map(of_member)).collect()
}

/// What the certificates of a member say, of which it has one as a server and one as a peer.
fn leaf_of(member: &Member) -> Leaf {
    let (addresses, names): (Vec<_>, Vec<_>) = member
        .addresses
        .iter()
        .map(|given| given.parse::<IpAddr>().map_err(|_| given.clone()))
        .partition(Result::is_ok);
    let addresses: BTreeSet<IpAddr> = addresses
        .into_iter()
        .filter_map(Result::ok)
        .chain([Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
        .collect();
    let names: BTreeSet<String> =
        names.into_iter().filter_map(Result::err).chain(["localhost".to_owned(), member.host.clone()]).collect();
    Leaf {
        common_name: member.host.clone(),
        organization: None,
        dns_names: names.into_iter().collect(),
        addresses: addresses.into_iter().collect(),
        serves: true,
    }
}

#[cfg(test)]
mod tests {
    use super::{APISERVER, EtcdCertificates, HEALTHCHECK, Member, rows};
    use crate::pki::fixtures::{TWO, policy};
    use crate::pki::{Pki, PkiError, leaves};
    use jiff::{Span, Timestamp};
    use plan::certificates::RenewalPolicy;
    use plan::encryption::Scheme;

    fn member(host: &str, address: &str) -> Member {
        Member { host: host.into(), addresses: vec![address.into()] }
    }

    fn now() -> Timestamp {
        "2026-11-21T00:00:00Z".parse().unwrap()
    }

    fn pki() -> Pki {
        Pki::generate(TWO, &Scheme::default(), now()).unwrap()
    }

    fn complete(
        kept: &super::Data,
        pki: &Pki,
        members: &[Member],
        policy: RenewalPolicy,
        now: Timestamp,
    ) -> Result<super::Data, PkiError> {
        leaves::complete(kept, pki, &rows(&[HEALTHCHECK, APISERVER], members), policy, now)
    }

    fn changed(before: &super::Data, after: &super::Data) -> Vec<String> {
        let changed = after.iter().filter(|(name, content)| before.get(*name) != Some(content));
        changed.map(|(name, _)| name.clone()).filter(|name| name.ends_with(".crt")).collect()
    }

    #[test]
    fn certificates_that_still_do_are_kept() {
        let authority = pki();
        let one = [member("m1", "172.30.0.10")];
        let first = complete(&Default::default(), &authority, &one, policy(), now()).unwrap();
        assert_eq!(first.len(), 8);
        assert_eq!(complete(&first, &authority, &one, policy(), now()).unwrap(), first);

        let two = [member("m1", "172.30.0.10"), member("m2", "etcd-2.example")];
        let second = complete(&first, &authority, &two, policy(), now()).unwrap();
        assert_eq!(changed(&first, &second), ["etcd.m2.peer.crt", "etcd.m2.server.crt"]);

        let moved = [member("m1", "172.30.0.99"), member("m2", "etcd-2.example")];
        let third = complete(&second, &authority, &moved, policy(), now()).unwrap();
        assert_eq!(changed(&second, &third), ["etcd.m1.peer.crt", "etcd.m1.server.crt"]);
        assert_eq!(complete(&third, &authority, &one[..0], policy(), now()).unwrap().len(), 4);
    }

    #[test]
    fn certificates_that_end_soon_or_are_of_another_authority_are_made_anew() {
        let authority = pki();
        let members = [member("m1", "172.30.0.10")];
        let first = complete(&Default::default(), &authority, &members, policy(), now()).unwrap();
        let after = |days: i64| now() + Span::new().hours(24 * days);
        assert_eq!(complete(&first, &authority, &members, policy(), after(200)).unwrap(), first);
        let renewed = complete(&first, &authority, &members, policy(), after(220)).unwrap();
        assert_eq!(changed(&first, &renewed).len(), 4);
        let other = pki();
        assert_eq!(changed(&first, &complete(&first, &other, &members, policy(), now()).unwrap()).len(), 4);
    }

    #[test]
    fn a_run_gets_the_certificates_of_its_own_machines_only() {
        let authority = pki();
        let members = [member("m1", "172.30.0.10"), member("m2", "172.30.0.11")];
        let all = EtcdCertificates(complete(&Default::default(), &authority, &members, policy(), now()).unwrap());
        assert_eq!(
            all.files_of(["m2"]).into_keys().collect::<Vec<_>>(),
            [
                "etcd.healthcheck-client.crt",
                "etcd.healthcheck-client.key",
                "etcd.m2.peer.crt",
                "etcd.m2.peer.key",
                "etcd.m2.server.crt",
                "etcd.m2.server.key"
            ]
        );
        assert_eq!(
            all.apiserver_files().into_keys().collect::<Vec<_>>(),
            ["pki.apiserver-etcd-client.crt", "pki.apiserver-etcd-client.key"]
        );
    }
}
