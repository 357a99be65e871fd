//! What a restore is decided by.

use super::super::machines::Machines;
use super::super::observed::Observed;
use super::super::place::Wanted;
use super::super::progress::StageReport;
use crate::addon::Problem;

/// What it is decided by.
pub(in super::super) struct Scene<'a> {
    pub observed: &'a Observed<'a>,
    /// Its machines; none: it is in Pods.
    pub machines: Option<&'a Machines<'a>>,
    pub wanted: &'a [Wanted],
    pub reports: &'a [StageReport],
    /// Why it does not work, deeper than what Pods say of themselves.
    pub silent: Option<&'a Problem>,
}
