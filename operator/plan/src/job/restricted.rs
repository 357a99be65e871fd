//! A Pod of the executor's image that Pod Security's `restricted` admits, and that gets no token by itself.

use k8s_openapi::api::core::v1::{
    Capabilities, Container, PodSecurityContext, PodSpec, SeccompProfile, SecurityContext, VolumeMount,
};

/// Name of the executor's container.
pub const CONTAINER: &str = "executor";

/// The image's user.
const USER: i64 = 65532;

/// A Pod that runs once.
pub(crate) fn pod() -> PodSpec {
    PodSpec {
        restart_policy: Some("Never".into()),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            fs_group: Some(USER),
            seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".into(), localhost_profile: None }),
            ..PodSecurityContext::default()
        }),
        ..PodSpec::default()
    }
}

/// Its container, whose last words are in its termination message.
pub(crate) fn container(image: &str) -> Container {
    Container {
        name: CONTAINER.into(),
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".into()),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities { add: None, drop: Some(vec!["ALL".into()]) }),
            ..SecurityContext::default()
        }),
        termination_message_policy: Some("File".into()),
        ..Container::default()
    }
}

/// A volume of the Pod in its container.
pub(crate) fn mount(name: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount { name: name.into(), mount_path: path.into(), read_only: Some(read_only), ..VolumeMount::default() }
}
