//! What each value of an enum means, said where `kubectl explain` shows it: in the field's description. The schema of a
//! definition has no other place for it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use schemars::{JsonSchema, Schema, schema_for};
use serde_json::Value;

use crate::ClusterKind;
use crate::addon::{AddonDeletionPolicy, ConflictPolicy};
use crate::backup_storage::ServerSideAlgorithm;
use crate::cluster_deployment::{
    Approval, ContainerRuntimeName, DeletionPolicy, EncryptionProvider, EtcdTopology, FenceReturned, PlannedOperation,
    RecoveryStrategy, TolerationOperator,
};
use crate::configuration::{CpuManagerPolicy, KubeProxyMode, TopologyManagerPolicy};
use crate::drift::DriftRepair;
use crate::etcd_backup::{BackupDeletionPolicy, BackupPhase, VerifyMethod};
use crate::etcd_restore::RestorePhase;
use crate::host::{HostKeyPolicy, HostPhase, QuarantineReason};
use crate::inputs::Severity;
use crate::karmada_deployment::{
    ImagePullPolicy, KarmadaDeletionPolicy, KarmadaMemberPhase, KarmadaMode, KarmadaRestoreStep, OnDeselect,
    ServiceType, SyncMode, UnjoinPolicy, UpgradeCheck, UpgradeStep,
};
use crate::lock::LockMode;
use crate::machine::{DrainReason, MachinePhase};
use crate::machine_request::{OnDelete, RequestAnswer, RequestedMachineState};
use crate::machine_set::{DeletionOrder, MachineSetMode};
use crate::networking::{EndpointProvider, NetworkPluginName};
use crate::node_metadata::TaintEffect;
use crate::placement::LabelOperator;
use crate::playbook_run::{RunPhase, StepPhase};
use crate::remediation_policy::{RemediationAction, UnhealthyCondition};
use crate::step::{Intent, Role};

/// The values of an enum, each with its meaning.
pub(super) type Meanings = Vec<(String, String)>;

/// The enums of the API.
pub(super) fn all() -> Vec<Meanings> {
    vec![
        meanings::<AddonDeletionPolicy>(),
        meanings::<Approval>(),
        meanings::<BackupDeletionPolicy>(),
        meanings::<BackupPhase>(),
        meanings::<VerifyMethod>(),
        meanings::<ClusterKind>(),
        meanings::<ConflictPolicy>(),
        meanings::<ContainerRuntimeName>(),
        meanings::<CpuManagerPolicy>(),
        meanings::<EncryptionProvider>(),
        meanings::<DeletionOrder>(),
        meanings::<DeletionPolicy>(),
        meanings::<DrainReason>(),
        meanings::<DriftRepair>(),
        meanings::<EndpointProvider>(),
        meanings::<EtcdTopology>(),
        meanings::<FenceReturned>(),
        meanings::<HostKeyPolicy>(),
        meanings::<HostPhase>(),
        meanings::<ImagePullPolicy>(),
        meanings::<Intent>(),
        meanings::<KarmadaDeletionPolicy>(),
        meanings::<KarmadaMemberPhase>(),
        meanings::<KarmadaMode>(),
        meanings::<KubeProxyMode>(),
        meanings::<LabelOperator>(),
        meanings::<LockMode>(),
        meanings::<MachinePhase>(),
        meanings::<MachineSetMode>(),
        meanings::<NetworkPluginName>(),
        meanings::<OnDelete>(),
        meanings::<OnDeselect>(),
        meanings::<PlannedOperation>(),
        meanings::<QuarantineReason>(),
        meanings::<RecoveryStrategy>(),
        meanings::<RemediationAction>(),
        meanings::<RequestAnswer>(),
        meanings::<RequestedMachineState>(),
        meanings::<RestorePhase>(),
        meanings::<Role>(),
        meanings::<RunPhase>(),
        meanings::<ServerSideAlgorithm>(),
        meanings::<ServiceType>(),
        meanings::<Severity>(),
        meanings::<StepPhase>(),
        meanings::<SyncMode>(),
        meanings::<TaintEffect>(),
        meanings::<TolerationOperator>(),
        meanings::<TopologyManagerPolicy>(),
        meanings::<UnhealthyCondition>(),
        meanings::<UnjoinPolicy>(),
        meanings::<UpgradeCheck>(),
        meanings::<KarmadaRestoreStep>(),
        meanings::<UpgradeStep>(),
    ]
}

fn meanings<T: JsonSchema>() -> Meanings {
    values(&schema_for!(T))
}

fn values(schema: &Schema) -> Meanings {
    let variants = schema.get("oneOf").and_then(Value::as_array);
    let text = |variant: &Value, key: &str| variant.get(key).and_then(Value::as_str).map(str::to_owned);
    let value = |variant: &Value| Some((text(variant, "const")?, text(variant, "description")?));
    variants.into_iter().flatten().filter_map(value).collect()
}

/// Puts the meanings into the descriptions of a schema and of all that is in it.
pub(super) fn explain(schema: &mut JSONSchemaProps, meanings: &[Meanings]) {
    let values: Vec<&str> = schema.enum_.iter().flatten().filter_map(|value| value.0.as_str()).collect();
    let found =
        meanings.iter().find(|meanings| meanings.iter().map(|(value, _)| value.as_str()).eq(values.iter().copied()));
    if let Some(found) = found.filter(|found| !found.is_empty()) {
        let lines = found.iter().map(|(value, meaning)| {
            let meaning: Vec<&str> = meaning.split_whitespace().collect();
            format!("- `{value}`: {}", meaning.join(" "))
        });
        let own = schema.description.take();
        schema.description = Some(own.into_iter().chain(lines).collect::<Vec<_>>().join("\n"));
    }
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        explain(property, meanings);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => explain(items, meanings),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => {
            items.iter_mut().for_each(|items| explain(items, meanings));
        }
        None => {}
    }
    match &mut schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(values)) => explain(values, meanings),
        Some(JSONSchemaPropsOrBool::Bool(_)) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    /// Paths of enums whose description does not say what a value means.
    fn unexplained(schema: &Value, path: &str, found: &mut Vec<String>) {
        if !schema.is_object() {
            return;
        }
        let description = schema["description"].as_str().unwrap_or_default();
        for value in schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !description.contains(&format!("- `{value}`: ")) {
                found.push(format!("{path}: {value}"));
            }
        }
        let fields = schema["properties"].as_object().into_iter().flatten();
        let fields = fields.map(|(name, field)| (format!("{path}.{name}"), field));
        let inner = ["items", "additionalProperties"].map(|key| (format!("{path}[]"), &schema[key]));
        for (path, schema) in fields.chain(inner) {
            unexplained(schema, &path, found);
        }
    }

    #[test]
    fn no_two_enums_have_the_same_values_in_the_same_order_by_which_their_meanings_are_found() {
        let mut seen = std::collections::BTreeSet::new();
        for meanings in super::all() {
            let values: Vec<String> = meanings.into_iter().map(|(value, _)| value).collect();
            assert!(seen.insert(values.clone()), "{values:?}");
        }
    }

    #[test]
    fn kubectl_explain_says_what_each_value_of_an_enum_means() {
        let mut found = Vec::new();
        for definition in crate::manifests::all() {
            let definition = serde_json::to_value(&definition).unwrap();
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let kind = definition["spec"]["names"]["kind"].as_str().unwrap_or_default();
            unexplained(schema, kind, &mut found);
        }
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
