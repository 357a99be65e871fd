//! Members that no backup is taken from.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use etcd_client::{AlarmAction, AlarmType, MemberAddOptions};

use super::fixture::{Fixture, NEVER};
use super::process::{Member, Pki, Plan, free_port};

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_lost_the_others_is_refused_within_ten_seconds() {
    let fixture = Fixture::new().await;
    let plan = Plan {
        place: fixture.place.path(),
        pki: &fixture.pki,
        peers: (0..3).map(|_| free_port()).collect(),
        state: "new",
    };
    let mut members: Vec<_> = (0..3).map(|index| plan.start(index)).collect();
    for member in &members {
        member.client().await;
    }
    members.truncate(1);
    let since = Instant::now();
    let error = fixture.take(&members[0], NEVER).await.unwrap_err();
    assert_eq!((error.reason(), error.retriable()), ("EtcdNoQuorum", true), "{error}");
    assert!(since.elapsed() < Duration::from_secs(12), "{:?}", since.elapsed());
    assert_eq!(fixture.files(), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_never_had_the_others_is_refused_within_ten_seconds() {
    let fixture = Fixture::new().await;
    let plan = Plan {
        place: fixture.place.path(),
        pki: &fixture.pki,
        peers: (0..3).map(|_| free_port()).collect(),
        state: "new",
    };
    let member = plan.start(0);
    while std::net::TcpStream::connect(("127.0.0.1", member.port)).is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let since = Instant::now();
    let error = fixture.take(&member, NEVER).await.unwrap_err();
    assert!(error.reason() == "EtcdUnreachable" && error.to_string().contains("majority"), "{error}");
    assert!(since.elapsed() < Duration::from_secs(12), "{:?}", since.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_and_a_corrupt_member_are_refused_and_one_without_space_is_not() {
    let mut fixture = Fixture::new().await;
    let member = Member::alone(fixture.place.path(), &fixture.pki).await;
    let mut client = member.client().await;
    let id = client.status().await.unwrap().take_header().unwrap().member_id();

    client.alarm(AlarmAction::Activate, AlarmType::Nospace, Some(alarm_of(id))).await.unwrap();
    fixture.take(&member, NEVER).await.unwrap();

    fixture.inputs.location = "paris/7f1c/second".to_owned();
    client.alarm(AlarmAction::Activate, AlarmType::Corrupt, Some(alarm_of(id))).await.unwrap();
    let error = fixture.take(&member, NEVER).await.unwrap_err();
    assert_eq!((error.reason(), error.retriable()), ("EtcdMemberUnsuitable", false), "{error}");
    assert!(error.to_string().contains("CORRUPT"), "{error}");
    for alarm in [AlarmType::Corrupt, AlarmType::Nospace] {
        client.alarm(AlarmAction::Deactivate, alarm, Some(alarm_of(id))).await.unwrap();
    }

    let port = free_port();
    let own: u16 = member.peer.rsplit(':').next().unwrap().parse().unwrap();
    client
        .member_add([format!("http://127.0.0.1:{port}")], Some(MemberAddOptions::new().with_is_learner()))
        .await
        .unwrap();
    let plan = Plan { place: fixture.place.path(), pki: &fixture.pki, peers: vec![own, port], state: "existing" };
    let learner = plan.start(1);
    learner.client().await;
    let error = fixture.take(&learner, NEVER).await.unwrap_err();
    assert!(error.reason() == "EtcdMemberUnsuitable" && error.to_string().contains("learner"), "{error}");
}

fn alarm_of(member: u64) -> etcd_client::AlarmOptions {
    let mut options = etcd_client::AlarmOptions::new();
    options.with_member(member);
    options
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_another_authority_and_a_client_of_another_authority_are_refused() {
    let fixture = Fixture::new().await;
    let member = Member::alone(fixture.place.path(), &fixture.pki).await;
    let other = Pki::new();
    let own = &fixture.pki;
    let wrong_ca = Pki { ca: other.ca.clone(), certificate: own.certificate.clone(), key: own.key.clone() };
    let wrong_client = Pki { ca: own.ca.clone(), certificate: other.certificate, key: other.key };
    for (pki, reason) in [(wrong_ca, "EtcdCertificateInvalid"), (wrong_client, "EtcdClientRefused")] {
        let since = Instant::now();
        let error = fixture.take_as(&member, &pki, NEVER).await.unwrap_err();
        println!("{error}");
        assert_eq!((error.reason(), error.retriable()), (reason, false), "{error}");
        assert!(error.to_string().to_lowercase().contains("certificate"), "{error}");
        assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    }
}
