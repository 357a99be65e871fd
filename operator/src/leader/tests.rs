//! Elections of several operators on one Lease, in time that passes as fast as it can.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use plan::leader::{Loss, Moment, Times};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tower::service_fn;

use super::{Clock, Election, Gate, Standing};

/// An API with one Lease in it, if any.
#[derive(Clone, Default)]
struct Leases {
    lease: Arc<Mutex<Option<Value>>>,
    /// Nothing is answered, nor does anything arrive.
    silent: Arc<AtomicBool>,
    /// The next write arrives, and its answer does not.
    loses_an_answer: Arc<AtomicBool>,
    /// Every write is answered with a failure.
    refuses_writes: Arc<AtomicBool>,
}

impl Leases {
    fn answer(&self, method: &Method, mut body: Value) -> (u16, Value) {
        let mut lease = self.lease.lock().unwrap();
        let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
        let next = match &*lease {
            Some(lease) => version(lease).as_str().unwrap().parse::<u32>().unwrap() + 1,
            None => 1,
        };
        let code = match (method.as_str(), &*lease) {
            ("GET", Some(lease)) => return (200, lease.clone()),
            ("PUT" | "POST", _) if self.refuses_writes.load(Ordering::SeqCst) => 500,
            ("GET" | "PUT", None) => 404,
            ("POST", Some(_)) => 409,
            ("PUT", Some(there)) if version(there) != version(&body) => 409,
            _ => 200,
        };
        if code != 200 {
            let reason = match code {
                404 => "NotFound",
                409 => "Conflict",
                _ => "InternalError",
            };
            let status =
                json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason});
            return (code, status);
        }
        body["metadata"]["resourceVersion"] = json!(next.to_string());
        (200, lease.insert(body).clone())
    }

    fn client(&self) -> Client {
        let leases = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let leases = leases.clone();
            async move {
                sleep(Duration::from_millis(20)).await;
                let (parts, body) = request.into_parts();
                let body = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
                if leases.silent.load(Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                let (code, answer) = leases.answer(&parts.method, body);
                if parts.method != Method::GET && leases.loses_an_answer.swap(false, Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
                *response.status_mut() = code.try_into().unwrap();
                Ok::<_, kube::Error>(response)
            }
        });
        Client::new(service, "default")
    }

    fn operator(&self, me: &str) -> Election {
        let began = Instant::now();
        let clock = Clock::new(move || Moment(began.elapsed()));
        let times = Times::of_seconds(15, 10, 2).unwrap();
        Election::new(self.client(), "system", "operator", me, times, Gate::closed(clock))
    }

    fn spec(&self, field: &str) -> Value {
        self.lease.lock().unwrap().as_ref().unwrap()["spec"][field].clone()
    }
}

async fn within<T>(seconds: f64, what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs_f64(seconds), what).await.expect("it takes longer")
}

#[tokio::test(start_paused = true)]
async fn the_first_one_leads_at_once_and_the_gate_is_open_as_long_as_it_renews() {
    let leases = Leases::default();
    let mut a = leases.operator("a");
    assert!(!a.gate.is_open());
    within(0.1, a.win()).await;
    assert_eq!(leases.spec("holderIdentity"), "a");
    assert_eq!(*a.standing().borrow(), Standing::Leads);
    let acquired = leases.spec("acquireTime");
    let gate = a.gate.clone();
    assert!(timeout(Duration::from_secs(60), a.keep()).await.is_err(), "it lost the lease");
    assert!(gate.is_open());
    assert_eq!(leases.spec("leaseTransitions"), 0);
    assert_eq!(leases.spec("acquireTime"), acquired);
}

/// The Lease as it was, and as nobody wrote it since.
fn set_back(leases: &Leases, mut old: Value) {
    let mut lease = leases.lease.lock().unwrap();
    old["metadata"]["annotations"] = json!({"clusterwright.dev/resumed-at": "2020-01-01T00:00:00Z"});
    old["metadata"]["resourceVersion"] = json!("1000000000");
    *lease = Some(old);
}

fn resumed_in(leases: &Leases) -> i16 {
    let lease = leases.lease.lock().unwrap().clone().unwrap();
    let resumed = lease["metadata"]["annotations"]["clusterwright.dev/resumed-at"].as_str().unwrap();
    resumed.parse::<jiff::Timestamp>().unwrap().to_zoned(jiff::tz::TimeZone::UTC).year()
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_set_back_while_its_leader_goes_on_is_noticed_at_the_next_renewal_however_young_it_is() {
    let leases = Leases::default();
    let mut a = leases.operator("a");
    within(0.1, a.win()).await;
    let old = leases.lease.lock().unwrap().clone().unwrap();
    assert!(timeout(Duration::from_secs(6), a.keep()).await.is_err(), "it lost the lease");
    set_back(&leases, old);
    assert_eq!(within(2.5, a.keep()).await, Loss::SetBack);
    assert!(!a.gate.is_open());
    assert!(resumed_in(&leases) > 2020);
    // The process begins anew: whoever leads next was told.
    let mut next = leases.operator("a-begun-anew");
    within(20.0, next.win()).await;
    assert!(next.resumed().borrow().is_some_and(|resumed| resumed > "2020-01-01T00:00:00Z".parse().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_store_of_before_its_leader_led_is_no_less_an_older_one() {
    let leases = Leases::default();
    let (mut a, mut b) = (leases.operator("a"), leases.operator("b"));
    within(0.1, a.win()).await;
    let old = leases.lease.lock().unwrap().clone().unwrap();
    a.release().await;
    within(2.1, b.win()).await;
    set_back(&leases, old);
    assert_eq!(within(2.5, b.keep()).await, Loss::SetBack);
    assert!(resumed_in(&leases) > 2020);
    assert_eq!(leases.spec("holderIdentity"), "a", "who held it then is not known to be gone");
}

#[tokio::test(start_paused = true)]
async fn who_knows_that_the_store_was_set_back_writes_nothing_and_says_so_however_long_that_takes() {
    let leases = Leases::default();
    let mut a = leases.operator("a");
    within(0.1, a.win()).await;
    let old = leases.lease.lock().unwrap().clone().unwrap();
    assert!(timeout(Duration::from_secs(6), a.keep()).await.is_err(), "it lost the lease");
    set_back(&leases, old);
    leases.refuses_writes.store(true, Ordering::SeqCst);
    assert!(timeout(Duration::from_secs(600), a.keep()).await.is_err(), "nobody was told");
    assert!(!a.gate.is_open());
    leases.refuses_writes.store(false, Ordering::SeqCst);
    assert_eq!(within(2.5, a.keep()).await, Loss::SetBack);
    assert!(resumed_in(&leases) > 2020);
}

#[tokio::test(start_paused = true)]
async fn one_who_stood_by_knows_as_well_that_the_store_was_set_back() {
    let leases = Leases::default();
    let (mut a, mut b) = (leases.operator("a"), leases.operator("b"));
    within(0.1, a.win()).await;
    let old = leases.lease.lock().unwrap().clone().unwrap();
    assert!(timeout(Duration::from_secs(6), a.keep()).await.is_err(), "it lost the lease");
    assert!(timeout(Duration::from_secs(1), b.win()).await.is_err());
    set_back(&leases, old);
    within(30.0, b.win()).await;
    assert!(resumed_in(&leases) > 2020);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_given_back_is_taken_within_the_retry_period() {
    let leases = Leases::default();
    let (mut a, mut b) = (leases.operator("a"), leases.operator("b"));
    within(0.1, a.win()).await;
    assert!(timeout(Duration::from_secs(1), b.win()).await.is_err());
    assert_eq!(*b.standing().borrow(), Standing::Standby("a".into()));
    a.release().await;
    assert!(!a.gate.is_open());
    assert_eq!(leases.spec("holderIdentity"), Value::Null);
    within(2.1, b.win()).await;
    assert_eq!((leases.spec("holderIdentity"), leases.spec("leaseTransitions")), (json!("b"), json!(1)));
    // What is another's is not given back.
    a.release().await;
    assert_eq!(leases.spec("holderIdentity"), "b");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_stopped_is_followed_and_when_it_goes_on_it_ends() {
    let leases = Leases::default();
    let (mut a, mut b) = (leases.operator("a"), leases.operator("b"));
    within(0.1, a.win()).await;
    let stopped = Instant::now();
    // Nobody asks `a` any more: it is stopped, and nothing tells its gate anything.
    let (of_a, of_b) = (a.gate.clone(), b.gate.clone());
    let follows = tokio::spawn(async move { b.win().await });
    while !of_b.is_open() {
        sleep(Duration::from_millis(10)).await;
        assert!(stopped.elapsed() < Duration::from_secs(17));
        assert!(of_a.is_open() == (stopped.elapsed() < Duration::from_millis(9_980)));
    }
    follows.await.unwrap();
    assert!(stopped.elapsed() > Duration::from_secs(14));
    assert_eq!(within(0.1, a.keep()).await, Loss::Silent { seconds: 10 });
    assert_eq!(leases.spec("holderIdentity"), "b");
}

#[tokio::test(start_paused = true)]
async fn who_cannot_renew_loses_the_lease_at_the_deadline_and_not_later() {
    let leases = Leases::default();
    let mut a = leases.operator("a");
    within(0.1, a.win()).await;
    leases.silent.store(true, Ordering::SeqCst);
    let (silent, gate) = (Instant::now(), a.gate.clone());
    assert_eq!(a.keep().await, Loss::Silent { seconds: 10 });
    assert!(silent.elapsed() <= Duration::from_secs(10), "{:?}", silent.elapsed());
    assert!(!gate.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_costs_neither_the_lease_nor_the_first_win() {
    let leases = Leases::default();
    let mut a = leases.operator("a");
    leases.loses_an_answer.store(true, Ordering::SeqCst);
    within(6.0, a.win()).await;
    leases.loses_an_answer.store(true, Ordering::SeqCst);
    assert!(timeout(Duration::from_secs(30), a.keep()).await.is_err(), "it lost the lease");
    assert!(a.gate.is_open());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_is_made_again_by_its_holder() {
    let leases = Leases::default();
    let (mut a, mut b) = (leases.operator("a"), leases.operator("b"));
    within(0.1, a.win()).await;
    assert!(timeout(Duration::from_secs(1), b.win()).await.is_err());
    *leases.lease.lock().unwrap() = None;
    let both = futures::future::select(Box::pin(b.win()), Box::pin(a.keep()));
    assert!(timeout(Duration::from_secs(30), both).await.is_err(), "it changed hands");
    assert_eq!(leases.spec("holderIdentity"), "a");
}

#[tokio::test(start_paused = true)]
async fn of_many_that_start_together_one_leads() {
    let leases = Leases::default();
    let mut gates = Vec::new();
    for index in 0..5 {
        let mut operator = leases.operator(&index.to_string());
        gates.push(operator.gate.clone());
        tokio::spawn(async move {
            operator.win().await;
            operator.keep().await
        });
    }
    sleep(Duration::from_millis(100)).await;
    for _ in 0..1000 {
        sleep(Duration::from_millis(37)).await;
        assert_eq!(gates.iter().filter(|gate| gate.is_open()).count(), 1);
    }
    assert_eq!(leases.spec("leaseTransitions"), 0);
}
