//! Connections over TLS, for axum: handshakes take place side by side, so that one that is slow holds up nobody.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::certificate::Certificate;

/// Handshakes at the same time.
const AT_ONCE: usize = 32;
const HANDSHAKE: Duration = Duration::from_secs(10);
/// After an error of `accept` other than one of the connection: file descriptors may have run out.
const PAUSE: Duration = Duration::from_secs(1);

type Accepted = (TlsStream<TcpStream>, SocketAddr);

/// Hands on connections whose handshake is done.
pub(super) struct TlsListener {
    accepted: mpsc::Receiver<Accepted>,
    address: SocketAddr,
}

impl TlsListener {
    /// Begins to accept connections.
    pub(super) fn new(listener: TcpListener, certificate: Certificate) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (sender, accepted) = mpsc::channel(1);
        tokio::spawn(accept(listener, certificate, sender));
        Ok(Self { accepted, address })
    }
}

/// Accepts until nobody takes the connections any more.
async fn accept(listener: TcpListener, certificate: Certificate, sender: mpsc::Sender<Accepted>) {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    while let Ok(permit) = room.clone().acquire_owned().await {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = sender.closed() => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                let acceptor = TlsAcceptor::from(certificate.config());
                tokio::spawn(shake_hands(acceptor, stream, peer, sender.clone(), permit));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection for /metrics could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn shake_hands(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
    sender: mpsc::Sender<Accepted>,
    _permit: OwnedSemaphorePermit,
) {
    match timeout(HANDSHAKE, acceptor.accept(stream)).await {
        // Nobody takes it any more: the program stops.
        Ok(Ok(stream)) => drop(sender.send((stream, peer)).await),
        Ok(Err(error)) => tracing::debug!(%peer, %error, "a handshake for /metrics failed"),
        Err(_) => tracing::debug!(%peer, "a handshake for /metrics did not end"),
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.accepted.recv().await {
            Some(accepted) => accepted,
            // It accepts for as long as this is here; after that nothing comes.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.address)
    }
}
