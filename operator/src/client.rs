//! Clients whose connections carry nothing more once the Lease is over: what kube builds, on such connections.

use http::{Request, Response};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::{Body, ClientBuilder, ConfigExt};
use tower::util::BoxCloneService;
use tower::{BoxError, ServiceBuilder, ServiceExt};

use crate::leader::{Gate, GatedWire};

/// What such a client consists of, before what the caller lays around it.
pub type Stack = BoxCloneService<Request<Body>, Response<hyper::body::Incoming>, BoxError>;

/// For a client of this API server, which does not retry by itself and knows no proxy. The gate is laid around it by
/// the caller, outermost.
///
/// # Errors
/// What is wrong with the configuration: certificates, credentials, headers.
pub fn builder(config: &Config, gate: &Gate) -> Result<ClientBuilder<Stack>, kube::Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    let wire = gate.clone();
    let connector = tcp.map_response(move |stream| GatedWire::new(stream, wire.clone()));
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(connector)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let http = HttpClient::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(BoxCloneService::new(service), config.default_namespace.clone()))
}
