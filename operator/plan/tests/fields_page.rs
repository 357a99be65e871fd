//! The page docs/fields.md says what an edit of each field does: by the code where that knows, and by a declared row
//! where it does not.

#[path = "../examples/field_docs/clusters.rs"]
mod clusters;
#[path = "../examples/field_docs/declared.rs"]
mod declared;
#[path = "../examples/field_docs/effect.rs"]
mod effect;
#[path = "../examples/field_docs/known.rs"]
mod known;
#[path = "../examples/field_docs/leaves.rs"]
mod leaves;
#[path = "../examples/field_docs/page.rs"]
mod page;
#[path = "../examples/field_docs/rows.rs"]
mod rows;
#[path = "../examples/field_docs/sets.rs"]
mod sets;

#[cfg(test)]
mod tests {
    use crds::step::Step;
    use plan::components::pins::COREDNS;
    use plan::configuration::PARTS;
    use serde_json::{Value, json};

    use super::effect::Effect;
    use super::known::Known;
    use super::rows::{Row, expand, rows};
    use super::{clusters, declared, leaves, page};

    #[test]
    fn the_page_in_docs_is_that_of_the_types_and_of_the_planners() {
        let there = std::fs::read_to_string("../../docs/fields.md").unwrap_or_default();
        let command = "cargo run -p plan --example field_docs -- docs";
        assert!(there == page::text().unwrap(), "docs/fields.md is not what the code says; write it anew: {command}");
    }

    /// Why there are no rows for a field, of which the code knows this effect, with these rows declared.
    fn refusal(known: Option<Effect>, declared: &[declared::Declared]) -> String {
        let schema = json!({"properties": {"paused": {"type": "boolean"}}});
        let ask: super::rows::Ask = match known {
            Some(_) => |_, _| Ok(Known { effect: Some(Effect::Restart), ..Known::default() }),
            None => |_, _| Ok(Known::default()),
        };
        rows(&schema, ask, declared).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn each_field_has_exactly_one_row() {
        let row =
            |field: &'static str, effect: Option<Effect>| declared::Declared { field, effect, steps: &[], remark: "" };
        let none = Some(Effect::None);
        assert_eq!(refusal(None, &[]), "paused: no code says what an edit does: declare it in declared.rs");
        assert_eq!(refusal(None, &[row("paused", none)]), "");
        assert_eq!(refusal(Some(Effect::Restart), &[row("paused", None)]), "");
        let both = refusal(Some(Effect::Restart), &[row("paused", none)]);
        assert_eq!(both, "paused: the code says restart: declare no effect in declared.rs");
        let twice = refusal(None, &[row("paused", none), row("{paused,x}", none)]);
        assert_eq!(twice, "paused is declared twice in declared.rs: take one of the rows out");
        for effect in [None, none] {
            let gone = refusal(None, &[row("paused", none), row("x", effect)]);
            assert_eq!(gone, "x is declared in declared.rs and is no field: take it out");
        }
    }

    fn row<'a>(rows: &'a [Row], field: &str) -> &'a Row {
        rows.iter().find(|row| row.field == field).unwrap_or_else(|| panic!("there is no field {field}"))
    }

    #[test]
    fn every_part_of_the_configuration_is_brought_by_its_step() {
        let rows = page::of_clusters().unwrap();
        for part in PARTS {
            // `configuration.kubelet (cpuManagerPolicy, topologyManagerPolicy)` are two fields of it.
            let pattern = part.field.replace(" (", ".{").replace(')', "}");
            for field in expand(&pattern) {
                let below = |row: &&Row| row.field == field || row.field.starts_with(&format!("{field}."));
                let below: Vec<&Row> = rows.iter().filter(below).collect();
                assert!(!below.is_empty(), "{field} has no row");
                for row in below {
                    // CoreDNS is set right for the whole cluster, once its image is everywhere.
                    let of_cluster = (part.field == COREDNS.field).then_some(Step::Coredns);
                    let steps: Vec<Step> = [part.step].into_iter().chain(of_cluster).collect();
                    assert_eq!(row.steps, steps, "{}", row.field);
                    let expected = if part.step.spec().disruptive { Effect::Restart } else { Effect::Immediate };
                    assert!(row.effect == expected || row.effect == Effect::Drain, "{}: {}", row.field, row.effect);
                }
            }
        }
        let drained: Vec<&str> = rows.iter().filter(|row| row.effect == Effect::Drain).map(|row| &*row.field).collect();
        let of_kubelets = ["configuration", "controlPlane", "workers[]"].into_iter().flat_map(|of| {
            ["cpuManagerPolicy", "maxPods", "topologyManagerPolicy"].map(|field| format!("{of}.kubelet.{field}"))
        });
        let mut expected: Vec<String> = of_kubelets.chain(["kubernetesVersion".to_owned()]).collect();
        expected.sort();
        assert_eq!(drained, expected);
    }

    #[test]
    fn what_is_declared_restarts_something_where_its_steps_do() {
        for declared in declared::CLUSTERS.iter().chain(declared::SETS).filter(|declared| !declared.steps.is_empty()) {
            // Its step applies manifests as well, which restart nothing by themselves.
            let is_kube_proxy = declared.field == "configuration.kubeProxy.mode";
            let restarts = is_kube_proxy || declared.steps.iter().any(|step| step.spec().disruptive);
            let says = declared.effect.is_some_and(|effect| effect == Effect::Restart || effect == Effect::Drain);
            assert_eq!(says, restarts, "{}", declared.field);
        }
    }

    /// What the schema refuses of each field, by rules that compare it with what it was.
    #[test]
    fn what_never_changes_is_refused_and_nothing_else_is() {
        let schema = leaves::schema("ClusterDeployment").unwrap();
        let rows = page::of_clusters().unwrap();
        let refused = rows.iter().filter(|row| row.effect == Effect::Refused);
        let mut tops: Vec<String> =
            refused.map(|row| row.field.split('.').take(2).collect::<Vec<_>>().join(".")).collect();
        tops.dedup();
        let expected = [
            "containerRuntime.name",
            "controlPlane.endpoint",
            "etcd.prefix",
            "etcd.topology",
            "networking.dnsDomain",
            "networking.plugin",
            "networking.podCIDR",
            "networking.serviceCIDR",
            "restoreFrom.identityRef",
            "restoreFrom.source",
        ];
        assert_eq!(tops, expected);
        // Without the rule it is one like any other.
        let mut without: Value = schema.clone();
        without["x-kubernetes-validations"] = json!([]);
        let leaf = leaves::leaves(&schema).into_iter().find(|leaf| leaf.to_string() == "etcd.topology").unwrap();
        assert_ne!(clusters::known(&without, &leaf).unwrap().effect, Some(Effect::Refused));
    }

    #[test]
    fn what_contents_and_nodes_are_given_is_brought_at_once() {
        let rows = page::of_clusters().unwrap();
        let check = |field: &str, effect: Effect, steps: &[&str]| {
            let row = row(&rows, field);
            let named: Vec<&str> = row.steps.iter().map(|step| step.name()).collect();
            assert_eq!((row.effect, named.as_slice()), (effect, steps), "{field}");
        };
        check("addons.manifestsRef.name", Effect::None, &[]);
        check("networking.plugin.manifestsRef.name", Effect::Refused, &["network"]);
        check("etcd.secretRef.name", Effect::Immediate, &["etcd-endpoints"]);
        check("etcd.endpoints", Effect::Restart, &["etcd-endpoints"]);
        check("controlPlane.certSANs", Effect::Immediate, &["control-plane"]);
        check("workers[].labels", Effect::Immediate, &[]);
        check("controlPlane.taints[].effect", Effect::Immediate, &[]);
        let sets = page::of_sets().unwrap();
        assert_eq!(self::row(&sets, "role").effect, Effect::Refused);
        assert_eq!(self::row(&sets, "replicas").effect, Effect::Machines);
        assert_eq!(self::row(&sets, "template.labels").effect, Effect::Immediate);
    }
}
