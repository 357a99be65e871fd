//! The lab's artifact bundles, made of the programs and images that were built.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Result;
use bundle::index::{Artifact, Index, is_kubernetes, is_of_plane};
use bundle::prune::sweep;
use bundle::publish::publish_json;
use bundle::recipe::{Recipe, Take};
use bundle::version;
use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::programs::{Component, Programs};
use crate::progress::Progress;

pub mod artifact;

use artifact::Planned;

/// Digests by path in the bundle, and what each file was made of: what has not changed is not made again.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Made(BTreeMap<String, Entry>);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    sources: String,
    size: u64,
    sha256: String,
}

/// Brings the bundle in that directory up to date with the programs and images of the components, which must have been
/// built.
pub fn build(
    bundle: &Path,
    components: &[Component],
    cache: &Cache,
    programs: &Programs,
    progress: &Progress,
) -> Result<()> {
    let planned = artifact::all(components, cache, programs);
    // Beside the bundle, since it is nobody else's business.
    let memory = bundle.with_extension("made.json");
    let before = read(&memory);
    let task = progress.counted("artifact bundle", planned.len());
    let mut made = Made::default();
    let mut index = Index::new();
    for Planned { recipe, .. } in &planned {
        task.at(&recipe.path);
        let sources = recipe.fingerprint()?;
        let artifact = bring(recipe, &sources, bundle, &before)?;
        let entry = Entry { sources, size: artifact.size, sha256: artifact.sha256.clone() };
        made.0.insert(recipe.path.clone(), entry);
        index.insert(artifact)?;
        task.advance();
    }
    index.components = self::components(&planned);
    // The index is whole before anything is removed that the old one named.
    index.write(bundle)?;
    publish_json(&memory, &made)?;
    sweep(bundle, &index)?;
    task.done();
    Ok(())
}

fn bring(recipe: &Recipe, sources: &str, bundle: &Path, before: &Made) -> Result<Artifact> {
    let known = before.0.get(&recipe.path).filter(|known| known.sources == sources);
    if let Some(known) = known
        && fs::metadata(bundle.join(&recipe.path)).is_ok_and(|found| found.len() == known.size)
    {
        return Ok(recipe.artifact(known.size, known.sha256.clone()));
    }
    // The same bytes twice on one disk would cost a gigabyte.
    recipe.make(bundle, Take::Link)
}

/// Which of these go with each Kubernetes minor that is among them: what is of that minor, and otherwise what is of
/// none.
fn components(planned: &[Planned]) -> BTreeMap<String, BTreeMap<String, String>> {
    let others = || planned.iter().filter(|it| !is_kubernetes(&it.recipe.name) && !is_of_plane(&it.recipe.name));
    let of = |wanted: Option<&str>| -> BTreeMap<String, String> {
        let these = others().filter(|it| it.minor == wanted);
        these.map(|it| (it.recipe.name.clone(), it.recipe.version.clone())).collect()
    };
    let kubelets = planned.iter().filter(|it| it.recipe.name == "kubelet");
    let minors = kubelets.filter_map(|kubelet| version::minor(&kubelet.recipe.version));
    minors.map(|minor| (minor.clone(), of(None).into_iter().chain(of(Some(&minor))).collect())).collect()
}

fn read(memory: &Path) -> Made {
    fs::read(memory).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use bundle::recipe::Content;

    use super::*;

    fn recipe(name: &str, version: &str, source: PathBuf) -> Recipe {
        Recipe {
            name: name.into(),
            version: version.into(),
            arch: "amd64".into(),
            path: format!("files/{name}-{version}-linux-amd64"),
            content: Content::File(source),
        }
    }

    #[test]
    fn an_unchanged_artifact_is_not_made_again_and_a_changed_one_is() {
        let dir = tempfile::tempdir().unwrap();
        let (source, bundle) = (dir.path().join("runc"), dir.path().join("bundle"));
        fs::write(&source, "one").unwrap();
        let recipe = recipe("runc", "1.5.2", source.clone());
        let sources = recipe.fingerprint().unwrap();
        let first = bring(&recipe, &sources, &bundle, &Made::default()).unwrap();
        let entry = Entry { sources: sources.clone(), size: first.size, sha256: first.sha256.clone() };
        let made = Made([(recipe.path.clone(), entry)].into());

        fs::write(bundle.join(&recipe.path), "ABC").unwrap();
        assert_eq!(bring(&recipe, &sources, &bundle, &made).unwrap(), first);
        fs::remove_file(&source).unwrap();
        fs::write(&source, "three").unwrap();
        let second = bring(&recipe, &recipe.fingerprint().unwrap(), &bundle, &made).unwrap();
        assert_ne!(first.sha256, second.sha256);
        assert_eq!(second.size, 5);
        assert_eq!(fs::read_to_string(bundle.join(&recipe.path)).unwrap(), "three");
    }

    #[test]
    fn the_table_says_which_versions_go_with_each_kubernetes_minor() {
        let planned = [
            ("kubelet", "1.35.4", None),
            ("kubelet", "1.34.4", None),
            ("registry.k8s.io/kube-proxy", "v1.35.4", None),
            ("kube-apiserver", "1.35.4", None),
            ("karmada-scheduler", "1.18.2", None),
            ("etcd", "3.6.16", None),
            ("etcd", "3.6.14", Some("1.34")),
            ("registry.k8s.io/pause", "3.10.1", None),
        ]
        .map(|(name, version, minor)| Planned { recipe: recipe(name, version, PathBuf::new()), minor });
        let with = |etcd: &str| {
            [("etcd", etcd), ("registry.k8s.io/pause", "3.10.1")].map(|(name, version)| (name.into(), version.into()))
        };
        assert_eq!(
            components(&planned),
            [("1.34".to_owned(), with("3.6.14").into()), ("1.35".to_owned(), with("3.6.16").into())].into()
        );
    }
}
