//! How an object is reconciled, the same for every kind: observe, plan, read again what cannot be undone, act, write
//! the status, report.
//!
//! A controller is a type that holds what was observed, and implements [`Reconcile`] by it; `reconcile` is the driver
//! that every controller goes through.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use kube::Resource;
use kube::core::object::HasStatus;
use plan::{Next, Plan};

use crate::cache::Kind;
use crate::context::Context;
use crate::error::Error;
use crate::execute::{self, Writable};

/// Nobody is woken when an object that they wait for can be decoded again.
const LOOK_AT_HELD_SECONDS: u64 = 15;

/// The status of the object that is observed.
pub type StatusOf<R> = <<R as Reconcile>::Object as HasStatus>::Status;
/// What the planner answers for it.
pub type PlanOf<R> = Plan<<R as Reconcile>::Action, StatusOf<R>>;

/// What was observed of one object, and what is done by it.
pub trait Reconcile: Sized + Send + Sync + 'static {
    /// The kind whose objects are reconciled.
    type Object: Kind + Writable + HasStatus<Status: Clone + serde::Serialize + Send + Sync>;
    /// What its planner asks for.
    type Action: PartialEq + Send + Sync;

    /// Whether the status is written before anything is done, so that a failed action does not hide what was seen.
    const STATUS_FIRST: bool = false;

    /// Whether it is planned once more after the actions, so that the status says what they were answered.
    const PLANS_AGAIN: bool = false;

    /// The action that takes the last finalizer off: the object goes, and its status with it.
    const LAST: Option<Self::Action> = None;

    /// Observes the object and all that its plan depends on, as the caches show it; `None`: there is nothing to do.
    fn observe(ctx: &Context, object: Arc<Self::Object>) -> impl Future<Output = Result<Option<Self>, Error>> + Send;

    /// The object, as observed.
    fn object(&self) -> &Self::Object;

    /// Decides; pure.
    fn plan(&self) -> PlanOf<Self>;

    /// Why nothing must be done now, and the status that says so. Asked after the caches were read: an object that
    /// cannot be decoded is not among what was observed.
    fn hold(&self, _ctx: &Context, _plan: &PlanOf<Self>) -> Option<(String, StatusOf<Self>)> {
        None
    }

    /// Whether the plan has what cannot be undone: caches are not believed then.
    fn must_refresh(&self, _plan: &PlanOf<Self>) -> bool {
        false
    }

    /// The same observation with what the plan depends on read from the API; `None` when the object is gone.
    fn refresh(self, _ctx: &Context, _plan: &PlanOf<Self>) -> impl Future<Output = Result<Option<Self>, Error>> + Send {
        async { Ok(Some(self)) }
    }

    /// Carries out one action; makes no choice. What it is answered may be added to the observation.
    fn execute(&mut self, ctx: &Context, action: &Self::Action) -> impl Future<Output = Result<(), Error>> + Send;

    /// Carries all of them out, in their order. Those of which none depends on another may be carried out at once.
    fn execute_all(
        &mut self,
        ctx: &Context,
        actions: &[Self::Action],
    ) -> impl Future<Output = Result<(), Error>> + Send {
        async move {
            for action in actions {
                self.execute(ctx, action).await?;
            }
            Ok(())
        }
    }

    /// The plan once its actions are done: with another status where their answers say more.
    fn conclude(&self, plan: PlanOf<Self>) -> PlanOf<Self> {
        match Self::PLANS_AGAIN && !plan.actions.is_empty() {
            true => PlanOf::<Self> { actions: plan.actions, ..self.plan() },
            false => plan,
        }
    }

    /// Writes the status; true when there was anything to write.
    fn write_status(&self, ctx: &Context, status: &StatusOf<Self>) -> impl Future<Output = Result<bool, Error>> + Send {
        let object = self.object();
        execute::patch_status(ctx, object, object.status(), status)
    }

    /// Reports by Events what is new. Called when a status was written, or the object goes.
    fn report(&self, _ctx: &Context, _plan: &PlanOf<Self>) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// How an object was reconciled, when nothing failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconciled {
    /// When to look again.
    pub next: Next,
    /// Actions carried out (a status that was written counts).
    pub actions: usize,
    /// What unfinished work waits for.
    pub waits_for: Option<String>,
}

impl Reconciled {
    /// Nothing to do until something changes.
    pub fn settled() -> Self {
        Self { next: Next::OnChange, actions: 0, waits_for: None }
    }
}

/// Reconciles one object.
pub(crate) async fn reconcile<R: Reconcile>(ctx: Arc<Context>, object: Arc<R::Object>) -> Result<Reconciled, Error> {
    let Some((mut observed, plan)) = decide::<R>(&ctx, object).await? else {
        return Ok(Reconciled::settled());
    };
    let mut shown = Shown::default();
    if R::STATUS_FIRST {
        shown = show(&ctx, &observed, &plan.status).await?;
    }
    observed.execute_all(&ctx, &plan.actions).await?;
    let released = R::LAST.is_some_and(|last| plan.actions.contains(&last));
    let plan = if released { plan } else { observed.conclude(plan) };
    if !R::STATUS_FIRST && !released {
        shown = show(&ctx, &observed, &plan.status).await?;
    }
    if shown.written || released {
        observed.report(&ctx, &plan).await;
    }
    let actions = plan.actions.len() + usize::from(shown.written);
    Ok(Reconciled { next: plan.next.or_sooner(shown.next), actions, waits_for: plan.waits_for })
}

/// What became of a status.
#[derive(Default)]
struct Shown {
    written: bool,
    /// When it is written that waits for its turn.
    next: Next,
}

/// Writes the status, unless its messages alone have changed and were written a moment ago.
async fn show<R: Reconcile>(ctx: &Context, observed: &R, status: &StatusOf<R>) -> Result<Shown, Error> {
    let object = observed.object();
    let uid = object.meta().uid.as_deref().unwrap_or_default();
    if let Some(wait) = ctx.pace.wait(uid, object.status(), status, Instant::now()) {
        return Ok(Shown { written: false, next: Next::After(wait) });
    }
    let written = observed.write_status(ctx, status).await?;
    if written {
        ctx.pace.written(uid, Instant::now());
    }
    Ok(Shown { written, next: Next::OnChange })
}

/// What was observed, and what is to be done by it; `None`: nothing.
async fn decide<R: Reconcile>(ctx: &Context, object: Arc<R::Object>) -> Result<Option<(R, PlanOf<R>)>, Error> {
    let Some(cached) = R::observe(ctx, object).await? else {
        return Ok(None);
    };
    let plan = cached.plan();
    if let Some(held) = on_hold(ctx, &cached, &plan) {
        return Ok(Some((cached, held)));
    }
    if !cached.must_refresh(&plan) {
        return Ok(Some((cached, plan)));
    }
    let Some(live) = cached.refresh(ctx, &plan).await? else {
        return Ok(None);
    };
    let plan = live.plan();
    let held = on_hold(ctx, &live, &plan);
    Ok(Some((live, held.unwrap_or(plan))))
}

/// The plan of an object about which nothing must be done, which may change at any time.
fn on_hold<R: Reconcile>(ctx: &Context, observed: &R, plan: &PlanOf<R>) -> Option<PlanOf<R>> {
    let (message, status) = observed.hold(ctx, plan)?;
    Some(Plan {
        actions: Vec::new(),
        status,
        next: Next::after_seconds(LOOK_AT_HELD_SECONDS),
        waits_for: Some(message),
    })
}

/// Whole seconds: what is written into a status has no finer ones.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
