//! What a simulation counts adds up, is the same each time, and is drawn well.
#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc)]

mod support;

use proptest::prelude::*;
use serde_json::Value;
use support::Place;

/// Offered = admitted + refused + waiting, admitted = how calls ended + in flight, and the parts are the whole.
fn check_sums(report: &Value) {
    let number = |value: &Value, name: &str| value[name].as_u64().unwrap_or_else(|| panic!("{name}: {value}"));
    let refused = ["refused_by_limiter", "refused_by_breaker", "refused_by_concurrency"];
    let ended = ["succeeded", "failed", "too_many", "timed_out"];
    let sum = |value: &Value, names: &[&str]| names.iter().map(|name| number(value, name)).sum::<u64>();
    assert_eq!(
        number(report, "offered"),
        number(report, "admitted") + sum(report, &refused) + number(report, "waiting_at_end")
    );
    assert_eq!(number(report, "admitted"), sum(report, &ended) + number(report, "in_flight_at_end"));

    let parts = report["over_time"].as_array().unwrap();
    for name in refused.iter().chain(&ended).chain(&["offered", "admitted", "queued", "degraded"]) {
        assert_eq!(parts.iter().map(|part| number(part, name)).sum::<u64>(), number(report, name), "{name}");
    }
    let phases = ["closed_ns", "half_open_ns", "open_ns"];
    assert_eq!(parts.iter().map(|part| sum(part, &phases)).sum::<u64>(), number(report, "duration_ns"));
    if report["breaker"].is_object() {
        assert_eq!(sum(&report["breaker"], &phases), number(report, "duration_ns"));
    }
    // Who may wait is refused or admitted later than offered.
    if number(report, "most_waiting") == 0 {
        for part in parts {
            assert_eq!(number(part, "offered"), number(part, "admitted") + sum(part, &refused));
        }
    }
}

fn run(place: &Place, scenario: &str, arguments: &[&str]) -> support::Ran {
    place.run("simulate", &[&["-", "--json"], arguments].concat(), scenario.as_bytes())
}

#[test]
fn the_same_scenario_has_the_same_result() {
    let place = Place::new("simulate-same");
    let draw = |seed: u32, plot: &str| {
        let scenario = format!("{BASIC}\n").replace("seed = 1", &format!("seed = {seed}"));
        let report = run(&place, &scenario, &["--plot", plot]);
        let _ = report.json();
        (report.out, std::fs::read_to_string(place.path().join(plot)).unwrap())
    };
    let (one, again, other) = (draw(1, "1.svg"), draw(1, "2.svg"), draw(2, "3.svg"));
    assert!(one == again);
    assert_ne!(one.1, other.1);
    let offered = |text: &str| serde_json::from_str::<Value>(text).unwrap()["over_time"][3]["offered"].clone();
    assert_ne!(offered(&one.0), offered(&other.0));
}

/// Numbers that were once looked at: a change of the generator, the arithmetic or the order of events would show.
#[test]
fn a_seed_s_result_does_not_change() {
    let place = Place::new("simulate-golden");
    let report = run(&place, BASIC, &[]).json();
    check_sums(&report);
    let counts = [
        "offered",
        "admitted",
        "refused_by_limiter",
        "refused_by_breaker",
        "refused_by_concurrency",
        "succeeded",
        "failed",
        "too_many",
        "timed_out",
    ]
    .map(|name| report[name].as_u64().unwrap());
    assert_eq!(counts, GOLDEN);
}

/// Small enough to be done by hand.
#[test]
fn a_queue_works_as_on_paper() {
    let place = Place::new("simulate-paper");
    // A call each 100 ms from 50 ms on, that takes 250 ms alone in the service, and one more may wait.
    let scenario = r#"title = "Paper"
duration = "1s"
load = [{ from = "0s", rate = "10/1s" }]
service = [{ from = "0s", latency = "250ms", capacity = 1, queue = 1, refuses_in = "0s" }]
[flow]
timeout = "400ms"
"#;
    // Came 50: ends 300. 150: waits, ends 550, as its caller gives up. 250: no room. 350: waits, 550 to 800, too late at 750. 450, 550: the answer at 550
    // is first, so that 550 waits: 800 to 1050, gives up at 950. 650, 750: no room. 850: waits. 950: no room.
    let report = run(&place, scenario, &[]).json();
    check_sums(&report);
    let count = |name: &str| report[name].as_u64().unwrap();
    assert_eq!(
        [count("offered"), count("succeeded"), count("too_many"), count("timed_out"), count("in_flight_at_end")],
        [10, 2, 5, 2, 1]
    );
    assert_eq!(report["latency_median_ns"].as_u64().map(|nanos| nanos / 10_000_000), Some(40));
}

/// A queue before the service, of one token each 100 ms, and a second place in line.
#[test]
fn who_waits_is_served_in_order_or_refused() {
    let place = Place::new("simulate-queue");
    let scenario = |flow: &str| {
        format!(
            "title = \"Queue\"\nduration = \"1s\"\nload = [{{ from = \"0s\", rate = \"20/1s\" }}]\n\
             service = [{{ from = \"0s\", latency = \"1ms\" }}]\n[flow]\nquota = \"10/1s burst 1\"\n{flow}"
        )
    };
    let names = ["offered", "admitted", "queued", "refused_by_limiter", "degraded", "waiting_at_end", "most_waiting"];
    let counts = |flow: &str| {
        let report = run(&place, &scenario(flow), &[]).json();
        check_sums(&report);
        (names.map(|name| report[name].as_u64().unwrap()), report)
    };
    // They come at 25 ms, 75 ms, ..., 975 ms, and tokens at 25 ms, 125 ms, ..., 925 ms.
    assert_eq!(counts("").0, [20, 10, 0, 10, 0, 0, 0]);
    assert_eq!(counts("when_empty = \"degrade\"").0, [20, 10, 0, 10, 10, 0, 0]);
    // The first passes, and behind it a line grows.
    let (found, report) = counts("when_empty = \"queue\"");
    assert_eq!(found, [20, 10, 9, 0, 0, 10, 10]);
    // The k-th of those waits for 50 ms * k.
    assert_eq!(report["waited_median_ns"].as_u64().map(|nanos| nanos / 5_000_000), Some(50));
    // With two places in line: one enters each 100 ms, and one of the two that come meanwhile finds it full.
    let (found, report) = counts("when_empty = \"queue\"\nmost_waiting = 2");
    assert_eq!((found[1], found[5], found[6]), (10, 2, 2));
    assert!(report["waited_p99_ns"].as_u64().unwrap() < 205_000_000);
    // Nobody waits longer than that, and who would have to is refused by then.
    let (found, report) = counts("when_empty = \"queue\"\nlongest_wait = \"120ms\"");
    assert_eq!(found[1], 10);
    assert!(found[3] > 5 && report["waited_p99_ns"].as_u64().unwrap() < 122_000_000);
}

#[test]
fn rates_are_exact_and_ramps_have_their_mean() {
    let place = Place::new("simulate-rates");
    let scenario = |load: &str| {
        format!(
            "title = \"Rates\"\nduration = \"100s\"\nload = [{load}]\nservice = [{{ from = \"0s\", latency = \"1ms\" }}]\n"
        )
    };
    let offered = |load: &str| run(&place, &scenario(load), &[]).json()["offered"].as_u64().unwrap();
    assert_eq!(offered(r#"{ from = "0s", rate = "29/4s" }"#), 725);
    assert_eq!(offered(r#"{ from = "0s", rate = "none" }"#), 0);
    assert_eq!(offered(r#"{ from = "0s", rate = "none", to_rate = "20/1s" }"#), 1_000);
    assert_eq!(offered(r#"{ from = "0s", rate = "30/1s", to_rate = "10/1s" }"#), 2_000);
    assert_eq!(offered(r#"{ from = "20s", rate = "5/1s" }, { from = "60s", rate = "1/2s" }"#), 220);
    let random = offered(r#"{ from = "0s", rate = "100/1s", arrivals = "random" }"#);
    // Within four standard deviations.
    assert!(random.abs_diff(10_000) < 400 && random != 10_000, "{random}");
}

#[test]
fn the_picture_is_well_formed_and_keeps_within_its_frame() {
    let place = Place::new("simulate-plot");
    let scenario =
        BASIC.replace("title = \"Basic\"", "title = \"a < b & \\\"c\\\"\"\ntext = \"Ends with ]]> and <svg>.\"");
    let _ = run(&place, &scenario, &["--plot", "out.svg"]).json();
    let text = std::fs::read_to_string(place.path().join("out.svg")).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let root = document.root_element();
    let size = |name: &str| root.attribute(name).unwrap().parse::<f64>().unwrap();
    let (width, height) = (size("width"), size("height"));
    let words: Vec<_> = document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
        .map(|node| node.text().unwrap_or_default().trim().to_owned())
        .collect();
    for word in [
        "a < b & \"c\"",
        "Ends with ]]> and <svg>.",
        "requests per second",
        "offered",
        "admitted",
        "succeeded",
        "limit in force",
        "not served, per second",
        "refused by the breaker",
        "timed out",
        "latency (ms)",
        "calls in flight",
        "limit in flight",
        "breaker (% of time)",
        "half-open",
        "time from the beginning (s)",
    ] {
        assert!(words.iter().any(|text| text == word), "{word} in {words:?}");
    }
    for node in document.descendants().filter(|node| node.is_element()) {
        for (name, most) in [("x", width), ("y", height), ("x1", width), ("y1", height), ("cx", width), ("cy", height)]
        {
            if let Some(value) = node.attribute(name) {
                let value: f64 = value.parse().unwrap();
                assert!((0.0..=most).contains(&value), "{node:?}");
            }
        }
        for point in node.attribute("points").into_iter().flat_map(str::split_whitespace) {
            let (x, y) = point.split_once(',').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((0.0..=width).contains(&x) && (0.0..=height).contains(&y), "{node:?}");
        }
    }
}

#[test]
fn extremes_are_drawn_too() {
    let place = Place::new("simulate-extremes");
    for (duration, rate, latency) in
        [("1ns", "1/1ns", "0s"), ("10956d", "26/1d", "10956d"), ("7ns", "none", "30d"), ("1s", "none", "1ns")]
    {
        let scenario = format!(
            "title = \"x\"\nduration = \"{duration}\"\nseed = 9223372036854775807\nload = [{{ from = \"0s\", rate = \"{rate}\", arrivals = \"random\", cost = 4294967295 }}]\n\
             service = [{{ from = \"0s\", latency = \"{latency}\", jitter = \"{latency}\", capacity = 400000, queue = 0 }}]\n\
             [flow]\nquota = \"4294967295/1s\"\ntimeout = \"10000d\"\nin_flight = 400000\n[flow.breaker]\n"
        );
        let report = run(&place, &scenario, &["--plot", "out.svg"]).json();
        check_sums(&report);
        let text = std::fs::read_to_string(place.path().join("out.svg")).unwrap();
        assert!(roxmltree::Document::parse(&text).is_ok(), "{duration}");
    }
}

fn any_scenario() -> impl Strategy<Value = String> {
    let load = (1_u32..300, 1_u32..300, any::<bool>(), 1_u32..4);
    let service = (0_u32..900, 0_u32..100, 1_u32..30, 0_u32..30, 0_u32..60, 0_u32..40, any::<bool>());
    let flow = (
        1_u32..200,
        4_u32..50,
        prop::option::of(1_u32..700),
        0_usize..4,
        0_usize..5,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    (any::<u32>(), prop::collection::vec(load, 1..4), prop::collection::vec(service, 1..4), flow).prop_map(
        |(seed, loads, services, (quota, burst, timeout, in_flight, when_empty, has_breaker, adapts, has_pace))| {
            let mut text = format!("title = \"Random\"\nduration = \"20s\"\nseed = {seed}\n");
            for (index, (rate, to_rate, is_random, cost)) in loads.into_iter().enumerate() {
                let arrivals = if is_random { "random" } else { "even" };
                text += &format!(
                    "[[load]]\nfrom = \"{}s\"\nrate = \"{rate}/1s\"\nto_rate = \"{to_rate}/1s\"\narrivals = \"{arrivals}\"\ncost = {cost}\n",
                    index * 5
                );
            }
            for (index, (latency, jitter, capacity, queue, failures, overloaded, has_provider)) in services.into_iter().enumerate() {
                text += &format!(
                    "[[service]]\nfrom = \"{}s\"\nlatency = \"{latency}ms\"\njitter = \"{jitter}ms\"\ncapacity = {capacity}\n\
                     queue = {queue}\nfailures = {failures}\noverloaded = {overloaded}\n",
                    index * 4
                );
                if has_provider {
                    text += "provider = \"40/1s\"\n";
                }
            }
            text += &format!("[flow]\nquota = \"{quota}/1s burst {burst}\"\n");
            if let Some(timeout) = timeout {
                text += &format!("timeout = \"{timeout}ms\"\n");
            }
            text += ["", "in_flight = 7\n", "in_flight = { law = \"aimd\" }\n", "in_flight = { law = \"gradient\", most = 50 }\n"][in_flight];
            text += [
                "",
                "when_empty = \"degrade\"\n",
                "when_empty = \"queue\"\n",
                "when_empty = \"queue\"\nmost_waiting = 3\n",
                "when_empty = \"queue\"\nlongest_wait = \"300ms\"\n",
            ][when_empty];
            if has_breaker {
                text += "[flow.breaker]\nwindow = \"2s\"\nminimum_calls = 5\ncool_down = \"1s\"\n";
            }
            if adapts {
                text += "[flow.adaptive]\nevery = \"1s\"\nerrors = { cool_down = \"2s\" }\nload = {}\n";
                if has_pace {
                    text += "pace = \"500/9s\"\n";
                }
            }
            text
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_scenario_adds_up(scenario in any_scenario()) {
        let place = Place::new("simulate-random");
        check_sums(&run(&place, &scenario, &["--plot", "out.svg"]).json());
        let text = std::fs::read_to_string(place.path().join("out.svg")).unwrap();
        prop_assert!(roxmltree::Document::parse(&text).is_ok());
    }

    #[test]
    fn no_text_makes_it_panic(at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 0..6)) {
        let place = Place::new("simulate-mutated");
        let mut text = BASIC.as_bytes().to_vec();
        let at = at.index(text.len());
        text.splice(at..(at + bytes.len()).min(BASIC.len()), bytes);
        let ran = place.run("simulate", &["-", "--json"], &text);
        prop_assert!(matches!(ran.code, Some(0 | 2)), "{:?}", ran);
        prop_assert!(ran.code == Some(0) || ran.err.lines().count() == 1, "{:?}", ran);
    }
}

const BASIC: &str = r#"title = "Basic"
duration = "60s"
seed = 1
[[load]]
from = "0s"
rate = "50/1s"
arrivals = "random"
[[service]]
from = "0s"
latency = "100ms"
jitter = "50ms"
capacity = 10
queue = 5
failures = 5
[[service]]
from = "20s"
latency = "900ms"
capacity = 10
[[service]]
from = "40s"
latency = "100ms"
capacity = 10
[flow]
quota = "60/1s burst 20"
timeout = "500ms"
in_flight = { law = "aimd", most = 30 }
[flow.breaker]
cool_down = "2s"
[flow.adaptive]
every = "1s"
errors = { cool_down = "3s" }
load = { high = 90 }
"#;

const GOLDEN: [u64; 9] = [3_034, 2_008, 289, 718, 19, 1_816, 54, 0, 136];
