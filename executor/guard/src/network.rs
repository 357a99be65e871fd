//! The kernel settings that the Pod network of a machine needs, and which of them are gone. The step `network` writes
//! the former.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Where the step `network` writes what is wanted. A reset removes it before it removes anything else.
pub const WANTED: &str = "/etc/clusterwright/network.json";

/// The wanted state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wanted {
    /// Carries the Pods' traffic to other machines.
    pub interface: String,
    /// Range of all Pods, routed on-link over that interface.
    pub pods: Subnet,
    /// Protocol number of our routes.
    pub protocol: u8,
    /// The bridge of this machine's Pods.
    pub bridge: String,
    /// The bridge's address in this machine's range, which is the gateway of its Pods.
    pub gateway: Subnet,
    /// Makes all of it, and the nft table, which is read back from the kernel after the script has made it.
    pub script: String,
    /// Settings by name, as sysctl writes them.
    #[serde(default)]
    pub sysctl: BTreeMap<String, String>,
    /// A file of sysctl with more of them: another step's, read each time.
    #[serde(default)]
    pub sysctl_file: String,
    /// Files that must be there, with their content.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

impl Wanted {
    /// The settings by name; `file` is the content of [`Wanted::sysctl_file`].
    pub fn settings(&self, file: &str) -> BTreeMap<String, String> {
        let lines = file.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
        lines
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
            .chain(self.sysctl.clone())
            .collect()
    }
}

/// The file below `/proc/sys` of a setting. A dot within an interface's name is a slash in the setting's.
pub fn setting_path(name: &str) -> String {
    let swapped = name.chars().map(|c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    });
    "/proc/sys/".chars().chain(swapped).collect()
}

/// An address and the length of its network's prefix: `10.0.0.1/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subnet {
    pub address: Ipv4Addr,
    pub length: u8,
}

impl Default for Subnet {
    fn default() -> Self {
        Self { address: Ipv4Addr::UNSPECIFIED, length: 0 }
    }
}

/// A text that is no subnet.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is no IPv4 address with the length of a prefix, such as 10.0.0.1/24")]
pub struct NoSubnet(String);

impl FromStr for Subnet {
    type Err = NoSubnet;

    fn from_str(text: &str) -> Result<Self, NoSubnet> {
        text.split_once('/')
            .and_then(|(address, length)| {
                let length = length.parse().ok().filter(|length| *length <= 32)?;
                Some(Self { address: address.parse().ok()?, length })
            })
            .ok_or_else(|| NoSubnet(text.chars().take(64).collect()))
    }
}

impl TryFrom<String> for Subnet {
    type Error = NoSubnet;

    fn try_from(text: String) -> Result<Self, NoSubnet> {
        text.parse()
    }
}

impl From<Subnet> for String {
    fn from(subnet: Subnet) -> Self {
        subnet.to_string()
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// The kernel's state, as text of `/proc`.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// `/proc/net/route`.
    pub routes: String,
    /// `/proc/net/fib_trie`.
    pub addresses: String,
    /// `/proc/net/dev`.
    pub links: String,
    /// The settings that the kernel has, by name.
    pub settings: BTreeMap<String, String>,
    /// Whether our table of nft differs from the one that the script made; `None` where nobody looked.
    pub rules_differ: Option<bool>,
    /// Files that are not there.
    pub missing: Vec<String>,
}

/// Something that was taken away.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Defect {
    /// A setting has another value.
    Setting { name: String, found: String, wanted: String },
    /// The bridge is there without its address, or is down.
    Gateway { bridge: String, address: String },
    /// The route to the Pods is not there.
    Route { pods: String, interface: String },
    /// Our table of nft is not there, or is another.
    Rules,
    /// A file is not there.
    File { path: String },
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting { name, found, wanted } => write!(f, "{name} was {found} instead of {wanted}"),
            Self::Gateway { bridge, address } => {
                write!(f, "{bridge} was down or without its address {address}")
            }
            Self::Route { pods, interface } => write!(f, "the route to {pods} on {interface} was gone"),
            Self::Rules => write!(f, "the nft table ip clusterwright was gone or another"),
            Self::File { path } => write!(f, "{path} was gone"),
        }
    }
}

impl Defect {
    /// The subject of the defect: the same when the same thing is taken away again, whatever was left in its place.
    pub fn thing(&self) -> &str {
        match self {
            Self::Setting { name, .. } => name,
            Self::Gateway { .. } => "gateway",
            Self::Route { .. } => "route",
            Self::Rules => "rules",
            Self::File { path } => path,
        }
    }
}

/// The defects, in the order in which they are repaired. What cannot be seen (an interface that is not there, a bridge
/// that nobody has made yet) is not gone.
pub fn defects(wanted: &Wanted, settings: &BTreeMap<String, String>, observed: &Observed) -> Vec<Defect> {
    let mut defects: Vec<Defect> = settings
        .iter()
        .filter_map(|(name, wanted)| {
            let found = observed.settings.get(name)?;
            (!is_met(found, wanted)).then(|| Defect::Setting {
                name: name.clone(),
                found: found.clone(),
                wanted: wanted.clone(),
            })
        })
        .collect();
    // On a link that is down an address stays, and the route of its network goes.
    let has_gateway = is_local(&observed.addresses, wanted.gateway.address)
        && has_route(&observed.routes, &wanted.bridge, wanted.gateway);
    if has_link(&observed.links, &wanted.bridge) && !has_gateway {
        defects.push(Defect::Gateway { bridge: wanted.bridge.clone(), address: wanted.gateway.to_string() });
    }
    if has_link(&observed.links, &wanted.interface) && !has_route(&observed.routes, &wanted.interface, wanted.pods) {
        defects.push(Defect::Route { pods: wanted.pods.to_string(), interface: wanted.interface.clone() });
    }
    if observed.rules_differ == Some(true) {
        defects.push(Defect::Rules);
    }
    let files = observed.missing.iter();
    defects.extend(files.map(|path| Defect::File { path: path.clone() }));
    defects
}

/// Whether a setting is as wanted. A limit that somebody raised above it is.
fn is_met(found: &str, wanted: &str) -> bool {
    let same = found.split_whitespace().eq(wanted.split_whitespace());
    let raised = match (found.trim().parse::<u64>(), wanted.trim().parse::<u64>()) {
        (Ok(found), Ok(wanted)) => wanted > 1 && found > wanted,
        (Err(_), _) | (_, Err(_)) => false,
    };
    same || raised
}

fn has_link(links: &str, name: &str) -> bool {
    let mut names = links.lines().filter_map(|line| line.split_once(':'));
    names.any(|(link, _)| link.trim() == name)
}

/// Whether the address is one of this machine's.
fn is_local(trie: &str, address: Ipv4Addr) -> bool {
    let leaf = format!("|-- {address}");
    let mut lines = trie.lines().map(str::trim);
    while lines.any(|line| line == leaf) {
        let mut kinds = lines.clone().take_while(|line| line.starts_with('/'));
        if kinds.any(|line| line == "/32 host LOCAL") {
            return true;
        }
    }
    false
}

/// Whether the subnet is routed on-link: `Iface Destination Gateway Flags RefCnt Use Metric Mask ...`, in the machine's
/// order of bytes.
fn has_route(routes: &str, interface: &str, subnet: Subnet) -> bool {
    const UP: u32 = 1;
    const REJECT: u32 = 0x200;
    let mask = u32::MAX.checked_shl(32 - u32::from(subnet.length)).unwrap_or_default();
    let network = Ipv4Addr::from(u32::from(subnet.address) & mask);
    routes.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
        let address = |at| number(at).map(|number| Ipv4Addr::from(number.to_ne_bytes()));
        fields.first() == Some(&interface)
            && address(1) == Some(network)
            && address(2) == Some(Ipv4Addr::UNSPECIFIED)
            && address(7) == Some(Ipv4Addr::from(mask))
            && number(3).is_some_and(|flags| flags & UP != 0 && flags & REJECT == 0)
    })
}

#[cfg(test)]
mod tests;
