//! What of a container is not as the Pod Security Standard `restricted` has it, by which all Pods of a plane are. What
//! a container does not say is filled in, or is that of its Pod.

use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Probe, SecurityContext};

/// The only capability that may be added.
const CAPABILITY: &str = "NET_BIND_SERVICE";
const PROFILES: &[&str] = &["RuntimeDefault", "Localhost"];
const SELINUX_TYPES: &[&str] = &["container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// The first such thing: the field, its value, and what is allowed.
pub(super) fn violation(container: &Container) -> Option<String> {
    let context = container.security_context.as_ref();
    context.and_then(in_context).or_else(|| host_port(container)).or_else(|| host_in_handler(container))
}

fn said(field: &str, value: &str, allowed: &[&str]) -> String {
    let allowed = match allowed {
        [] => "leave it out".to_owned(),
        allowed => format!("allowed is {}, or leave it out", allowed.join(" or ")),
    };
    format!("{field} is {value}, and Pods of a plane keep the Pod Security Standard restricted: {allowed}")
}

fn in_context(context: &SecurityContext) -> Option<String> {
    let windows = context.windows_options.as_ref().and_then(|options| options.host_process);
    let flags = [
        ("allowPrivilegeEscalation", context.allow_privilege_escalation, false),
        ("privileged", context.privileged, false),
        ("runAsNonRoot", context.run_as_non_root, true),
        ("windowsOptions.hostProcess", windows, false),
    ];
    let selinux = context.se_linux_options.as_ref();
    let text = |given: &Option<String>| given.clone().filter(|text| !text.is_empty());
    let texts = [
        ("procMount", text(&context.proc_mount), &["Default"][..]),
        ("seccompProfile.type", context.seccomp_profile.as_ref().map(|profile| profile.type_.clone()), PROFILES),
        ("appArmorProfile.type", context.app_armor_profile.as_ref().map(|profile| profile.type_.clone()), PROFILES),
        ("seLinuxOptions.type", selinux.and_then(|options| text(&options.type_)), SELINUX_TYPES),
        ("seLinuxOptions.user", selinux.and_then(|options| text(&options.user)), &[]),
        ("seLinuxOptions.role", selinux.and_then(|options| text(&options.role)), &[]),
    ];
    let in_context =
        |field: &str, value: &str, allowed: &[&str]| said(&format!("securityContext.{field}"), value, allowed);
    let flag = flags.into_iter().find_map(|(field, given, allowed)| {
        let given = given.filter(|given| *given != allowed)?;
        Some(in_context(field, &given.to_string(), &[&allowed.to_string()]))
    });
    let text = || {
        texts.into_iter().find_map(|(field, given, allowed)| {
            let given = given.filter(|given| !allowed.contains(&given.as_str()))?;
            Some(in_context(field, &given, allowed))
        })
    };
    let user = || (context.run_as_user == Some(0)).then(|| in_context("runAsUser", "0", &["another user than root"]));
    flag.or_else(text).or_else(user).or_else(|| {
        let capabilities = context.capabilities.as_ref()?;
        let added = capabilities.add.iter().flatten().find(|added| *added != CAPABILITY);
        let added = added.map(|added| in_context("capabilities.add", added, &[CAPABILITY]));
        let keeps = capabilities.drop.as_ref().filter(|dropped| !dropped.iter().any(|one| one == "ALL"));
        added.or_else(|| Some(in_context("capabilities.drop", &format!("[{}]", keeps?.join(", ")), &["[ALL]"])))
    })
}

fn host_port(container: &Container) -> Option<String> {
    let mut ports = container.ports.iter().flatten();
    let port = ports.find_map(|port| port.host_port.filter(|port| *port != 0))?;
    Some(said("ports[].hostPort", &port.to_string(), &[]))
}

/// A host that a probe or a hook asks in place of its own Pod.
fn host_in_handler(container: &Container) -> Option<String> {
    let probes = [
        ("livenessProbe", &container.liveness_probe),
        ("readinessProbe", &container.readiness_probe),
        ("startupProbe", &container.startup_probe),
    ];
    let of_probe = |probe: &Probe| {
        let http = probe.http_get.as_ref().and_then(|asked| asked.host.clone());
        http.or_else(|| probe.tcp_socket.as_ref().and_then(|asked| asked.host.clone()))
    };
    let of_hook = |hook: &LifecycleHandler| {
        let http = hook.http_get.as_ref().and_then(|asked| asked.host.clone());
        http.or_else(|| hook.tcp_socket.as_ref().and_then(|asked| asked.host.clone()))
    };
    let lifecycle = container.lifecycle.as_ref();
    let hooks = [
        ("lifecycle.postStart", lifecycle.and_then(|hooks| hooks.post_start.as_ref())),
        ("lifecycle.preStop", lifecycle.and_then(|hooks| hooks.pre_stop.as_ref())),
    ];
    let asked = probes.into_iter().map(|(field, probe)| (field, probe.as_ref().and_then(of_probe)));
    let mut asked = asked.chain(hooks.into_iter().map(|(field, hook)| (field, hook.and_then(of_hook))));
    let (field, host) = asked.find_map(|(field, host)| Some((field, host.filter(|host| !host.is_empty())?)))?;
    Some(said(&format!("the host of {field}"), &host, &[]))
}
