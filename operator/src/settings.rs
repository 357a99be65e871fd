//! What an administrator sets: arguments, each with an environment variable.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plan::leader::Times;

use crate::error::Error;

/// Where a Pod finds the namespace that it is in.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
const HOST_NAME: &str = "/proc/sys/kernel/hostname";
/// Variables of proxies.
const PROXIES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
/// Where the manifests put the operator.
const USUAL_NAMESPACE: &str = "clusterwright-system";

/// Settings of the operator.
#[derive(Args, Clone, Debug)]
pub struct Settings {
    /// Where /healthz and /readyz answer, and /metrics without --metrics-tls-directory.
    #[arg(long, env = "CLUSTERWRIGHT_LISTEN", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,
    /// Serve /metrics over TLS, with tls.crt and tls.key of this directory; new ones are taken within a minute.
    #[arg(long, value_name = "DIR", env = "CLUSTERWRIGHT_METRICS_TLS_DIRECTORY")]
    pub metrics_tls_directory: Option<PathBuf>,
    /// Where /metrics answers over TLS.
    #[arg(long, env = "CLUSTERWRIGHT_METRICS_LISTEN", default_value = "0.0.0.0:8443")]
    pub metrics_listen: SocketAddr,
    /// Only those scrape whom the API server lets `get /metrics`. Needs --metrics-tls-directory.
    #[arg(long, env = "CLUSTERWRIGHT_METRICS_AUTHORIZATION")]
    pub metrics_authorization: bool,
    /// Format of the log.
    #[arg(long, env = "CLUSTERWRIGHT_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Image of the executor, for clusters that name none.
    #[arg(long, env = "CLUSTERWRIGHT_EXECUTOR_IMAGE", default_value = "clusterwright.dev/executor:dev")]
    pub executor_image: String,
    /// Secrets that the executor's image is pulled with, for runs of clusters that name none and of spare Hosts. They
    /// are in the namespace of the machines. Several are separated by commas.
    #[arg(long, value_name = "NAME", env = "CLUSTERWRIGHT_EXECUTOR_PULL_SECRETS", value_delimiter = ',')]
    pub executor_pull_secrets: Vec<String>,
    /// Give executors the proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY, through which the operator downloads, too.
    #[arg(long, env = "CLUSTERWRIGHT_EXECUTOR_PROXIES")]
    pub executor_proxies: bool,
    /// Work in this namespace only. Default: in all.
    #[arg(long, env = "CLUSTERWRIGHT_NAMESPACE")]
    pub namespace: Option<String>,
    /// Passes of one controller at the same time.
    #[arg(long, env = "CLUSTERWRIGHT_CONCURRENCY", default_value_t = 16)]
    pub concurrency: u16,
    /// Seconds between two probes of a spare Host.
    #[arg(long, env = "CLUSTERWRIGHT_PROBE_INTERVAL_SECONDS", default_value_t = 600)]
    pub probe_interval_seconds: u64,
    /// Seconds between two writes of a status of which only messages have changed; 0: each is written at once.
    #[arg(long, env = "CLUSTERWRIGHT_MESSAGE_INTERVAL_SECONDS", default_value_t = 2)]
    pub message_interval_seconds: u64,
    /// Namespace of the Lease. Default: the Pod's; outside of a Pod that of --namespace; else clusterwright-system.
    #[arg(long, env = "CLUSTERWRIGHT_LEASE_NAMESPACE")]
    pub lease_namespace: Option<String>,
    /// Name of the Lease: of all operators that have it in common, one leads.
    #[arg(long, env = "CLUSTERWRIGHT_LEASE_NAME", default_value = "clusterwright-operator")]
    pub lease_name: String,
    /// Seconds of silence after which another operator takes the Lease.
    #[arg(long, env = "CLUSTERWRIGHT_LEASE_DURATION_SECONDS", default_value_t = 15)]
    pub lease_duration_seconds: u32,
    /// Seconds after its last renewal for which a leader still acts.
    #[arg(long, env = "CLUSTERWRIGHT_RENEW_DEADLINE_SECONDS", default_value_t = 10)]
    pub renew_deadline_seconds: u32,
    /// Seconds between two looks at the Lease, or two renewals.
    #[arg(long, env = "CLUSTERWRIGHT_RETRY_PERIOD_SECONDS", default_value_t = 2)]
    pub retry_period_seconds: u32,
    /// Name of this operator in the Lease; something random is added. Default: the name of the host, in a Pod the
    /// Pod's.
    #[arg(long, env = "CLUSTERWRIGHT_IDENTITY")]
    pub identity: Option<String>,
}

impl Settings {
    /// The variables by which executors find their proxies.
    pub fn executor_proxies(&self) -> Vec<(&'static str, String)> {
        let given = |name: &'static str| Some((name, std::env::var(name).ok().filter(|value| !value.is_empty())?));
        let names = PROXIES.into_iter().filter(|_| self.executor_proxies);
        names.filter_map(given).collect()
    }

    /// The times of the Lease, if they can work.
    pub fn lease_times(&self) -> Result<Times, Error> {
        let seconds = |seconds: u32| u64::from(seconds);
        let (lease, retry) = (seconds(self.lease_duration_seconds), seconds(self.retry_period_seconds));
        Times::of_seconds(lease, seconds(self.renew_deadline_seconds), retry)
            .map_err(|source| Error::Failed { action: "use the times of the Lease".into(), source: Box::new(source) })
    }

    /// How /metrics is served, if that can work: a token is not shown in the clear.
    pub fn scraping(&self) -> Result<Scraping, Error> {
        match (&self.metrics_tls_directory, self.metrics_authorization) {
            (Some(directory), authorized) => {
                Ok(Scraping::Tls { address: self.metrics_listen, directory: directory.clone(), authorized })
            }
            (None, false) => Ok(Scraping::Plain),
            (None, true) => Err(Error::Failed {
                action: "use --metrics-authorization".into(),
                source: "it needs --metrics-tls-directory: tokens would go over the network in the clear".into(),
            }),
        }
    }

    /// The namespace of the Lease. By hand and for one namespace, it is that one: such operators do not meet.
    pub fn lease_namespace(&self) -> String {
        let own = || read(OWN_NAMESPACE);
        let given = self.lease_namespace.clone();
        given.or_else(own).or_else(|| self.namespace.clone()).unwrap_or_else(|| USUAL_NAMESPACE.into())
    }

    /// A name that no other process has, nor the one that ran in this Pod before.
    pub fn identity(&self) -> String {
        let name = self.identity.clone().or_else(|| read(HOST_NAME));
        let name = name.unwrap_or_else(|| "operator".into());
        format!("{name}_{:08x}", rand::random::<u32>())
    }
}

fn read(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// How /metrics is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scraping {
    /// Beside the probes, in the clear.
    Plain,
    /// Over TLS.
    Tls {
        /// Where.
        address: SocketAddr,
        /// With the certificate that is there.
        directory: PathBuf,
        /// To those alone whom the API server lets.
        authorized: bool,
    },
}

/// Formats of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

#[cfg(test)]
mod tests {
    use super::{Scraping, Settings};
    use clap::{Args, Command, FromArgMatches};

    fn settings(arguments: &[&str]) -> Settings {
        let command = Settings::augment_args(Command::new("operator"));
        let arguments = ["operator"].iter().chain(arguments);
        Settings::from_arg_matches(&command.get_matches_from(arguments)).unwrap()
    }

    #[test]
    fn operators_by_hand_for_different_namespaces_do_not_meet() {
        let check = |arguments: &[&str], expected| assert_eq!(settings(arguments).lease_namespace(), expected);
        check(&[], "clusterwright-system");
        check(&["--namespace", "fleet"], "fleet");
        check(&["--namespace", "fleet", "--lease-namespace", "x"], "x");
    }

    #[test]
    fn authorization_without_tls_is_refused_at_the_start() {
        let scraping = |arguments: &[&str]| settings(arguments).scraping();
        assert_eq!(scraping(&[]).unwrap(), Scraping::Plain);
        let error = crate::error::chain(&scraping(&["--metrics-authorization"]).unwrap_err());
        assert!(error.contains("needs --metrics-tls-directory"), "{error}");
        let both = scraping(&["--metrics-authorization", "--metrics-tls-directory", "/tls"]).unwrap();
        let address = "0.0.0.0:8443".parse().unwrap();
        assert_eq!(both, Scraping::Tls { address, directory: "/tls".into(), authorized: true });
    }

    #[test]
    fn each_process_has_a_name_of_its_own() {
        let settings = settings(&["--identity", "pod"]);
        assert!(settings.identity().starts_with("pod_"));
        assert_ne!(settings.identity(), settings.identity());
    }

    #[test]
    fn times_that_cannot_work_are_refused_at_the_start() {
        assert!(settings(&[]).lease_times().is_ok());
        assert!(settings(&["--lease-duration-seconds", "10"]).lease_times().is_err());
    }
}
