//! The part of API server, controller-manager and scheduler: one, since a control plane has all of it or nothing. What
//! is referred to is not in it: `files` has that.

use std::collections::BTreeMap;

use crds::ClusterDeployment;
use crds::configuration::{
    AdmissionPlugins, ApiServerSettings, AuditSettings, Configuration, ControllerManagerSettings, FlagValue,
    SchedulerSettings,
};
use serde_json::{Map, Value, json};

use super::files::{AUDIT_POLICY, AUTHENTICATION, SCHEDULER};
use super::merge;

/// Where the API servers write their audit log.
const AUDIT_LOG: &str = "/var/log/kubernetes/audit/audit.log";
const MAX_AGE_DAYS: i32 = 30;
const MAX_BACKUPS: i32 = 10;
const MAX_SIZE_MEGABYTES: i32 = 100;
/// The plugin that kubeadm turns on beside Kubernetes' own.
const NODE_RESTRICTION: &str = "NodeRestriction";

/// Flags and their values, by name.
type Flags = BTreeMap<String, String>;

pub(super) fn wanted(deployment: &ClusterDeployment, _set: Option<&str>) -> Option<Value> {
    let Configuration { api_server, controller_manager, scheduler, .. } = deployment.spec.configuration.as_ref()?;
    let parts = [
        ("apiServer", api_server.as_ref().map(|settings| json!(settings))),
        ("controllerManager", controller_manager.as_ref().map(|settings| json!(settings))),
        ("scheduler", scheduler.as_ref().map(|settings| json!(settings))),
    ];
    let parts = parts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), merge::unless_empty(value?)?)));
    merge::unless_empty(Value::Object(parts.collect()))
}

/// The flags of each component, in the order of their names.
pub(super) fn lower(deployment: &ClusterDeployment, _: Value) -> Value {
    let configuration = deployment.spec.configuration.clone().unwrap_or_default();
    let flags = [
        ("apiserver", configuration.api_server.as_ref().map(of_api_server)),
        ("controller_manager", configuration.controller_manager.as_ref().map(of_controller_manager)),
        ("scheduler", configuration.scheduler.as_ref().map(of_scheduler)),
    ];
    let lowered = flags.into_iter().map(|(name, flags)| (name.to_owned(), arguments(flags.unwrap_or_default())));
    Value::Object(lowered.collect::<Map<String, Value>>())
}

fn arguments(flags: Flags) -> Value {
    flags.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

fn of_api_server(settings: &ApiServerSettings) -> Flags {
    let seconds = |seconds: Option<i32>| seconds.map(|seconds| format!("{seconds}s"));
    let number = |number: Option<i32>| number.map(|number| number.to_string());
    let typed = [
        ("request-timeout", seconds(settings.request_timeout_seconds)),
        ("event-ttl", seconds(settings.event_ttl_seconds)),
        ("max-requests-inflight", number(settings.max_requests_inflight)),
        ("max-mutating-requests-inflight", number(settings.max_mutating_requests_inflight)),
        ("goaway-chance", settings.goaway_chance.clone()),
        ("shutdown-delay-duration", seconds(settings.shutdown_delay_seconds)),
        ("feature-gates", gates(&settings.feature_gates)),
        ("authentication-config", settings.authentication_ref.as_ref().map(|_| AUTHENTICATION.path())),
    ];
    let audit = settings.audit.as_ref().map(audit).into_iter().flatten();
    let plugins = settings.admission_plugins.as_ref().map(plugins).into_iter().flatten();
    given(typed).chain(audit).chain(plugins).chain(extra(&settings.extra_args)).collect()
}

/// Without limits of its own a log would fill the disk.
fn audit(settings: &AuditSettings) -> Flags {
    let number = |number: Option<i32>, default: i32| Some(number.unwrap_or(default).to_string());
    given([
        ("audit-policy-file", Some(AUDIT_POLICY.path())),
        ("audit-log-path", Some(AUDIT_LOG.to_owned())),
        ("audit-log-maxage", number(settings.max_age_days, MAX_AGE_DAYS)),
        ("audit-log-maxbackup", number(settings.max_backups, MAX_BACKUPS)),
        ("audit-log-maxsize", number(settings.max_size_megabytes, MAX_SIZE_MEGABYTES)),
    ])
    .collect()
}

fn plugins(settings: &AdmissionPlugins) -> Flags {
    let others = settings.enable.iter().map(String::as_str).filter(|name| *name != NODE_RESTRICTION);
    let enable: Vec<&str> = [NODE_RESTRICTION].into_iter().chain(others).collect();
    given([
        ("enable-admission-plugins", (enable.len() > 1).then(|| enable.join(","))),
        ("disable-admission-plugins", (!settings.disable.is_empty()).then(|| settings.disable.join(","))),
    ])
    .collect()
}

fn of_controller_manager(settings: &ControllerManagerSettings) -> Flags {
    let typed = [
        ("node-monitor-grace-period", settings.node_monitor_grace_period_seconds.map(|seconds| format!("{seconds}s"))),
        ("terminated-pod-gc-threshold", settings.terminated_pod_gc_threshold.map(|number| number.to_string())),
        ("feature-gates", gates(&settings.feature_gates)),
    ];
    given(typed).chain(extra(&settings.extra_args)).collect()
}

fn of_scheduler(settings: &SchedulerSettings) -> Flags {
    let typed = [
        ("config", settings.configuration_ref.as_ref().map(|_| SCHEDULER.path())),
        ("feature-gates", gates(&settings.feature_gates)),
    ];
    given(typed).chain(extra(&settings.extra_args)).collect()
}

fn given<const N: usize>(flags: [(&str, Option<String>); N]) -> impl Iterator<Item = (String, String)> {
    flags.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect::<Vec<_>>().into_iter()
}

fn extra(flags: &BTreeMap<String, FlagValue>) -> impl Iterator<Item = (String, String)> {
    flags.iter().map(|(name, value)| (name.clone(), value.0.clone()))
}

/// `A=true,B=false`, none for none.
fn gates(gates: &BTreeMap<String, bool>) -> Option<String> {
    let pairs: Vec<String> = gates.iter().map(|(name, is_on)| format!("{name}={is_on}")).collect();
    (!pairs.is_empty()).then(|| pairs.join(","))
}
