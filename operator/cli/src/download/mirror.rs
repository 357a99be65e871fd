//! Where upstream's files and images are mirrored.

use anyhow::{Context, Result, bail, ensure};
use oci_client::Reference;

/// The mirrors, of which each may be absent: then upstream itself is asked.
#[derive(Debug, Default)]
pub struct Mirror {
    /// URL without a slash at the end; below it are the names of hosts.
    pub files: Option<String>,
    /// Registry and, perhaps, the first parts of the repositories; below it are the names of registries.
    pub images: Option<String>,
}

impl Mirror {
    /// Where the file at upstream's URL is taken from.
    pub fn file(&self, upstream: &str) -> String {
        let Some(mirror) = &self.files else { return upstream.to_owned() };
        let path = upstream.split_once("://").map_or(upstream, |(_, path)| path);
        format!("{mirror}/{path}")
    }

    /// Where an image is taken from.
    pub fn image(&self, reference: &str) -> Result<Reference> {
        let upstream: Reference =
            reference.parse().with_context(|| format!("{reference:?} is no reference of an image"))?;
        let Some(mirror) = &self.images else { return Ok(upstream) };
        let (registry, prefix) = mirror.split_once('/').unwrap_or((mirror, ""));
        let below = format!("{}/{}", upstream.registry(), upstream.repository());
        let repository = if prefix.is_empty() { below } else { format!("{prefix}/{below}") };
        Ok(match (upstream.digest(), upstream.tag()) {
            (Some(digest), _) => Reference::with_digest(registry.to_owned(), repository, digest.to_owned()),
            (None, tag) => Reference::with_tag(registry.to_owned(), repository, tag.unwrap_or("latest").to_owned()),
        })
    }
}

/// A mirror's URL, for clap.
pub fn parse_url(text: &str) -> Result<String> {
    let url = reqwest::Url::parse(text).context("give a URL, such as https://mirror.example/upstream")?;
    ensure!(["http", "https"].contains(&url.scheme()), "it must begin with https:// or http://");
    ensure!(url.username().is_empty() && url.password().is_none(), "give no login in it: others would see it");
    ensure!(url.query().is_none() && url.fragment().is_none(), "it must have no ? and no #");
    Ok(text.trim_end_matches('/').to_owned())
}

/// A mirror for images, for clap.
pub fn parse_registry(text: &str) -> Result<String> {
    let text = text.trim_end_matches('/');
    if text.contains("://") {
        bail!(
            "give a registry without a scheme, such as registry.example:5000/upstream; without TLS it needs \
             --insecure-registry"
        );
    }
    let probe = format!("{text}/a:b");
    probe.parse::<Reference>().with_context(|| format!("{text:?} is no registry"))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_below_the_name_of_its_host() {
        let mirror = Mirror { files: Some("http://10.0.0.1:8081/up".into()), images: None };
        let url = "https://dl.k8s.io/v1.35.4/bin/linux/amd64/kubelet";
        assert_eq!(mirror.file(url), "http://10.0.0.1:8081/up/dl.k8s.io/v1.35.4/bin/linux/amd64/kubelet");
        assert_eq!(Mirror::default().file(url), url);
    }

    #[test]
    fn an_image_is_below_the_name_of_its_registry() {
        let image = |mirror: Option<&str>, reference: &str| {
            let mirror = Mirror { files: None, images: mirror.map(str::to_owned) };
            mirror.image(reference).unwrap().to_string()
        };
        assert_eq!(image(None, "registry.k8s.io/pause:3.10.1"), "registry.k8s.io/pause:3.10.1");
        assert_eq!(image(Some("r:5000"), "registry.k8s.io/pause:3.10.1"), "r:5000/registry.k8s.io/pause:3.10.1");
        assert_eq!(image(Some("r/up/x"), "docker.io/library/busybox:1.35"), "r/up/x/docker.io/library/busybox:1.35");
        assert_eq!(image(Some("r.x/up"), "busybox:1.35"), "r.x/up/docker.io/library/busybox:1.35");
    }

    #[test]
    fn what_is_no_mirror_is_refused() {
        assert_eq!(parse_url("https://m/up/").unwrap(), "https://m/up");
        for wrong in ["m/up", "ftp://m", "https://m/?a=b", "https://me:secret@m/"] {
            assert!(parse_url(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_registry("r:5000/up/").unwrap(), "r:5000/up");
        for wrong in ["https://r", "r/UP", "r:x"] {
            assert!(parse_registry(wrong).is_err(), "{wrong}");
        }
    }
}
