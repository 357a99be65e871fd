//! The HTTP client of a bucket: requests that were taken back before they were sent are repeated.

use std::error::Error;
use std::iter::successors;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

/// As `object_store` makes it, but for one error, which it does not know, and so never tries again.
#[derive(Debug, Default)]
pub struct Connector(ReqwestConnector);

#[derive(Debug)]
struct Service(HttpClient);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Service(self.0.connect(options)?)))
    }
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        self.0.execute(request).await.map_err(refined)
    }
}

/// A request that waited for a connection which ended at that moment was not sent: it may be repeated, whatever it is.
fn refined(error: HttpError) -> HttpError {
    let mut causes = successors(error.source(), |cause| (*cause).source());
    let is_canceled = causes.any(|cause| cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled));
    if is_canceled { HttpError::new(HttpErrorKind::Request, error) } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use hyper_util::rt::TokioIo;

    type Sender = hyper::client::conn::http1::SendRequest<reqwest::Body>;

    async fn sent(mut sender: Sender) -> HttpError {
        let request = hyper::Request::new(reqwest::Body::from(Bytes::new()));
        HttpError::new(HttpErrorKind::Unknown, sender.send_request(request).await.unwrap_err())
    }

    #[tokio::test]
    async fn a_request_whose_connection_ended_before_it_was_sent_is_one_to_repeat() {
        let (ours, _theirs) = tokio::io::duplex(1024);
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(ours)).await.unwrap();
        drop(connection);
        assert_eq!(refined(sent(sender).await).kind(), HttpErrorKind::Request);
    }

    #[tokio::test]
    async fn one_whose_connection_ended_without_an_answer_may_have_been_done() {
        let (ours, theirs) = tokio::io::duplex(1024);
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(ours)).await.unwrap();
        tokio::spawn(connection);
        tokio::spawn(async move {
            let mut theirs = theirs;
            tokio::io::AsyncReadExt::read(&mut theirs, &mut [0; 16]).await.unwrap();
        });
        assert_eq!(refined(sent(sender).await).kind(), HttpErrorKind::Unknown);
    }
}
