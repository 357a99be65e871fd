//! /healthz and /readyz over HTTP, and /metrics where it is not over TLS.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use futures::FutureExt;

use crate::context::Context;
use crate::error::{Error, ResultExt, chain};
use crate::leader::Standing;
use crate::scrape::metrics;
use crate::settings::Scraping;

/// Binds the address and answers until the program stops.
pub async fn listen(ctx: Arc<Context>) -> Result<impl Future<Output = ()> + Send, Error> {
    let address = ctx.settings.listen;
    let listener = tokio::net::TcpListener::bind(address).await.doing(|| format!("listen on {address}"))?;
    let stopped = ctx.stopped();
    let mut router = Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready));
    if matches!(ctx.settings.scraping()?, Scraping::Plain) {
        router = router.route("/metrics", get(metrics));
    }
    let router = router.with_state(ctx);
    Ok(async move {
        if let Err(error) = axum::serve(listener, router).with_graceful_shutdown(stopped).await {
            tracing::error!(error = %chain(&error), "the HTTP server failed");
        }
    })
}

async fn ready(State(ctx): State<Arc<Context>>) -> impl IntoResponse {
    let standing = ctx.standing.borrow().clone();
    let listed = ctx.cache.ready().now_or_never().is_some();
    let (code, text) = match standing {
        Standing::Unknown => (StatusCode::SERVICE_UNAVAILABLE, "the Lease has not been read yet".into()),
        Standing::Standby(leader) => (StatusCode::OK, format!("ok: standing by, {leader:?} leads")),
        Standing::Leads if listed => (StatusCode::OK, "ok: leads".into()),
        Standing::Leads => (StatusCode::SERVICE_UNAVAILABLE, "the objects have not been listed yet".into()),
    };
    (code, format!("{text}\n"))
}
