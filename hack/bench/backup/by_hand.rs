//! What one does without Clusterwright: `etcdctl snapshot save`, age, and curl.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Instant;

use age::x25519::Recipient;
use tokio::task::block_in_place;

use crate::process::programs;
use crate::{Outcome, Scene};

/// A snapshot into a file, and the file into the bucket. Seconds.
pub async fn save(scene: &Scene) -> Outcome<f64> {
    timed(|| {
        let snapshot = snapshot(scene)?;
        scene.storage.put(&snapshot, "by-hand/snapshot.db");
        Ok(())
    })
}

/// Encrypted before it is uploaded.
pub async fn save_encrypted(scene: &Scene) -> Outcome<f64> {
    timed(|| upload_encrypted(scene))
}

/// And read back, and compared by its SHA-256.
pub async fn save_encrypted_and_read_back(scene: &Scene) -> Outcome<f64> {
    timed(|| {
        upload_encrypted(scene)?;
        let back = scene.file("back.age");
        scene.storage.get("by-hand/snapshot.db.age", &back);
        if sha256(&back)? == sha256(&scene.file("by-hand.db.age"))? {
            return Ok(());
        }
        Err("what was read back differs".into())
    })
}

fn timed(work: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    let began = Instant::now();
    block_in_place(work)?;
    Ok(began.elapsed().as_secs_f64())
}

fn upload_encrypted(scene: &Scene) -> Outcome<()> {
    let (plain, cipher) = (snapshot(scene)?, scene.file("by-hand.db.age"));
    let recipient: Recipient = scene.recipient.parse()?;
    let encryptor = age::Encryptor::with_recipients(std::iter::once(&recipient as &dyn age::Recipient))?;
    let mut writer = encryptor.wrap_output(File::create(&cipher)?)?;
    io::copy(&mut File::open(plain)?, &mut writer)?;
    writer.finish()?;
    scene.storage.put(&cipher, "by-hand/snapshot.db.age");
    Ok(())
}

fn snapshot(scene: &Scene) -> Outcome<std::path::PathBuf> {
    let file = scene.file("by-hand.db");
    for (name, text) in [("ca.crt", &scene.pki.ca), ("tls.crt", &scene.pki.certificate), ("tls.key", &scene.pki.key)] {
        std::fs::write(scene.file(name), text)?;
    }
    let flag = |name: &str, file: &str| format!("--{name}={}", scene.file(file).display());
    let saved = std::process::Command::new(programs().join("etcdctl"))
        .arg(format!("--endpoints={}", scene.member.url()))
        .args([flag("cacert", "ca.crt"), flag("cert", "tls.crt"), flag("key", "tls.key")])
        .args(["snapshot", "save"])
        .arg(&file)
        .output()?;
    if saved.status.success() { Ok(file) } else { Err(String::from_utf8_lossy(&saved.stderr).into()) }
}

fn sha256(file: &Path) -> Outcome<String> {
    let said = std::process::Command::new("sha256sum").arg(file).output()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    Ok(said.split(' ').next().unwrap_or_default().to_owned())
}
