//! The scenarios that come with the command show what their texts say.
#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc)]

mod support;

use serde_json::Value;
use support::Place;

const SECOND: u64 = 1_000_000_000;
const BASE: u64 = 1_000_000;

struct Example(Value);

impl Example {
    fn run(name: &str) -> Self {
        let place = Place::new(&format!("simulate-{name}"));
        Self(place.run("simulate", &["--example", name, "--json"], b"").json())
    }

    fn number(&self, path: &str) -> u64 {
        self.0.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} is no number: {}", self.0))
    }

    /// The sum over the parts that begin from `from` on and before `to`, in seconds.
    fn sum(&self, field: &str, from: u64, to: u64) -> u64 {
        self.parts(from, to).map(|part| part[field].as_u64().unwrap()).sum()
    }

    /// The quota's share moves no further at a time than the rules' bounds, which none of the scenarios changes, and not often.
    fn check_steps(&self, most_adjustments: u64) {
        assert!((1..most_adjustments).contains(&self.number("/adaptive/adjustments")), "{}", self.0["adaptive"]);
        assert!(self.number("/adaptive/largest_fall") <= BASE / 2, "{}", self.0["adaptive"]);
        assert!(self.number("/adaptive/largest_rise") <= BASE / 10, "{}", self.0["adaptive"]);
    }

    fn parts(&self, from: u64, to: u64) -> impl Iterator<Item = &Value> {
        let parts = self.0["over_time"].as_array().unwrap().iter();
        parts.filter(move |part| (from * SECOND..to * SECOND).contains(&part["from_ns"].as_u64().unwrap()))
    }
}

/// Within 2 s of the slow-down the breaker opens; within 20 s of the recovery it is closed for good; the quota comes back to exactly its base.
#[test]
fn a_slow_downstream_is_let_be_and_found_again() {
    let ran = Example::run("slow-downstream");
    let first_trip = ran.number("/breaker/first_trip_ns");
    assert!((30 * SECOND..32 * SECOND).contains(&first_trip), "{first_trip}");
    let last_closed = ran.number("/breaker/last_closed_ns");
    assert!((60 * SECOND..80 * SECOND).contains(&last_closed), "{last_closed}");
    assert_eq!(ran.0["breaker"]["phase_at_end"], "closed");

    ran.check_steps(20);

    // Before, almost all is well.
    assert_eq!(ran.sum("timed_out", 0, 30), 0);
    assert!(ran.sum("succeeded", 0, 30) * 100 > ran.sum("offered", 0, 30) * 95);
    // While it is slow, nearly nobody waits: without a breaker some 2000 would.
    assert!(ran.sum("offered", 32, 60) > 2_000);
    assert!(ran.sum("admitted", 32, 60) < 20);
    assert!(ran.sum("timed_out", 30, 62) > 10);

    assert!(ran.number("/adaptive/lowest_share") <= BASE / 4);
    assert_eq!(ran.number("/adaptive/share_at_end"), BASE);
    assert!(ran.parts(120, 180).all(|part| part["limit_per_1000_s"] == 100_000));
    assert!(ran.sum("succeeded", 120, 180) * 100 > ran.sum("offered", 120, 180) * 95);
}

/// Of what is made, less than 1 in 10 is answered 429 from the first minute on; the quota comes back once the provider allows more.
#[test]
fn a_provider_s_429_become_rare() {
    let ran = Example::run("provider-429");
    ran.check_steps(40);
    // All 429 are the provider's own, and say when to come again: within the time of a token.
    assert_eq!(ran.number("/provider/refused"), ran.number("/too_many"));
    assert!(ran.number("/provider/longest_retry_after_ns") <= SECOND / 50);
    // Left alone it would be 2 in 3.
    assert!(ran.sum("offered", 60, 480) > 420 * 140);
    let (refused, made) = (ran.sum("too_many", 60, 480), ran.sum("admitted", 60, 480));
    assert!(refused > 0 && refused * 10 < made, "{refused} of {made}");
    // And what the provider allows is used.
    assert!(ran.sum("succeeded", 60, 480) > 420 * 45);
    assert_eq!(ran.number("/adaptive/lowest_share"), BASE / 4);

    assert_eq!(ran.sum("too_many", 490, 720), 0);
    assert_eq!(ran.number("/adaptive/share_at_end"), BASE);
    assert_eq!(ran.sum("offered", 600, 720), ran.sum("admitted", 600, 720));
}

/// The provider's quota of a day is used to more than 98 %, never beyond, and not before the day ends.
#[test]
fn a_quota_of_a_day_lasts_for_the_day() {
    let ran = Example::run("day-quota");
    ran.check_steps(200);
    assert_eq!(ran.number("/quota/tokens"), 100_000);
    assert!((98_000..=100_000).contains(&ran.number("/provider/most_in_a_period")), "{}", ran.0["provider"]);
    assert_eq!((ran.number("/provider/refused"), ran.number("/too_many")), (0, 0));
    assert!((1..2_000).contains(&ran.number("/quota/left_at_end")), "{}", ran.0["quota"]);
    assert_eq!(ran.0["quota"]["ran_out_ns"], Value::Null);
    // At every moment of the day what was admitted and what is left are the quota. An answer on its way is not yet heard of.
    let mut admitted = 0;
    for part in ran.parts(0, 24 * 3_600) {
        admitted += part["admitted"].as_u64().unwrap();
        let known = admitted + part["quota_left"].as_u64().unwrap();
        assert!((100_000..100_010).contains(&known), "{part}");
    }
    // Far more is wanted: all of it would have been gone hours before.
    assert!(ran.number("/offered") > 140_000);
    let hour = 3_600;
    assert_eq!(ran.sum("offered", 0, 6 * hour), ran.sum("admitted", 0, 6 * hour));
    assert!(ran.sum("refused_by_limiter", 12 * hour, 18 * hour) > 20_000);
    // In the afternoon more passes than an even share of the day's.
    assert!(ran.sum("admitted", 12 * hour, 18 * hour) > 25_000);
}

/// Without a pace the same day's calls run into the provider's quota: they are answered 429 until midnight, and say so.
#[test]
fn a_provider_enforces_its_quota_to_the_call() {
    let place = Place::new("simulate-enforced");
    let scenario = place.run("simulate", &["--example", "day-quota", "--show"], b"").out;
    let scenario =
        scenario.replace("pace = \"provider\"", "errors = { cuts = [1, 2, 3] }").replace("100000/1d", "50000/1d");
    let ran = Example(place.run("simulate", &["-", "--json"], scenario.as_bytes()).json());
    assert_eq!((ran.number("/provider/most_in_a_period"), ran.number("/succeeded")), (50_000, 50_000));
    assert!(ran.number("/too_many") > 50_000 && ran.number("/too_many") == ran.number("/provider/refused"));
    let first = ran.parts(0, 24 * 3_600).find(|part| part["too_many"] != 0).unwrap()["from_ns"].as_u64().unwrap();
    // Its first 429 came within that part of the day.
    let until_midnight = 24 * 3_600 * SECOND - ran.number("/provider/longest_retry_after_ns");
    assert!((first..first + 360 * SECOND).contains(&until_midnight), "{first} {until_midnight}");
}

/// What answers say stops a flow that begins with a wrong idea of the quota: hardly a call is wasted once nothing is left.
#[test]
fn a_retry_after_is_heeded() {
    let place = Place::new("simulate-heeded");
    let scenario = |pace: &str| {
        format!(
            "title = \"Heeded\"\nduration = \"2h\"\nload = [{{ from = \"0s\", rate = \"1/1s\" }}]\n\
             service = [{{ from = \"0s\", latency = \"100ms\", provider_quota = \"600/1h\" }}]\n\
             [flow]\nquota = \"1/1s burst 5\"\n{pace}"
        )
    };
    let run = |pace: &str| Example(place.run("simulate", &["-", "--json"], scenario(pace).as_bytes()).json());
    let (blind, paced) = (run(""), run("adaptive = { pace = \"provider\" }"));
    assert_eq!(blind.number("/too_many"), 2 * 3_000);
    assert_eq!(paced.number("/too_many"), 0);
    assert!((1_100..=1_200).contains(&paced.number("/succeeded")), "{}", paced.number("/succeeded"));
    // One that has spent it all before it listens: at 11 min the limit falls by half, at 22 min to next to nothing, and stays there until the hour is over.
    let late = run("adaptive = { pace = \"provider\", every = \"11m\" }");
    assert_eq!(late.number("/provider/most_in_a_period"), 600);
    assert!(late.sum("too_many", 600, 1_320) > 300);
    assert_eq!(late.sum("too_many", 1_350, 3_600), 0);
    assert!(late.sum("succeeded", 3_600, 7_200) > 0, "and it comes back with the next hour");
}

#[test]
fn the_text_of_an_example_is_shown_and_runs() {
    let place = Place::new("simulate-show");
    for name in ["slow-downstream", "provider-429", "day-quota"] {
        let shown = place.run("simulate", &["--example", name, "--show"], b"");
        assert_eq!(shown.code, Some(0), "{shown:?}");
        let ran = place.run("simulate", &["-", "--json"], shown.out.as_bytes());
        assert_eq!(ran.out, place.run("simulate", &["--example", name, "--json"], b"").out);
    }
}
