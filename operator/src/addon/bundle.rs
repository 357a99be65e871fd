//! Entries of artifact bundles, over HTTP: what was read is remembered, so that a bundle is not asked each time that an
//! Addon is looked at.

mod download;
mod kept;

use crds::references::LocalRef;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use plan::addon::Problem;
use plan::addon::bundle::{Entry, EntryWanted, LARGEST_INDEX};
use plan::inputs::artifacts::{Login, ca_of, login_of};

use crate::context::Context;
use crate::error::Error;
use crate::live;
use download::Server;
pub(crate) use kept::Bundles;

/// Where the login and the authorities of a bundle's server are.
pub(crate) struct Access<'a> {
    pub namespace: &'a str,
    /// The field that has `caRef` and `credentialsRef`.
    pub field: &'static str,
    pub ca: Option<&'a LocalRef>,
    pub credentials: Option<&'a LocalRef>,
}

/// The entry that is asked for, and its file where that is asked for, too; or why it is not to be had.
pub(crate) async fn entry(
    ctx: &Context,
    access: &Access<'_>,
    wanted: &EntryWanted,
    with_file: bool,
) -> Result<Result<(Entry, Vec<u8>), Problem>, Error> {
    let server = match server(ctx, access).await? {
        Ok(server) => server,
        Err(problem) => return Ok(Err(problem)),
    };
    let index = match index(ctx, &server, wanted).await {
        Ok(index) => index,
        Err(problem) => return Ok(Err(problem)),
    };
    let entry = match wanted.find(&index) {
        Ok(entry) => entry,
        Err(problem) => return Ok(Err(problem)),
    };
    if !with_file {
        return Ok(Ok((entry, Vec::new())));
    }
    Ok(file(ctx, &server, wanted, &entry).await.map(|file| (entry, file)))
}

/// How the server is reached.
async fn server(ctx: &Context, access: &Access<'_>) -> Result<Result<Server, Problem>, Error> {
    let mut server = Server { login_field: access.field, ..Server::default() };
    if let Some(LocalRef { name }) = access.ca {
        let found = live::get::<ConfigMap>(ctx, access.namespace, name).await?;
        match ca_of(&format!("{}.caRef", access.field), name, found.as_ref()) {
            Ok(ca) => server.ca = Some(ca),
            Err(problem) => return Ok(Err(Problem { reason: problem.reason, message: problem.message })),
        }
    }
    if let Some(LocalRef { name }) = access.credentials {
        let found = live::get::<Secret>(ctx, access.namespace, name).await?;
        let login = match login_of(&format!("{}.credentialsRef", access.field), name, found.as_ref()) {
            Ok(login) => login,
            Err(problem) => return Ok(Err(Problem { reason: problem.reason, message: problem.message })),
        };
        let data = found.and_then(|secret| secret.data).unwrap_or_default();
        let text = |key: &str| {
            let value = data.get(key).map(|value| value.0.trim_ascii_end().to_vec()).unwrap_or_default();
            String::from_utf8(value).unwrap_or_default()
        };
        match login {
            Login::Basic => server.basic = Some((text("username"), text("password"))),
            Login::Bearer => server.token = Some(text("token")),
        }
    }
    Ok(Ok(server))
}

/// The index: the one that is known, while it may be; one that is known is used, too, when the server does not answer.
async fn index(ctx: &Context, server: &Server, wanted: &EntryWanted) -> Result<Vec<u8>, Problem> {
    let url = wanted.index_url();
    let digest = wanted.place.index_sha256.as_deref();
    if let Some(known) = ctx.bundles.fresh(&url, server, digest) {
        return Ok(known);
    }
    match server.get(&url, wanted.field, LARGEST_INDEX).await {
        Ok((index, sha256)) => {
            wanted.check_index(&sha256)?;
            ctx.bundles.keep(&url, server, &index, &sha256);
            Ok(index)
        }
        Err(problem) => ctx.bundles.known(&url, server, digest).ok_or(problem),
    }
}

async fn file(ctx: &Context, server: &Server, wanted: &EntryWanted, entry: &Entry) -> Result<Vec<u8>, Problem> {
    if let Some(known) = ctx.bundles.file(&entry.url, server, &entry.sha256) {
        return Ok(known);
    }
    let (file, sha256) = server.get(&entry.url, wanted.field, wanted.kind.largest()).await?;
    wanted.check_file(entry, &sha256)?;
    ctx.bundles.keep(&entry.url, server, &file, &sha256);
    Ok(file)
}

#[cfg(test)]
mod tests;
