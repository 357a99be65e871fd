//! What can go wrong in a pass: an error names the action that failed and links its cause.

use std::error::Error as StdError;

/// Why a pass did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request to the metadata cluster's API failed.
    #[error("failed to {action}")]
    Api {
        /// What was tried: `create Job a-install-0`.
        action: String,
        /// What the API, or the way to it, said.
        #[source]
        source: Box<kube::Error>,
    },
    /// Something else failed.
    #[error("failed to {action}")]
    Failed {
        /// What was tried.
        action: String,
        /// What went wrong.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The pass came upon a mistake of ours.
    #[error("the pass panicked: {message}")]
    Panic {
        /// What the panic said.
        message: String,
    },
    /// The pass was cut off.
    #[error("the pass did not end within {seconds} s")]
    Deadline {
        /// The deadline.
        seconds: u64,
    },
}

impl Error {
    /// Another wrote first: look again soon.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Error::Api { source, .. } if matches!(&**source, kube::Error::Api(status) if status.is_conflict() || status.is_already_exists()))
    }

    /// The namespace is being deleted: nothing can be made in it any more.
    pub fn is_namespace_going(&self) -> bool {
        let terminating = |status: &kube::core::Status| {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            status.is_forbidden() && causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
        };
        matches!(self, Error::Api { source, .. } if matches!(&**source, kube::Error::Api(status) if terminating(status)))
    }

    /// The object is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::Api { source, .. } if matches!(&**source, kube::Error::Api(status) if status.is_not_found()))
    }
}

/// Names the action that a result is of.
pub trait ResultExt<T> {
    /// `action` completes the sentence "failed to ...".
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> ResultExt<T> for Result<T, kube::Error> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Api { action: action(), source: Box::new(source) })
    }
}

impl<T> ResultExt<T> for Result<T, std::io::Error> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Failed { action: action(), source: Box::new(source) })
    }
}

impl<T> ResultExt<T> for Result<T, serde_json::Error> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Failed { action: action(), source: Box::new(source) })
    }
}

/// The error and its causes in one line. A cause that the text before it already holds is left out: some libraries
/// print their source themselves.
pub fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = text_of(error);
    let mut cause = error.source();
    while let Some(error) = cause {
        let own = text_of(error);
        if !text.contains(&own) {
            text.push_str(": ");
            text.push_str(&own);
        }
        cause = error.source();
    }
    text
}

/// An answer of the API server in its own words; the library adds every field of it.
fn text_of(error: &(dyn StdError + 'static)) -> String {
    let of_client =
        error.downcast_ref::<kube::Error>().or(error.downcast_ref::<Box<kube::Error>>().map(|error| &**error));
    let of_server = error.downcast_ref::<kube::core::Status>();
    let of_server = of_server.or(error.downcast_ref::<Box<kube::core::Status>>().map(|status| &**status));
    let status = match of_client {
        Some(kube::Error::Api(status)) => Some(&**status),
        _ => of_server,
    };
    match status {
        Some(status) => format!("{} ({} {})", status.message, status.code, status.reason),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{ResultExt, chain};

    #[test]
    fn an_answer_of_the_api_is_said_once_and_in_its_own_words() {
        let status = kube::core::Status {
            message: "no such thing".into(),
            reason: "NotFound".into(),
            code: 404,
            ..Default::default()
        };
        let error = Err::<(), _>(kube::Error::Api(Box::new(status))).doing(|| "read Job a".into());
        assert_eq!(chain(&error.unwrap_err()), "failed to read Job a: no such thing (404 NotFound)");
    }

    #[test]
    fn a_chain_names_the_action_and_each_cause_once() {
        let error = Err::<(), _>(std::io::Error::other("disk on fire")).doing(|| "write the log".into());
        assert_eq!(chain(&error.unwrap_err()), "failed to write the log: disk on fire");
    }
}
