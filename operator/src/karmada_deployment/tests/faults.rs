//! A plane that is made, in Pods or on machines, and one that is brought to another version, on API servers in memory:
//! whatever is refused, shown too late or never seen, the end is the same, and nothing is made or done twice.

use crds::{Conditions, Host, ObjectExt, Reason};
use serde_json::{Value, json};

use super::machines;
use super::world::{KEY, World};
use crate::cases;
use crate::fake_api::FakeApi;

/// What goes wrong comes within so many passes; more than all is done in.
const MOST: usize = 500;
/// So many passes in which nothing changes are an end.
const STILL: usize = 8;
/// So many passes what cannot be decoded stays so.
const SPOILED: usize = 3;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    /// A plane in Pods, with members.
    Make,
    /// The same, to the next minor.
    Upgrade,
    /// A plane on a machine.
    MakeOnMachines,
}

const DEEDS: [Deed; 3] = [Deed::Make, Deed::Upgrade, Deed::MakeOnMachines];

/// What goes wrong meanwhile.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    /// From this write on, so many are answered with a conflict.
    Conflicts(usize, usize),
    /// What the caches show is always so many passes old.
    Lags(usize),
    /// In this pass a new operator is shown what was so in the beginning.
    BackInTime(usize),
    /// So much time passes between two passes: what happens then is never seen by itself.
    Misses(usize),
    /// In this pass requests to the metadata cluster begin to be answered with this code, so many of them.
    Refuses(usize, usize, u16),
    /// The same of the plane.
    PlaneRefuses(usize, usize, u16),
    /// Each pass is repeated so often by what was seen before the first.
    Repeats(usize),
    /// Another operator does the same, by what was so a pass before.
    Rival,
    /// In this pass writes begin to be refused, so many of them, as where a webhook does not answer.
    Unadmitted(usize, usize),
    /// From this pass on an operator of another version goes on, whose executors are others, too.
    Upgraded(usize),
    /// In this pass, and some more, the objects of this kind cannot be decoded.
    Undecodable(usize, &'static str),
}

impl Deed {
    /// It is asked for, and nothing has begun.
    async fn asked(self) -> World {
        let with_members = |world: World| world.with_member("pull", "pull").with_member("push", "push");
        match self {
            Self::Make => with_members(World::new().await),
            Self::Upgrade => {
                let world = with_members(World::new().await.in_version("1.17.5"));
                world.passes(MOST).await;
                let work = "{apiVersion: work.karmada.io/v1alpha1, kind: Work, metadata: {name: one, namespace: karmada-es-push}, spec: {}}";
                world.plane.put("works", work);
                world.want("1.18.2");
                world
            }
            Self::MakeOnMachines => World::on_machines(1, 1).await,
        }
    }
}

/// Objects that cannot be decoded, and what makes them so again.
fn spoil(api: &FakeApi, plural: &str) -> Vec<(String, Value)> {
    let prefix = format!("{plural}/");
    let names: Vec<String> = api.names().into_iter().filter(|name| name.starts_with(&prefix)).collect();
    let spoil = |name: String| {
        let mut kept = Value::Null;
        api.edit(&name, |object| kept = std::mem::replace(&mut object["status"]["conditions"], json!("not a list")));
        (name, kept)
    };
    names.into_iter().map(spoil).collect()
}

fn mend(api: &FakeApi, spoiled: Vec<(String, Value)>) {
    for (name, kept) in spoiled.into_iter().filter(|(name, _)| api.get(name).is_some()) {
        api.edit(&name, |object| match kept.is_null() {
            true => drop(object["status"].as_object_mut().unwrap().remove("conditions")),
            false => object["status"]["conditions"] = kept,
        });
    }
}

/// What was asked for is done to a copy of the world, with a fault; then all is well, and another operator looks.
async fn live(asked: &World, fault: Fault) -> World {
    let world = asked.copy();
    let (mut ctx, rival) = (world.operator(), world.operator());
    if let Fault::Conflicts(number, times) = fault {
        world.api.conflict(world.api.writes() + number, times);
        world.plane.conflict(world.plane.writes() + number, times);
    }
    let mut shown: Vec<FakeApi> = Vec::new();
    let mut still = 0;
    for number in 0..MOST {
        let before = world.changes();
        match fault {
            Fault::Lags(passes) => {
                shown.push(world.api.copy());
                let place = shown.len().saturating_sub(passes + 1);
                world.reconcile_by(&ctx, &shown[place]).await;
            }
            Fault::BackInTime(when) if number == when => {
                ctx = world.operator();
                world.reconcile_by(&ctx, &asked.api).await;
            }
            Fault::Misses(meanwhile) => {
                world.reconcile_by(&ctx, &world.api).await;
                (0..meanwhile).for_each(|_| world.time());
            }
            Fault::Repeats(times) => {
                let seen = world.api.copy();
                for _ in 0..times {
                    world.reconcile_by(&ctx, &seen).await;
                }
            }
            Fault::Rival => {
                shown.push(world.api.copy());
                world.reconcile_by(&ctx, &world.api).await;
                world.reconcile_by(&rival, &shown[number.saturating_sub(1)]).await;
            }
            Fault::Refuses(when, times, code) if number == when => {
                world.api.refuse("", times, code, json!({ "retryAfterSeconds": 60 }));
                world.reconcile_by(&ctx, &world.api).await;
            }
            Fault::PlaneRefuses(when, times, code) if number == when => {
                world.plane.refuse("", times, code, json!({ "retryAfterSeconds": 60 }));
                world.reconcile_by(&ctx, &world.api).await;
            }
            Fault::Unadmitted(when, times) if number == when => {
                // POST, PUT and PATCH.
                let why = "failed calling webhook \"x.test\": context deadline exceeded";
                world.api.refuse("P", times, 500, json!({ "causes": [{ "message": why }] }));
                world.reconcile_by(&ctx, &world.api).await;
            }
            Fault::Upgraded(when) if number == when => {
                ctx = world.operator_with(&["--executor-image=registry.test/executor:next"]);
                world.reconcile_by(&ctx, &world.api).await;
            }
            Fault::Undecodable(first, plural) if (first..first + SPOILED).contains(&number) => {
                let spoiled = spoil(&world.api, plural);
                world.reconcile_by(&ctx, &world.api).await;
                mend(&world.api, spoiled);
            }
            _ => world.reconcile_by(&ctx, &world.api).await,
        }
        world.time();
        let comes = match fault {
            Fault::BackInTime(when)
            | Fault::Refuses(when, ..)
            | Fault::PlaneRefuses(when, ..)
            | Fault::Unadmitted(when, _)
            | Fault::Upgraded(when) => number <= when,
            Fault::Undecodable(first, _) => number < first + SPOILED,
            _ => false,
        };
        let is_disturbed = comes || world.apis().any(FakeApi::is_disturbed);
        still = if before == world.changes() && !is_disturbed { still + 1 } else { 0 };
        if still >= STILL {
            break;
        }
    }
    world.apis().for_each(FakeApi::heal);
    world.passes(MOST).await;
    world
}

/// The parts that were brought to machines, run by run.
fn parts(world: &World) -> Vec<String> {
    let mut parts: Vec<String> = machines::changes(world).iter().map(machines::parts).collect();
    parts.sort();
    parts
}

/// Every fault comes to the same end as none; of three deeds each meets another third of them.
async fn same_end(deeds: &[Deed], faults: impl Fn(usize) -> Vec<Fault>) {
    for (turn, deed) in deeds.iter().enumerate() {
        let asked = deed.asked().await;
        let whole = live(&asked, Fault::None).await;
        assert!(whole.object().is_true("Ready"), "{deed:?}: {}", whole.message());
        let writes = whole.api.writes() - asked.api.writes();
        for fault in cases::some(faults(writes), turn) {
            let world = live(&asked, fault).await;
            assert!(world.object().is_true("Ready"), "{deed:?} with {fault:?}: {}", world.message());
            // Runs are named by digests of certificates, which are others each time.
            assert_eq!(parts(&world), parts(&whole), "{deed:?} with {fault:?}");
            if *deed != Deed::MakeOnMachines {
                world.is_made_once(&whole.names());
            }
            assert_eq!(world.object().status.unwrap().version, whole.object().status.unwrap().version);
        }
    }
}

#[tokio::test]
async fn what_is_shown_of_a_plane_too_late_or_never_makes_nothing_twice_rows_3_and_4() {
    let slow = [Fault::Lags(1), Fault::Lags(3), Fault::Misses(1), Fault::Misses(4)];
    let behind = (0..20).step_by(3).map(Fault::BackInTime);
    let faults: Vec<Fault> = slow.into_iter().chain(behind).collect();
    same_end(&[Deed::Make, Deed::Upgrade], |_| faults.clone()).await;
    same_end(&[Deed::MakeOnMachines], |_| slow.to_vec()).await;
}

#[tokio::test]
async fn conflicts_at_any_write_of_a_plane_are_tried_again_row_5() {
    let at = |number: usize| Fault::Conflicts(number, if number.is_multiple_of(2) { 1 } else { 20 });
    same_end(&DEEDS, |writes| (0..writes).step_by(5).map(at).collect()).await;
}

#[tokio::test]
async fn an_api_server_that_is_busy_away_or_refuses_holds_a_plane_and_makes_nothing_twice_rows_6_7_and_8() {
    const CODES: [u16; 6] = [429, 500, 503, 504, 401, 403];
    let code = |number: usize| CODES[number % CODES.len()];
    let at = |pass: usize| {
        [
            Fault::Refuses(pass, 1, code(pass)),
            Fault::Refuses(pass, 40, code(pass + 3)),
            Fault::PlaneRefuses(pass, 1, code(pass + 1)),
            Fault::PlaneRefuses(pass, 40, code(pass + 2)),
        ]
    };
    same_end(&DEEDS, |_| (0..18).step_by(3).flat_map(at).collect()).await;
}

#[tokio::test]
async fn whoever_reconciles_a_plane_however_often_it_is_made_once_row_12() {
    same_end(&DEEDS, |_| vec![Fault::Rival, Fault::Repeats(2), Fault::Repeats(20)]).await;
}

#[tokio::test]
async fn an_operator_of_another_version_goes_on_with_a_plane_wherever_it_is_row_33() {
    same_end(&DEEDS, |_| (0..24).step_by(3).map(Fault::Upgraded).collect()).await;
}

#[tokio::test]
async fn a_webhook_that_is_down_or_slow_holds_a_plane_row_41() {
    let at = |pass: usize| Fault::Unadmitted(pass, if pass.is_multiple_of(2) { 1 } else { 8 });
    same_end(&DEEDS, |_| (0..15).map(at).collect()).await;
}

#[tokio::test]
async fn what_cannot_be_decoded_is_waited_for_by_a_plane_and_is_not_taken_for_gone_row_47() {
    let at = |kinds: &'static [&'static str]| {
        move |_: usize| {
            let passes = (0..24).step_by(5);
            passes.flat_map(|pass| kinds.iter().map(move |plural| Fault::Undecodable(pass, plural))).collect()
        }
    };
    same_end(&[Deed::Make, Deed::Upgrade], at(&["karmadadeployments", "clusters"])).await;
    let of_machines = at(&["karmadadeployments", "clusters", "playbookruns", "machinesets", "machines", "hosts"]);
    same_end(&[Deed::MakeOnMachines], of_machines).await;
}

/// What members run stays, and all that the plane has on its host goes.
#[tokio::test]
async fn a_plane_that_is_deleted_while_it_is_made_or_upgraded_leaves_its_members_and_its_host_row_29() {
    for deed in [Deed::Make, Deed::Upgrade] {
        let asked = deed.asked().await;
        for goes_in in (0..40).step_by(6) {
            let world = asked.copy();
            let ctx = world.operator();
            for _ in 0..goes_in {
                world.pass(&ctx).await;
            }
            world.api.edit(KEY, |object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
            world.passes(MOST).await;
            let place = format!("{deed:?} in pass {goes_in}");
            assert!(world.api.values("karmadadeployments").is_empty(), "{place}: {}", world.message());
            let names = world.api.names();
            let left: Vec<&String> = names.iter().filter(|name| name.contains("/karmada-system/")).collect();
            assert!(left.is_empty(), "{place}: {left:?}");
            for (name, member) in &world.members {
                let names = member.names();
                assert!(!names.iter().any(|name| name.contains("karmada-agent")), "{place} {name}: {names:?}");
            }
        }
    }
}

/// Nothing can be made in it any more: machines stay as they are, and with their plane.
#[tokio::test]
async fn a_namespace_that_is_deleted_with_a_plane_on_machines_cleans_nothing_and_gives_no_host_away_row_31() {
    let asked = Deed::MakeOnMachines.asked().await;
    for goes_in in (4..40).step_by(4) {
        let world = asked.copy();
        let ctx = world.operator();
        for _ in 0..goes_in {
            world.pass(&ctx).await;
        }
        let claimed = |world: &World| -> Vec<String> {
            let hosts = world.api.list::<Host>("hosts").into_iter();
            hosts.filter(|host| host.spec.claim_ref.is_some()).map(|host| host.name().to_owned()).collect()
        };
        let (held, before) = (claimed(&world), world.api.names());
        assert_eq!(held, ["h1"], "in pass {goes_in}");
        let terminating = json!({ "causes": [{ "reason": "NamespaceTerminating", "message": "it is terminated" }] });
        world.api.refuse("POST", usize::MAX, 403, terminating);
        for name in before.iter().filter(|name| name.contains("/fleet/")) {
            world.api.edit(name, |object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
        }
        for _ in 0..40 {
            world.pass(&ctx).await;
        }
        let names = world.api.names();
        let made: Vec<&String> = names.iter().filter(|name| !before.contains(name)).collect();
        assert!(made.is_empty(), "in pass {goes_in}: {made:?}");
        assert_eq!(claimed(&world), held, "in pass {goes_in}");
        assert!(!world.api.values("karmadadeployments").is_empty(), "in pass {goes_in}");
    }
}

/// A kubeconfig that has expired: the host knows nobody by it.
#[tokio::test]
async fn a_host_that_does_not_accept_its_kubeconfig_any_more_is_said_and_gets_nothing_until_it_does_row_36() {
    let world = World::new().await.with_host().with_member("push", "push");
    world.passes(MOST).await;
    assert!(world.object().is_true("Ready"), "{}", world.message());
    let (names, host) = (world.names(), world.host.as_ref().unwrap());
    host.refuse("", usize::MAX, 401, Value::Null);
    world.api.edit(KEY, |object| object["spec"]["search"] = json!({}));
    let writes = (host.writes(), world.plane.writes());
    world.passes(6).await;
    let ready = world.object().condition("Ready").cloned().unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("Unknown", Reason::ClusterUnreachable.as_str()));
    assert!(world.message().contains("host-a"), "{}", world.message());
    assert_eq!((host.writes(), world.plane.writes()), writes, "nothing is written");
    assert_eq!(world.names(), names);
    host.heal();
    world.passes(MOST).await;
    assert!(world.object().is_true("Ready"), "{}", world.message());
    assert!(host.get("deployments/karmada-system/k1-search").is_some());
}
