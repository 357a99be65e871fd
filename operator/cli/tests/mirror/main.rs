//! `wright bundle` as an administrator runs it, against a server on this machine that has the paths of upstream's.

mod carried;
mod downloads;
mod refused;
mod registry;
mod trust;
mod upstream;
mod whole;
mod wright;
