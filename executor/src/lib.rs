//! PID 1 of a run's Job: reads frozen inputs, runs `ansible-playbook` once for all steps, folds its events
//! into progress, reports, and obeys cancel and deadline. From a shell it does the same without an API.

pub mod ansible;
mod api_client;
pub mod backup_removal;
pub mod backup_verification;
pub mod bastions;
pub mod capped_ssh;
pub mod children;
pub mod cli;
pub mod core_dumps;
pub mod custom;
pub mod etcd_backup;
pub mod event;
pub mod example;
pub mod fetched_keys;
pub mod fold;
pub mod guard;
pub mod inputs;
pub mod inventory;
pub mod inventory_check;
pub mod lines;
pub mod outcome;
pub mod play;
pub mod playbooks;
pub mod redact;
pub mod report;
pub mod resume;
pub mod role;
pub mod run;
pub mod sanitize;
pub mod secrets;
pub mod ssh;
pub mod stop;
pub mod storage;
pub mod terminal;
pub mod unreachable;
pub mod workdir;
