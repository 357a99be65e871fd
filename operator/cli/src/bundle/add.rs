//! `wright bundle add`

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::bundle::catalogue::{Origin, Wanted};
use ::bundle::index::{Artifact, Index};
use ::bundle::place;
use ::bundle::recipe::{COMPONENTS, Content, Recipe, Take, of_programs};
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};

use super::addons::{AddChart, AddManifests};
use super::create::{bring_all, say_first_use};
use super::packages::{self, PackageOptions};
use super::selection::catalogue;
use super::{Arch, clear_partial, hold, parse_component, say_index};
use crate::download::DownloadOptions;

/// Add a component, an image, packages, programs that were built elsewhere, or what Addons install.
#[derive(Debug, Subcommand)]
pub enum Add {
    /// Download another version of a component, e.g. etcd=3.6.17
    Component(AddComponent),
    /// Pull an image from its registry
    Image(AddImage),
    /// Take an image's archive, as `docker save` and `ctr images export` write one
    Archive(AddArchive),
    /// Take programs that were built elsewhere: FOLDER/COMPONENT/VERSION/bin/PROGRAM; Karmada's are such a component
    Programs(AddPrograms),
    /// Download the packages that machines install, and sign a repository of them
    Packages(AddPackages),
    /// Take charts' archives, as `helm package` writes them, for Addons
    Chart(AddChart),
    /// Take manifests, for Addons
    Manifests(AddManifests),
}

/// Download another version of a component
#[derive(Debug, Args)]
pub struct AddComponent {
    /// Name and version, as the catalogue and the index have them
    #[arg(required = true, value_parser = parse_component, value_name = "NAME=VERSION")]
    components: Vec<(String, String)>,
    #[command(flatten)]
    target: Target,
    /// A folder with another catalogue than the one that comes with this program
    #[arg(long, value_name = "FOLDER")]
    catalogue: Option<PathBuf>,
    #[command(flatten)]
    downloads: DownloadOptions,
}

/// Pull an image from its registry
#[derive(Debug, Args)]
pub struct AddImage {
    /// References with tags
    #[arg(required = true, value_parser = parse_image, value_name = "REGISTRY/REPOSITORY:TAG")]
    images: Vec<(String, String)>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    downloads: DownloadOptions,
}

/// Take an image's archive
#[derive(Debug, Args)]
pub struct AddArchive {
    /// The archive, of one image for one architecture
    file: PathBuf,
    /// What the image is called in the archive
    #[arg(long, value_parser = parse_image, value_name = "REGISTRY/REPOSITORY:TAG")]
    image: (String, String),
    #[command(flatten)]
    target: Target,
}

/// Take programs that were built elsewhere
#[derive(Debug, Args)]
pub struct AddPrograms {
    /// The folder with COMPONENT/VERSION/bin/PROGRAM below it
    folder: PathBuf,
    #[command(flatten)]
    target: Target,
}

/// Download the packages that machines install
#[derive(Debug, Args)]
pub struct AddPackages {
    /// Operating systems of machines, as /etc/os-release has ID and VERSION_ID: debian12
    #[arg(required = true, value_name = "OS")]
    os: Vec<String>,
    #[command(flatten)]
    target: Target,
    /// A folder with another catalogue than the one that comes with this program
    #[arg(long, value_name = "FOLDER")]
    catalogue: Option<PathBuf>,
    #[command(flatten)]
    packages: PackageOptions,
    #[command(flatten)]
    downloads: DownloadOptions,
}

/// What it is added to
#[derive(Debug, Args)]
pub struct Target {
    /// The bundle's directory
    #[arg(long, default_value = "bundle", value_name = "DIRECTORY")]
    bundle: PathBuf,
    /// Architectures of machines
    #[arg(long, required = true, value_delimiter = ',')]
    arch: Vec<Arch>,
}

impl Add {
    /// Adds it, and writes the index. The table of components stays: `spec.versions` names what was added.
    pub async fn run(self) -> Result<ExitCode> {
        match self {
            Self::Component(it) => {
                let catalogue = catalogue(it.catalogue.as_deref())?;
                let mut wanted = Vec::new();
                for (name, version) in &it.components {
                    for arch in &it.target.arch {
                        wanted.push(catalogue.component(name, version, arch.name())?);
                    }
                }
                download(&it.target, &wanted, &it.downloads).await
            }
            Self::Image(it) => {
                let pairs =
                    it.images.iter().flat_map(|image| it.target.arch.iter().map(move |arch| (image, arch.name())));
                let wanted: Vec<Wanted> = pairs.map(|((name, tag), arch)| image(name, tag, arch)).collect();
                download(&it.target, &wanted, &it.downloads).await
            }
            Self::Packages(it) => add_packages(&it).await,
            Self::Chart(it) => it.run(),
            Self::Manifests(it) => it.run(),
            Self::Archive(it) => {
                let arch = it.target.single_arch()?;
                check_archive(&it.file, &it.image)?;
                let recipe = Recipe {
                    path: place::image(&it.image.0, &it.image.1, arch),
                    name: it.image.0,
                    version: it.image.1,
                    arch: arch.to_owned(),
                    content: Content::Image(it.file),
                };
                make(&it.target, &[recipe])
            }
            Self::Programs(it) => {
                let recipes = programs(&it.folder, it.target.single_arch()?)?;
                make(&it.target, &recipes)
            }
        }
    }
}

impl Target {
    fn single_arch(&self) -> Result<&'static str> {
        let [arch] = self.arch[..] else { bail!("--arch: what was built elsewhere is for one architecture; give one") };
        Ok(arch.name())
    }
}

async fn download(target: &Target, wanted: &[Wanted], options: &DownloadOptions) -> Result<ExitCode> {
    let bundle = &target.bundle;
    let alone = hold(bundle)?;
    let mut index = Index::read_or_new(bundle)?;
    let first = bring_all(bundle, wanted, &mut index, options).await?;
    let digest = index.write(bundle)?;
    clear_partial(bundle)?;
    drop(alone);
    say_first_use(first);
    say_index(bundle, &digest);
    Ok(ExitCode::SUCCESS)
}

fn make(target: &Target, recipes: &[Recipe]) -> Result<ExitCode> {
    let bundle = &target.bundle;
    let alone = hold(bundle)?;
    let mut index = Index::read_or_new(bundle)?;
    for recipe in recipes {
        // What is there is compared before it is overwritten.
        let staged = tempfile::tempdir_in(bundle).context("failed to create a directory in the bundle")?;
        let artifact: Artifact = recipe.make(staged.path(), Take::Copy)?;
        println!("+ {artifact}");
        index.insert(artifact)?;
        let path = bundle.join(&recipe.path);
        if let Some(parent) = path.parent() {
            ::bundle::publish::create_dir(parent)?;
        }
        fs::rename(staged.path().join(&recipe.path), &path)
            .with_context(|| format!("failed to move {} into place", path.display()))?;
    }
    let digest = index.write(bundle)?;
    clear_partial(bundle)?;
    drop(alone);
    say_index(bundle, &digest);
    Ok(ExitCode::SUCCESS)
}

async fn add_packages(it: &AddPackages) -> Result<ExitCode> {
    let (bundle, catalogue) = (&it.target.bundle, catalogue(it.catalogue.as_deref())?);
    let archs: Vec<&str> = it.target.arch.iter().map(|arch| arch.name()).collect();
    let alone = hold(bundle)?;
    let mut index = Index::read_or_new(bundle)?;
    let signed = packages::bring(bundle, &mut index, &catalogue, (&it.os, &archs), &it.packages, &it.downloads).await?;
    let digest = index.write(bundle)?;
    clear_partial(bundle)?;
    drop(alone);
    say_index(bundle, &digest);
    signed.iter().for_each(|key| packages::say_key(bundle, key));
    Ok(ExitCode::SUCCESS)
}

fn image(name: &str, tag: &str, arch: &str) -> Wanted {
    Wanted {
        name: name.to_owned(),
        version: tag.to_owned(),
        arch: arch.to_owned(),
        path: place::image(name, tag, arch),
        origin: Origin::Registry { reference: format!("{name}:{tag}") },
    }
}

/// An image's name and tag, for clap.
fn parse_image(text: &str) -> Result<(String, String)> {
    let reference: oci_client::Reference = text.parse().context("give REGISTRY/REPOSITORY:TAG")?;
    ensure!(reference.digest().is_none(), "give a tag and no digest: the digest is kept in the lock");
    let name = format!("{}/{}", reference.registry(), reference.repository());
    match reference.tag() {
        Some(tag) if text.ends_with(&format!(":{tag}")) => Ok((name, tag.to_owned())),
        _ => bail!("give a tag too, such as {name}:v1"),
    }
}

/// Fails if containerd would call the image in the archive by another name than machines ask for.
fn check_archive(file: &Path, (name, tag): &(String, String)) -> Result<()> {
    let names = ::bundle::image::names(file).context("give an archive as `docker save` writes it, not compressed")?;
    let called = |text: &String| text.parse::<oci_client::Reference>().map_or_else(|_| text.clone(), |it| it.whole());
    let names: Vec<String> = names.iter().map(called).collect();
    let there = if names.is_empty() { "no image with a name".to_owned() } else { names.join(", ") };
    let wanted = format!("{name}:{tag}");
    ensure!(names.contains(&wanted), "{} has {there}, and not {wanted}", file.display());
    ensure!(names.len() == 1, "{} has several images, {there}: give an archive of {wanted} alone", file.display());
    Ok(())
}

/// What can be made of the programs in that folder.
fn programs(folder: &Path, arch: &str) -> Result<Vec<Recipe>> {
    let mut recipes = Vec::new();
    for component in COMPONENTS.iter().filter(|component| folder.join(component).is_dir()) {
        for version in names(&folder.join(component))? {
            let bin = folder.join(component).join(&version).join("bin");
            let programs: Vec<_> = names(&bin)?.into_iter().map(|name| (name.clone(), bin.join(name))).collect();
            let found = of_programs(component, &version, arch, &programs);
            ensure!(!programs.is_empty() && !found.is_empty(), "{} has no programs of {component}", bin.display());
            recipes.extend(found);
        }
    }
    ensure!(
        !recipes.is_empty(),
        "{} has no folder of a component: {}, each with VERSION/bin/PROGRAM below it",
        folder.display(),
        COMPONENTS.join(", ")
    );
    Ok(recipes)
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let reading = || format!("failed to look through {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(reading)? {
        names.push(entry.with_context(reading)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_its_registry_and_a_tag() {
        let parsed = |text| parse_image(text).unwrap();
        assert_eq!(parsed("quay.io/calico/node:v3.31.0"), ("quay.io/calico/node".into(), "v3.31.0".into()));
        assert_eq!(parsed("r.example:5000/a:1"), ("r.example:5000/a".into(), "1".into()));
        assert_eq!(parsed("busybox:1.35"), ("docker.io/library/busybox".into(), "1.35".into()));
        let digest = format!("quay.io/a@sha256:{}", "a".repeat(64));
        for wrong in ["quay.io/calico/node", "A:1", &digest] {
            assert!(parse_image(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn programs_are_found_by_component_and_version() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            "karmada/1.18.2/bin/karmada-webhook",
            "runc/1.5.2/bin/runc",
            "runc/1.5.3/bin/runc",
            "etcd/3.6.16/bin/etcd",
            "versitygw/1/bin/versitygw",
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let recipes = programs(dir.path(), "arm64").unwrap();
        let found: Vec<String> = recipes.iter().map(|it| format!("{} {}", it.name, it.version)).collect();
        assert_eq!(found, ["etcd 3.6.16", "karmada-webhook 1.18.2", "runc 1.5.2", "runc 1.5.3"]);
        fs::remove_dir_all(dir.path().join("karmada")).unwrap();
        fs::remove_dir_all(dir.path().join("etcd")).unwrap();
        fs::remove_dir_all(dir.path().join("runc")).unwrap();
        assert!(programs(dir.path(), "arm64").unwrap_err().to_string().contains("no folder of a component"));
    }
}
