//! The result of one host: counts, the failure, and the findings of its tasks.

use crds::Reason;
use crds::drift::{DIFFERENCE_LIMIT, MOST_DIFFERENCES, StepDifference};
use crds::host::HostFacts;
use crds::inputs::{PreflightFinding, Severity};
use crds::playbook_run::{HostFailure, HostResult};
use crds::step::{Role, Step};
use serde_json::Value;

use super::certificates::certificates;
use super::etcd::etcd;
use super::parts::{brought, parts};
use super::text::{MESSAGE_LIMIT, task_name};
use crate::event::{HostStats, TaskResult, TaskStatus};
use crate::guard;
use crate::sanitize::{clean, name, reason};
use crate::unreachable::{self, Unreachable};

const FINDINGS_LIMIT: usize = 32;
const LEFTOVERS_LIMIT: usize = 16;

/// One host.
#[derive(Clone, Debug)]
pub(super) struct Host {
    pub result: HostResult,
    /// Its role in its cluster.
    pub role: Role,
    /// A control plane or etcd member: the run stops without it.
    pub critical: bool,
    /// In which order the hosts failed; none: its failure is that others did.
    pub failed_at: Option<u64>,
    /// Why nothing can be done on it, as found before Ansible started.
    pub blocked: Option<Unreachable>,
    /// The failure was in an earlier play than the one that runs.
    old_failure: bool,
}

impl Host {
    pub(super) fn new(name: &str, role: Role, critical: bool) -> Self {
        let result = HostResult { name: name.to_owned(), ..HostResult::default() };
        Self { result, role, critical, failed_at: None, blocked: None, old_failure: false }
    }

    pub(super) fn next_play(&mut self) {
        self.old_failure = self.result.failure.is_some();
    }

    pub(super) fn take(&mut self, result: &TaskResult, step: &str, probe: bool, number: u64) {
        if self.old_failure && self.result.failure.is_some() {
            // Failed hosts are in no later play: a rescue had caught it.
            self.result.failure = None;
            self.result.unreachable = false;
            self.old_failure = false;
        }
        if let Some(finding) = &result.finding {
            self.find(finding);
        }
        match result.status {
            TaskStatus::Ok => {
                self.result.ok = self.result.ok.saturating_add(1);
                if result.changed && !probe {
                    self.result.changed = self.result.changed.saturating_add(1);
                }
            }
            TaskStatus::Skipped => {}
            TaskStatus::Failed | TaskStatus::Unreachable if result.ignored => {}
            TaskStatus::Failed => {
                self.result.failed = self.result.failed.saturating_add(1);
                if let Some((reason, message)) = guard::said(&result.message) {
                    self.fail(step, &result.task, reason.into(), &message, number);
                    return;
                }
                let reason = reason(result.reason.as_deref().unwrap_or_default(), Reason::TaskFailed);
                let message =
                    if result.message.is_empty() { "it gave no message: see the run's log" } else { &result.message };
                self.fail(step, &result.task, reason, message, number);
            }
            TaskStatus::Unreachable => {
                // It was not contacted again: what was found before is the reason.
                let why = self.blocked.clone().unwrap_or_else(|| unreachable::explain(&result.message));
                self.result.unreachable = !guard::answers(why.reason.as_str());
                self.fail(step, &result.task, why.reason.into(), &why.message, number);
                if why.reason == Reason::NotReached {
                    self.failed_at = None;
                }
            }
        }
    }

    /// Takes what a comparison found: the first of each step.
    pub(super) fn differ(&mut self, result: &TaskResult, step: Step) {
        let differences = &mut self.result.differences;
        if differences.len() < MOST_DIFFERENCES && differences.iter().all(|there| there.step != step) {
            differences.push(StepDifference {
                step,
                unknown: !result.differs,
                reason: reason(result.reason.as_deref().unwrap_or_default(), Reason::TaskFailed),
                task: task_name(&result.task),
                message: clean(&result.message, DIFFERENCE_LIMIT),
            });
        }
    }

    /// Ansible's own counts decide whether a failure was one: they leave out what a rescue caught.
    pub(super) fn settle(&mut self, counts: HostStats) {
        let failures = counts.failures.clamp(0, i64::from(i32::MAX));
        self.result.failed = i32::try_from(failures).unwrap_or_default();
        let failure = self.result.failure.as_ref();
        let answers = failure.is_some_and(|failure| guard::answers(&failure.reason));
        self.result.unreachable = counts.unreachable > 0 && !answers;
        if counts.failures <= 0 && counts.unreachable <= 0 {
            self.result.failure = None;
        } else if self.result.failure.is_none() {
            self.fail("", "", Reason::TaskFailed.into(), "it failed and gave no message: see the run's log", u64::MAX);
        }
    }

    /// Gives it a failure, if it has none of its own.
    pub(super) fn fail_if_well(&mut self, failure: &HostFailure) {
        if self.result.failure.is_none() {
            self.result.failure = Some(failure.clone());
        }
    }

    /// True when another attempt may go better without anyone doing something.
    pub(super) fn may_heal(&self) -> bool {
        const STAYING: [Reason; 23] = [
            Reason::AuthenticationFailed,
            Reason::BackupCorrupt,
            Reason::BackupNeedsFormerKey,
            Reason::BackupNotFound,
            Reason::BackupOfOtherCluster,
            Reason::BucketNotFound,
            Reason::ConfigurationRefused,
            Reason::DiskFull,
            Reason::EtcdDowngrade,
            Reason::EtcdVersionNotAllowed,
            Reason::HostKeyChanged,
            Reason::HostKeyUnknown,
            Reason::IdentityDoesNotMatch,
            Reason::IdentityInvalid,
            Reason::KarmadaForeignFiles,
            Reason::KubernetesVersionDiffers,
            Reason::MachineIdentityMismatch,
            // It fares as the one that failed.
            Reason::NotReached,
            Reason::RecipientInvalid,
            Reason::StorageAccessDenied,
            Reason::StorageCertificateInvalid,
            Reason::StorageClockSkewed,
            Reason::StorageFull,
        ];
        // What let the run in before was changed meanwhile: the next one brings what is in the Secret by then.
        let was_let_in = self.result.ok > 0;
        self.result.failure.as_ref().is_some_and(|failure| {
            was_let_in && failure.reason == Reason::AuthenticationFailed || !Reason::among(&failure.reason, &STAYING)
        })
    }

    fn fail(&mut self, step: &str, task: &str, reason: String, message: &str, number: u64) {
        self.result.failure = Some(HostFailure {
            step: clean(step, 63),
            task: task_name(task),
            reason,
            message: clean(message, MESSAGE_LIMIT),
        });
        self.failed_at = Some(number);
        self.old_failure = false;
    }

    fn find(&mut self, finding: &Value) {
        match finding.get("kind").and_then(Value::as_str) {
            Some("facts") => self.result.facts = Some(facts(finding)),
            Some("preflight" | "findings") => self.add_findings(finding),
            Some("etcd") => self.result.etcd = Some(etcd(finding)),
            Some("karmada") => self.result.parts = parts(finding),
            Some("brought") => self.result.brought = brought(finding),
            Some("certificates") => self.result.certificates = certificates(finding),
            Some("clean") => {
                self.result.clean = finding.get("clean").and_then(Value::as_bool);
                let leftovers = finding.get("leftovers").and_then(Value::as_array).into_iter().flatten();
                let texts = leftovers.filter_map(Value::as_str).map(|text| clean(text, 256));
                self.result.leftovers = texts.filter(|text| !text.is_empty()).take(LEFTOVERS_LIMIT).collect();
            }
            _ => {}
        }
    }

    fn add_findings(&mut self, report: &Value) {
        for value in report.get("findings").and_then(Value::as_array).into_iter().flatten() {
            let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
            let finding = PreflightFinding {
                name: name(text("name"), "Unnamed"),
                // A finding without a severity blocks.
                severity: if text("severity") == "warning" { Severity::Warning } else { Severity::Error },
                message: clean(text("message"), 512),
            };
            let findings = &mut self.result.findings;
            if !findings.contains(&finding) {
                findings.push(finding);
                // Stable: errors first, each kind in the order of the report.
                findings.sort_by_key(|finding| finding.severity);
                findings.truncate(FINDINGS_LIMIT);
            }
        }
    }
}

fn facts(value: &Value) -> HostFacts {
    let text = |key: &str, limit| clean(value.get(key).and_then(Value::as_str).unwrap_or_default(), limit);
    let number = |key: &str| value.get(key).and_then(Value::as_i64).unwrap_or_default().max(0);
    HostFacts {
        os_image: text("osImage", 256),
        kernel: text("kernel", 256),
        architecture: text("architecture", 64),
        cpus: i32::try_from(number("cpus")).unwrap_or(i32::MAX),
        memory_mib: number("memoryMiB"),
        machine_id: text("machineId", 64),
    }
}
