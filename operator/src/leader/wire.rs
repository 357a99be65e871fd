//! The gate at the wire: what has passed the gate in front may still be in our memory when the process is stopped, and
//! goes out when it wakes up. So the clock is read again before each write to a connection, and one of a time that is
//! over carries nothing more, not even the rest of a request.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

use super::gate::Gate;

/// A connection that carries nothing more once the time of the one who led is over.
pub struct GatedWire<T> {
    inner: T,
    gate: Gate,
}

impl<T> GatedWire<T> {
    /// This connection behind this gate.
    pub fn new(inner: T, gate: Gate) -> Self {
        Self { inner, gate }
    }

    fn passes(&self) -> io::Result<()> {
        match self.gate.is_over() {
            true => Err(io::Error::other("this operator does not hold the lease any more")),
            false => Ok(()),
        }
    }
}

impl<T: Connection> Connection for GatedWire<T> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

impl<T: Read + Unpin> Read for GatedWire<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<T: Write + Unpin> Write for GatedWire<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.passes()?;
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.passes()?;
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use hyper_util::rt::TokioIo;
    use plan::leader::Moment;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::leader::clock::Clock;

    #[tokio::test]
    async fn what_had_passed_the_gate_before_the_time_was_over_does_not_reach_the_wire() {
        let seconds = Arc::new(AtomicU64::new(100));
        let hand = seconds.clone();
        let gate = Gate::closed(Clock::new(move || Moment(Duration::from_secs(hand.load(Ordering::SeqCst)))));
        let (near, mut far) = tokio::io::duplex(64);
        let mut wire = TokioIo::new(GatedWire::new(TokioIo::new(near), gate.clone()));
        // Who does not lead yet reads, and a read is written, too.
        wire.write_all(b"GET ").await.unwrap();
        gate.open_until(Moment(Duration::from_secs(110)));
        wire.write_all(b"PATCH ").await.unwrap();
        seconds.store(110, Ordering::SeqCst);
        wire.write_all(b"{}").await.unwrap_err();
        gate.close();
        wire.write_all(b"{}").await.unwrap_err();
        drop(wire);
        let mut arrived = String::new();
        far.read_to_string(&mut arrived).await.unwrap();
        assert_eq!(arrived, "GET PATCH ");
    }
}
