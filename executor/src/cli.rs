//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Runs the steps of a PlaybookRun on its hosts.
#[derive(Debug, Parser)]
#[command(name = "executor", version)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the steps that the inputs name. Exit codes: 0 done; 10 inputs refused; 11 host key; 12
    /// credentials; 20 a step failed; 21 hosts unreachable; 30 canceled (143 after SIGTERM); 31 deadline; 40
    /// internal.
    Run(Box<Run>),
    /// Look whether a storage of backups can be used, and what is in it. Exit code 0 whatever was found: it is in the
    /// termination message, as JSON; 10 for arguments that cannot be read.
    Storage(Box<Storage>),
    /// Remove the backup of an EtcdBackup from its storage: its manifest first, then what else is in its directory.
    /// Exit code 0 whatever came of it: that is in the termination message, as JSON; 10 for arguments that cannot be
    /// read.
    RemoveBackup(Box<RemoveBackup>),
    /// Verify the backup of an EtcdBackup from what is stored: its objects, decrypted too where an identity is given,
    /// and restored into an etcd beside this process. Exit code 0 whatever came of it: that is in the termination
    /// message, as JSON; 10 for arguments that cannot be read.
    VerifyBackup(Box<VerifyBackup>),
    /// Fetch the keys of a backup into a Secret. Exit code 0 whatever came of it: that is in the termination message,
    /// as JSON; 10 for arguments that cannot be read.
    FetchKeys(Box<FetchKeys>),
    /// Fetch the snapshot of a backup, decrypted, into a file. Exit code 0 if it is there and whole; 20 if not: why is
    /// in the termination message, as text; 10 for arguments that cannot be read.
    FetchSnapshot(Box<FetchSnapshot>),
    /// Install, upgrade or uninstall the release of a chart by Helm. Exit code 0 whatever came of it: that is in the
    /// termination message, as JSON; 10 for inputs that cannot be read.
    Chart(Box<Chart>),
    /// Print inputs to start from: save them as DIR/model/inputs.json, and put the key into DIR/secrets/.
    Inputs,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Directory with model/inputs.json and secrets/*.
    #[arg(long, value_name = "DIR")]
    pub inputs: PathBuf,
    /// The collection: ansible.cfg, playbooks/, roles/, plugins/.
    #[arg(long, value_name = "DIR", env = "CLUSTERWRIGHT_ANSIBLE", default_value = "/opt/clusterwright/ansible")]
    pub ansible: PathBuf,
    /// The guard that is put on the machines: a static program, or a directory with one for each architecture, named
    /// for it (amd64, arm64).
    #[arg(long, value_name = "PATH", env = "CLUSTERWRIGHT_GUARD", default_value = "/opt/clusterwright/guard")]
    pub guard: PathBuf,
    /// Where the guard is on the machines. For tests, whose machine is the developer's.
    #[arg(long, value_name = "DIR", default_value = guard::DIRECTORY, hide = true)]
    pub guard_directory: String,
    /// Where the member of etcd serves clients on each machine. For tests, whose machine is the developer's.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:2379", hide = true)]
    pub etcd_address: String,
    /// Where etcd keeps its data on each machine. For tests, whose machine is the developer's.
    #[arg(long, value_name = "DIR", default_value = crate::etcd_backup::DATA_DIRECTORY, hide = true)]
    pub etcd_data_directory: String,
    /// Where etcd's certificates are on each machine. For tests, whose machine is the developer's.
    #[arg(long, value_name = "DIR", default_value = "/etc/etcd/pki", hide = true)]
    pub etcd_pki_directory: String,
    /// The etcdctl of each machine. For tests, whose machine is the developer's.
    #[arg(long, value_name = "PROGRAM", default_value = "etcdctl", hide = true)]
    pub etcdctl: String,
    /// Where a machine writes a snapshot before it sends it. For tests, whose machine is the developer's.
    #[arg(long, value_name = "DIR", default_value = crate::etcd_backup::SPOOL_DIRECTORY, hide = true)]
    pub spool_directory: String,
    /// Report to the status of this PlaybookRun. Without it no API is used, and progress goes to the
    /// terminal.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub run: Option<String>,
    /// The UID of that PlaybookRun: what tells it from one of the same name that was there before. An environment
    /// variable, so that an older executor may be given it, too.
    #[arg(long, value_name = "UID", env = crds::inputs::RUN_UID_VARIABLE)]
    pub uid: Option<String>,
    /// The second half of the fence.
    #[arg(long, default_value_t = 0)]
    pub token: i64,
    /// Which attempt this is.
    #[arg(long, default_value_t = 0)]
    pub attempt: i32,
    /// Refuse inputs of another digest.
    #[arg(long, value_name = "sha256:HEX")]
    pub digest: Option<String>,
    /// Stop after this time, in good order. In a Job: its activeDeadlineSeconds less 120.
    #[arg(long, value_name = "SECONDS")]
    pub deadline_seconds: Option<u64>,
    /// Where the outcome is written. Default with --run: /dev/termination-log.
    #[arg(long, value_name = "FILE")]
    pub termination_message: Option<PathBuf>,
    /// Write everything that came out to this file, as JSON: steps, hosts, outcome.
    #[arg(long, value_name = "FILE")]
    pub result: Option<PathBuf>,
    /// Without --run: show Ansible's own output, too.
    #[arg(long, short)]
    pub verbose: bool,
}

/// Arguments of `storage`.
#[derive(Debug, Args)]
pub struct Storage {
    /// The storage, as the inputs of a run have it: {"s3": {...}} or {"directory": "/backups"}.
    #[arg(long, value_name = "JSON")]
    pub storage: String,
    /// Directory with accessKeyID, secretAccessKey and sessionToken, each with or without the prefix `storage.`; a
    /// directory needs none.
    #[arg(long, value_name = "DIR")]
    pub secrets: Option<PathBuf>,
    /// Where what was found is written.
    #[arg(long, value_name = "FILE", default_value = "/dev/termination-log")]
    pub termination_message: PathBuf,
}

/// Arguments of `remove-backup`.
#[derive(Debug, Args)]
pub struct RemoveBackup {
    /// The storage, and where to say what came of it.
    #[command(flatten)]
    pub storage: Storage,
    /// The backup's directory in the storage, below the prefix.
    #[arg(long, value_name = "DIR")]
    pub location: String,
    /// Name of the EtcdBackup: a manifest of another one is left alone.
    #[arg(long, value_name = "NAME")]
    pub backup: String,
}

/// Arguments of `verify-backup`.
#[derive(Debug, Args)]
pub struct VerifyBackup {
    /// The storage, and where to say what came of it.
    #[command(flatten)]
    pub storage: Storage,
    /// The backup, and what is done: {"how": "Hash", "location": ..., "backup": ..., "cluster": ..., "revision": ...,
    /// "keys": ..., "size": ..., "sha256": ..., "programs": {"url": ..., "version": ...}}.
    #[arg(long, value_name = "JSON")]
    pub backup: String,
    /// Directory with the age identity that decrypts it, in the file `identity`. Without it nothing is decrypted.
    #[arg(long, value_name = "DIR")]
    pub identity: Option<PathBuf>,
    /// Directory with the login of the artifact bundle: `username` and `password`, or `token`.
    #[arg(long, value_name = "DIR")]
    pub artifacts_login: Option<PathBuf>,
    /// Where programs are put, and the snapshot is restored.
    #[arg(long, value_name = "DIR", default_value = "/scratch")]
    pub scratch: PathBuf,
    /// It is given up after this time.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub deadline_seconds: u64,
}

/// Arguments of `fetch-keys`.
#[derive(Debug, Args)]
pub struct FetchKeys {
    /// The storage, and where to say what came of it.
    #[command(flatten)]
    pub storage: Storage,
    /// The backup's directory in the storage, below the prefix.
    #[arg(long, value_name = "DIR")]
    pub location: String,
    /// The age identity that decrypts it.
    #[arg(long, value_name = "FILE", default_value = "/identity/identity")]
    pub identity: PathBuf,
    /// The Secret that takes them; it is there already.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub secret: String,
    /// The backup is of a Karmada control plane: with its keys goes that of the snapshot.
    #[arg(long)]
    pub plane: bool,
}

/// Arguments of `fetch-snapshot`.
#[derive(Debug, Args)]
pub struct FetchSnapshot {
    /// The storage, and where to say why it failed.
    #[command(flatten)]
    pub storage: Storage,
    /// The backup's directory in the storage, below the prefix.
    #[arg(long, value_name = "DIR")]
    pub location: String,
    /// The key of the snapshot.
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// SHA-256 of the snapshot that is wanted, hexadecimal: another one is not fetched.
    #[arg(long, value_name = "HEX")]
    pub sha256: String,
    /// Where it is put.
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
    /// A directory that is removed first, if it is there: what an attempt before has left.
    #[arg(long, value_name = "DIR")]
    pub clear: PathBuf,
}

/// Arguments of `chart`.
#[derive(Debug, Args)]
pub struct Chart {
    /// Directory with release.json, kubeconfig, values.json, masked.json, ca.crt, username and password; all but the
    /// first two where they are needed.
    #[arg(long, value_name = "DIR")]
    pub inputs: PathBuf,
    /// Where the chart is put, and what Helm writes.
    #[arg(long, value_name = "DIR", default_value = "/work")]
    pub work: PathBuf,
    /// Helm.
    #[arg(long, value_name = "PROGRAM", env = "CLUSTERWRIGHT_HELM", default_value = "helm")]
    pub helm: PathBuf,
    /// Helm is ended after this time.
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    pub deadline_seconds: u64,
    /// Where what came of it is written.
    #[arg(long, value_name = "FILE", default_value = "/dev/termination-log")]
    pub termination_message: PathBuf,
}
