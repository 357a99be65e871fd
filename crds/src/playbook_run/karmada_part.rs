//! What a run brings to machines of a Karmada control plane.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PlaybookRunSpec;
use crate::step::Step;

/// A part of a Karmada control plane that a run brings to machines.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KarmadaPart {
    /// Which one, e.g. `scheduler`, `balancer`, `etcd`.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub part: String,
    /// What it is there once the last step of the run is done, by Host: its version and a digest of its flags and of
    /// the files that these name, e.g. `1.18.2-0123456789abcdef`; or `absent`: it is taken off the machine.
    #[schemars(extend("maxProperties" = 16))]
    pub digests: BTreeMap<String, Digest>,
}

impl KarmadaPart {
    /// The step that brings it.
    pub fn step(&self) -> Step {
        match self.part.as_str() {
            "balancer" => Step::KarmadaBalancer,
            "etcd" => Step::Etcd,
            "load-balancer" => Step::LoadBalancer,
            _ => Step::KarmadaService,
        }
    }
}

impl PlaybookRunSpec {
    /// The parts that it brings, in their order.
    pub fn parts(&self) -> impl Iterator<Item = &KarmadaPart> {
        self.karmada.iter().chain(&self.karmada_parts)
    }
}

/// What a part is: 1 to 64 letters, digits, `-` and `.`, a letter or digit first.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(transparent)]
pub struct Digest(#[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9][-A-Za-z0-9.]*$"))] pub String);

impl Digest {
    /// That of a part which is taken off a machine.
    pub const ABSENT: &'static str = "absent";
}
