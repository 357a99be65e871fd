//! What is said of a member's estimator, and how one that is wanted no more is removed.

mod in_member;
mod in_pods;
mod on_machines;

use crds::Reason;

use super::action::Act;
use super::cleaning::Cleaning;
use super::context::Context;
use super::estimator::{has_legal_name, is_wanted, is_wished, name};
use crate::addon::Problem;

/// What is said of an estimator, and done for it.
type Looked = (Option<Problem>, Vec<Act>);

/// How estimators are looked after where a plane has them.
struct Mode {
    /// What keeps the objects of one from being as they are wanted comes first.
    look: fn(&Context<'_>, Option<Problem>) -> Looked,
    /// The same of one that is wanted no more.
    removal: fn(&Context<'_>) -> Looked,
    /// What is left of one outside its member.
    outside: for<'a> fn(&Context<'a>) -> Cleaning<'a>,
}

const IN_PODS: Mode = Mode { look: in_pods::look, removal: in_pods::removal, outside: in_pods::outside };
const ON_MACHINES: Mode =
    Mode { look: on_machines::look, removal: on_machines::removal, outside: on_machines::outside };

/// How they are looked after in this plane.
fn mode(context: &Context<'_>) -> Mode {
    if context.observed.object.spec.binary.is_some() { ON_MACHINES } else { IN_PODS }
}

/// What is said of it and done for it; `differs`: what keeps its objects from being as they are wanted.
pub(super) fn look(context: &Context<'_>, differs: Option<Problem>) -> Looked {
    let (object, target, mode) = (context.observed.object, context.target, mode(context));
    if is_wished(object, target) && !has_legal_name(object, target) {
        return (Some(name_too_long(context)), Vec::new());
    }
    match is_wanted(object, target) {
        true => (mode.look)(context, differs),
        false => (mode.removal)(context),
    }
}

fn name_too_long(context: &Context<'_>) -> Problem {
    let (object, target) = (context.observed.object, context.target);
    let name = name(object, &target.name);
    let message = format!(
        "it has no estimator, whose Service {name} would have a name of {} characters, and 63 are allowed: let it join under a name of at most {}, or set estimator.enabled of it to false",
        name.len(),
        target.name.len().saturating_sub(name.len() - 63)
    );
    Problem { reason: Reason::EstimatorNameTooLong, message }
}

/// What is left outside its member, and its certificate, which goes before the last of that.
pub(super) fn on_the_host<'a>(context: &Context<'a>) -> Cleaning<'a> {
    (mode(context).outside)(context)
}
