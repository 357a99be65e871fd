//! The free Hosts, and those of them that match a request.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crds::node_metadata::LabelValue;
use crds::placement::HostSelector;
use crds::{Host, ObjectExt};

use super::super::host_request::HostRequest;

/// What a label of a Host says.
pub(super) fn label<'h>(host: &'h Host, key: &str) -> Option<&'h str> {
    host.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// What tells requests from each other.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::claims) struct RequestKey<'m> {
    labels: Option<&'m BTreeMap<String, LabelValue>>,
    expressions: Vec<(&'m str, u8, &'m [LabelValue])>,
    least: (Option<i32>, Option<i64>),
    hosts: Option<&'m [String]>,
    spread_by: &'m [String],
}

impl<'m> RequestKey<'m> {
    pub fn new(request: HostRequest<'m>) -> Self {
        let mut key = Self {
            labels: None,
            expressions: Vec::new(),
            least: (None, None),
            hosts: request.hosts,
            spread_by: request.spread_by,
        };
        // All fields are named: two requests that differ in a new one are not the same.
        if let Some(HostSelector { match_labels, match_expressions, min_cpus, min_memory_mib }) = request.selector {
            let expressions = match_expressions.iter();
            key.labels = Some(match_labels);
            key.expressions = expressions
                .map(|wanted| (wanted.key.as_str(), wanted.operator as u8, wanted.values.as_slice()))
                .collect();
            key.least = (*min_cpus, *min_memory_mib);
        }
        key
    }
}

/// The Hosts that can be taken, by name; each is known by its place in them.
pub(super) struct FreeHosts<'m, 'h> {
    hosts: Vec<&'h Host>,
    taken: Vec<bool>,
    /// Hosts by the values of a label, for each label that was asked for.
    by_label: BTreeMap<&'m str, HashMap<&'h str, Vec<usize>>>,
}

impl<'m, 'h> FreeHosts<'m, 'h> {
    pub fn new(mut hosts: Vec<&'h Host>) -> Self {
        hosts.sort_by_key(|host| host.name());
        Self { taken: vec![false; hosts.len()], hosts, by_label: BTreeMap::new() }
    }

    /// Takes one; `None` if it is taken.
    pub fn take(&mut self, host: usize) -> Option<&'h Host> {
        let taken = self.taken.get_mut(host).filter(|taken| !**taken)?;
        *taken = true;
        self.hosts.get(host).copied()
    }

    fn is_taken(&self, host: usize) -> bool {
        self.taken.get(host).copied().unwrap_or(true)
    }

    /// Those that match, in the order in which they are preferred, by the values of the labels to spread over.
    pub fn candidates(&mut self, request: HostRequest<'m>) -> Candidates<'h> {
        let mut by_values: BTreeMap<Vec<Option<&'h str>>, Vec<Candidate>> = BTreeMap::new();
        for (rank, host) in self.matching(request).into_iter().enumerate() {
            let labels = request.spread_by.iter();
            let values = labels.map(|key| self.hosts.get(host).and_then(|host| label(host, key)));
            let domain = by_values.entry(values.collect()).or_default();
            domain.push(Candidate { rank, host });
        }
        let domains = by_values.into_iter().map(|(values, hosts)| Domain { values, hosts, next: 0 });
        let mut domains: Vec<Domain<'h>> = domains.collect();
        domains.sort_by_key(Domain::best_rank);
        let mut values = vec![BTreeSet::new(); request.spread_by.len()];
        for domain in &domains {
            for (values, value) in values.iter_mut().zip(&domain.values) {
                values.insert(*value);
            }
        }
        Candidates { domains, values }
    }

    fn matching(&mut self, request: HostRequest<'m>) -> Vec<usize> {
        let anywhere = HostRequest { hosts: None, ..request };
        let mut matching = match request.hosts {
            Some(names) => self.named(names),
            None => self.labelled(request.selector),
        };
        matching.retain(|host| self.hosts.get(*host).is_some_and(|host| anywhere.matches(host)));
        matching
    }

    /// Those with these names, in the order of the names.
    fn named(&self, names: &[String]) -> Vec<usize> {
        let mut seen = BTreeSet::new();
        names
            .iter()
            .filter_map(|name| self.hosts.binary_search_by(|host| host.name().cmp(name)).ok())
            .filter(|host| seen.insert(*host))
            .collect()
    }

    /// All, or those with the label of the selector that fewest have: where each cluster has a label of its own, not
    /// every cluster looks at every Host.
    fn labelled(&mut self, selector: Option<&'m HostSelector>) -> Vec<usize> {
        let wanted = selector.map(|selector| &selector.match_labels).into_iter().flatten();
        for (key, _) in wanted.clone() {
            self.index_by(key);
        }
        let with = |key: &String, value: &LabelValue| self.by_label.get(key.as_str())?.get(value.0.as_str());
        let lists = wanted.map(|(key, value)| with(key, value).map_or(&[] as &[usize], Vec::as_slice));
        match lists.min_by_key(|hosts| hosts.len()) {
            Some(fewest) => fewest.to_vec(),
            None => (0..self.hosts.len()).collect(),
        }
    }

    fn index_by(&mut self, key: &'m str) {
        self.by_label.entry(key).or_insert_with(|| {
            let mut by_value: HashMap<&str, Vec<usize>> = HashMap::new();
            for (index, host) in self.hosts.iter().enumerate() {
                if let Some(value) = label(host, key) {
                    by_value.entry(value).or_default().push(index);
                }
            }
            by_value
        });
    }
}

/// The Hosts that match a request: domains in the order of their first Host.
pub(super) struct Candidates<'h> {
    pub domains: Vec<Domain<'h>>,
    /// The values that there are of each key.
    values: Vec<BTreeSet<Option<&'h str>>>,
}

impl Candidates<'_> {
    /// For each key, the count of the value that has the least.
    pub fn least(&self, count: impl Fn(usize, Option<&str>) -> usize) -> Vec<usize> {
        let of_key = |(key, values): (usize, &BTreeSet<Option<&str>>)| {
            let mut least = usize::MAX;
            for value in values {
                least = least.min(count(key, *value));
                if least == 0 {
                    break;
                }
            }
            least
        };
        self.values.iter().enumerate().map(of_key).collect()
    }
}

/// Those of them that have the same values of the labels to spread over, the preferred first.
pub(super) struct Domain<'h> {
    pub values: Vec<Option<&'h str>>,
    hosts: Vec<Candidate>,
    next: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Candidate {
    /// Its place among all that match.
    pub rank: usize,
    /// Its place among the free ones.
    pub host: usize,
}

impl Domain<'_> {
    /// Of its preferred Host, taken or not.
    pub fn best_rank(&self) -> usize {
        self.hosts.first().map_or(usize::MAX, |first| first.rank)
    }

    /// The preferred one that is not taken.
    pub fn first(&mut self, free: &FreeHosts<'_, '_>) -> Option<Candidate> {
        while let Some(candidate) = self.hosts.get(self.next) {
            if !free.is_taken(candidate.host) {
                return Some(*candidate);
            }
            self.next += 1;
        }
        None
    }
}
