//! When the certificates of a cluster are renewed: one rule for all that are made for it.

use crds::cluster_deployment::Certificates;
use crds::karmada_deployment::PlaneCertificates;
use jiff::{SignedDuration, Timestamp};

/// How long leaf certificates of a cluster last, and when they are renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalPolicy {
    /// How long a new one lasts.
    pub validity: SignedDuration,
    /// One with less left is renewed.
    pub renew_before: SignedDuration,
}

impl From<&Certificates> for RenewalPolicy {
    fn from(wanted: &Certificates) -> Self {
        Self {
            validity: SignedDuration::from_secs(wanted.validity_seconds()),
            renew_before: SignedDuration::from_secs(wanted.renew_before_seconds()),
        }
    }
}

impl From<&PlaneCertificates> for RenewalPolicy {
    fn from(wanted: &PlaneCertificates) -> Self {
        let PlaneCertificates { validity_days, renew_before_days, .. } = *wanted;
        Self::from(&Certificates { validity_days, renew_before_days, ca_ref: None })
    }
}

impl RenewalPolicy {
    /// Whether a certificate that ends then is to be renewed.
    pub fn is_due(&self, end: Timestamp, now: Timestamp) -> bool {
        end.duration_since(now) <= self.renew_before
    }

    /// Where certificates are written anyway, one with less left than this is made anew as well: what ends within days
    /// of each other is renewed by one run. A new one always has more.
    pub fn refresh_before(&self) -> SignedDuration {
        let more = self.renew_before + self.renew_before / 4;
        more.min((self.renew_before + self.validity) / 2)
    }

    /// Whether a certificate that ends then is made anew where certificates are written.
    pub fn is_worth_a_new_one(&self, end: Timestamp, now: Timestamp) -> bool {
        end.duration_since(now) <= self.refresh_before()
    }
}

#[cfg(test)]
mod tests {
    use super::{Certificates, RenewalPolicy};

    #[test]
    fn a_certificate_is_renewed_before_a_third_of_its_life_is_left_and_a_new_one_never() {
        let check = |certificates: &str, hours: [i64; 3]| {
            let wanted: Certificates = serde_yaml::from_str(&format!("{{{certificates}}}")).unwrap();
            let policy = RenewalPolicy::from(&wanted);
            let found = [policy.validity, policy.renew_before, policy.refresh_before()].map(|time| time.as_hours());
            assert_eq!(found, hours, "{certificates}");
            assert!(policy.refresh_before() < policy.validity);
        };
        check("", [365 * 24, 2920, 3650]);
        check("validityDays: 365, renewBeforeDays: 30", [365 * 24, 30 * 24, 900]);
        check("validityDays: 1", [24, 8, 10]);
        check("validityDays: 100, renewBeforeDays: 99", [2400, 99 * 24, 2388]);
    }
}
