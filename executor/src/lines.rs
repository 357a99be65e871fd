//! Reads a stream line by line, without trusting it to have lines: one that is too long is cut, its rest
//! passed over.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// No event and no line of output that a person reads is longer.
pub const LINE_LIMIT: usize = 256 * 1024;

/// Cuts bytes into lines as they come.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// Takes in bytes and gives out each line that they end, without its newline.
    pub fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(&[u8])) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.keep(&bytes[..end]);
            line(&self.begun);
            self.begun.clear();
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    /// Gives out what is left without a newline at the end of the stream.
    pub fn finish(&mut self, mut line: impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            line(&self.begun);
            self.begun.clear();
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_LIMIT.saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Reads a stream to its end.
pub async fn each(mut stream: impl AsyncRead + Unpin, mut line: impl FnMut(&[u8])) -> io::Result<()> {
    let mut lines = Lines::default();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            lines.finish(&mut line);
            return Ok(());
        }
        lines.push(&buffer[..length], &mut line);
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_LIMIT, Lines};

    #[test]
    fn lines_come_out_however_the_bytes_are_cut() {
        let text = b"one\n\ntwo\xff\nthree";
        for size in 1..text.len() {
            let (mut lines, mut seen) = (Lines::default(), Vec::new());
            for chunk in text.chunks(size) {
                lines.push(chunk, |line| seen.push(line.to_vec()));
            }
            lines.finish(|line| seen.push(line.to_vec()));
            assert_eq!(seen, [b"one".to_vec(), b"".to_vec(), b"two\xff".to_vec(), b"three".to_vec()]);
        }
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let (mut lines, mut seen) = (Lines::default(), Vec::new());
        for _ in 0..10 {
            lines.push(&[b'x'; 100_000], |_| panic!("no line has ended"));
        }
        lines.push(b"\nnext\n", |line| seen.push(line.len()));
        assert_eq!(seen, [LINE_LIMIT, 4]);
    }
}
