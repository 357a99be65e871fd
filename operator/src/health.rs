//! /metrics, /healthz and /readyz over HTTP.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use futures::FutureExt;

use crate::context::Context;
use crate::error::{Doing, Error, chain};

/// Binds the address and answers until the program stops.
pub async fn listen(ctx: Arc<Context>) -> Result<impl Future<Output = ()> + Send, Error> {
    let address = ctx.settings.listen;
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .doing(|| format!("listen on {address}"))?;
    let stopped = ctx.stopped();
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(ctx);
    Ok(async move {
        if let Err(error) = axum::serve(listener, router)
            .with_graceful_shutdown(stopped)
            .await
        {
            tracing::error!(error = %chain(&error), "the HTTP server failed");
        }
    })
}

async fn ready(State(ctx): State<Arc<Context>>) -> impl IntoResponse {
    match ctx.cache.ready().now_or_never() {
        Some(()) => (StatusCode::OK, "ok\n"),
        None => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the objects have not been listed yet\n",
        ),
    }
}

async fn metrics(State(ctx): State<Arc<Context>>) -> impl IntoResponse {
    match ctx.metrics.text(&ctx.cache.machines.store().state()) {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            (StatusCode::OK, [(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
