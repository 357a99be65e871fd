//! Jobs of the executor's image: what they are given that the administrator of the operator decides.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::EnvVar;

use crate::context::Context;
use crate::error::Error;
use crate::execute;

/// Makes the Job, with the proxies that executors have; one that belongs to another is never adopted.
pub(crate) async fn create(ctx: &Context, job: &Job) -> Result<(), Error> {
    execute::create_ours(ctx, &proxied(job, &ctx.settings.executor_proxies())).await
}

/// The Job with these variables in its containers.
fn proxied(job: &Job, proxies: &[(&str, String)]) -> Job {
    let mut job = job.clone();
    let pod = job.spec.as_mut().and_then(|spec| spec.template.spec.as_mut());
    for container in pod.into_iter().flat_map(|pod| &mut pod.containers) {
        let variables = proxies.iter().map(|(name, value)| EnvVar {
            name: (*name).to_owned(),
            value: Some(value.clone()),
            value_from: None,
        });
        if !proxies.is_empty() {
            container.env.get_or_insert_default().extend(variables);
        }
    }
    job
}

#[cfg(test)]
mod tests {
    use super::proxied;
    use k8s_openapi::api::batch::v1::Job;
    use serde_json::json;

    #[test]
    fn every_container_of_an_executor_has_the_proxies_beside_what_it_had() {
        let with = |env: serde_json::Value| -> Job {
            let containers = [json!({"name": "a", "env": env}), json!({"name": "b"})];
            serde_json::from_value(json!({"spec": {"template": {"spec": {"containers": containers}}}})).unwrap()
        };
        let job = with(json!([{"name": "X", "value": "y"}]));
        assert_eq!(proxied(&job, &[]), job);
        let proxies = [("HTTPS_PROXY", "http://p:3128".to_owned()), ("NO_PROXY", ".svc".to_owned())];
        let pod = serde_json::to_value(proxied(&job, &proxies)).unwrap();
        let containers = &pod["spec"]["template"]["spec"]["containers"];
        let ours =
            [json!({"name": "HTTPS_PROXY", "value": "http://p:3128"}), json!({"name": "NO_PROXY", "value": ".svc"})];
        assert_eq!(containers[0]["env"], json!([&[json!({"name": "X", "value": "y"})][..], &ours].concat()));
        assert_eq!(containers[1]["env"], json!(ours));
    }
}
