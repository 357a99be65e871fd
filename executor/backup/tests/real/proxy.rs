//! A network between a client and a server of TCP that can be bad: on the loopback interface, until this is dropped.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What is forwarded at once.
const PIECE: usize = 16 << 10;
/// How often a connection that is held looks again.
const LOOK: Duration = Duration::from_millis(20);

const PASSES: u8 = 0;
const RESETS: u8 = 1;
const SWALLOWS: u8 = 2;

pub struct Proxy {
    pub port: u16,
    network: Arc<Network>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Network {
    state: AtomicU8,
    /// Bytes towards the server so far.
    sent: AtomicU64,
    /// Once so many bytes went to the server, one connection is cut; 0: none is.
    cut: AtomicU64,
    /// Once so many bytes went to the server, all are cut, and nobody connects any more; 0: never.
    away: AtomicU64,
    /// Bytes a second, both ways together; 0: as many as there are.
    rate: AtomicU64,
    paid: Mutex<Option<Instant>>,
}

impl Proxy {
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let network = Arc::new(Network::default());
        let task = tokio::spawn(forward(listener, port, network.clone()));
        Self { port: own, network, task }
    }

    /// Cuts one connection once so many bytes went to the server.
    pub fn cut_once_at(&self, bytes: u64) {
        self.network.cut.store(bytes, Ordering::Relaxed);
    }

    /// Resets all connections, and each new one, once so many bytes went to the server.
    pub fn away_at(&self, bytes: u64) {
        self.network.away.store(bytes, Ordering::Relaxed);
    }

    pub fn is_away(&self) -> bool {
        self.network.state.load(Ordering::Relaxed) == RESETS
    }

    /// From now on nothing comes through, without an error to anybody.
    pub fn swallow(&self) {
        self.network.state.store(SWALLOWS, Ordering::Relaxed);
    }

    pub fn come_back(&self) {
        self.network.away.store(0, Ordering::Relaxed);
        self.network.state.store(PASSES, Ordering::Relaxed);
    }

    /// So many bytes a second, both ways together.
    pub fn limit(&self, bytes_per_second: u64) {
        self.network.rate.store(bytes_per_second, Ordering::Relaxed);
    }

    /// Bytes that went to the server.
    pub fn sent(&self) -> u64 {
        self.network.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(listener: TcpListener, port: u16, network: Arc<Network>) {
    while let Ok((client, _)) = listener.accept().await {
        let network = network.clone();
        tokio::spawn(async move {
            if network.state.load(Ordering::Relaxed) == RESETS {
                return;
            }
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
            let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
            tokio::select! {
                () = pass(from_client, to_server, &network, true) => (),
                () = pass(from_server, to_client, &network, false) => (),
            }
        });
    }
}

/// Returns once the connection has ended or is cut.
async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    network: &Network,
    is_upwards: bool,
) {
    let mut piece = vec![0; PIECE];
    loop {
        let length = tokio::select! {
            read = from.read(&mut piece) => read.unwrap_or(0),
            () = network.ends() => return,
        };
        // Nobody learns of an end, either.
        network.speaks().await;
        if length == 0 || !network.lets(length, is_upwards).await || to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}

impl Network {
    /// Waits until connections are cut.
    async fn ends(&self) {
        while self.state.load(Ordering::Relaxed) != RESETS {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits while nothing comes through.
    async fn speaks(&self) {
        while self.state.load(Ordering::Relaxed) == SWALLOWS {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether these bytes may pass, once it is their turn.
    async fn lets(&self, length: usize, is_upwards: bool) -> bool {
        if is_upwards {
            let sent = self.sent.fetch_add(length as u64, Ordering::Relaxed) + length as u64;
            let reached = |at: u64| at != 0 && sent >= at;
            if reached(self.away.load(Ordering::Relaxed)) {
                self.state.store(RESETS, Ordering::Relaxed);
            }
            let cut = self.cut.load(Ordering::Relaxed);
            if reached(cut) && self.cut.compare_exchange(cut, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return false;
            }
        }
        self.pay(length).await;
        self.state.load(Ordering::Relaxed) != RESETS
    }

    async fn pay(&self, length: usize) {
        let rate = self.rate.load(Ordering::Relaxed);
        if rate == 0 {
            return;
        }
        let until = {
            let mut paid = self.paid.lock().unwrap();
            let until = paid.unwrap_or_else(Instant::now).max(Instant::now());
            let until = until + Duration::from_secs_f64(length as f64 / rate as f64);
            *paid = Some(until);
            until
        };
        tokio::time::sleep_until(until.into()).await;
    }
}
