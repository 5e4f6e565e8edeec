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

/// The quota of a day is used to more than 98 %, and not before it ends.
#[test]
fn a_quota_of_a_day_lasts_for_the_day() {
    let ran = Example::run("day-quota");
    assert_eq!(ran.number("/quota/tokens"), 100_000);
    assert!((1..2_000).contains(&ran.number("/quota/left_at_end")), "{}", ran.0["quota"]);
    assert_eq!(ran.0["quota"]["ran_out_ns"], Value::Null);
    assert_eq!(ran.number("/admitted") + ran.number("/quota/left_at_end"), 100_000);
    // Far more is wanted: all of it would have been gone hours before.
    assert!(ran.number("/offered") > 140_000);
    let hour = 3_600;
    assert_eq!(ran.sum("offered", 0, 6 * hour), ran.sum("admitted", 0, 6 * hour));
    assert!(ran.sum("refused_by_limiter", 12 * hour, 18 * hour) > 20_000);
    // In the afternoon more passes than an even share of the day's.
    assert!(ran.sum("admitted", 12 * hour, 18 * hour) > 25_000);
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
