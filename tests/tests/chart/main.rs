//! The chart and the kustomization install the same, and Helm does with the chart what it does with others: on a real
//! API server, from a real registry.

mod lifecycle;
mod one_namespace;
mod rendered;
