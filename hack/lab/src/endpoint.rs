//! A stand-in for the load balancer that a site has in front of its API servers: forwards TCP to a backend that
//! answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::machines::lab_program;
use crate::place::Place;
use crate::processes::{self, Daemon};

/// A backend that has not answered by then counts as down for this connection.
const CONNECT: Duration = Duration::from_millis(700);
const PREFIX: &str = "endpoint-";

/// A forwarder inside this process; it ends when this is dropped.
pub struct Endpoint {
    address: SocketAddr,
    _end: oneshot::Sender<()>,
}

impl Endpoint {
    /// Listens on `listen` (port 0: any free one) and forwards to `backends`, on a thread of its own.
    pub fn start(listen: SocketAddr, backends: Vec<SocketAddr>) -> Result<Self> {
        let socket = std::net::TcpListener::bind(listen).with_context(|| format!("failed to listen on {listen}"))?;
        socket.set_nonblocking(true).context("failed to prepare the listener")?;
        let address = socket.local_addr().context("failed to read the listener's address")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("failed to start the forwarder")?;
        let (end, ended) = oneshot::channel();
        thread::spawn(move || {
            runtime.block_on(async move {
                let Ok(listener) = TcpListener::from_std(socket) else {
                    return;
                };
                tokio::select! {
                    () = serve(listener, backends) => (),
                    // The sender never sends: it is dropped.
                    _ = ended => (),
                }
            });
        });
        Ok(Self { address, _end: end })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Starts a forwarder as a background process of the lab; it lives until `remove` or `lab down`.
pub fn add(place: &Place, name: &str, listen: SocketAddr, backends: &[SocketAddr]) -> Result<()> {
    let process = format!("{PREFIX}{name}");
    if processes::find(place, &process).is_some() {
        bail!("endpoint {name} exists; remove it first: lab endpoint remove {name}");
    }
    let mut args = vec!["forward".to_owned(), "--listen".to_owned(), listen.to_string()];
    for backend in backends {
        args.extend(["--backend".to_owned(), backend.to_string()]);
    }
    let identity = Daemon::new(&process, lab_program()?).args(args).start(place)?;
    for _ in 0..200 {
        if std::net::TcpStream::connect_timeout(&listen, CONNECT).is_ok() {
            return Ok(());
        }
        if !identity.alive() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let said = processes::log_tail(place, &process);
    processes::stop(place, &process)?;
    bail!("endpoint {name} does not listen on {listen}:\n{said}")
}

/// Ends a forwarder that `add` started.
pub fn remove(place: &Place, name: &str) -> Result<()> {
    processes::stop(place, &format!("{PREFIX}{name}"))
}

/// The names of the forwarders that `add` started.
pub fn list(place: &Place) -> Vec<String> {
    processes::names(place).iter().filter_map(|name| Some(name.strip_prefix(PREFIX)?.to_owned())).collect()
}

/// Forwards until the process ends. This is the whole life of the command `lab forward`.
pub async fn forward(listen: SocketAddr, backends: Vec<SocketAddr>) -> Result<()> {
    let listener = TcpListener::bind(listen).await.with_context(|| format!("failed to listen on {listen}"))?;
    serve(listener, backends).await;
    Ok(())
}

async fn serve(listener: TcpListener, backends: Vec<SocketAddr>) {
    let backends = Arc::new(backends);
    let turn = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((client, _)) = listener.accept().await else {
            // Out of descriptors, most likely: connections that end give some back.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (backends, turn) = (Arc::clone(&backends), Arc::clone(&turn));
        tokio::spawn(async move { pass(client, &backends, &turn).await });
    }
}

/// Connects one client to the first backend that answers; without one the connection is closed.
async fn pass(mut client: TcpStream, backends: &[SocketAddr], turn: &AtomicUsize) {
    let first = turn.load(Ordering::Relaxed);
    for offset in 0..backends.len() {
        let number = (first + offset) % backends.len();
        if let Ok(Ok(mut server)) = timeout(CONNECT, TcpStream::connect(backends[number])).await {
            // The next client starts one further on: load is spread, and a dead backend is met only once in a while.
            turn.store(number + 1, Ordering::Relaxed);
            client.set_nodelay(true).ok();
            server.set_nodelay(true).ok();
            // Either side may cut the connection at any time: nothing is to be said about that.
            copy_bidirectional(&mut client, &mut server).await.ok();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn backend(says: &'static str) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                stream.unwrap().write_all(says.as_bytes()).unwrap();
            }
        });
        address
    }

    fn ask(address: SocketAddr) -> String {
        let mut text = String::new();
        std::net::TcpStream::connect(address).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_dead_backend_is_passed_over() {
        let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let endpoint = Endpoint::start("127.0.0.1:0".parse().unwrap(), vec![dead, backend("alive")]).unwrap();
        for _ in 0..3 {
            assert_eq!(ask(endpoint.address()), "alive");
        }
    }

    #[test]
    fn living_backends_take_turns() {
        let backends = vec![backend("a"), backend("b")];
        let endpoint = Endpoint::start("127.0.0.1:0".parse().unwrap(), backends).unwrap();
        let answers: String = (0..4).map(|_| ask(endpoint.address())).collect();
        assert_eq!(answers, "abab");
    }

    #[test]
    fn a_dropped_endpoint_no_longer_listens() {
        let endpoint = Endpoint::start("127.0.0.1:0".parse().unwrap(), vec![backend("a")]).unwrap();
        let address = endpoint.address();
        drop(endpoint);
        let gone = (0..200).any(|_| {
            thread::sleep(Duration::from_millis(10));
            std::net::TcpStream::connect(address).is_err()
        });
        assert!(gone);
    }
}
