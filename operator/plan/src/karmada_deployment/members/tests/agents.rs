//! Agents that follow their plane.

use crds::karmada_deployment::{KarmadaUpgradeStatus, UpgradeStep};
use serde_json::json;

use super::world::World;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// The members whose agent has this version.
fn with_version(world: &World, version: &str) -> Vec<&'static str> {
    let has_it = |name: &&str| {
        let agent = world.sites[*name].api.find("Deployment", "karmada-agent").unwrap();
        let image = agent["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap();
        image == format!("docker.io/karmada/karmada-agent:v{version}")
    };
    NAMES.into_iter().filter(has_it).collect()
}

/// What the controllers of a member say of its agent.
pub(super) fn says(world: &mut World, name: &str, ready: i32) {
    let objects = &mut world.sites.get_mut(name).unwrap().api.objects;
    let agent = objects.iter_mut().find(|live| live["kind"] == "Deployment").unwrap();
    agent["status"] = json!({
        "replicas": 1, "updatedReplicas": 1, "availableReplicas": ready, "readyReplicas": ready,
    });
}

#[test]
fn agents_follow_their_plane_some_at_a_time_and_only_when_its_upgrade_has_come_to_them() {
    let mut world = World::new(None, &NAMES);
    NAMES.iter().for_each(|name| world.name(name, "pull"));
    world.rest();
    NAMES.iter().for_each(|name| says(&mut world, name, 1));
    world.object.status.as_mut().unwrap().version = Some("1.18.2".to_owned());
    world.object.spec.version = "1.18.3".parse().unwrap();
    world.rest();
    assert_eq!(with_version(&world, "1.18.2"), NAMES, "the plane has not moved");

    let auto_join = json!({ "selector": {}, "rules": [{ "syncMode": "pull" }], "maxConcurrent": 1 });
    world.object.spec.auto_join = Some(serde_json::from_value(auto_join).unwrap());
    world.object.status.as_mut().unwrap().upgrade = Some(KarmadaUpgradeStatus {
        to: "1.18.3".to_owned(),
        step: Some(UpgradeStep::Agents),
        ..KarmadaUpgradeStatus::default()
    });
    for number in 1..=NAMES.len() {
        world.turn();
        assert_eq!(with_version(&world, "1.18.3"), NAMES[..number]);
        says(&mut world, NAMES[number - 1], 0);
        world.turn();
        assert_eq!(with_version(&world, "1.18.3"), NAMES[..number], "the last one is still starting");
        says(&mut world, NAMES[number - 1], 1);
    }
    world.rest();
}

#[test]
fn a_member_that_does_not_answer_holds_no_agent_up_and_follows_when_it_does() {
    let mut world = World::new(None, &NAMES);
    NAMES.iter().for_each(|name| world.name(name, "pull"));
    world.rest();
    NAMES.iter().for_each(|name| says(&mut world, name, 1));
    world.sites.get_mut("a").unwrap().is_up = false;
    world.object.status.as_mut().unwrap().version = Some("1.18.3".to_owned());
    world.object.spec.version = "1.18.3".parse().unwrap();
    world.rest();
    assert_eq!(with_version(&world, "1.18.3"), ["b", "c"]);
    world.sites.get_mut("a").unwrap().is_up = true;
    world.rest();
    assert_eq!(with_version(&world, "1.18.3"), NAMES);
}
