//! What every reconcile may use.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::client::ClientBuilder;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::util::MapRequestLayer;

use crate::addon::bundle::Bundles;
use crate::cache::{Cache, Source};
use crate::client;
use crate::error::{Error, ResultExt};
use crate::events::Events;
use crate::karmada_deployment::definitions::Definitions;
use crate::karmada_deployment::follow::Following;
use crate::karmada_deployment::planes::Planes;
use crate::leader::{Clock, Election, Gate, Standing};
use crate::metrics::Metrics;
use crate::objects::kinds::Kinds;
use crate::pace::Pace;
use crate::remote::Registry;
use crate::settings::Settings;
use crate::stop::Stop;
use crate::tries::Tries;

/// What every reconcile may use: one for the whole program.
pub struct Context {
    /// Client of the metadata cluster. Does not retry by itself; counts its writes, which pass the gate.
    pub client: Client,
    /// The same without a gate: for what changes nothing, though it is a write to HTTP.
    pub ungated: Client,
    /// What the administrator set.
    pub settings: Settings,
    /// What is counted.
    pub metrics: Metrics,
    /// What is watched.
    pub cache: Cache,
    /// The clusters that can be reached.
    pub remote: Registry,
    /// The kinds that clusters know.
    pub(crate) kinds: Kinds,
    /// What was read of artifact bundles.
    pub(crate) bundles: Bundles,
    /// The planes that can be reached.
    pub(crate) planes: Planes,
    /// What was made for planes, and is watched.
    pub(crate) following: Following,
    /// The CustomResourceDefinitions of planes.
    pub(crate) definitions: Definitions,
    /// When messages may be written.
    pub(crate) pace: Pace,
    /// Logs of Pods that could not be read.
    pub(crate) log_tries: Tries,
    /// Where Events go.
    pub events: Arc<Events>,
    /// Open while this operator leads.
    pub gate: Gate,
    /// Whether this operator leads, for those who ask.
    pub standing: watch::Receiver<Standing>,
    resumed: watch::Receiver<Option<Timestamp>>,
    stop: Stop,
}

impl Context {
    /// Where the metadata cluster is: from inside of a Pod, or by `KUBECONFIG`.
    pub async fn find_metadata_cluster() -> Result<kube::Config, Error> {
        kube::Config::infer().await.map_err(|source| Error::Failed {
            action: "find the metadata cluster (in-cluster, or by KUBECONFIG)".into(),
            source: Box::new(source),
        })
    }

    /// Connects to the metadata cluster. The sender stops everything; nothing is written before the election is won.
    pub fn connect(
        mut config: kube::Config,
        settings: Settings,
    ) -> Result<(Arc<Self>, watch::Sender<bool>, Election), Error> {
        let times = settings.lease_times()?;
        config.connect_timeout = Some(Duration::from_secs(10));
        config.write_timeout = Some(Duration::from_secs(30));
        config.default_retry = false;
        let metrics = Metrics::new();
        let count = metrics.clone();
        let layer = MapRequestLayer::new(move |request: http::Request<kube::client::Body>| {
            count.api_request(request.method(), request.uri().path());
            request
        });
        let gate = Gate::closed(Clock::of_the_machine());
        let doing = || "make a client of the metadata cluster".to_owned();
        // The only client that no gate stands before: for the Lease, and to ask who may scrape.
        let ungated = ClientBuilder::try_from(config.clone()).doing(doing)?.build();
        let election = Election::new(
            ungated.clone(),
            &settings.lease_namespace(),
            &settings.lease_name,
            &settings.identity(),
            times,
            gate.clone(),
        );
        let client = client::builder(&config, &gate).doing(doing)?.with_layer(&layer).with_layer(&gate).build();
        let (context, stop) =
            Self::assemble((client, ungated), settings, metrics, gate, (election.standing(), election.resumed()));
        Ok((context, stop, election))
    }

    /// A context on a client that is there already, which passes no gate.
    pub fn new(client: Client, settings: Settings, metrics: Metrics) -> (Arc<Self>, watch::Sender<bool>) {
        let gate = Gate::closed(Clock::of_the_machine());
        let standing = watch::channel(Standing::Unknown).1;
        Self::assemble((client.clone(), client), settings, metrics, gate, (standing, watch::channel(None).1))
    }

    fn assemble(
        (client, ungated): (Client, Client),
        settings: Settings,
        metrics: Metrics,
        gate: Gate,
        (standing, resumed): (watch::Receiver<Standing>, watch::Receiver<Option<Timestamp>>),
    ) -> (Arc<Self>, watch::Sender<bool>) {
        let (sender, stop) = Stop::new();
        let events = Arc::new(Events::new(client.clone()));
        let context = Self {
            client,
            ungated,
            pace: Pace::new(Duration::from_secs(settings.message_interval_seconds)),
            settings,
            metrics,
            cache: Cache::new(),
            remote: Registry::new(gate.clone()),
            kinds: Kinds::default(),
            bundles: Bundles::default(),
            planes: Planes::default(),
            following: Following::default(),
            definitions: Definitions::default(),
            log_tries: Tries::default(),
            events,
            gate,
            standing,
            resumed,
            stop,
        };
        (Arc::new(context), sender)
    }

    /// When an operator took the metadata cluster up again after nobody had renewed the Lease for long, as the Lease
    /// says; none: it says nothing.
    pub fn resumed_at(&self) -> Option<Timestamp> {
        *self.resumed.borrow()
    }

    /// Ends when the program is asked to stop.
    pub fn stopped(&self) -> impl Future<Output = ()> + Send + Sync + use<> {
        self.stop.asked()
    }

    /// Starts the watches of the cache. Called once, when every controller has asked for its changes.
    pub(crate) fn follow(&self, tasks: &mut JoinSet<()>) {
        let source = Source {
            client: self.client.clone(),
            namespace: self.settings.namespace.clone(),
            events: self.events.clone(),
            stop: self.stop.clone(),
        };
        self.cache.follow(&source, tasks);
    }
}
