//! Programs of the machine, with a deadline.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Where systemd would find them.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// One that hangs must not end the watch.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest part of a program's output that is kept.
const LARGE: u64 = 1 << 20;

/// The output of a program that succeeded.
pub fn run(name: &str, arguments: &[&str]) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("failed to run {name}: {error}");
    let mut child = Command::new(name)
        .args(arguments)
        .env("PATH", PATH)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (output, words) = (read(child.stdout.take()), read(child.stderr.take()));
    let since = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if since.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{name} did not end within {} s", PATIENCE.as_secs()));
        }
        thread::sleep(Duration::from_millis(2));
    };
    let (output, words) = (text(output), text(words));
    if status.success() {
        return Ok(output);
    }
    let words: String = words.trim().replace('\n', "; ").chars().take(300).collect();
    Err(format!("{name} {}: {words}", arguments.join(" ")))
}

fn read(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            // What came until then is what there is.
            let _ = stream.take(LARGE).read_to_end(&mut bytes);
        }
        bytes
    })
}

fn text(reader: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
}
