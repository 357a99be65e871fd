//! Who may scrape: whom the API server knows by the token that was shown, and lets `get /metrics`.

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};

use crate::error::{Error, ResultExt};

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is answered.
    Allowed,
    /// Nobody knows who asks.
    Unknown(String),
    /// It is known who asks, and that one may not.
    Denied(String),
}

/// Asks the API server about who sent this header `Authorization`.
pub(super) async fn authorize(client: &Client, header: Option<&str>) -> Result<Verdict, Error> {
    let Some(token) = header.and_then(bearer) else {
        return Ok(Verdict::Unknown("send a token of the cluster: Authorization: Bearer TOKEN".into()));
    };
    let Some(user) = review(client, token).await? else {
        return Ok(Verdict::Unknown("the API server does not know this token".into()));
    };
    let name = user.username.clone().unwrap_or_default();
    let asked = SubjectAccessReview { spec: access(user), ..SubjectAccessReview::default() };
    let answer = Api::all(client.clone()).create(&PostParams::default(), &asked).await;
    let answer: SubjectAccessReview = answer.doing(|| format!("ask whether {name} may scrape"))?;
    let status = answer.status.unwrap_or_default();
    if status.allowed && status.denied != Some(true) {
        return Ok(Verdict::Allowed);
    }
    Ok(Verdict::Denied(format!("{name} may not get /metrics: bind it to the ClusterRole clusterwright-metrics-reader")))
}

/// The token of a header; the scheme's case does not count.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

async fn review(client: &Client, token: &str) -> Result<Option<UserInfo>, Error> {
    let spec = TokenReviewSpec { token: Some(token.to_owned()), audiences: None };
    let asked = TokenReview { spec, ..TokenReview::default() };
    let answer = Api::all(client.clone()).create(&PostParams::default(), &asked).await;
    let answer: TokenReview = answer.doing(|| "ask whose token this is".into())?;
    let status = answer.status.unwrap_or_default();
    Ok(status.user.filter(|_| status.authenticated == Some(true)))
}

fn access(user: UserInfo) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: user.username,
        uid: user.uid,
        groups: user.groups,
        extra: user.extra,
        non_resource_attributes: Some(NonResourceAttributes {
            path: Some("/metrics".into()),
            verb: Some("get".into()),
        }),
        resource_attributes: None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Verdict, authorize, bearer};
    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::{Value, json};
    use tower::service_fn;

    /// An API server that knows one token, and lets one user scrape.
    fn client() -> Client {
        let service = service_fn(|request: Request<Body>| async move {
            let (parts, body) = request.into_parts();
            let mut object: Value = serde_json::from_slice(&body.collect_bytes().await?).unwrap();
            let spec = &object["spec"];
            object["status"] = match parts.uri.path() {
                "/apis/authentication.k8s.io/v1/tokenreviews" => match spec["token"].as_str() {
                    Some(name @ ("prometheus" | "somebody")) => json!({
                        "authenticated": true, "user": {"username": name, "groups": ["monitoring"]},
                    }),
                    _ => json!({"authenticated": false, "user": {"username": "prometheus"}}),
                },
                "/apis/authorization.k8s.io/v1/subjectaccessreviews" => {
                    let asked = json!({"path": "/metrics", "verb": "get"});
                    let right = spec["nonResourceAttributes"] == asked && spec["groups"] == json!(["monitoring"]);
                    json!({"allowed": right && spec["user"] == "prometheus"})
                }
                path => panic!("{path}"),
            };
            Ok::<_, kube::Error>(Response::new(Body::from(object.to_string().into_bytes())))
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn only_whom_the_api_server_knows_and_lets_may_scrape() {
        let check = async |header: Option<&str>, expected: Result<(), (&str, &str)>| {
            let verdict = authorize(&client(), header).await.unwrap();
            let said = match &verdict {
                Verdict::Allowed => Ok(()),
                Verdict::Unknown(why) => Err(("unknown", why.as_str())),
                Verdict::Denied(why) => Err(("denied", why.as_str())),
            };
            assert_eq!(said, expected, "{header:?}");
        };
        let none = Err(("unknown", "send a token of the cluster: Authorization: Bearer TOKEN"));
        check(None, none).await;
        check(Some("Basic abc"), none).await;
        check(Some("Bearer "), none).await;
        check(Some("Bearer guessed"), Err(("unknown", "the API server does not know this token"))).await;
        let denied = "somebody may not get /metrics: bind it to the ClusterRole clusterwright-metrics-reader";
        check(Some("Bearer somebody"), Err(("denied", denied))).await;
        check(Some("bearer prometheus"), Ok(())).await;
    }

    #[test]
    fn a_header_of_another_scheme_has_no_token() {
        assert_eq!(bearer("BEARER a"), Some("a"));
        for none in ["a", "Bearer", "Bearer  ", "Token a"] {
            assert_eq!(bearer(none), None, "{none}");
        }
    }
}
