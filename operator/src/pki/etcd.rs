//! etcd's leaf certificates: a server and a peer certificate a member, and the clients' that health checks and API
//! servers use. They are kept in the Secret `<cluster>-etcd-certificates`, so that a second run of a step brings the
//! same files and changes nothing; one is made anew when it is missing, does not fit, or ends soon.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crds::ClusterDeployment;
use crds::names::etcd_certificates_secret;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube::ResourceExt;
use plan::certificates::RenewalPolicy;
use rcgen::KeyPair;

use super::authority::{Authority, Leaf};
use super::certificate::Certificate;
use super::material::{Data, Pki};
use super::{PkiError, belongs_to, find, secret};
use crate::context::Context;
use crate::error::{Error, ResultExt};
use crate::execute;

/// A member of etcd: its Host's name, and where others reach it (IP addresses or DNS names).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub host: String,
    pub addresses: Vec<String>,
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
        self.pick(names.chain(pair_names(HEALTHCHECK)))
    }

    /// What a run with control planes gets: the API servers' client certificate.
    pub fn apiserver_files(&self) -> Data {
        self.pick(pair_names(APISERVER))
    }

    fn pick(&self, names: impl IntoIterator<Item = String>) -> Data {
        let names = names.into_iter();
        names.filter_map(|name| self.0.get_key_value(&name).map(|(key, value)| (key.clone(), value.clone()))).collect()
    }
}

const HEALTHCHECK: &str = "etcd.healthcheck-client";
const APISERVER: &str = "pki.apiserver-etcd-client";

fn pair_names(stem: &str) -> [String; 2] {
    [format!("{stem}.crt"), format!("{stem}.key")]
}

/// The certificates of these members (all of the cluster's), kept or made; written only when something changed.
pub async fn ensure(
    ctx: &Context,
    cd: &ClusterDeployment,
    pki: &Pki,
    members: &[Member],
    now: Timestamp,
) -> Result<EtcdCertificates, Error> {
    let name = etcd_certificates_secret(&cd.name_any());
    let found = find(ctx, cd, &name).await?;
    if let Some(found) = &found {
        belongs_to(found, cd).doing(|| format!("use Secret {name}"))?;
    }
    let kept = found.and_then(|secret| secret.data).unwrap_or_default();
    let policy = RenewalPolicy::new(cd);
    let wanted = complete(&kept, pki.etcd.signer(), members, policy, now)
        .doing(|| format!("make the etcd certificates of cluster {}", cd.name_any()))?;
    if wanted != kept {
        execute::apply(ctx, &secret(cd, &name, wanted.clone())).await?;
    }
    Ok(EtcdCertificates(wanted))
}

/// Every certificate wanted: those kept that still do, the others made. Certificates of members that are gone go too.
fn complete(
    kept: &Data,
    authority: &Authority,
    members: &[Member],
    policy: RenewalPolicy,
    now: Timestamp,
) -> Result<Data, PkiError> {
    let ends_late =
        |certificate: &Certificate| certificate.not_after().is_ok_and(|end| !policy.is_worth_a_new_one(end, now));
    let mut wanted = BTreeMap::new();
    for (stem, leaf) in leaves(members) {
        let [certificate, key] = pair_names(&stem);
        match (kept.get(&certificate), kept.get(&key)) {
            (Some(old), Some(old_key)) if still_good(old, old_key, authority, &leaf, ends_late) => {
                wanted.insert(certificate, old.clone());
                wanted.insert(key, old_key.clone());
            }
            _ => {
                let made = authority.issue(&leaf, policy.validity, now)?;
                wanted.insert(certificate, ByteString(made.certificate.into()));
                wanted.insert(key, ByteString(made.key.into()));
            }
        }
    }
    Ok(wanted)
}

fn leaves(members: &[Member]) -> Vec<(String, Leaf)> {
    let client = |common_name: &str| Leaf {
        common_name: common_name.into(),
        organization: Some("system:masters"),
        ..Leaf::default()
    };
    let mut leaves = vec![
        (HEALTHCHECK.to_owned(), client("kube-etcd-healthcheck-client")),
        (APISERVER.to_owned(), client("kube-apiserver-etcd-client")),
    ];
    for member in members {
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
        let leaf = Leaf {
            common_name: member.host.clone(),
            organization: None,
            dns_names: names.into_iter().collect(),
            addresses: addresses.into_iter().collect(),
            serves: true,
        };
        leaves.push((format!("etcd.{}.server", member.host), leaf.clone()));
        leaves.push((format!("etcd.{}.peer", member.host), leaf));
    }
    leaves
}

fn still_good(
    certificate: &ByteString,
    key: &ByteString,
    authority: &Authority,
    leaf: &Leaf,
    ends_late: impl Fn(&Certificate) -> bool,
) -> bool {
    let parse = |pem: &str| Certificate::parse("a certificate of etcd", pem);
    let (Ok(pem), Ok(key)) = (std::str::from_utf8(&certificate.0), std::str::from_utf8(&key.0)) else {
        return false;
    };
    let (Ok(certificate), Ok(authority), Ok(key)) =
        (parse(pem), parse(authority.certificate()), KeyPair::from_pem(key))
    else {
        return false;
    };
    let names = (
        leaf.dns_names.iter().cloned().collect::<BTreeSet<_>>(),
        leaf.addresses.iter().copied().collect::<BTreeSet<_>>(),
    );
    certificate.is_signed_by(&authority)
        && certificate.has_key(&key)
        && certificate.alternative_names().is_ok_and(|found| found == names)
        && ends_late(&certificate)
}

#[cfg(test)]
mod tests {
    use super::{EtcdCertificates, Member, RenewalPolicy, complete};
    use crate::pki::Authority;
    use jiff::{SignedDuration, Span, Timestamp};

    fn member(host: &str, address: &str) -> Member {
        Member { host: host.into(), addresses: vec![address.into()] }
    }

    fn now() -> Timestamp {
        "2026-11-21T00:00:00Z".parse().unwrap()
    }

    /// A year, of which a third is left when they are renewed.
    fn policy() -> RenewalPolicy {
        let days = |days: i64| SignedDuration::from_hours(24 * days);
        RenewalPolicy { validity: days(365), renew_before: days(121) }
    }

    fn changed(before: &super::Data, after: &super::Data) -> Vec<String> {
        let changed = after.iter().filter(|(name, content)| before.get(*name) != Some(content));
        changed.map(|(name, _)| name.clone()).filter(|name| name.ends_with(".crt")).collect()
    }

    #[test]
    fn certificates_that_still_do_are_kept() {
        let authority = Authority::generate("etcd-ca", now()).unwrap();
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
        let authority = Authority::generate("etcd-ca", now()).unwrap();
        let members = [member("m1", "172.30.0.10")];
        let first = complete(&Default::default(), &authority, &members, policy(), now()).unwrap();
        let after = |days: i64| now() + Span::new().hours(24 * days);
        assert_eq!(complete(&first, &authority, &members, policy(), after(200)).unwrap(), first);
        let renewed = complete(&first, &authority, &members, policy(), after(220)).unwrap();
        assert_eq!(changed(&first, &renewed).len(), 4);
        let other = Authority::generate("etcd-ca", now()).unwrap();
        assert_eq!(changed(&first, &complete(&first, &other, &members, policy(), now()).unwrap()).len(), 4);
    }

    #[test]
    fn a_run_gets_the_certificates_of_its_own_machines_only() {
        let authority = Authority::generate("etcd-ca", now()).unwrap();
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
