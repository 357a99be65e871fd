//! The findings in a machine's log, and how they read.

use std::fmt;

use crate::Fence;
use crate::record::Open;

/// The findings in a machine's log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// In the order of the lines; empty if the promise held.
    pub violations: Vec<Violation>,
    /// Refusals, which are as they should be.
    pub refused: Vec<Place>,
    /// Lines that a loss of power tore, and nothing else.
    pub torn: Vec<Place>,
    /// How many commands began.
    pub commands: usize,
    /// Commands that still run as far as the log goes.
    pub open: Vec<Open>,
    pub highest: Option<Fence>,
    /// Whether the highest fence saw the machine quiet before its first command.
    pub quiet: bool,
}

/// A line of one of the two files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// `log.1` is the older one.
    pub file: &'static str,
    /// From 1.
    pub line: usize,
}

/// A line that should not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub place: Place,
    pub what: What,
}

/// The rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A command worked while another fence had the machine.
    Overlap { fence: Fence, pid: u32, with: Fence },
    /// A lower fence acted after a higher one was taken.
    Down { fence: Fence, highest: Fence },
    /// A command began under a fence that was never raised.
    NotRaised { fence: Fence },
    /// A command began before the machine was quiet.
    NotQuiet { fence: Fence },
    /// A command that nobody ended has no end.
    Unfinished { fence: Fence, pid: u32, step: String },
    /// A command's end has no begin.
    NotBegun { fence: Fence, pid: u32 },
    /// No line that a guard writes.
    Unreadable { text: String },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlap { fence, pid, with } => {
                write!(f, "command {pid} of fence {fence} was at work while fence {with} had the machine")
            }
            Self::Down { fence, highest } => write!(f, "fence {fence} acted after {highest} was taken"),
            Self::NotRaised { fence } => {
                write!(f, "a command began under fence {fence}, which was never raised")
            }
            Self::NotQuiet { fence } => {
                write!(f, "a command of fence {fence} began before the machine was quiet")
            }
            Self::Unfinished { fence, pid, step } => {
                write!(f, "command {pid} of fence {fence} (step {step:?}) has no end, and nobody ended it")
            }
            Self::NotBegun { fence, pid } => {
                write!(f, "command {pid} of fence {fence} ended and never began")
            }
            Self::Unreadable { text } => write!(f, "no line of a guard: {text:?}"),
        }
    }
}
