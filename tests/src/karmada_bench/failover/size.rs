//! How much runs in the member that dies.

use std::time::Duration;

use clap::ValueEnum;

/// How much runs in the member that dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// 200 Pods: to see that it works, on a machine that has other work.
    Xs,
    /// 4 000 Pods.
    S,
    /// 20 000 Pods.
    M,
    /// 40 000 Pods.
    L,
}

/// What runs there, and in the end in the other member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Nodes of each member.
    pub nodes: usize,
    /// Deployments, each of which has a ResourceBinding.
    pub deployments: usize,
    /// Pods of each Deployment.
    pub replicas: usize,
}

impl Size {
    pub fn load(self) -> Load {
        match self {
            Self::Xs => Load { nodes: 10, deployments: 10, replicas: 20 },
            Self::S => Load { nodes: 200, deployments: 100, replicas: 40 },
            Self::M => Load { nodes: 1000, deployments: 250, replicas: 80 },
            Self::L => Load { nodes: 2000, deployments: 400, replicas: 100 },
        }
    }

    /// How long each part may take, on two cores that have other work, too.
    pub fn deadline(self) -> Duration {
        Duration::from_secs(match self {
            Self::Xs | Self::S => 1200,
            Self::M => 3600,
            Self::L => 7200,
        })
    }
}

impl Load {
    /// Pods in all.
    pub fn pods(&self) -> usize {
        self.deployments * self.replicas
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::Size;
    use crate::karmada_bench::kubelets::PODS_OF_NODE;

    #[test]
    fn every_load_fits_on_its_nodes() {
        let pods: Vec<usize> = Size::value_variants().iter().map(|size| size.load().pods()).collect();
        assert_eq!(pods, [200, 4_000, 20_000, 40_000]);
        for load in Size::value_variants().iter().map(|size| size.load()) {
            assert!(load.pods() <= load.nodes * PODS_OF_NODE, "{load:?}");
        }
    }
}
