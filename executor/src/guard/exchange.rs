//! One call to one machine over SSH: the control path is the one that Ansible will use, so its first command finds the
//! connection. Everything has a deadline, and output without end is cut.

use crds::Reason;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::answer::{Answer, Output, understand};
use super::call::Call;
use crate::ansible::Ansible;
use crate::children;
use crate::ssh::Route;
use crate::unreachable::Unreachable;
use crate::workdir::Workdir;

/// The longest part of an answer that is kept, in bytes.
const LIMIT: usize = 64 * 1024;
/// How long the pipes of an ssh that has ended are still read: a master in the background may hold them.
const REST: Duration = Duration::from_millis(500);

/// Calls a machine, and returns its answer.
pub async fn exchange(
    ansible: &Ansible,
    workdir: &Workdir,
    route: &Route,
    call: &Call,
    time_limit: Duration,
) -> Result<Answer, Unreachable> {
    match timeout(time_limit, talk(ansible, workdir, route, call)).await {
        Ok(Ok(output)) => understand(&output),
        Ok(Err(error)) => Err(unreachable(format!("failed to run ssh: {error}"))),
        Err(_) => Err(unreachable(format!("no answer within {} s", time_limit.as_secs()))),
    }
}

fn unreachable(message: String) -> Unreachable {
    Unreachable { reason: Reason::Unreachable, message }
}

async fn talk(ansible: &Ansible, workdir: &Workdir, route: &Route, call: &Call) -> io::Result<Output> {
    let mut waited = children::spawn(&mut ansible.ssh(workdir, route, &call.command))?;
    let (stdin, stdout, stderr) = {
        let child = waited.child();
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    };
    let send = async {
        if let Some(mut stdin) = stdin {
            // A machine that does not read may report why.
            let _ = stdin.write_all(&call.input).await;
            let _ = stdin.shutdown().await;
        }
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = {
        let read = std::pin::pin!(async { tokio::join!(keep(stdout, &mut out), keep(stderr, &mut err)) });
        let wait = std::pin::pin!(async { tokio::join!(send, waited.child().wait()).1 });
        let (mut read, mut wait) = (read, wait);
        tokio::select! {
            status = &mut wait => {
                let _ = timeout(REST, &mut read).await;
                status
            }
            _ = &mut read => wait.await,
        }
    }?;
    Ok(Output { code: status.code(), stdout: out, stderr: err })
}

/// Reads to the end and keeps the beginning.
async fn keep(stream: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length) = stream.read(&mut buffer).await {
        if length == 0 {
            return;
        }
        let room = LIMIT.saturating_sub(kept.len());
        kept.extend_from_slice(&buffer[..length.min(room)]);
    }
}
