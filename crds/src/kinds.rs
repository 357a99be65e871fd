//! The kinds of the group: the list from which everything follows that must know all of them.

/// Calls the macro of this name with the types of all kinds, in the order in which the documentation shows them.
#[macro_export]
macro_rules! for_every_kind {
    ($each:ident) => {
        $each! {
            $crate::Host,
            $crate::HostPool,
            $crate::ClusterDeployment,
            $crate::MachineSet,
            $crate::Machine,
            $crate::MachineRequest,
            $crate::Cluster,
            $crate::PlaybookRun,
            $crate::RemediationPolicy,
            $crate::BackupStorage,
            $crate::EtcdBackup,
            $crate::EtcdBackupSchedule,
            $crate::EtcdRestore,
            $crate::Addon,
            $crate::ClusterAddon,
            $crate::KarmadaDeployment
        }
    };
}
