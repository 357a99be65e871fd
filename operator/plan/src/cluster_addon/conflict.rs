//! Conflicts of server-side apply: another field manager has set fields otherwise.

/// A field that another manager has set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConflict {
    /// The manager.
    pub manager: String,
    /// Whether it has written the field otherwise than by server-side apply.
    pub is_update: bool,
    /// The field: `.spec.replicas`.
    pub field: String,
}

impl FieldConflict {
    /// From a cause of the API server's answer: `conflict with "kubectl-edit" using apps/v1`.
    pub fn new(message: &str, field: &str) -> Self {
        let manager = message.split('"').nth(1).unwrap_or(message);
        let is_update = message.contains("\" using ") || message.contains("\" with subresource ");
        Self { manager: manager.to_owned(), is_update, field: field.to_owned() }
    }

    /// Whether a person has written it by kubectl. `kubectl apply --server-side` is another way to keep an object.
    pub fn is_by_hand(&self) -> bool {
        self.is_update && (self.manager == "kubectl" || self.manager.starts_with("kubectl-"))
    }
}

/// `kube-controller-manager has set .spec.replicas`.
pub fn message(conflicts: &[FieldConflict]) -> String {
    let mut managers: Vec<&str> = conflicts.iter().map(|conflict| conflict.manager.as_str()).collect();
    managers.sort_unstable();
    managers.dedup();
    let of = |manager: &str| {
        let fields: Vec<&str> = conflicts
            .iter()
            .filter(|conflict| conflict.manager == manager)
            .map(|conflict| conflict.field.as_str())
            .collect();
        let more = fields.len().saturating_sub(5);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{manager} has set {}{more}", fields.iter().take(5).copied().collect::<Vec<_>>().join(", "))
    };
    managers.into_iter().map(of).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::{FieldConflict, message};

    #[test]
    fn what_a_person_has_written_by_kubectl_is_known_by_its_manager() {
        let check = |said: &str, manager: &str, by_hand: bool| {
            let conflict = FieldConflict::new(said, ".spec.replicas");
            assert_eq!((conflict.manager.as_str(), conflict.is_by_hand()), (manager, by_hand), "{said}");
        };
        check("conflict with \"kubectl-edit\" using apps/v1", "kubectl-edit", true);
        check("conflict with \"kubectl-patch\" using v1 at 2026-01-01T00:00:00Z", "kubectl-patch", true);
        check("conflict with \"kubectl\" with subresource \"scale\" using apps/v1", "kubectl", true);
        check("conflict with \"kubectl\"", "kubectl", false);
        check("conflict with \"argocd-controller\"", "argocd-controller", false);
        check(
            "conflict with \"kube-controller-manager\" with subresource \"scale\" using apps/v1",
            "kube-controller-manager",
            false,
        );
    }

    #[test]
    fn managers_and_fields_are_named() {
        let conflict = |manager: &str, field: &str| FieldConflict::new(&format!("conflict with \"{manager}\""), field);
        let conflicts = [conflict("b", ".spec.x"), conflict("a", ".spec.y"), conflict("b", ".spec.z")];
        assert_eq!(message(&conflicts), "a has set .spec.y; b has set .spec.x, .spec.z");
        let many: Vec<FieldConflict> = (0..7).map(|number| conflict("a", &format!(".{number}"))).collect();
        assert_eq!(message(&many), "a has set .0, .1, .2, .3, .4 and 2 more");
    }
}
