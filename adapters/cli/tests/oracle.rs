//! Every decision against a slow computation of another kind.
//!
//! The command counts consumed units against generated ones, in 64 bits and from origins that move. Here a bucket is a
//! level that rises and falls, in whole fractions of a token and 128 bits, and a window is an entry of a map; lines are
//! taken apart by splitting at spaces, and dates are counted by hand. A sliding log is a list of everything admitted, and a
//! sliding counter a map from window to count, multiplied out instead of divided.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc)]

mod support;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::Place;

const SECOND: i128 = 1_000_000_000;

#[derive(Clone)]
struct Request {
    nanos: i128,
    key: String,
    cost: i128,
}

/// A limit, spelled and in numbers.
#[derive(Clone, Copy)]
struct Limit {
    text: &'static str,
    tokens: i128,
    nanos: i128,
    burst: i128,
}

const fn limit(text: &'static str, tokens: i128, nanos: i128, burst: i128) -> Limit {
    Limit { text, tokens, nanos, burst }
}

#[derive(Default)]
struct Verdicts {
    requests: u64,
    denied: u64,
    keys: HashSet<String>,
    /// By key: requests, refusals, time of the first refusal.
    of_key: BTreeMap<String, (u64, u64, i128)>,
}

impl Verdicts {
    fn note(&mut self, request: &Request, is_admitted: bool) {
        self.requests += 1;
        self.keys.insert(request.key.clone());
        let of_key = self.of_key.entry(request.key.clone()).or_default();
        of_key.0 += 1;
        if !is_admitted {
            self.denied += 1;
            of_key.1 += 1;
            if of_key.1 == 1 {
                of_key.2 = request.nanos;
            }
        }
    }

    /// Against a report with `--top 1000000`.
    #[track_caller]
    fn assert_are_those_of(&self, report: &Value, what: &str) {
        let mut denied: Vec<_> = self.of_key.iter().filter(|(_, of_key)| of_key.1 > 0).collect();
        denied.sort_by_key(|(_, of_key)| std::cmp::Reverse(of_key.1));
        let number = |name: &str| report[name].as_u64().unwrap();
        assert_eq!(
            [number("requests"), number("denied"), number("admitted"), number("keys"), number("denied_keys")],
            [self.requests, self.denied, self.requests - self.denied, self.keys.len() as u64, denied.len() as u64],
            "{what}"
        );
        let expected: Vec<_> = denied
            .into_iter()
            .map(|(key, (requests, denied, first))| {
                let first = jiff::Timestamp::from_nanosecond(*first).unwrap().to_string();
                json!({ "key": key, "requests": requests, "denied": denied, "first_denied_at": first })
            })
            .collect();
        assert_eq!(report["top_denied"], Value::Array(expected), "{what}");
    }
}

/// A level in parts of 1/nanos of a token, as of the latest admission. A late request sees the level as it was then less
/// what has been generated since.
fn buckets(requests: &[Request], limit: Limit) -> Verdicts {
    let capacity = limit.burst * limit.nanos;
    let mut levels: HashMap<&str, (i128, i128)> = HashMap::new();
    let mut verdicts = Verdicts::default();
    for request in requests {
        let now = request.nanos;
        let level = levels
            .get(request.key.as_str())
            .map_or(capacity, |(level, since)| (level + (now - since) * limit.tokens).min(capacity));
        let needed = request.cost * limit.nanos;
        let is_admitted = needed == 0 || needed <= level;
        if is_admitted && needed > 0 {
            let entry = levels.entry(&request.key).or_insert((capacity, now));
            if now >= entry.1 {
                *entry = (level, now);
            }
            entry.0 -= needed;
        }
        verdicts.note(request, is_admitted);
    }
    verdicts
}

/// What was taken in each window of each key; a late request belongs to the latest window its key has taken from.
fn windows(requests: &[Request], limit: Limit) -> Verdicts {
    let mut taken: HashMap<&str, BTreeMap<i128, i128>> = HashMap::new();
    let mut verdicts = Verdicts::default();
    for request in requests {
        let of_key = taken.entry(&request.key).or_default();
        let own = (request.nanos - request.nanos.rem_euclid(limit.nanos)) / limit.nanos;
        let window = of_key.last_key_value().map_or(own, |(latest, _)| own.max(*latest));
        let already = of_key.get(&window).copied().unwrap_or(0);
        let is_admitted = already + request.cost <= limit.tokens;
        if is_admitted && request.cost > 0 {
            of_key.insert(window, already + request.cost);
        }
        verdicts.note(request, is_admitted);
    }
    verdicts
}

/// Every admission of each key; a late request belongs where its key's latest admission is.
fn logs(requests: &[Request], limit: Limit) -> Verdicts {
    let mut admitted: HashMap<&str, Vec<(i128, i128)>> = HashMap::new();
    let mut verdicts = Verdicts::default();
    for request in requests {
        let of_key = admitted.entry(&request.key).or_default();
        // The latest is the last: whatever is admitted is put there.
        let now = of_key.last().map_or(request.nanos, |(latest, _)| request.nanos.max(*latest));
        let recent = of_key.iter().rev().take_while(|(at, _)| now - at < limit.nanos);
        let used: i128 = recent.map(|(_, cost)| cost).sum();
        let is_admitted = used + request.cost <= limit.tokens;
        if is_admitted && request.cost > 0 {
            of_key.push((now, request.cost));
        }
        verdicts.note(request, is_admitted);
    }
    verdicts
}

/// What was taken in each window of each key, of which the one before counts by what is left of this one, in parts of a
/// nanosecond; a late request belongs to the start of the latest window its key has taken from.
fn counters(requests: &[Request], limit: Limit) -> Verdicts {
    let mut taken: HashMap<&str, BTreeMap<i128, i128>> = HashMap::new();
    let mut verdicts = Verdicts::default();
    for request in requests {
        let of_key = taken.entry(&request.key).or_default();
        let elapsed = request.nanos.rem_euclid(limit.nanos);
        let own = (request.nanos - elapsed) / limit.nanos;
        let (window, left) = match of_key.last_key_value() {
            Some((latest, _)) if *latest > own => (*latest, limit.nanos),
            _ => (own, limit.nanos - elapsed),
        };
        let count = |window: i128| of_key.get(&window).copied().unwrap_or(0);
        let estimate = count(window - 1) * left + count(window) * limit.nanos;
        let is_admitted = request.cost == 0 || estimate + request.cost * limit.nanos <= limit.tokens * limit.nanos;
        if is_admitted && request.cost > 0 {
            *of_key.entry(window).or_default() += request.cost;
        }
        verdicts.note(request, is_admitted);
    }
    verdicts
}

/// Days from 1970-01-01 by adding up years and months.
fn days_from_date(year: i128, month: usize, day: i128) -> i128 {
    let leap = |year: i128| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut days: i128 = if year >= 1970 {
        (1970..year).map(|year| 365 + i128::from(leap(year))).sum()
    } else {
        -(year..1970).map(|year| 365 + i128::from(leap(year))).sum::<i128>()
    };
    for (index, length) in [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].into_iter().enumerate().take(month) {
        days += length + i128::from(index == 1 && leap(year));
    }
    days + day - 1
}

/// Requests of a well-formed combined log, in file order.
fn read_combined(text: &str, by: &str, is_bytes: bool) -> Vec<Request> {
    text.lines()
        .map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            let stamp: Vec<_> = words[3][1..].split(['/', ':']).collect();
            let month = "JanFebMarAprMayJunJulAugSepOctNovDec".find(stamp[1]).unwrap() / 3;
            let number = |index: usize| stamp[index].parse::<i128>().unwrap();
            let zone = &words[4][..5];
            let minutes = zone[1..3].parse::<i128>().unwrap() * 60 + zone[3..].parse::<i128>().unwrap();
            let east = if zone.starts_with('-') { -minutes } else { minutes };
            let days = days_from_date(number(2), month, number(0));
            let seconds = days * 86_400 + number(3) * 3_600 + number(4) * 60 + number(5) - east * 60;
            let path = words[6].split('?').next().unwrap();
            // After the request: its last quote may belong to any of the next words.
            let end = (7..).find(|index| words[*index].ends_with('"')).unwrap();
            Request {
                nanos: seconds * SECOND,
                key: match by {
                    "ip" => words[0],
                    "path" => path,
                    "method" => words[5].trim_start_matches('"'),
                    "status" => words[end + 1],
                    _ => "all",
                }
                .to_owned(),
                cost: if is_bytes { words[end + 2].parse().unwrap_or(0) } else { 1 },
            }
        })
        .collect()
}

fn sorted(requests: &[Request]) -> Vec<Request> {
    let mut requests = requests.to_vec();
    requests.sort_by_key(|request| request.nanos);
    requests
}

const MINUTE: i128 = 60 * SECOND;
const DAY: i128 = 86_400 * SECOND;

/// Round ones, fractions of a nanosecond, tiny and long ones.
const LIMITS: [Limit; 12] = [
    limit("10/1m", 10, MINUTE, 10),
    limit("1/1s burst 3", 1, SECOND, 3),
    limit("7/3s burst 20", 7, 3 * SECOND, 20),
    limit("7/3s", 7, 3 * SECOND, 7),
    limit("1/7s burst 1", 1, 7 * SECOND, 1),
    limit("300/1h", 300, 60 * MINUTE, 300),
    limit("11/13m burst 2", 11, 13 * MINUTE, 2),
    limit("3/1d", 3, DAY, 3),
    limit("1/30d", 1, 30 * DAY, 1),
    limit("2/1m", 2, MINUTE, 2),
    limit("1000/1s", 1_000, SECOND, 1_000),
    limit("1/100000d", 1, 100_000 * DAY, 1),
];

/// Every limit and algorithm, in order and as a stream.
fn compare(place: &Place, file: &str, requests: &[Request], extra: &[&str], limits: &[Limit]) {
    let in_order = sorted(requests);
    for limit in limits {
        for algorithm in ["token-bucket", "fixed-window", "sliding-log", "sliding-counter"] {
            if algorithm != "token-bucket" && limit.burst != limit.tokens {
                continue;
            }
            // What does not fit two counts and a window's number into a word is refused: `options.rs` says how.
            if algorithm == "sliding-counter" && (limit.tokens > 33_554_431 || limit.nanos > 5_478 * DAY) {
                continue;
            }
            for is_stream in [false, true] {
                let mut arguments = vec![file, "--limit", limit.text, "--algorithm", algorithm, "--top", "1000000"];
                arguments.extend(extra);
                if is_stream {
                    arguments.push("--stream");
                }
                let taken = if is_stream { requests } else { &in_order };
                let verdicts = match algorithm {
                    "token-bucket" => buckets(taken, *limit),
                    "fixed-window" => windows(taken, *limit),
                    "sliding-log" => logs(taken, *limit),
                    _ => counters(taken, *limit),
                };
                let report = place.json(&arguments);
                verdicts.assert_are_those_of(&report, &format!("{arguments:?}"));
                let mut latest = i128::MIN;
                let late = requests.iter().filter(|request| {
                    latest = latest.max(request.nanos);
                    request.nanos < latest
                });
                assert_eq!(report["out_of_order"], late.count() as u64, "{arguments:?}");
            }
        }
    }
}

#[test]
fn the_shared_log_is_decided_as_the_slow_computation_says() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = workspace.join("../shared");
    if !shared.exists() {
        eprintln!("SKIPPED: ../shared is not there, and the log of 10 000 requests with it; the other tests still run");
        return;
    }
    let file = shared.join("data/access.log");
    let text = fs::read_to_string(&file).expect("../shared is there, so ../shared/data/access.log must be");
    let place = Place::new("oracle-shared");
    let file = file.canonicalize().unwrap();
    let file = file.to_str().unwrap();

    // Known beforehand, so that a mistake shared by both computations shows.
    let report = place.json(&[file, "--limit", "10/1m", "--by", "ip"]);
    let numbers = |report: &Value| {
        ["requests", "admitted", "denied", "keys", "denied_keys", "unparsed"].map(|name| report[name].as_u64().unwrap())
    };
    assert_eq!(numbers(&report), [10_000, 8_987, 1_013, 1_753, 54, 0]);
    let report = place.json(&[file, "--limit", "10/1m", "--by", "ip", "--algorithm", "fixed-window"]);
    assert_eq!(numbers(&report), [10_000, 8_271, 1_729, 1_753, 79, 0]);
    let report = place.json(&[file, "--limit", "10/1m", "--by", "ip", "--algorithm", "sliding-log"]);
    assert_eq!(numbers(&report)[..3], [10_000, 8_271, 1_729]);

    for by in ["ip", "path", "method", "status", "all"] {
        let limits = if by == "ip" { &LIMITS[..] } else { &LIMITS[..2] };
        compare(&place, file, &read_combined(&text, by, false), &["--by", by], limits);
    }
    let limits = [
        limit("1000000/1m", 1_000_000, MINUTE, 1_000_000),
        limit("50000000/1d", 50_000_000, DAY, 50_000_000),
        limit("30000000/1d", 30_000_000, DAY, 30_000_000),
    ];
    for by in ["ip", "all"] {
        compare(&place, file, &read_combined(&text, by, true), &["--by", by, "--cost", "bytes"], &limits);
    }
}

#[test]
fn the_example_log_is_decided_as_the_slow_computation_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/access.log");
    let text = fs::read_to_string(&file).unwrap();
    let place = Place::new("oracle-example");
    for by in ["ip", "path", "method", "status", "all"] {
        compare(&place, file.to_str().unwrap(), &read_combined(&text, by, false), &["--by", by], &LIMITS[..4]);
    }
    let report = place.json(&[file.to_str().unwrap(), "--strict"]);
    assert!(report["denied"].as_u64().unwrap() > 20 && report["out_of_order"].as_u64().unwrap() > 1, "{report}");
}

/// Knuth's MMIX generator: the same logs on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> i128 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i128::from((self.0 >> 33) % bound)
    }
}

#[test]
fn generated_logs_are_decided_as_the_slow_computation_says() {
    let place = Place::new("oracle-generated");
    // The first instant, the largest step between lines, how far lines may be late, all in seconds, and a fraction.
    let shapes: [(i128, u64, u64, u64); 5] = [
        (1_700_000_000, 2, 1, 1),
        (1_700_000_000, 40, 200, 1),
        // From before 1970 over the epoch.
        (-40_000, 90, 30, 1),
        // A century, with pauses of up to half a year.
        (-1_500_000_000, 15_768_000, 300, 1),
        // Milliseconds.
        (1_000_000_000, 3, 2, 1_000),
    ];
    for (shape, (start, step, lateness, parts)) in shapes.into_iter().enumerate() {
        let mut numbers = Numbers(shape as u64 + 1);
        let (mut now, mut requests, mut log) = (start * i128::from(parts), Vec::new(), String::new());
        for _ in 0..1_500 {
            // Bunches, so that limits are reached.
            if numbers.below(4) == 0 {
                now += numbers.below(step * parts + 1);
            }
            let late = if numbers.below(5) == 0 { numbers.below(lateness * parts + 1) } else { 0 };
            let nanos = (now - late) * (SECOND / i128::from(parts));
            let (key, cost) = (format!("k{}", numbers.below(6)), numbers.below(5));
            let time = jiff::Timestamp::from_nanosecond(nanos).unwrap();
            log.push_str(&format!("{time} {key} {cost}\n"));
            requests.push(Request { nanos, key, cost });
        }
        let file = format!("{shape}.log");
        place.write(&file, log);
        let pattern = r"^(?<time>\S+) (?<key>\S+) (?<cost>\d+)$";
        compare(&place, &file, &requests, &["--pattern", pattern, "--strict"], &LIMITS[..11]);
    }
}

#[test]
fn a_rogue_line_decades_away_changes_nothing_for_the_others() {
    let place = Place::new("oracle-rogue");
    let mut log = String::new();
    let mut requests = Vec::new();
    let mut push = |seconds: i128, key: &str| {
        let nanos = seconds * SECOND;
        log.push_str(&format!(
            "{{\"time\":\"{}\",\"ip\":\"{key}\"}}\n",
            jiff::Timestamp::from_nanosecond(nanos).unwrap()
        ));
        requests.push(Request { nanos, key: key.to_owned(), cost: 1 });
    };
    for round in 0..200 {
        push(1_715_000_000 + round / 4, if round % 3 == 0 { "a" } else { "b" });
        if round == 100 {
            // 1970, 1890 and 2100, of a key that others share and of one of its own.
            for seconds in [0, -2_500_000_000, 4_100_000_000] {
                push(seconds, "a");
                push(seconds, "rogue");
            }
        }
    }
    place.write("a.log", log);
    compare(&place, "a.log", &requests, &[], &LIMITS[..9]);

    // What cannot be followed is refused in one line: a limit that takes 30 years to refill, over a century.
    let ran = place.replay(&["a.log", "--limit", "1/11000d burst 9"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (Some(2), "", 1), "{ran:?}");
    assert!(ran.err.contains("--limit 1/11000d burst 9") && ran.err.contains("15 years"), "{ran:?}");
}
