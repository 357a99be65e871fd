//! The check of a kubeconfig: it can run programs and read files of whoever loads it, so only addresses, certificates
//! and tokens that are written out in it are taken.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube::config::{AuthInfo, Kubeconfig};

use crate::pki::certificate::Certificate;

/// A kubeconfig that is safe to use.
#[derive(Debug)]
pub struct Checked {
    /// What a client is made from.
    pub kubeconfig: Kubeconfig,
    /// Where the API answers.
    pub server: String,
    /// The client certificate, if it has one.
    pub client: Option<Certificate>,
    /// The first certificate authority of the bundle, if it has one.
    pub authority: Option<Certificate>,
    /// The bundle of certificate authorities, if it has one.
    pub authority_pem: Option<String>,
}

impl Checked {
    /// The same for whoever has this token.
    pub fn with_token(&self, token: &str) -> Self {
        let mut kubeconfig = self.kubeconfig.clone();
        for user in &mut kubeconfig.auth_infos {
            user.auth_info = Some(AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() });
        }
        let (server, authority_pem) = (self.server.clone(), self.authority_pem.clone());
        Self { kubeconfig, server, client: None, authority: None, authority_pem }
    }

    /// The same for whatever answers at this URL.
    pub fn with_server(&self, server: &str) -> Self {
        let mut kubeconfig = self.kubeconfig.clone();
        for cluster in &mut kubeconfig.clusters {
            if let Some(cluster) = &mut cluster.cluster {
                cluster.server = Some(server.to_owned());
            }
        }
        let authority_pem = self.authority_pem.clone();
        Self { kubeconfig, server: server.to_owned(), client: None, authority: None, authority_pem }
    }

    /// When the certificates in it end, by name.
    pub fn certificates(&self) -> Vec<(&'static str, Timestamp)> {
        [("admin-kubeconfig", &self.client), ("kubernetes-ca", &self.authority)]
            .into_iter()
            .filter_map(|(name, certificate)| Some((name, certificate.as_ref()?.not_after().ok()?)))
            .collect()
    }
}

/// Why a kubeconfig is not used. Never holds anything secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Rejected(pub String);

/// Refuses what would run programs, read files, or trust anybody: only the current context counts.
pub fn check(text: &str) -> Result<Checked, Rejected> {
    let reject = |why: &str| Rejected(why.to_owned());
    // The parser's message may quote the text, which holds keys: it is not passed on.
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| reject("it is no kubeconfig in YAML"))?;
    let name = kubeconfig.current_context.as_deref().unwrap_or_default();
    let context = kubeconfig.contexts.iter().find(|context| context.name == name);
    let context = context.and_then(|context| context.context.as_ref());
    let context = context.ok_or_else(|| reject("its current-context names no context"))?;
    let cluster = kubeconfig.clusters.iter().find(|cluster| cluster.name == context.cluster);
    let cluster = cluster.and_then(|cluster| cluster.cluster.as_ref());
    let cluster = cluster.ok_or_else(|| reject("its current context names no cluster"))?;
    let user = context.user.as_deref().unwrap_or_default();
    let user = kubeconfig.auth_infos.iter().find(|info| info.name == user);
    let user = user.and_then(|user| user.auth_info.as_ref());
    let user = user.ok_or_else(|| reject("its current context names no user"))?;

    let forbidden = [
        (user.exec.is_some(), "exec is not allowed: it would run a program in the operator"),
        (user.auth_provider.is_some(), "auth-provider is not allowed"),
        (user.token_file.is_some(), "tokenFile is not allowed: write the token itself"),
        (user.client_certificate.is_some(), "client-certificate is not allowed: write client-certificate-data"),
        (user.client_key.is_some(), "client-key is not allowed: write client-key-data"),
        (user.password.is_some(), "password is not allowed: give a client certificate or a token"),
        (
            cluster.certificate_authority.is_some(),
            "certificate-authority is not allowed: write certificate-authority-data",
        ),
        (
            cluster.insecure_skip_tls_verify == Some(true),
            "insecure-skip-tls-verify is not allowed: write certificate-authority-data",
        ),
        (cluster.proxy_url.is_some(), "proxy-url is not supported"),
    ];
    if let Some((_, why)) = forbidden.iter().find(|(there, _)| *there) {
        return Err(reject(why));
    }
    let server = cluster.server.clone().unwrap_or_default();
    check_server(&server)?;

    let pem = |name: &str, data: &Option<String>| -> Result<Option<String>, Rejected> {
        let Some(data) = data else { return Ok(None) };
        let decoded = STANDARD.decode(data.split_whitespace().collect::<String>()).ok();
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        text.map(Some).ok_or_else(|| Rejected(format!("its {name} is no PEM text in base64")))
    };
    let certificate = |name: &str, pem: &Option<String>| -> Result<Option<Certificate>, Rejected> {
        let parsed = pem.as_deref().map(|pem| Certificate::parse(&format!("its {name}"), pem));
        parsed.transpose().map_err(|error| Rejected(error.to_string()))
    };
    let client_pem = pem("client-certificate-data", &user.client_certificate_data)?;
    let authority_pem = pem("certificate-authority-data", &cluster.certificate_authority_data)?;
    let client = certificate("client-certificate-data", &client_pem)?;
    let authority = certificate("certificate-authority-data", &authority_pem)?;
    if client.is_none() && user.token.is_none() {
        return Err(reject("it has neither a client certificate nor a token"));
    }
    Ok(Checked { server, client, authority, authority_pem, kubeconfig })
}

fn check_server(server: &str) -> Result<(), Rejected> {
    let uri: http::Uri = server.parse().map_err(|_| Rejected("its server is no URL".into()))?;
    if uri.scheme_str() != Some("https") {
        return Err(Rejected("its server is not https".into()));
    }
    let host = uri.host().unwrap_or_default();
    if host.is_empty() || is_local(host) {
        return Err(Rejected(format!(
            "its server {server} is the operator's own Pod: give an address that can be reached from there"
        )));
    }
    Ok(())
}

/// Whether this host of a URL is whoever asks for it.
pub(super) fn is_local(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    match host.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}
