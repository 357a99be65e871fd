//! The events' way from the FIFO into the fold, without secrets.

use std::io;

use tokio::net::unix::pipe;
use tracing::warn;

use crate::fold::Fold;
use crate::lines::Lines;
use crate::scrub::Scrubber;

/// Reads the plugin's lines into the fold.
pub(super) struct EventReader<'a> {
    pub events: pipe::Receiver,
    pub lines: Lines,
    pub scrubber: &'a Scrubber,
}

impl EventReader<'_> {
    /// Reads what is there now.
    pub fn read(&mut self, fold: &mut Fold) -> io::Result<()> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match self.events.try_read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => {
                    let scrubber = self.scrubber;
                    self.lines
                        .push(&buffer[..length], |line| take(fold, scrubber, line));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes what is left without a newline.
    pub fn finish(&mut self, fold: &mut Fold) {
        let scrubber = self.scrubber;
        self.lines.finish(|line| take(fold, scrubber, line));
    }
}

fn take(fold: &mut Fold, scrubber: &Scrubber, line: &[u8]) {
    if !fold.line(line, scrubber) && !line.is_empty() {
        warn!(bytes = line.len(), "a line that is no event was passed over");
    }
}
