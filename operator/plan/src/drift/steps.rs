//! Which steps a machine is compared by: one table.

use crds::step::{Role, Step};

/// Whether machines are compared by a step's probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// On machines of these roles.
    On(&'static [Role]),
    /// On none, and why.
    Not(&'static str),
}

const ALL: &[Role] = &[Role::ControlPlane, Role::Etcd, Role::Worker];
const NODES: &[Role] = &[Role::ControlPlane, Role::Worker];
const DONE_ONCE: Compared = Compared::Not("it is done once, and leaves nothing that could differ");
const LOOKS: Compared = Compared::Not("it looks, and brings nothing");

impl Compared {
    /// By which step. Where etcd is, or who holds the endpoint, leaves out some of them.
    pub fn by(step: Step) -> Self {
        match step {
            Step::BootstrapOs | Step::Prepare => Compared::On(ALL),
            Step::ContainerRuntime | Step::Network => Compared::On(NODES),
            Step::Etcd => Compared::On(&[Role::ControlPlane, Role::Etcd]),
            Step::ControlPlane | Step::EtcdEndpoints | Step::LoadBalancer => Compared::On(&[Role::ControlPlane]),
            Step::Node => Compared::On(&[Role::Worker]),
            Step::Preflight | Step::PreflightUpgrade => {
                Compared::Not("it judges a machine before something is done to it, and would judge what serves")
            }
            Step::Addons | Step::Coredns => {
                Compared::Not("it is about objects of the cluster, and not about a machine")
            }
            Step::PostInstall => Compared::Not("its probe makes Pods"),
            Step::ControlPlaneConfiguration => Compared::Not("it is a part of control-plane"),
            Step::KubeletConfiguration => Compared::Not("it is a part of control-plane and of node"),
            Step::KubeadmUpgrade => Compared::Not(
                "its probe runs kubeadm; the kubelet's configuration is a part of control-plane and of node",
            ),
            Step::Prefetch => Compared::Not("what it brings is used once, and may be removed"),
            Step::CertificateAuthorities | Step::RestartPods | Step::KmsPlugin | Step::RewriteSecrets => Compared::Not(
                "without the cluster's keys nobody can tell; condition AuthoritiesRotated tells of rotations",
            ),
            Step::RenewCertificates => Compared::Not("condition CertificatesValid tells when certificates end"),
            Step::KarmadaPrograms | Step::KarmadaBalancer | Step::KarmadaService => {
                Compared::Not("it is for Karmada control planes, whose services probe-karmada looks at")
            }
            Step::ProbeHost | Step::ProbeEtcd | Step::ProbeCertificates | Step::ProbeKarmada | Step::ReadKubeconfig => {
                LOOKS
            }
            Step::RemoveEtcdMember
            | Step::RecoverEtcd
            | Step::RestartServices
            | Step::Reboot
            | Step::Reset
            | Step::Fence
            | Step::DefragmentEtcd
            | Step::BackupEtcd
            | Step::StageBackup
            | Step::HoldControlPlane
            | Step::RestoreEtcd
            | Step::UndoRestore
            | Step::ReleaseControlPlane
            | Step::RemoveOldData => DONE_ONCE,
            Step::Custom(_) => Compared::Not("a playbook of the user's may have no probe, or one that disturbs"),
        }
    }

    /// Whether machines of a role are.
    pub fn is_on(self, role: Role) -> bool {
        matches!(self, Compared::On(roles) if roles.contains(&role))
    }
}

/// Whether something that serves may restart where a step is played again.
pub fn restarts(step: Step) -> bool {
    step.spec().disruptive || step == Step::ControlPlane
}

#[cfg(test)]
mod tests {
    use crds::step::{CustomStep, Intent, Step};

    use super::Compared;

    #[test]
    fn a_comparison_may_have_the_steps_that_machines_are_compared_by_and_no_others() {
        let custom = CustomStep::new("x").map(Step::Custom);
        for step in Step::ALL.into_iter().chain(custom) {
            let is_compared = matches!(Compared::by(step), Compared::On(_));
            assert_eq!(step.is_allowed_in(Intent::Compare), is_compared, "{step}");
            // What is found is repaired by the operator's own runs, and by a person's.
            assert!(!is_compared || step.is_allowed_in(Intent::Configure), "{step}");
            assert!(!is_compared || step.is_allowed_in(Intent::Custom), "{step}");
        }
    }

    #[test]
    fn the_page_for_administrators_names_every_step_and_why_it_is_left_out() {
        let page = std::fs::read_to_string("../../docs/operations/drift.md").unwrap();
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        for step in Step::ALL {
            assert!(page.contains(&format!("`{step}`")), "{step}");
            if let Compared::Not(why) = Compared::by(step) {
                assert!(page.contains(why), "{step}: {why}");
            }
        }
    }
}
