//! The events' way from the FIFO to those who hear them, without secrets.

use std::io;

use tokio::net::unix::pipe;
use tracing::warn;

use super::Audience;
use crate::event::{Event, What};
use crate::lines::Lines;
use crate::scrub::Scrubber;

/// Buffers that are read before anything else has its turn.
const AT_ONCE: usize = 16;

/// Reads the plugin's lines.
pub(super) struct EventReader<'a> {
    pub events: pipe::Receiver,
    pub lines: Lines,
    pub scrubber: &'a Scrubber,
    /// The step that waits at the gate.
    pub waits: Option<String>,
}

impl EventReader<'_> {
    /// Reads what is there now, up to a limit: whoever writes faster than we read holds up no signal.
    pub fn read(&mut self, audience: &mut impl Audience) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        for _ in 0..AT_ONCE {
            match self.events.try_read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => {
                    let (scrubber, waits) = (self.scrubber, &mut self.waits);
                    self.lines
                        .push(&buffer[..length], |line| take(audience, scrubber, waits, line));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes what is left without a newline.
    pub fn finish(&mut self, audience: &mut impl Audience) {
        let (scrubber, waits) = (self.scrubber, &mut self.waits);
        self.lines.finish(|line| take(audience, scrubber, waits, line));
    }
}

fn take(audience: &mut impl Audience, scrubber: &Scrubber, waits: &mut Option<String>, line: &[u8]) {
    let Some(mut event) = Event::parse(line) else {
        if !line.is_empty() {
            warn!(bytes = line.len(), "a line that is no event was passed over");
        }
        return;
    };
    event.scrub(scrubber);
    if let What::Gate { step } = &event.what {
        *waits = Some(step.clone());
    }
    audience.hear(&event);
}
