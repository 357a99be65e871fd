//! `wright bundle push`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use oci_client::Reference;

use super::existing;
use crate::download::Connection;

mod bucket;
mod registry;

pub use registry::pull;

/// What the name of a bundle in a registry begins with.
pub const OCI: &str = "oci://";
const S3: &str = "s3://";

/// Push the whole bundle to a registry or into a bucket
#[derive(Debug, Args)]
pub struct Push {
    /// The bundle's directory
    directory: PathBuf,
    /// Where to: oci://REGISTRY/REPOSITORY:TAG, or s3://BUCKET/PREFIX with credentials in AWS_ACCESS_KEY_ID etc.
    #[arg(value_parser = Target::parse)]
    target: Target,
    #[command(flatten)]
    connection: Connection,
    /// The S3 server, if it is not Amazon's
    #[arg(long, value_name = "URL")]
    s3_endpoint: Option<String>,
    /// Let the index in the bucket be replaced by one that lacks some of what is there
    #[arg(long)]
    replace: bool,
}

/// Where a bundle is pushed to.
#[derive(Debug, Clone)]
enum Target {
    Registry(Reference),
    Bucket { name: String, prefix: String },
}

impl Push {
    /// Pushes what is not there yet, and the tag or the index last.
    pub async fn run(self) -> Result<ExitCode> {
        let bundle = existing(&self.directory)?;
        match self.target {
            Target::Registry(target) => {
                ensure!(self.s3_endpoint.is_none() && !self.replace, "--s3-endpoint and --replace are for s3:// alone");
                registry::push(&bundle, &target, &self.connection).await?;
            }
            Target::Bucket { name, prefix } => {
                ensure!(self.connection.insecure_registry.is_empty(), "--insecure-registry is for oci:// alone");
                let endpoint = self.s3_endpoint.as_deref();
                let store = bucket::open(&name, endpoint, self.connection.authorities()?)?;
                bucket::push(&bundle, store, &format!("{S3}{name}"), &prefix, self.replace).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Target {
    /// For clap.
    fn parse(text: &str) -> Result<Self> {
        if text.starts_with(OCI) {
            return Ok(Self::Registry(parse_reference(text)?));
        }
        let Some(rest) = text.strip_prefix(S3) else {
            bail!("give oci://REGISTRY/REPOSITORY:TAG or s3://BUCKET/PREFIX");
        };
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        ensure!(!name.is_empty(), "give a bucket, such as s3://artifacts/clusterwright");
        Ok(Self::Bucket { name: name.to_owned(), prefix: prefix.trim_matches('/').to_owned() })
    }
}

/// A bundle's name in a registry.
fn parse_reference(text: &str) -> Result<Reference> {
    let Some(reference) = text.strip_prefix(OCI) else { bail!("give oci://REGISTRY/REPOSITORY:TAG") };
    let parsed: Reference = reference.parse().with_context(|| format!("{reference:?} is no reference"))?;
    match parsed.tag() {
        Some(tag) if text.ends_with(&format!(":{tag}")) => Ok(parsed),
        _ => bail!("give a tag too, such as {text}:2026-11"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_tag_of_a_registry_or_a_place_in_a_bucket() {
        let Target::Registry(reference) = Target::parse("oci://r.example:5000/a/b:1").unwrap() else { unreachable!() };
        assert_eq!(reference.to_string(), "r.example:5000/a/b:1");
        for (text, expected) in [("s3://b", ("b", "")), ("s3://b/", ("b", "")), ("s3://b/x/y/", ("b", "x/y"))] {
            let Target::Bucket { name, prefix } = Target::parse(text).unwrap() else { unreachable!() };
            assert_eq!((name.as_str(), prefix.as_str()), expected);
        }
        for wrong in ["r.example/a:1", "oci://r.example/a", "https://r.example/a:1", "s3://"] {
            assert!(Target::parse(wrong).is_err(), "{wrong}");
        }
    }
}
