//! An API server that takes every patch, of a run's status or of a Secret, and keeps what it was sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::json;

/// Listens on a port of its own for as long as the test lasts.
pub struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// Its first line, and its body.
type Request = (String, Vec<u8>);

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::default();
        let kept = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                thread::spawn(move || serve(&stream, &kept));
            }
        });
        Self { port, requests }
    }

    pub fn kubeconfig(&self) -> String {
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}], "users": [{"name": "x", "user": {}}],
            "clusters": [{"name": "x", "cluster": {"server": format!("http://127.0.0.1:{}", self.port)}}]});
        config.to_string()
    }

    /// The bodies of all requests so far.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.requests.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, kept: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut line, mut first) = (0, String::new(), String::new());
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if first.is_empty() {
                first = line.trim().to_owned();
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        kept.lock().unwrap().push((first.clone(), body));
        let run = json!({"apiVersion": "clusterwright.dev/v1alpha1", "kind": "PlaybookRun", "metadata": {"name": "r", "namespace": "n"},
            "spec": {"intent": "Probe", "steps": ["probe-host"], "hosts": ["key"]}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "r", "namespace": "n"}});
        let text = if first.contains("/secrets/") { secret } else { run }.to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", text.len());
        let mut stream = stream;
        if stream.write_all(format!("{head}{text}").as_bytes()).is_err() {
            return;
        }
    }
}
