//! The connection to a member: a command whose standard input and output are the member's client port.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::program_output::last_line;

/// The connection; it ends with its command, and its command with it.
#[derive(Debug)]
pub(super) struct MemberStream {
    _command: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    /// What the command complains, once it has ended.
    complaint: Option<JoinHandle<String>>,
}

impl MemberStream {
    /// Runs the command. That it cannot connect shows in the first read.
    pub(super) fn open(words: &[String]) -> io::Result<Self> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn()?;
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => {
                let complaint = Some(tokio::spawn(last_line(stderr)));
                Ok(Self { _command: child, stdin, stdout, complaint })
            }
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl AsyncRead for MemberStream {
    /// An end of the stream about which the command complains is an error in its words.
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stdout).poll_read(context, into))?;
        if into.filled().len() > before || into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let Some(complaint) = &mut self.complaint else { return Poll::Ready(Ok(())) };
        let said = ready!(Pin::new(complaint).poll(context)).unwrap_or_default();
        self.complaint = None;
        Poll::Ready(if said.is_empty() { Ok(()) } else { Err(io::Error::other(said)) })
    }
}

impl AsyncWrite for MemberStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stdin).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdin).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdin).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::MemberStream;

    fn open(script: &str) -> MemberStream {
        MemberStream::open(&["sh", "-c", script].map(str::to_owned)).unwrap()
    }

    #[tokio::test]
    async fn bytes_pass_both_ways_and_a_complaint_is_the_error() {
        let mut stream = open("head -c 5");
        stream.write_all(b"hello").await.unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "hello");

        let mut stream = open("echo half; echo first >&2; echo clusterwright-guard: refused: no >&2; exit 79");
        let mut said = Vec::new();
        let error = stream.read_to_end(&mut said).await.unwrap_err();
        assert_eq!((error.to_string().as_str(), said), ("clusterwright-guard: refused: no", b"half\n".to_vec()));
    }

    #[tokio::test]
    async fn a_command_that_is_not_there_is_an_error() {
        assert!(MemberStream::open(&["/nowhere/ssh".to_owned()]).is_err());
        assert!(MemberStream::open(&[]).is_err());
    }
}
