//! When in a step a fault strikes, and how long its outage lasts: both follow from the seed alone, so that a seed can
//! be repeated.

use std::time::Duration;

use crds::step::Step;

use super::fault::{Fault, Place};

/// From so many tries on the fault strikes at the very beginning of the step.
pub const AT_ONCE: u32 = 2;

/// The choices of one seed.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    seed: u64,
}

impl Schedule {
    /// The choices of this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// How long after the step's first command the fault strikes. After a try that came too late it is earlier by half,
    /// then at once.
    pub fn moment(self, fault: Fault, place: Place, tries: u32) -> Duration {
        let part = match tries {
            0 => 1.0,
            1 => 0.5,
            AT_ONCE.. => 0.0,
        };
        typical_length(place.step).mul_f64(part * self.share("moment", fault, place))
    }

    /// How long what the fault takes away stays away.
    pub fn outage(self, fault: Fault, place: Place) -> Duration {
        let (shortest, longest) = match fault {
            // From what SSH does not notice to what ends every connection.
            Fault::NetworkCut => (3.0, 45.0),
            // The lease is 15 s.
            Fault::OperatorStopped => (18.0, 28.0),
            Fault::PowerLost => (0.5, 12.0),
            _ => (0.0, 0.0),
        };
        Duration::from_secs_f64(shortest + (longest - shortest) * self.share("outage", fault, place))
    }

    /// A number from 0 to 1 that belongs to these words and to no others.
    fn share(self, what: &str, fault: Fault, place: Place) -> f64 {
        let mut state = self.seed;
        for byte in format!("{what} {} {place}", fault.name()).bytes() {
            state = mix(state ^ u64::from(byte));
        }
        // 53 bits are what an f64 holds exactly.
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// splitmix64.
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// How long the step takes on a machine of the lab, from its first command to its last.
fn typical_length(step: Step) -> Duration {
    let milliseconds = match step {
        Step::BootstrapOs => 250,
        Step::Preflight => 350,
        Step::Prepare => 180,
        Step::ContainerRuntime => 3500,
        Step::Etcd => 1800,
        Step::ControlPlane => 7000,
        Step::Node => 2500,
        Step::Network => 800,
        Step::Addons => 2500,
        Step::PostInstall => 3000,
        Step::LoadBalancer
        | Step::Fence
        | Step::RemoveEtcdMember
        | Step::EtcdEndpoints
        | Step::RecoverEtcd
        | Step::RestartServices
        | Step::Reboot
        | Step::Reset
        | Step::ProbeHost
        | Step::ProbeEtcd
        | Step::ProbeCertificates
        | Step::RenewCertificates
        | Step::DefragmentEtcd
        | Step::BackupEtcd
        | Step::StageBackup
        | Step::HoldControlPlane
        | Step::RestoreEtcd
        | Step::UndoRestore
        | Step::ReleaseControlPlane
        | Step::RemoveOldData
        | Step::PreflightUpgrade
        | Step::Prefetch
        | Step::KubeadmUpgrade
        | Step::ControlPlaneConfiguration
        | Step::KubeletConfiguration
        | Step::CertificateAuthorities
        | Step::RestartPods
        | Step::KmsPlugin
        | Step::RewriteSecrets
        | Step::Coredns
        | Step::KarmadaPrograms
        | Step::KarmadaBalancer
        | Step::KarmadaService
        | Step::ProbeKarmada
        | Step::ReadKubeconfig
        | Step::Custom(_) => 500,
    };
    Duration::from_millis(milliseconds)
}

#[cfg(test)]
mod tests {
    use super::{AT_ONCE, Fault, Place, Schedule, typical_length};

    #[test]
    fn the_same_seed_strikes_at_the_same_moments_and_another_at_others() {
        let moments = |seed| -> Vec<_> {
            let of = |fault: Fault| fault.places().into_iter().map(move |place| (fault, place));
            let all = Fault::ALL.into_iter().flat_map(of);
            all.map(|(fault, place)| Schedule::new(seed).moment(fault, place, 0)).collect()
        };
        assert_eq!(moments(7), moments(7));
        assert_ne!(moments(7), moments(8));
    }

    #[test]
    fn a_moment_is_within_its_step_and_moments_spread_over_it() {
        let shares: Vec<f64> = (0..1000)
            .map(|seed| {
                let moment = Schedule::new(seed).moment(Fault::PodKilled, Place::LONGEST, 0);
                moment.as_secs_f64() / typical_length(Place::LONGEST.step).as_secs_f64()
            })
            .collect();
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
        for tenth in 0..10 {
            let within = |share: &&f64| **share >= f64::from(tenth) / 10.0 && **share < f64::from(tenth + 1) / 10.0;
            assert!(shares.iter().filter(within).count() > 50, "tenth {tenth}");
        }
    }

    #[test]
    fn a_further_try_is_earlier_and_the_last_ones_are_at_once() {
        let moment = |tries| Schedule::new(3).moment(Fault::PodKilled, Place::LONGEST, tries);
        assert!(moment(1) < moment(0) && moment(AT_ONCE) < moment(1));
        assert!(moment(AT_ONCE).is_zero() && moment(AT_ONCE + 7).is_zero());
    }

    #[test]
    fn an_operator_is_stopped_for_longer_than_its_lease() {
        for place in Place::all() {
            assert!(Schedule::new(1).outage(Fault::OperatorStopped, place).as_secs() >= 18);
        }
    }
}
