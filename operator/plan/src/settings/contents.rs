//! What ConfigMaps and Secrets hold that the spec refers to: another content is rolled out as an edit is. The files of
//! `configuration` are not among them: they have [a table of their own](crate::configuration::files::FILES).

use crds::step::Step;

use super::differences::Difference;

/// What an object holds that the spec refers to.
pub struct Content {
    /// The field of the spec that names the object.
    pub reference: &'static str,
    /// What it is called in messages.
    pub title: &'static str,
    /// The step that brings another one.
    pub step: Step,
    /// Whether that waits for an approval and a window, where they are wanted.
    pub is_disruptive: bool,
}

/// The manifests of the network plugin.
pub const NETWORK: Content = Content {
    reference: "networking.plugin.manifestsRef",
    title: "networking.plugin.manifestsRef",
    step: Step::Network,
    is_disruptive: Step::Network.spec().disruptive,
};

/// The certificates of an external etcd's client. One that was renewed is needed before the old one ends, whoever
/// approves of what, and in any hour.
pub const ETCD_CLIENT: Content = Content {
    reference: "etcd.secretRef",
    title: "content of etcd.secretRef",
    step: Step::EtcdEndpoints,
    is_disruptive: false,
};

/// The name in statuses of what mirrors of registries refer to, beside those of the parts of the configuration.
pub const REGISTRIES: &str = "registries";

/// The authority of a registry's mirrors. containerd reads it at each pull.
pub const REGISTRY_CA: Content = Content {
    reference: "containerRuntime.registryMirrors[].caRef",
    title: "content of the references of containerRuntime.registryMirrors",
    step: Step::ContainerRuntime,
    is_disruptive: false,
};

/// The login of a registry's mirrors.
pub const REGISTRY_LOGIN: Content =
    Content { reference: "containerRuntime.registryMirrors[].credentialsRef", ..REGISTRY_CA };

/// All of them.
pub const CONTENTS: [Content; 4] = [NETWORK, ETCD_CLIENT, REGISTRY_CA, REGISTRY_LOGIN];

impl Content {
    /// How what was applied differs from what is wanted, both as digests, if it does.
    pub fn difference(&self, applied: Option<&String>, wanted: &str) -> Option<Difference> {
        let difference = Difference::between(self.title, self.step, applied, wanted)?;
        Some(Difference { is_disruptive: self.is_disruptive, ..difference })
    }
}
