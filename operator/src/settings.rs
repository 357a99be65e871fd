//! What an administrator sets: arguments, each with an environment variable.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};

/// Settings of the operator.
#[derive(Args, Clone, Debug)]
pub struct Settings {
    /// Where /metrics, /healthz and /readyz answer.
    #[arg(long, env = "CLUSTERWRIGHT_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,
    /// Format of the log.
    #[arg(long, env = "CLUSTERWRIGHT_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Image of the executor, for clusters that name none.
    #[arg(
        long,
        env = "CLUSTERWRIGHT_EXECUTOR_IMAGE",
        default_value = "clusterwright.dev/executor:dev"
    )]
    pub executor_image: String,
    /// Work in this namespace only. Default: in all.
    #[arg(long, env = "CLUSTERWRIGHT_NAMESPACE")]
    pub namespace: Option<String>,
    /// Passes of one controller at the same time.
    #[arg(long, env = "CLUSTERWRIGHT_CONCURRENCY", default_value_t = 16)]
    pub concurrency: u16,
    /// Seconds between two probes of a spare Host.
    #[arg(long, env = "CLUSTERWRIGHT_PROBE_INTERVAL_SECONDS", default_value_t = 600)]
    pub probe_interval_seconds: u64,
}

/// Formats of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
