//! `wright bundle lock`

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use futures::{StreamExt, TryStreamExt, stream};

use super::create::say_first_use;
use super::parse_component;
use super::selection::Selection;
use crate::download::{DownloadOptions, Downloads, Trust};

/// Write down the digest of all that machines take from upstream, and download none of it
#[derive(Debug, Args)]
pub struct Lock {
    #[command(flatten)]
    selection: Selection,
    /// A component in another version too, as `spec.versions` names it: etcd=3.6.17; may be given several times
    #[arg(long = "component", value_name = "NAME=VERSION", value_parser = parse_component)]
    components: Vec<(String, String)>,
    #[command(flatten)]
    downloads: DownloadOptions,
}

impl Lock {
    /// Adds to the lock what it does not have. What it has stays.
    pub async fn run(mut self) -> Result<ExitCode> {
        let (catalogue, mut wanted) = self.selection.wanted()?;
        for (name, version) in &self.components {
            for arch in &self.selection.arch {
                wanted.push(catalogue.component(name, version, arch.name())?);
            }
        }
        // The lock is in the current directory unless another file is named.
        let downloads = Downloads::new(Path::new(""), &wanted, &self.downloads)?;
        let all: Vec<_> = wanted.iter().map(|wanted| downloads.lock(wanted)).collect();
        let trusts: Vec<Trust> =
            stream::iter(all).buffer_unordered(usize::from(self.downloads.parallel)).try_collect().await?;
        say_first_use(trusts.iter().filter(|trust| **trust == Trust::FirstUse).count());
        let file = downloads.lock_path().display();
        println!(
            "{file} has all of it. Clusters without a bundle take nothing else, once it is in a ConfigMap:\n  kubectl \
             create configmap NAME --from-file={}={file}\nand in their spec:\n  artifacts:\n    lockRef: {{name: NAME}}",
            ::bundle::lock::FILE
        );
        Ok(ExitCode::SUCCESS)
    }
}
