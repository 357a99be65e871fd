//! The choice of a machine's address.

use std::net::Ipv4Addr;

use anyhow::{Result, bail};

use crate::network::HOST_ADDRESS;

/// The first address that a machine gets when none is asked for; those below are for the lab itself.
const FIRST: u8 = 10;
const LAST: u8 = 254;

/// The address that was asked for, or the lowest free one.
pub(super) fn choose(taken: &[(String, Ipv4Addr)], wanted: Option<Ipv4Addr>) -> Result<Ipv4Addr> {
    let holder = |address| taken.iter().find(|(_, other)| *other == address).map(|(name, _)| name);
    match wanted {
        Some(address) => {
            let [a, b, c, last] = address.octets();
            if [a, b, c] != HOST_ADDRESS.octets()[..3] || !(2..=LAST).contains(&last) {
                bail!("address {address} is not one of {} to {}", in_network(2), in_network(LAST));
            }
            if let Some(name) = holder(address) {
                bail!("address {address} is machine {name}'s");
            }
            Ok(address)
        }
        None => match (FIRST..=LAST).map(in_network).find(|address| holder(*address).is_none()) {
            Some(address) => Ok(address),
            None => bail!("no address is free from {} to {}", in_network(FIRST), in_network(LAST)),
        },
    }
}

fn in_network(last: u8) -> Ipv4Addr {
    let [a, b, c, _] = HOST_ADDRESS.octets();
    Ipv4Addr::new(a, b, c, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(taken: &[&str], wanted: Option<&str>, expected: Result<&str, &str>) {
        let taken: Vec<_> = taken.iter().enumerate().map(|(i, ip)| (format!("m{i}"), ip.parse().unwrap())).collect();
        let got = choose(&taken, wanted.map(|ip| ip.parse().unwrap()));
        match expected {
            Ok(ip) => assert_eq!(got.unwrap().to_string(), ip),
            Err(part) => assert!(got.as_ref().unwrap_err().to_string().contains(part), "{got:?}"),
        }
    }

    #[test]
    fn the_lowest_free_address_is_taken() {
        check(&[], None, Ok("172.30.0.10"));
        check(&["172.30.0.2", "172.30.0.10", "172.30.0.12"], None, Ok("172.30.0.11"));
    }

    #[test]
    fn an_address_that_was_asked_for_is_given_or_refused_with_the_reason() {
        check(&[], Some("172.30.0.2"), Ok("172.30.0.2"));
        check(&["172.30.0.20"], Some("172.30.0.20"), Err("machine m0's"));
        check(&[], Some("10.0.0.1"), Err("is not one of"));
        check(&[], Some("172.30.0.1"), Err("is not one of"));
        check(&[], Some("172.30.0.255"), Err("is not one of"));
    }

    #[test]
    fn a_full_network_is_said() {
        let all: Vec<String> = (10..=254).map(|last| format!("172.30.0.{last}")).collect();
        check(&all.iter().map(String::as_str).collect::<Vec<_>>(), None, Err("no address is free"));
    }
}
