//! A stream that tells why its other end closed it: with TLS 1.3 a client learns that its certificate is refused only
//! when it reads, and gRPC writes first and reports that the pipe is broken.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose failed writes are explained by what can be read.
pub struct Explaining<S>(pub S);

impl<S: AsyncRead + Unpin> Explaining<S> {
    fn explained(&mut self, context: &mut Context<'_>, error: io::Error) -> io::Error {
        let mut bytes = [0; 1024];
        // What is read is lost, as the connection is.
        for _ in 0..16 {
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.0).poll_read(context, &mut buffer) {
                Poll::Ready(Err(cause)) => return cause,
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => (),
                _ => break,
            }
        }
        error
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Explaining<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Explaining<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.0).poll_write(context, bytes));
        Poll::Ready(written.map_err(|error| self.explained(context, error)))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.0).poll_flush(context));
        Poll::Ready(flushed.map_err(|error| self.explained(context, error)))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
