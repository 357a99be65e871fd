//! What an edit of a field of a running cluster does.

use std::fmt;

/// What it does, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    None,
    Later,
    Immediate,
    Restart,
    Drain,
    Machines,
    Refused,
}

impl Effect {
    /// All of them, with what the page says of each.
    pub const ALL: [(Effect, &str); 7] = [
        (Effect::Refused, "the API server refuses the edit"),
        (
            Effect::Machines,
            "machines join or leave until it is as wanted; those that leave are \
             [drained and cleaned](operations/remove.md)",
        ),
        (
            Effect::Drain,
            "the Node is drained, then something restarts that serves, machine after machine; where they are wanted, \
             an [approval](operations/change.md#approve-a-plan) and a \
             [window](operations/change.md#when-it-is-done-windows-and-canaries) are waited for",
        ),
        (Effect::Restart, "the same without a drain: Pods go on"),
        (
            Effect::Immediate,
            "it is brought to the machines, or their Nodes, that there are; nothing is drained, and neither \
             approval nor window is waited for",
        ),
        (
            Effect::Later,
            "machines that are in the cluster stay as they are; those that join, leave or are upgraded later \
             follow it",
        ),
        (Effect::None, "the operator, or the runs that it makes later, go by it; no machine is touched for it"),
    ];

    const fn name(self) -> &'static str {
        match self {
            Effect::None => "none on machines",
            Effect::Later => "later machines only",
            Effect::Immediate => "immediate",
            Effect::Restart => "restart",
            Effect::Drain => "drain",
            Effect::Machines => "machines join or leave",
            Effect::Refused => "refused",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
