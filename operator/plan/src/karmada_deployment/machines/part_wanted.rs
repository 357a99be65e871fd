//! A part that is wanted, and what that follows from.

use std::collections::BTreeMap;

use crds::KarmadaDeployment;
use serde_json::Value;

use super::super::material::Material;
use super::super::place::Stage;
use super::super::release::Release;
use super::super::seats::{Seat, Seats};
use super::super::upgrade::Upgrade;
use super::order::Part;

/// A part that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct PartWanted {
    pub stage: Stage,
    pub part: Part,
    /// The digest that each machine is to have, by the Machine's name.
    pub digests: BTreeMap<String, String>,
    /// Of a component: its service on each of them, by the Host's name.
    pub services: BTreeMap<String, Value>,
    /// Its program: `{name, version}`.
    pub program: Option<Value>,
    /// What else a run must know that brings it.
    pub vars: BTreeMap<String, Value>,
    /// Whether an upgrade has yet to come to it.
    pub is_held: bool,
}

impl PartWanted {
    /// Nothing of it, on no machine.
    pub fn new(stage: Stage, part: Part) -> Self {
        let (digests, services, vars) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { stage, part, digests, services, program: None, vars, is_held: false }
    }
}

/// What the parts follow from.
pub(in super::super) struct Basis<'a> {
    pub object: &'a KarmadaDeployment,
    pub release: &'a Release,
    pub material: &'a Material,
    pub seats: &'a Seats,
    pub upgrade: Option<&'a Upgrade>,
}

/// The machines that get parts: those that are part of the plane.
pub(super) fn working<'a>(basis: &Basis<'a>) -> impl Iterator<Item = &'a Seat> {
    basis.seats.control_planes.iter().filter(|seat| seat.is_provisioned)
}
