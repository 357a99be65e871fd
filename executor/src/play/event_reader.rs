//! Reads events from the FIFO, without secrets, into an event sink.

use std::io;

use tokio::net::unix::pipe;
use tracing::warn;

use super::EventSink;
use crate::event::{Event, What};
use crate::lines::Lines;
use crate::redact::Redactor;

/// Buffers that are read before anything else has its turn.
const AT_ONCE: usize = 16;

/// Reads the plugin's lines.
pub(super) struct EventReader<'a> {
    pub events: pipe::Receiver,
    pub lines: Lines,
    pub redactor: &'a Redactor,
    /// The step that waits at the gate.
    pub waits: Option<String>,
}

impl EventReader<'_> {
    /// Reads what is there now, up to a limit: whoever writes faster than we read holds up no signal.
    pub fn read(&mut self, sink: &mut impl EventSink) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        for _ in 0..AT_ONCE {
            match self.events.try_read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => {
                    let (redactor, waits) = (self.redactor, &mut self.waits);
                    self.lines.push(&buffer[..length], |line| take(sink, redactor, waits, line));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes what is left without a newline.
    pub fn finish(&mut self, sink: &mut impl EventSink) {
        let (redactor, waits) = (self.redactor, &mut self.waits);
        self.lines.finish(|line| take(sink, redactor, waits, line));
    }
}

fn take(sink: &mut impl EventSink, redactor: &Redactor, waits: &mut Option<String>, line: &[u8]) {
    let Some(mut event) = Event::parse(line) else {
        if !line.is_empty() {
            warn!(bytes = line.len(), "a line that is no event was passed over");
        }
        return;
    };
    event.redact(redactor);
    if let What::Gate { step } = &event.what {
        *waits = Some(step.clone());
    }
    sink.receive(&event);
}
