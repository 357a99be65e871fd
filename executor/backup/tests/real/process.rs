//! Real members of etcd on this machine, with TLS, on free ports of the loopback interface. They end with the test.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs};

use backup::EtcdTls;
use etcd_client::Client;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// An authority, with a certificate that is good for members and clients.
pub struct Pki {
    pub ca: String,
    pub certificate: String,
    pub key: String,
}

impl Pki {
    pub fn new() -> Self {
        Self::for_names(&[])
    }

    /// The certificate is for these names, too.
    pub fn for_names(names: &[&str]) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = authority.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(authority, key);
        let key = KeyPair::generate().unwrap();
        let names = ["127.0.0.1", "localhost"].iter().chain(names).map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
        Self { ca, certificate: certificate.pem(), key: key.serialize_pem() }
    }

    pub fn tls(&self) -> EtcdTls {
        EtcdTls {
            ca: self.ca.clone().into(),
            certificate: self.certificate.clone().into(),
            key: self.key.clone().into(),
        }
    }
}

/// One process of etcd.
pub struct Member {
    process: Child,
    pub port: u16,
    plain_port: u16,
    pub peer: String,
    log: PathBuf,
}

/// A cluster that is to be: what each of its members has to know.
pub struct Plan<'a> {
    pub place: &'a Path,
    pub pki: &'a Pki,
    /// Ports of the members' peers.
    pub peers: Vec<u16>,
    /// `new`, or `existing` for one that joins.
    pub state: &'static str,
}

impl Plan<'_> {
    /// Starts one member, and does not wait for it.
    pub fn start(&self, index: usize) -> Member {
        let place = self.place.join(format!("m{index}"));
        fs::create_dir_all(&place).unwrap();
        let file = |name: &str, text: &str| {
            let path = place.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (port, plain_port) = (free_port(), free_port());
        let peer = |index: usize| format!("http://127.0.0.1:{}", self.peers[index]);
        let members: Vec<_> = (0..self.peers.len()).map(|index| format!("m{index}={}", peer(index))).collect();
        let clients = format!("https://127.0.0.1:{port}");
        let log = place.join("log");
        let process = Command::new(programs().join("etcd"))
            .args([
                "--name",
                &format!("m{index}"),
                "--unsafe-no-fsync",
                "--quota-backend-bytes=8589934592",
                "--data-dir",
            ])
            .arg(place.join("data"))
            .args(["--listen-client-urls", &format!("{clients},http://127.0.0.1:{plain_port}")])
            .args(["--advertise-client-urls", &clients])
            .args(["--listen-peer-urls", &peer(index), "--initial-advertise-peer-urls", &peer(index)])
            .args(["--initial-cluster", &members.join(","), "--initial-cluster-state", self.state])
            .args(["--client-cert-auth", "--trusted-ca-file"])
            .arg(file("ca.crt", &self.pki.ca))
            .arg("--cert-file")
            .arg(file("tls.crt", &self.pki.certificate))
            .arg("--key-file")
            .arg(file("tls.key", &self.pki.key))
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Member { process, port, plain_port, peer: peer(index), log }
    }
}

impl Member {
    /// A cluster of one, that serves.
    pub async fn alone(place: &Path, pki: &Pki) -> Self {
        let member = Plan { place, pki, peers: vec![free_port()], state: "new" }.start(0);
        member.client().await;
        member
    }

    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Where it speaks without TLS.
    pub fn plain_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.plain_port)
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// A client beside the one that is tested, once the member serves.
    pub async fn client(&self) -> Client {
        let since = Instant::now();
        loop {
            let mut client = Client::connect([format!("http://127.0.0.1:{}", self.plain_port)], None).await.unwrap();
            let status = tokio::time::timeout(Duration::from_secs(1), client.status()).await;
            match status {
                Ok(Ok(status)) if status.leader() != 0 => return client,
                _ if since.elapsed() > Duration::from_secs(60) => {
                    panic!("etcd does not serve: {}", fs::read_to_string(&self.log).unwrap_or_default())
                }
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// Writes some megabytes, and waits until etcd's status counts them: it does with the next commit to its disk.
    pub async fn fill(&self, megabytes: usize) {
        let mut client = self.client().await;
        let value: Vec<u8> = (0..1_u32 << 18).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for index in 0..megabytes {
            client.put(format!("/registry/{index}"), value.clone(), None).await.unwrap();
        }
        let since = Instant::now();
        while usize::try_from(client.status().await.unwrap().db_size()).unwrap() < megabytes << 20 {
            assert!(since.elapsed() < Duration::from_secs(60), "etcd does not count {megabytes} MiB");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that nobody has just now, and that the kernel gives to nobody by itself: those begin at 32768.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(7919).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 20_000 + u16::try_from(number % 12_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Where etcd's programs are: of the newest version that was built.
pub fn programs() -> PathBuf {
    directory("etcd")
}

/// A program of a component, of the newest version that was built.
pub fn program(component: &str, name: &str) -> PathBuf {
    directory(component).join(name)
}

fn directory(component: &str) -> PathBuf {
    let cache = env::var_os("CLUSTERWRIGHT_CACHE")
        .map_or_else(|| Path::new(&env::var_os("HOME").unwrap()).join(".cache/clusterwright"), PathBuf::from);
    let versions = cache.join("programs").join(component);
    let mut found: Vec<_> = fs::read_dir(&versions)
        .unwrap_or_else(|_| {
            panic!(
                "{} is missing: run `lab build {}`",
                versions.display(),
                if component == "seaweedfs" { "storages" } else { "programs" }
            )
        })
        .map(|entry| entry.unwrap().path().join("bin"))
        .collect();
    found.sort();
    found.pop().unwrap()
}
