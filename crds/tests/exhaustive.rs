//! A `match` over intents, steps, roles or phases names each of them. What a wildcard arm does to the next one that is
//! added, nobody decided: once that was to reset the machines.

#[path = "exhaustive/pattern.rs"]
mod pattern;
#[path = "exhaustive/source.rs"]
mod source;
#[path = "scan/sources.rs"]
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pattern::{Names, There};
use source::Source;

/// The enums that are matched without a wildcard, and their variants.
type Watched = BTreeMap<String, BTreeSet<String>>;

/// Lines of a text with a wildcard over an enum that is watched.
fn wildcards(text: &str, watched: &Watched) -> Vec<(usize, String)> {
    let source = Source::new(text);
    let mut found = Vec::new();
    for (at, arms) in source.matches() {
        let names = Names::new(watched, &source, at);
        let (mut named, mut open) = (BTreeSet::new(), BTreeSet::new());
        for arm in arms {
            for (place, there) in names.places(arm.pattern) {
                match there {
                    There::Named(name) => named.insert((place, name)),
                    There::Anything => !arm.guarded && open.insert(place),
                };
            }
        }
        let mut hit = named.into_iter().filter(|(place, _)| open.iter().any(|open| place.starts_with(open)));
        found.extend(hit.next().map(|(_, name)| (source.line(at), name)));
    }
    // To ask for one is what `==` does; a list of them is a `match` whose other arm takes the rest.
    for (at, pattern) in source.matches_macros() {
        let places = Names::new(watched, &source, at).places(pattern);
        let named = places.into_iter().filter_map(|(_, there)| match there {
            There::Named(name) => Some(name),
            There::Anything => None,
        });
        found.extend(named.skip(1).take(1).map(|name| (source.line(at), name)));
    }
    found
}

/// The intents, steps, roles and phases that a text of ours defines.
fn enums(text: &str) -> Watched {
    let is_watched =
        |name: &str| ["Intent", "Step", "Role", "Effect", "LockUse"].contains(&name) || name.ends_with("Phase");
    let enums = Source::new(text).enums();
    enums.into_iter().filter(|(name, _)| is_watched(name)).collect()
}

#[test]
fn no_match_over_intents_steps_roles_or_phases_has_a_wildcard_arm() {
    let sources = sources::sources(&["crds", "operator", "executor", "tests", "hack"]).unwrap();
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crds/src");
    let ours = sources.iter().filter(|(path, _)| path.starts_with(&ours));
    let watched: Watched = ours.flat_map(|(_, text)| enums(text)).collect();
    for name in ["Intent", "Step", "Role", "RunPhase", "StepPhase", "HostPhase", "MachinePhase"] {
        assert!(watched.contains_key(name), "{name} is not among {:?}", watched.keys());
    }
    assert!(watched["Step"].contains("Reset"), "{:?}", watched["Step"]);
    assert!(sources.len() > 300, "{}", sources.len());
    let mut found = Vec::new();
    for (path, text) in &sources {
        let path = path.display();
        let lines = wildcards(text, &watched);
        found.extend(lines.iter().map(|(line, name)| format!("{path}:{line}: over {name}")));
    }
    assert!(found.is_empty(), "name each case instead of `_`:\n{}", found.join("\n"));
}

#[test]
fn a_wildcard_is_found_wherever_it_stands() {
    let watched =
        enums("pub enum Role { /// One, of\n Etcd, Worker(u8), } enum RunPhase { Running, Failed } enum Other { A }");
    assert_eq!(watched.len(), 2);
    let lines = |text: &str| wildcards(&format!("use x::{{Role as R}};\nfn f() {{ {text}; }}"), &watched).len();
    let check = |text: &str, expected: usize| assert_eq!(lines(text), expected, "{text}");
    check("match x { Role::Etcd => 1, _ => 2 }", 1);
    check("match x { R::Etcd => { g(); } other => g(other) }", 1);
    check("match x { Some(Role::Etcd) => 1, Some(_) | None => 2 }", 1);
    check("match x { (Role::Etcd, 1) => 1, _ => 2 }", 1);
    check("match x { (crds::step::Role::Etcd, 1) => 1, (_, _) => 2 }", 1);
    check("match x { Seen { role: Role::Etcd, .. } => 1, Seen { role, .. } => 2 }", 1);
    check("g(|| match h(&x, |y| { y }) { &Role::Worker(_) if y => 1, \n _ => 2 })", 1);
    check("match y { \"match x {\" => 1, '{' => 2, _ => match x { Role::Etcd => 1, _ => 2 } }", 1);
    check("assert!(!matches!(x, Role::Etcd | Role::Worker(_)))", 1);
    check("match x { Role::Etcd => 1, Role::Worker(_) => 2 }", 0);
    check("match x { (Role::Etcd, _) => 1, (Role::Worker(_), _) => 2 }", 0);
    check("match x { _ if y => 0, Role::Etcd => 1, Role::Worker(_) => 2 }", 0);
    check("match x { Other::A => Role::Etcd, _ => Role::Worker(1) }", 0);
    check("match x { [Role::Etcd] => 1, _ => 2 }", 0);
    check("matches!(x, Some(Role::Etcd))", 0);
    let own = "impl fmt::Display for Role { fn f(self) { match self { Self::Etcd => 1, _ => 2 } } }";
    assert_eq!(wildcards(own, &watched), [(1, "Role".to_owned())]);
    let alone = "use Role::{Etcd};\n fn f() { match x { Etcd => 1, _ => 2 } }";
    assert_eq!(wildcards(alone, &watched), [(2, "Role".to_owned())]);
}
