use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

fn login(password: &str) -> Request {
    Request {
        grant_type: "password".to_owned(),
        client_id: PUBLIC_CLIENT.to_owned(),
        username: "Admin".to_owned(),
        password: password.to_owned(),
        scope: "openid".to_owned(),
        ..Request::default()
    }
}

struct Bench {
    realm: Realm,
    switches: Switches,
    rng: StdRng,
}

impl Bench {
    fn new() -> Self {
        Self {
            realm: Realm::new(Credentials::default(), Rules::default()),
            switches: Switches::default(),
            rng: StdRng::seed_from_u64(1),
        }
    }

    fn ask(&mut self, request: &Request, now: i64) -> Result<Granted, Refused> {
        self.realm
            .request(request, now, &self.switches, &mut self.rng)
    }
}

const GOOD: &str = "simulated-password";

#[test]
fn five_refusals_lock_the_account() {
    let mut bench = Bench::new();
    let mut now = 0;
    for _ in 0..5 {
        now += 5000;
        assert_eq!(
            bench.ask(&login("wrong"), now).unwrap_err(),
            BAD_CREDENTIALS
        );
    }
    assert_eq!(
        bench.ask(&login(GOOD), now + 59_999).unwrap_err(),
        BAD_CREDENTIALS
    );
    assert!(bench.ask(&login(GOOD), now + 60_000).is_ok());
}

#[test]
fn four_refusals_do_not() {
    let mut bench = Bench::new();
    for attempt in 1..=4 {
        assert!(bench.ask(&login("wrong"), attempt * 5000).is_err());
    }
    assert!(bench.ask(&login(GOOD), 20_001).is_ok());
}

#[test]
fn two_quick_refusals_lock_too() {
    let mut bench = Bench::new();
    assert!(bench.ask(&login("wrong"), 10_000).is_err());
    assert!(bench.ask(&login("wrong"), 10_500).is_err());
    assert!(bench.ask(&login(GOOD), 12_000).is_err());
    assert!(bench.ask(&login(GOOD), 70_500).is_ok());
}

#[test]
fn tokens_expire_and_are_refreshed() {
    let mut bench = Bench::new();
    let first = bench.ask(&login(GOOD), 0).unwrap();
    assert!(
        bench
            .realm
            .accepts(&first.access_token, 299_999, &bench.switches)
    );
    assert!(
        !bench
            .realm
            .accepts(&first.access_token, 300_000, &bench.switches)
    );
    let mut refresh = login("");
    refresh.grant_type = "refresh_token".to_owned();
    refresh.refresh_token = first.refresh_token.unwrap();
    let second = bench.ask(&refresh, 400_000).unwrap();
    assert!(
        bench
            .realm
            .accepts(&second.access_token, 400_001, &bench.switches)
    );
    bench.realm.revoke_all();
    assert!(
        !bench
            .realm
            .accepts(&second.access_token, 400_001, &bench.switches)
    );
    assert_eq!(bench.ask(&refresh, 400_002).unwrap_err(), NOT_ACTIVE);
}

#[test]
fn a_session_ends_after_ten_hours() {
    let mut bench = Bench::new();
    let mut refresh = login("");
    refresh.grant_type = "refresh_token".to_owned();
    refresh.refresh_token = bench.ask(&login(GOOD), 0).unwrap().refresh_token.unwrap();
    let mut now = 0;
    while now + 1_000_000 < 36_000_000 {
        now += 1_000_000;
        bench.ask(&refresh, now).unwrap();
    }
    assert!(bench.ask(&refresh, 36_000_000).is_err());
}

#[test]
fn clients() {
    let mut bench = Bench::new();
    let mut request = Request {
        grant_type: "client_credentials".to_owned(),
        client_id: "rewind".to_owned(),
        client_secret: Some("simulated-secret".to_owned()),
        ..Request::default()
    };
    let granted = bench.ask(&request, 0).unwrap();
    assert!(granted.refresh_token.is_none());
    assert_eq!(granted.refresh_expires_in, 0);
    request.client_secret = Some("wrong".to_owned());
    assert_eq!(bench.ask(&request, 0).unwrap_err().1, "unauthorized_client");
    request.client_id = PUBLIC_CLIENT.to_owned();
    assert_eq!(bench.ask(&request, 0).unwrap_err().1, "unauthorized_client");
    request.client_id = "nobody".to_owned();
    assert_eq!(bench.ask(&request, 0).unwrap_err().1, "invalid_client");
}

#[test]
fn openid_can_be_required() {
    let mut bench = Bench::new();
    bench.switches.require_openid = true;
    let mut request = login(GOOD);
    request.scope = String::new();
    let token = bench.ask(&request, 0).unwrap().access_token;
    assert!(!bench.realm.accepts(&token, 1, &bench.switches));
    let token = bench.ask(&login(GOOD), 0).unwrap().access_token;
    assert!(bench.realm.accepts(&token, 1, &bench.switches));
}
