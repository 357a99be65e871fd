//! What people do while machines leave and are repaired: the run under way ends as it was asked for, then what they
//! wish is met.

use crds::playbook_run::RunPhase;
use crds::step::Intent;

use super::super::ready;
use super::{DEEDS, Deed, last, spec, worker_hosts, workers};

#[test]
fn a_spec_that_changes_meanwhile_is_met_once_the_run_has_ended_as_it_was_asked_for_row_28() {
    for deed in DEEDS {
        let mut world = deed.at_work();
        let index = last(&world, deed).unwrap();
        let (name, asked) = (world.runs[index].metadata.name.clone(), world.runs[index].spec.clone());
        world.respec(&spec(4).replace("name: general", "name: general, labels: {pool: new}"));
        world.write_statuses();
        let status = world.deployment.status.clone().unwrap();
        assert_eq!(status.pending_generation, world.deployment.metadata.generation, "{deed:?}");
        for _ in 0..40 {
            world.run_for(1);
            super::heal(&mut world);
        }
        world.settle();
        let run = world.runs.iter().find(|run| run.metadata.name == name).unwrap();
        assert_eq!(run.spec, asked, "{deed:?}");
        let ended = run.status.as_ref().and_then(|status| status.phase);
        assert_eq!(ended, Some(RunPhase::Succeeded), "{deed:?}");
        assert_eq!((workers(&world).len(), ready(&world).0.as_str()), (4, "True"), "{deed:?}: {:?}", ready(&world));
        assert_eq!(world.deployment.status.as_ref().unwrap().pending_generation, None, "{deed:?}");
    }
}

/// What joins or repairs is stopped, what cleans goes on; every machine is cleaned once, and the cluster is gone.
#[test]
fn a_cluster_that_is_deleted_meanwhile_stops_what_works_and_cleans_every_machine_once_row_29() {
    for deed in DEEDS {
        let mut world = deed.at_work();
        let index = last(&world, deed).unwrap();
        let name = world.runs[index].metadata.name.clone();
        world.delete();
        world.write_statuses();
        world.settle();
        assert!(world.gone && world.dirty.is_empty(), "{deed:?}: {:?}", world.dirty);
        let run = world.runs.iter().find(|run| run.metadata.name == name);
        let ended = run.and_then(|run| run.status.as_ref()?.phase);
        let expected = match deed {
            Deed::Remove => RunPhase::Succeeded,
            _ => RunPhase::Canceled,
        };
        assert_eq!(ended, Some(expected), "{deed:?}");
        let mut cleaned: Vec<&String> =
            world.runs.iter().filter(|run| run.spec.intent == Intent::Reset).flat_map(|run| &run.spec.hosts).collect();
        let all = cleaned.len();
        cleaned.sort();
        cleaned.dedup();
        assert_eq!(cleaned.len(), all, "{deed:?}: no machine is cleaned twice");
    }
}

/// What ties a Machine to its set is taken off it while something is done to it.
#[test]
fn a_machine_that_loses_its_owner_and_finalizer_meanwhile_is_made_whole_row_30() {
    for deed in DEEDS {
        let mut world = deed.at_work();
        let index = last(&world, deed).unwrap();
        let host = world.runs[index].spec.hosts[0].clone();
        let machine = world.machines.iter_mut().find(|machine| super::host_of(machine) == host).unwrap();
        machine.metadata.owner_references = None;
        if deed != Deed::Remove {
            machine.metadata.finalizers = None;
        }
        let finished = deed.settle(&mut world);
        assert_eq!(finished.len(), 1, "{deed:?}: {finished:?}");
        let whole = |machine: &&crds::Machine| {
            machine.metadata.owner_references.is_some() && machine.metadata.finalizers.is_some()
        };
        assert!(workers(&world).iter().all(whole), "{deed:?}");
        let hosts = worker_hosts(&world);
        match deed {
            Deed::Join => assert_eq!(hosts, ["h2", "h3", "h4"]),
            Deed::Remove => assert_eq!(hosts.len(), 1),
            Deed::Repair => assert_eq!(hosts, ["h2", "h3"]),
        }
    }
}
