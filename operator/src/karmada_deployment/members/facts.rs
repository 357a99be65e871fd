//! What a member is, and how Karmada is to reach it. The token that Karmada gets is tried first.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crds::karmada_deployment::SyncMode;
use plan::karmada_deployment::Files;
use plan::karmada_deployment::members::{ESTIMATOR_ACCOUNT, Facts, IMPERSONATOR, Target, token_secret};
use plan::karmada_deployment::names::MEMBERS_NAMESPACE;
use serde_json::Value;

use super::super::clients::User;
use super::reach::Reached;
use crate::context::Context;
use crate::error::chain;
use crate::objects::within;

/// The facts of a member of this UID, in which these objects were made.
pub(super) async fn facts(ctx: &Context, reached: &Reached, target: &Target, uid: String, listed: &[Value]) -> Facts {
    let mut files = BTreeMap::new();
    let authorities = reached.checked.authority_pem.clone().map(String::into_bytes);
    files.extend(authorities.map(|content| ("ca".to_owned(), content)));
    let mut token_accepted = None;
    if target.sync_mode == SyncMode::Push {
        let token = token_of(listed, &token_secret(&target.name), Some(MEMBERS_NAMESPACE));
        if let Some(token) = &token {
            token_accepted = Some(try_token(ctx, reached, token).await);
        }
        let tokens = [("token", token), ("impersonator", token_of(listed, IMPERSONATOR, Some(MEMBERS_NAMESPACE)))];
        files.extend(tokens.into_iter().filter_map(|(name, token)| Some((name.to_owned(), token?))));
    }
    if let Some(token) = token_of(listed, ESTIMATOR_ACCOUNT, None) {
        files.insert("estimator".to_owned(), token);
    }
    Facts { uid, server: reached.checked.server.clone(), files: Files(files), token_accepted }
}

/// The token that the member's controllers have put into a Secret of ours, in this namespace or in whichever it is.
fn token_of(listed: &[Value], name: &str, namespace: Option<&str>) -> Option<Vec<u8>> {
    let is_it = |live: &&Value| {
        let metadata = &live["metadata"];
        let is_there = namespace.is_none_or(|namespace| metadata["namespace"] == namespace);
        live["kind"] == "Secret" && metadata["name"] == name && is_there
    };
    let secret = listed.iter().find(is_it)?;
    STANDARD.decode(secret["data"]["token"].as_str()?).ok().filter(|token| !token.is_empty())
}

/// Whether the member's API takes this token.
async fn try_token(ctx: &Context, reached: &Reached, token: &[u8]) -> Result<(), String> {
    let token = std::str::from_utf8(token).map_err(|_| "the token is no text".to_owned())?;
    let checked = reached.checked.with_token(token);
    let client = ctx.planes.clients.connect((&reached.server, User::Karmada), &reached.title, &checked, &ctx.gate);
    let client = client.map_err(|error| chain(&error))?;
    let request = http::Request::get("/readyz").body(Vec::new()).map_err(|error| error.to_string())?;
    within(client.request_text(request)).await.map(drop).map_err(|failure| failure.to_string())
}
