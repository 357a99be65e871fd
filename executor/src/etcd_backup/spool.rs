//! A snapshot that the member's machine writes to its disk first: a command over SSH does so, and then says its bytes.

use std::io;

use backup::{SPOOL_FULL, SpooledSnapshot};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use super::member_stream::MemberStream;
use super::over_ssh::over_ssh;
use crate::guard::call::{self, BEGUN, Root};
use crate::sanitize::clean;
use crate::secrets::{Secrets, without_newline};
use crate::ssh::Route;

/// Where it is on a machine; a reset removes it.
pub const DIRECTORY: &str = "/var/lib/clusterwright/spool";
/// What is free must be so many tenths of the database.
const ROOM_TENTHS: u64 = 12;
/// The command's first line is short.
const FIRST: u64 = 4096;

/// How a snapshot comes from the disk of one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spooling {
    /// The words of the command.
    pub words: Vec<String>,
    /// The secret with the password that sudo may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sudo_password: Option<String>,
}

/// Where a command finds what it needs on the machine.
pub struct SpoolPlaces<'a> {
    /// The directory that it makes anew and removes.
    pub directory: &'a str,
    /// The program that takes it.
    pub etcdctl: &'a str,
    /// Where the member serves clients.
    pub address: &'a str,
    /// Certificates of etcd.
    pub pki: &'a str,
}

impl Spooling {
    /// Over the connection to a machine, by a shell there.
    pub fn new(route: &Route, shell: &str, places: &SpoolPlaces<'_>, sudo_password: Option<String>) -> Self {
        let SpoolPlaces { directory, etcdctl, address, pki } = places;
        let etcdctl = format!(
            "{etcdctl} --endpoints=https://{address} --cacert={pki}/ca.crt --cert={pki}/healthcheck-client.crt \
             --key={pki}/healthcheck-client.key"
        );
        let remote = call::spool(&route.root, shell, directory, &etcdctl, SPOOL_FULL);
        let sudo_password = sudo_password.filter(|_| matches!(route.root, Root::Sudo(Some(_))));
        Self { words: over_ssh(route, &remote), sudo_password }
    }

    /// Begins, for a database of so many bytes, and returns what comes from the disk. What the command complains is an
    /// error, here or of what is read.
    pub(super) async fn open(&self, database: u64, secrets: &Secrets) -> io::Result<SpooledSnapshot> {
        let room = (database / 10).saturating_mul(ROOM_TENTHS);
        let password = self.sudo_password.as_ref().and_then(|name| secrets.get(name));
        let mut input = call::head(password.map(without_newline));
        input.extend_from_slice(format!("{room}\n").as_bytes());
        let mut stream = MemberStream::open(&self.words)?;
        // One that has ended already says why below.
        let _ = stream.write_all(&input).await;
        let mut reader = BufReader::new(stream);
        let mut first = String::new();
        (&mut reader).take(FIRST).read_line(&mut first).await?;
        match first.trim_end() {
            BEGUN => Ok(Box::new(reader)),
            other => Err(io::Error::other(format!("the machine said {:?}", clean(other, 100)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::Spooling;
    use crate::secrets::Secrets;

    fn command(script: &str) -> Spooling {
        let words = ["sh", "-c", script].map(str::to_owned).into();
        Spooling { words, sudo_password: Some("become-password.x".into()) }
    }

    #[tokio::test]
    async fn a_machine_is_told_the_room_that_it_needs_and_its_bytes_come_after_its_first_line() {
        let secrets: Secrets = [("become-password.x".to_owned(), b"pw\n".to_vec())].into_iter().collect();
        let says = "read -r pw; read -r begun; read -r room; echo clusterwright-begun; printf \"$pw $begun $room\"";
        let mut said = String::new();
        command(says).open(1000, &secrets).await.unwrap().read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "pw clusterwright-begun 1200");
    }

    #[tokio::test]
    async fn what_a_machine_complains_is_the_error() {
        let secrets = Secrets::default();
        let early = command("echo no way >&2; exit 1").open(1, &secrets).await.err().unwrap();
        assert_eq!(early.to_string(), "no way");
        let late = "read -r begun; echo clusterwright-begun; echo clusterwright-spool-full: 5 >&2; exit 1";
        let mut snapshot = command(late).open(1, &secrets).await.unwrap();
        let complaint = snapshot.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(complaint.to_string(), "clusterwright-spool-full: 5");
        let other = command("echo hello; sleep 5").open(1, &secrets).await.err().unwrap();
        assert!(other.to_string().contains("hello"), "{other}");
    }
}
