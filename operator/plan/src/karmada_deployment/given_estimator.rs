//! What the estimator of a member is given on machines: the port that it is asked at, and its files. It is kept in a
//! Secret beside the KarmadaDeployment, so that a machine that joins has it as well while the member does not answer.

use std::collections::{BTreeMap, BTreeSet};

use crds::{KarmadaDeployment, ObjectExt};

use super::contents::Files;
use crate::naming::offset;

/// The entry of the Secret with the port.
const PORT: &str = "port";
/// The first port that an estimator is asked at.
const FIRST_PORT: u16 = 21_000;
/// How many ports there are, and how far behind the port that an estimator is asked at the one is where it says how
/// it is.
const PORTS: u16 = 1_000;

/// What an estimator is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenEstimator {
    /// Where it is asked: the same port on all machines, and that of no other member.
    pub port: u16,
    /// Its files by their names.
    pub files: Files,
}

impl GivenEstimator {
    /// Name of the Secret.
    pub fn secret(object: &KarmadaDeployment, member: &str) -> String {
        format!("{}-estimator-{member}", object.name())
    }

    /// What such a Secret holds; none: it has no port of an estimator.
    pub fn parse(mut data: Files) -> Option<Self> {
        let port = data.0.remove(PORT)?;
        let port: u16 = std::str::from_utf8(&port).ok()?.parse().ok()?;
        let is_ours = (FIRST_PORT..FIRST_PORT + PORTS).contains(&port);
        is_ours.then_some(Self { port, files: data })
    }

    /// What the Secret is to hold.
    pub fn data(&self) -> Files {
        let mut data = self.files.clone();
        data.0.insert(PORT.to_owned(), self.port.to_string().into_bytes());
        data
    }

    /// Where it says how it is, on its machine alone.
    pub(super) const fn health_port(&self) -> u16 {
        self.port + PORTS
    }
}

/// The ports of these members, in the order of their names: what one was given stays; another's follows from its name,
/// or is the next one that is free, so that it is seldom one that somebody had before. None is left for those beyond a
/// thousand.
pub(super) fn ports<'a>(
    members: impl IntoIterator<Item = &'a str>,
    given: &BTreeMap<String, GivenEstimator>,
) -> BTreeMap<&'a str, u16> {
    let mut taken: BTreeSet<u16> = given.values().map(|given| given.port).collect();
    let mut ports = BTreeMap::new();
    for member in members.into_iter().collect::<BTreeSet<&str>>() {
        let first = u16::try_from(offset(member, u64::from(PORTS)).as_secs()).unwrap_or_default();
        let mut free = (0..PORTS).map(|step| FIRST_PORT + (first + step) % PORTS).filter(|port| !taken.contains(port));
        let port = given.get(member).map(|given| given.port).or_else(|| free.next());
        taken.extend(port);
        ports.extend(port.map(|port| (member, port)));
    }
    ports
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::{FIRST_PORT, Files, GivenEstimator, PORTS, ports};

    fn given(port: u16) -> GivenEstimator {
        GivenEstimator { port, files: Files([("kubeconfig".to_owned(), b"k".to_vec())].into()) }
    }

    #[test]
    fn what_was_given_is_read_back_and_what_has_no_port_of_an_estimator_is_not() {
        let wanted = given(FIRST_PORT + PORTS - 1);
        assert_eq!(GivenEstimator::parse(wanted.data()), Some(wanted.clone()));
        assert_eq!(wanted.health_port(), 22_999);
        for port in ["", "x", "443", "22000", "70000"] {
            let mut data = wanted.data();
            data.0.insert("port".to_owned(), port.as_bytes().to_vec());
            assert_eq!(GivenEstimator::parse(data), None, "{port}");
        }
        assert_eq!(GivenEstimator::parse(Files::default()), None);
    }

    #[test]
    fn beyond_a_thousand_members_nobody_has_the_port_of_another_one() {
        let names: Vec<String> = (0..1_100).map(|number| format!("m{number}")).collect();
        let found = ports(names.iter().map(String::as_str), &BTreeMap::new());
        let different: BTreeSet<u16> = found.values().copied().collect();
        assert_eq!((found.len(), different.len()), (1_000, 1_000));
    }

    proptest! {
        #[test]
        fn a_member_keeps_its_port_whoever_comes_and_goes_and_no_two_have_the_same(
            turns in prop::collection::vec(prop::collection::btree_set(0_u16..60, 0..40), 1..6),
        ) {
            let mut had: BTreeMap<String, GivenEstimator> = BTreeMap::new();
            for turn in turns {
                let names: BTreeSet<String> = turn.iter().map(|number| format!("m{number}")).collect();
                let found = ports(names.iter().map(String::as_str), &had);
                prop_assert_eq!(found.len(), names.len());
                let different: BTreeSet<u16> = found.values().copied().collect();
                prop_assert_eq!(different.len(), found.len());
                for (member, port) in &found {
                    prop_assert!(had.get(*member).is_none_or(|before| before.port == *port));
                    let foreign = had.iter().any(|(other, given)| other != member && given.port == *port);
                    prop_assert!(!foreign, "{} has the port of one that has not gone yet", member);
                }
                had = found.into_iter().map(|(member, port)| (member.to_owned(), given(port))).collect();
            }
        }
    }
}
