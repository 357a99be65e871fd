//! What is in the lab's bundles.

use bundle::recipe::{Content, Recipe, of_programs};

use crate::cache::Cache;
use crate::images::{NEWER_PAUSE, architecture, scratch};
use crate::programs::{Component, Programs};

/// One artifact to be.
#[derive(Debug)]
pub struct Planned {
    /// How it is made.
    pub recipe: Recipe,
    /// The minor of Kubernetes that it goes with in place of what goes with all others.
    pub minor: Option<&'static str>,
}

/// Every artifact of these components.
pub fn all(components: &[Component], cache: &Cache, programs: &Programs) -> Vec<Planned> {
    let mut artifacts: Vec<Planned> = components.iter().flat_map(|it| of_component(it, programs)).collect();
    artifacts.extend(of_karmada(programs));
    artifacts.extend(scratch::references(components).into_iter().map(|image| Planned {
        minor: (image == NEWER_PAUSE.0).then_some(NEWER_PAUSE.1),
        recipe: Recipe {
            path: format!("images/{}", image.file()),
            content: Content::Image(image.archive(cache)),
            name: image.name.to_owned(),
            version: image.version.into_owned(),
            arch: architecture().to_owned(),
        },
    }));
    artifacts
}

/// CoreDNS comes as an image only, and an S3 server is no part of a cluster.
fn of_component(component: &Component, programs: &Programs) -> Vec<Planned> {
    let program = |(name, _): &(&str, &str)| ((*name).to_owned(), programs.path(component, name));
    let sources: Vec<_> = component.programs.iter().map(program).collect();
    let recipes = of_programs(component.name, component.version, architecture(), &sources);
    recipes.into_iter().map(|recipe| Planned { recipe, minor: component.minor }).collect()
}

/// Karmada's programs, of every version that is given; none is built here.
fn of_karmada(programs: &Programs) -> Vec<Planned> {
    let versions = programs.given("karmada");
    let recipes =
        versions.iter().flat_map(|(version, sources)| of_programs("karmada", version, architecture(), sources));
    recipes.map(|recipe| Planned { recipe, minor: None }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::{CHANGES, COMPONENTS, UPGRADES};

    fn planned(components: &[Component]) -> Vec<Planned> {
        let cache = Cache::at("/cache");
        all(components, &cache, &Programs::new(None, cache.programs()))
    }

    fn names(components: &[Component]) -> Vec<String> {
        planned(components).iter().map(|it| format!("{}:{}", it.recipe.name, it.recipe.version)).collect()
    }

    #[test]
    fn the_bundle_has_all_that_machines_take() {
        let names = names(COMPONENTS);
        for wanted in [
            "kubelet:1.35.4",
            "kubeadm:1.35.4",
            "kubectl:1.35.4",
            "kube-apiserver:1.35.4",
            "kube-controller-manager:1.35.4",
            "runc:1.5.2",
            "containerd:2.4.2",
            "etcd:3.6.16",
            "cni-plugins:1.9.1",
            "registry.k8s.io/kube-apiserver:v1.35.4",
            "registry.k8s.io/kube-controller-manager:v1.35.4",
            "registry.k8s.io/kube-scheduler:v1.35.4",
            "registry.k8s.io/kube-proxy:v1.35.4",
            "registry.k8s.io/coredns/coredns:v1.14.7",
            "registry.k8s.io/pause:3.10.1",
            "clusterwright.dev/busybox:1.35",
        ] {
            assert!(names.iter().any(|it| it == wanted), "{wanted} is not among {names:?}");
        }
    }

    #[test]
    fn the_bundle_of_upgrades_has_other_versions_beside_all_of_the_labs() {
        let (labs, upgrades) = (names(COMPONENTS), names(&[COMPONENTS, UPGRADES, CHANGES].concat()));
        assert!(labs.iter().all(|it| upgrades.contains(it)), "{labs:?} are not all among {upgrades:?}");
        let mut older: Vec<&str> = upgrades.iter().filter(|it| !labs.contains(it)).map(String::as_str).collect();
        older.sort_unstable();
        let kubernetes = ["1.34.3", "1.34.4", "1.36.3"].iter().flat_map(|version| {
            let programs = ["kube-apiserver", "kube-controller-manager", "kubeadm", "kubectl", "kubelet"];
            let programs = programs.map(|name| format!("{name}:{version}"));
            let images = ["apiserver", "controller-manager", "proxy", "scheduler"];
            let images = images.map(|name| format!("registry.k8s.io/kube-{name}:v{version}"));
            programs.into_iter().chain(images)
        });
        let mut wanted: Vec<String> = kubernetes.collect();
        wanted.extend(["etcd:3.6.14".to_owned(), "registry.k8s.io/pause:3.10.2".to_owned()]);
        wanted.sort_unstable();
        assert_eq!(older, wanted);
    }

    #[test]
    fn the_catalogue_for_users_has_the_versions_that_are_tested_here() {
        let catalogue = bundle::catalogue::Catalogue::built_in().unwrap();
        let built = planned(&[COMPONENTS, UPGRADES, CHANGES].concat());
        let table = super::super::components(&built);
        for (minor, versions) in &table {
            assert_eq!(catalogue.components(&format!("{minor}.0")).unwrap(), versions, "{minor}");
        }
        assert_eq!(table.keys().map(String::as_str).collect::<Vec<_>>(), catalogue.minors());
    }

    #[test]
    fn karmadas_programs_are_in_it_where_they_are_given_and_go_with_no_minor() {
        let given = tempfile::tempdir().unwrap();
        for path in ["1.17.5/bin/karmada-webhook", "1.18.2/bin/karmada-scheduler", "1.18.2/bin/karmada-webhook"] {
            let path = given.path().join("karmada").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        std::fs::write(given.path().join("karmada/1.18.2/crds.tar.gz"), "x").unwrap();
        let programs = Programs::new(Some(given.path().to_owned()), "/built".into());
        let planned = all(&[], &Cache::at("/cache"), &programs);
        let names: Vec<_> = planned.iter().map(|it| format!("{}:{}", it.recipe.name, it.recipe.version)).collect();
        assert_eq!(names, ["karmada-webhook:1.17.5", "karmada-scheduler:1.18.2", "karmada-webhook:1.18.2"]);
        assert!(super::super::components(&planned).is_empty());
    }

    #[test]
    fn no_two_artifacts_have_one_place() {
        let planned = planned(&[COMPONENTS, UPGRADES, CHANGES].concat());
        let places: std::collections::BTreeSet<&str> = planned.iter().map(|it| it.recipe.path.as_str()).collect();
        assert_eq!(places.len(), planned.len());
    }
}
