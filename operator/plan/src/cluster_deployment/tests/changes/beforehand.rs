//! The backup that precedes a change which cannot be taken back.

use crds::etcd_backup::BackupPhase;
use serde_json::json;

use super::{ALL, Change, Minor, Patch, Rotation, approve, back_up, pass};
use crate::testing::World;

fn is_preceded(change: &Change) -> bool {
    matches!(change, Minor | Patch | Rotation(_))
}

/// Whatever is tried, the storage is full.
fn fill_up(world: &mut World) {
    for backup in &mut world.backups {
        let is_good = backup.status.as_ref().and_then(|status| status.phase) == Some(BackupPhase::Succeeded);
        if !is_good {
            let failed = json!({ "phase": "Failed", "message": "the storage is full" });
            backup.status = serde_json::from_value(failed).unwrap();
        }
    }
}

#[test]
fn no_upgrade_and_no_rotation_begins_without_its_backup_row_39() {
    for change in ALL.into_iter().filter(is_preceded) {
        let mut world = change.asked();
        let stages = world.authorities.clone();
        let mut told = 0;
        for _ in 0..40 {
            fill_up(&mut world);
            approve(&mut world);
            world.run_for(1);
            let says = change.says(&world);
            told += usize::from(says.contains("BackupRequired: ") && says.contains("the storage is full"));
        }
        let place = format!("{change:?}: {}", change.says(&world));
        assert!(change.begun(&world, 0).is_empty(), "{place}");
        assert_eq!(world.authorities, stages, "{place}");
        assert!(world.backups.len() > 1, "{place}: it is tried again");
        assert!(told > 0 || world.backups.len() > 3, "{place}");
        for backup in &mut world.backups {
            backup.status = None;
        }
        back_up(&mut world);
        change.finish(&mut world);
    }
}

/// One that takes long is waited for.
#[test]
fn a_backup_that_is_slow_is_waited_for_row_39() {
    for change in [Minor, Rotation(crate::rotation::Subject::Ca)] {
        let mut world = change.asked();
        for _ in 0..30 {
            approve(&mut world);
            world.run_for(1);
        }
        assert_eq!((world.backups.len(), change.begun(&world, 0).len()), (1, 0), "{change:?}");
        let says = change.says(&world);
        assert!(says.contains(&format!("waits for EtcdBackup {}", crds::ObjectExt::name(&world.backups[0]))), "{says}");
        pass(&mut world);
        change.finish(&mut world);
    }
}
