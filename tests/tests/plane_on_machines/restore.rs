//! The plane is set back in its place, on the machines that it has: nothing acts before that is approved, and until
//! then the data of before comes back for a word. What a restore leaves on the machines goes with it.

use age::x25519::Identity;
use anyhow::{Result, ensure};
use crds::etcd_restore::RestorePhase;
use e2e::karmada::works::{has_maps, make_map};
use e2e::restores::{self, Of};
use e2e::{backups, plane_backup};
use serde_json::json;

use crate::member::Member;
use crate::{Backup, NAME, READY, SERVING, Story};

const BACKUP: &str = "to-go-back-to";
/// Made before the backup, and after it.
const KEPT: &str = "before-the-backup";
const LOST: &str = "after-the-backup";

impl Story<'_> {
    /// In earnest; and before, where it has a member, to look at what would become of that one and to go back.
    pub async fn is_set_back_in_its_place(&self, first: &Backup, member: Option<&Member>) -> Result<()> {
        let identity = &first.taken.identity;
        let mark = async |name| make_map(&self.scenario.cluster_client(NAME).await?, name).await;
        let there = async || has_maps(&self.scenario.cluster_client(NAME).await?, [KEPT, LOST]).await;
        mark(KEPT).await?;
        let of = json!({"karmadaDeploymentRef": {"name": NAME}});
        backups::take_of(self.scenario, BACKUP, of, plane_backup::STORAGE, identity).await?;
        mark(LOST).await?;
        let had = match member {
            Some(member) => Some(member.has().await?),
            None => None,
        };
        if member.is_some() {
            self.waits_for_the_word_to_act("looked-at", identity).await?;
            restores::approve(self.scenario, "looked-at", restores::GO_BACK).await?;
            restores::reaches(self.scenario, "looked-at", RestorePhase::Undone, READY).await?;
            self.ready(3).await?;
            ensure!(there().await? == [true, true], "the data of before is not there");
            restores::delete(self.scenario, "looked-at").await?;
            self.scenario.say("it goes on with the data of before");
        }

        self.waits_for_the_word_to_act("back", identity).await?;
        ensure!(there().await? == [true, false], "the data is not the backup's");
        restores::approve(self.scenario, "back", restores::PROPAGATE).await?;
        let restored = restores::reaches(self.scenario, "back", RestorePhase::Succeeded, READY).await?;
        self.ready(3).await?;
        self.stands_on(&[0, 1, 2]).await?;
        if let (Some(member), Some(had)) = (member, had) {
            ensure!(member.has().await? == had, "the member had {had:?}");
            member.gets(self, "restored").await?;
        }
        let (directory, key) = (first.taken.volume.path(), format!("/registry/configmaps/default/{LOST}"));
        let expected = (backups::OF_PLANE_ON_MACHINES, key.as_str());
        restores::what_was_there(self.scenario, &restored, &directory, identity, expected).await?;
        for machine in self.its_machines().await? {
            ensure!(!restores::left(self.scenario, machine).await?.is_empty(), "{} has no old data", machine.name());
        }
        restores::delete(self.scenario, "back").await?;
        restores::nothing_is_left(self.scenario, &self.machines).await?;
        self.scenario.say("it is set back");
        Ok(())
    }

    /// Restores up to the second approval: etcd and the API server have the backup's data, and nothing acts by it.
    async fn waits_for_the_word_to_act(&self, name: &str, identity: &Identity) -> Result<()> {
        let source = json!({"backupRef": {"name": BACKUP}});
        restores::begin(self.scenario, name, Of::Plane(NAME), source, identity).await?;
        restores::reaches(self.scenario, name, RestorePhase::AwaitingApproval, READY).await?;
        self.ready(3).await?;
        restores::serves_the_backup(self.scenario, name, READY).await?;
        for machine in self.its_machines().await? {
            let units = self.units(machine).await?;
            ensure!(units.lines().count() == SERVING, "{} runs {units}", machine.name());
        }
        Ok(())
    }
}
