//! Members that die and come back, are named and taken out, and lose objects, all at once and in any order. Whatever
//! happens, no member loses what it is to keep; and once all is well, all is at rest as the spec says.

use crds::karmada_deployment::{KarmadaMemberPhase as Phase, UnjoinPolicy};
use proptest::prelude::{ProptestConfig, any, proptest};

use super::world::World;

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn throw(dice: &mut u64, sides: usize) -> usize {
    *dice ^= *dice << 13;
    *dice ^= *dice >> 7;
    *dice ^= *dice << 17;
    (*dice % sides as u64) as usize
}

fn mishap(world: &mut World, dice: &mut u64) {
    let name = NAMES[throw(dice, NAMES.len())];
    match throw(dice, 10) {
        0 => world.forget(name),
        1 => world.name(name, "push"),
        2 => world.name(name, "pull"),
        8 => world.name_by_host(name, ["push", "pull"][throw(dice, 2)]),
        9 => drop(world.refusing.insert(name.to_owned())),
        3 => world.sites.get_mut(name).unwrap().is_up = false,
        4 => world.sites.get_mut(name).unwrap().is_up = true,
        5 => world.plane_is_up = !world.plane_is_up,
        6 => {
            let kinds = ["Secret", "ServiceAccount", "ClusterRoleBinding"];
            let kind = kinds[throw(dice, kinds.len())];
            let own = ["karmada-".to_owned() + name, format!("karmada-controller-manager:karmada-{name}")];
            let site = world.sites.get_mut(name).unwrap();
            own.iter().for_each(|own| site.api.delete(kind, own));
        }
        _ => world.object.status.as_mut().unwrap().members.retain(|member| member.name != name),
    }
}

fn play(mut dice: u64, policy: UnjoinPolicy) {
    let mut world = World::new(Some(policy), &NAMES);
    world.object.spec.estimator = Some(Default::default());
    for _ in 0..60 {
        if throw(&mut dice, 3) > 0 {
            mishap(&mut world, &mut dice);
        }
        world.turn();
    }
    world.plane_is_up = true;
    world.sites.values_mut().for_each(|site| site.is_up = true);
    world.refusing.clear();
    world.rest();
    for name in NAMES {
        let is_named = world.object.spec.members.iter().any(|member| member.name == name);
        match is_named {
            true => {
                assert!(world.read.get(name).is_none_or(|read| read.runs.is_empty()), "{name}: {:?}", world.read[name]);
                assert_eq!(world.phase(name), Some(Phase::Joined), "{name}: {:?}", world.row(name));
                assert_eq!(world.made_on_host(name), 3, "{name}");
            }
            false => {
                assert_eq!(world.phase(name), None, "{name}: {:?}", world.row(name));
                assert_eq!((world.made_in_plane(name), world.made_on_host(name)), (0, 0), "{name}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_time: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_members_keep_what_they_run(dice in any::<u64>()) {
        play(dice | 1, UnjoinPolicy::Preserve);
    }

    #[test]
    fn whatever_happens_members_settle_where_leaving_deletes(dice in any::<u64>()) {
        play(dice | 1, UnjoinPolicy::Delete);
    }
}
