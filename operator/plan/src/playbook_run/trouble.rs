//! A warning about a Job or a Pod that does not come up, in the words of Kubernetes.

use crds::Reason;

/// A warning about a Job or a Pod that does not come up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The Event's reason.
    pub event: String,
    /// What it says, without what differs each time.
    pub message: String,
}

impl Trouble {
    /// What an Event says. The name of a Pod that was refused is another one at each try.
    pub fn new(event: &str, message: &str) -> Self {
        let message = match message.split_once(" is forbidden: ") {
            Some((_, why)) if event == "FailedCreate" => why,
            _ => message,
        };
        Self { event: event.to_owned(), message: message.to_owned() }
    }

    /// The reason in the condition, where the Pod itself has none to give.
    pub(super) fn reason(&self) -> Option<Reason> {
        match self.event.as_str() {
            "FailedCreate" if self.message.contains("exceeded quota") => Some(Reason::QuotaExceeded),
            "FailedCreate" => Some(Reason::PodRefused),
            "FailedMount" | "FailedAttachVolume" => Some(Reason::MountFailed),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Reason, Trouble};

    #[test]
    fn a_refusal_says_the_same_at_each_try() {
        let of = |pod: &str| {
            let message = format!(
                "Error creating: pods \"{pod}\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
            );
            Trouble::new("FailedCreate", &message)
        };
        assert_eq!(of("r-abcde"), of("r-fghij"));
        assert_eq!(of("r-a").reason(), Some(Reason::QuotaExceeded));
        assert_eq!(Trouble::new("FailedCreate", "no").reason(), Some(Reason::PodRefused));
        assert_eq!(Trouble::new("FailedMount", "no").reason(), Some(Reason::MountFailed));
        assert_eq!(Trouble::new("BackOff", "no").reason(), None);
    }
}
