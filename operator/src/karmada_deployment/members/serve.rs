//! How what is planned for members is done.

use plan::karmada_deployment::Action;

use super::Places;
use crate::context::Context;
use crate::karmada_deployment::Observation;

impl Observation {
    /// Does what is planned for members, for several of them at once.
    pub(in super::super) async fn serve_members(&mut self, ctx: &Context, actions: &[Action]) {
        let of_members = actions.iter().filter_map(|action| match action {
            Action::Member(action) => Some(action),
            _ => None,
        });
        let places = Places { in_plane: self.in_plane.as_ref(), on_host: self.on_host.as_ref() };
        self.members.execute(ctx, (&self.object, self.now), &places, of_members).await;
    }
}
