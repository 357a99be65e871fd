//! The plane is set back in its place to a backup that Pods of its host fetch from a bucket. The member runs on what it
//! runs; nothing acts before that is approved, and until then the data of before comes back for a word.

use age::x25519::Identity;
use anyhow::{Result, ensure};
use crds::etcd_restore::RestorePhase;
use e2e::backups;
use e2e::karmada::works::{has_maps, make_map};
use e2e::object_storage::ObjectStorage;
use e2e::restores::{self, Of};
use serde_json::json;

use crate::{NAME, READY, SEEN, Story, members};

const STORAGE: &str = "bucket";
const BACKUP: &str = "in-bucket";
/// Made before the backup, and after it.
const KEPT: &str = "before-the-backup";
const LOST: &str = "after-the-backup";

impl Story<'_> {
    /// Once to look at what would become of members and to go back; once in earnest.
    pub async fn is_set_back_in_its_place(&self) -> Result<()> {
        let bucket = ObjectStorage::start().await?;
        for object in bucket.objects(&self.scenario.name, STORAGE) {
            self.scenario.apply(&object).await?;
        }
        backups::storage_is(self.scenario, STORAGE, "True", SEEN).await?;
        let identity = Identity::generate();
        let mark = async |name| make_map(&self.scenario.cluster_client(NAME).await?, name).await;
        let there = async || has_maps(&self.scenario.cluster_client(NAME).await?, [KEPT, LOST]).await;
        mark(KEPT).await?;
        let of = json!({"karmadaDeploymentRef": {"name": NAME}});
        backups::take_of(self.scenario, BACKUP, of, STORAGE, &identity).await?;
        mark(LOST).await?;
        let running = self.member.runs(members::OF_PULL).await?;

        self.waits_for_the_word_to_act("looked-at", &identity).await?;
        restores::approve(self.scenario, "looked-at", restores::GO_BACK).await?;
        restores::reaches(self.scenario, "looked-at", RestorePhase::Undone, READY).await?;
        self.ready().await?;
        ensure!(there().await? == [true, true], "the data of before is not there");
        self.scenario.say("it goes on with the data of before");

        self.waits_for_the_word_to_act("back", &identity).await?;
        ensure!(there().await? == [true, false], "the data is not the backup's");
        ensure!(self.member.runs(members::OF_PULL).await? == running, "the member runs other Pods than {running:?}");
        restores::approve(self.scenario, "back", restores::PROPAGATE).await?;
        let restored = restores::reaches(self.scenario, "back", RestorePhase::Succeeded, READY).await?;
        self.ready().await?;
        ensure!(self.host.pods_of("etcd").await?.len() == 3, "etcd has other than three Pods");
        ensure!(self.member.runs(members::OF_PULL).await? == running, "the member runs other Pods than {running:?}");
        self.sees_them_ready(members::OF_PULL).await?;
        self.changes_reach_the_pull_member("web-restored").await?;

        let (directory, key) = (bucket.bucket().join("etcd"), format!("/registry/configmaps/default/{LOST}"));
        let expected = (backups::OF_PLANE_IN_PODS, key.as_str());
        restores::what_was_there(self.scenario, &restored, &directory, &identity, expected).await?;
        self.scenario.say("it is set back, and its member runs what it ran");
        Ok(())
    }

    /// Restores up to the second approval: etcd and the API server have the backup's data, and no scheduler runs.
    async fn waits_for_the_word_to_act(&self, name: &str, identity: &Identity) -> Result<()> {
        let source = json!({"backupRef": {"name": BACKUP}});
        restores::begin(self.scenario, name, Of::Plane(NAME), source, identity).await?;
        restores::reaches(self.scenario, name, RestorePhase::AwaitingApproval, SEEN).await?;
        self.ready().await?;
        restores::serves_the_backup(self.scenario, name, READY).await?;
        for component in ["karmada-scheduler", "karmada-controller-manager", "kube-controller-manager"] {
            let pods = self.host.pods_of(component).await?;
            ensure!(pods.is_empty(), "{component} acts before that is approved: {pods:?}");
        }
        Ok(())
    }
}
