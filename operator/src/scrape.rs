//! /metrics: in the clear beside the probes, or over TLS on an address of its own, there for those alone whom the API
//! server lets `get /metrics`, if the administrator wants that.

mod authorization;
mod certificate;
mod tls;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::context::Context;
use crate::error::{Error, ResultExt, chain};
use crate::metrics::Objects;
use crate::settings::Scraping;
use authorization::{Verdict, authorize};
use certificate::Certificate;
use tls::TlsListener;

/// All that is counted, as text.
pub(crate) async fn metrics(State(ctx): State<Arc<Context>>) -> Response {
    ctx.metrics.leads(ctx.gate.is_open());
    ctx.metrics.undecodable(&ctx.cache.undecodable.counts());
    let objects = Objects {
        machines: ctx.cache.machines.store().state(),
        hosts: ctx.cache.hosts.store().state(),
        deployments: ctx.cache.cluster_deployments.store().state(),
        planes: ctx.cache.karmada_deployments.store().state(),
        clusters: ctx.cache.clusters.store().state(),
        backups: ctx.cache.etcd_backups.store().state(),
    };
    match ctx.metrics.text(&objects) {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            (StatusCode::OK, [(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Binds the address and answers over TLS until the program stops. Nothing to do where /metrics is beside the probes.
pub async fn listen(ctx: Arc<Context>) -> Result<Option<impl Future<Output = ()> + Send>, Error> {
    let Scraping::Tls { address, directory, authorized } = ctx.settings.scraping()? else { return Ok(None) };
    let certificate = Certificate::read(&directory)?;
    let listener = TcpListener::bind(address).await.doing(|| format!("listen on {address}"))?;
    Ok(Some(answer(ctx, listener, certificate, authorized)))
}

fn answer(
    ctx: Arc<Context>,
    listener: TcpListener,
    certificate: Certificate,
    authorized: bool,
) -> impl Future<Output = ()> + Send {
    let stopped = ctx.stopped();
    let handler = if authorized { get(authorized_metrics) } else { get(metrics) };
    let router = Router::new().route("/metrics", handler).with_state(ctx);
    async move {
        tokio::spawn(certificate.clone().follow());
        let listener = match TlsListener::new(listener, certificate) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!(error = %chain(&error), "the server of /metrics failed"),
        };
        if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(stopped).await {
            tracing::error!(error = %chain(&error), "the server of /metrics failed");
        }
    }
}

async fn authorized_metrics(State(ctx): State<Arc<Context>>, headers: HeaderMap) -> Response {
    let said = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    match authorize(&ctx.ungated, said).await {
        Ok(Verdict::Allowed) => metrics(State(ctx)).await,
        Ok(Verdict::Unknown(why)) => {
            (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], format!("{why}\n")).into_response()
        }
        Ok(Verdict::Denied(why)) => (StatusCode::FORBIDDEN, format!("{why}\n")).into_response(),
        Err(error) => {
            tracing::warn!(error = %chain(&error), "nobody can say who may scrape");
            (StatusCode::SERVICE_UNAVAILABLE, "the API server does not say whether you may\n").into_response()
        }
    }
}

#[cfg(test)]
mod tests;
