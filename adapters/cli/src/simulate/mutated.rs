//! A scenario that somebody has broken is refused in one line that points into it, or it runs; nothing panics.

use proptest::prelude::*;

use super::check::Plan;
use super::load::Piece;
use super::{json, plot, run, table};

/// Every key that there is.
const WHOLE: &str = r#"title = "Whole"
text = "All of it."
duration = "6s"
seed = 7
[[load]]
from = "0s"
rate = "30/1s"
to_rate = "40/1s"
arrivals = "random"
cost = 2
[[load]]
from = "3s"
rate = "none"
[[load]]
from = "4s"
rate = "1/50ms"
arrivals = "even"
[[service]]
from = "0s"
latency = "30ms"
jitter = "5ms"
capacity = 3
queue = 2
failures = 10
overloaded = 2.5
provider = "60/1s burst 5"
provider_quota = "50/3s"
refuses_in = "2ms"
[[service]]
from = "2500ms"
latency = "200ms"
capacity = 1
[flow]
quota = "40/1s burst 9"
when_empty = "queue"
longest_wait = "400ms"
most_waiting = 20
timeout = "90ms"
in_flight = { law = "gradient", least = 1, initial = 4, most = 8 }
[flow.breaker]
window = "2s"
minimum_calls = 5
failure_share = 50
slow_calls = { from = "80ms", share = 60 }
consecutive_failures = 6
cool_down = "300ms"
longest_cool_down = "1s"
probes = 2
probe_patience = "500ms"
[flow.adaptive]
every = "500ms"
floor = 5
most_fall = 40
most_rise = 20
least_change = 2
pace = "provider"
errors = { cuts = [50, 75, 90], least_errors = 1, cool_down = "1s", recovery = 10 }
load = { high = 80, low = 50, least_cut = 25, most_cut = 50, recovery = 10, weight = 30 }
"#;

/// What stands in the place of values.
const VALUES: &[&str] = &[
    "0",
    "-1",
    "1",
    "80",
    "0.0001",
    "1e300",
    "-0.0",
    "nan",
    "inf",
    "9223372036854775807",
    "99999999999999999999",
    "true",
    "\"\"",
    "\"none\"",
    "\"off\"",
    "\"deny\"",
    "\"provider\"",
    "\"queue\"",
    "\"0s\"",
    "\"1ns\"",
    "\"10957d\"",
    "\"10958d\"",
    "\"18446744073709551615ns\"",
    "\"18446744073709551616ns\"",
    "\"999999999999999999999999d\"",
    "\"1/1ns\"",
    "\"0/1s\"",
    "\"1/10957d\"",
    "\"18446744073709551615/18446744073709551615ns\"",
    "\"9/1ns burst 18446744073709551615\"",
    "\"4294967296/1d burst 1 debt 5\"",
    "\"\\u0000\"",
    "[]",
    "{}",
    "[[1]]",
    "1979-05-27",
];

#[derive(Clone, Debug)]
enum Change {
    /// The value of a line.
    Value(prop::sample::Index, &'static str),
    Remove(prop::sample::Index),
    Repeat(prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, String),
}

impl Change {
    fn apply(&self, text: &str) -> String {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        if lines.is_empty() {
            return String::new();
        }
        let count = lines.len();
        match self {
            Self::Value(line, value) => {
                let line = &mut lines[line.index(count)];
                if let Some((key, _)) = line.split_once('=') {
                    *line = format!("{key}= {value}");
                }
            }
            Self::Remove(line) => _ = lines.remove(line.index(count)),
            Self::Repeat(line) => lines.push(lines[line.index(count)].clone()),
            Self::Swap(one, other) => lines.swap(one.index(count), other.index(count)),
            Self::Cut(line) => lines.truncate(line.index(count)),
            Self::Insert(line, text) => lines.insert(line.index(count), text.clone()),
        }
        lines.join("\n")
    }
}

fn any_change() -> impl Strategy<Value = Change> {
    let line = any::<prop::sample::Index>;
    prop_oneof![
        12 => (line(), prop::sample::select(VALUES)).prop_map(|(line, value)| Change::Value(line, value)),
        2 => line().prop_map(Change::Remove),
        2 => line().prop_map(Change::Repeat),
        2 => (line(), line()).prop_map(|(one, other)| Change::Swap(one, other)),
        1 => line().prop_map(Change::Cut),
        1 => (line(), "\\PC{0,12}").prop_map(|(line, text)| Change::Insert(line, text)),
    ]
}

/// Runs it, unless that takes long. Whether it could be run, or was refused as it should be.
fn try_out(text: &str) -> Result<bool, String> {
    let mut plan = match Plan::parse(text) {
        Ok(plan) => plan,
        Err(problem) => {
            let is_there = text.get(..problem.at.start).is_some();
            let is_told = !problem.reason.is_empty() && !problem.reason.contains('\n');
            return if is_there && is_told { Ok(false) } else { Err(format!("{problem:?}")) };
        }
    };
    let arrivals: u128 = plan.load.iter().map(Piece::arrivals).sum();
    let evaluations = plan.adaptive.as_ref().map_or(0, |adaptive| plan.duration / adaptive.every);
    if arrivals > 1_000 || evaluations > 1_000 {
        return Ok(false);
    }
    let record = run::run(&mut plan)?;
    let counts = record.counts;
    let refused = counts.refused_by_limiter + counts.refused_by_breaker + counts.refused_by_concurrency;
    if counts.offered != counts.admitted + refused + record.waiting_at_end {
        return Err(format!("{counts:?}"));
    }
    let told = [json::render(&plan, &record), table::render(&plan, &record), plot::render(&plan, &record)];
    if told.iter().any(String::is_empty) { Err("an empty report".to_owned()) } else { Ok(true) }
}

#[test]
fn each_value_in_each_place_is_refused_or_runs() {
    let (mut run, mut refused) = (0, 0);
    for (number, line) in WHOLE.lines().enumerate().filter(|(_, line)| line.contains('=')) {
        for value in VALUES {
            let (key, _) = line.split_once('=').unwrap_or((line, ""));
            let text: Vec<_> = WHOLE
                .lines()
                .enumerate()
                .map(|(other, line)| if other == number { format!("{key}= {value}") } else { line.to_owned() })
                .collect();
            match try_out(&text.join("\n")) {
                Ok(true) => run += 1,
                Ok(false) => refused += 1,
                Err(wrong) => panic!("{key}= {value}: {wrong}"),
            }
        }
    }
    // It could be that all are refused, or that all are run.
    assert!(run > 50 && refused > 1_000, "{run} {refused}");
}

#[test]
fn every_key_is_documented() {
    let readme = include_str!("../../README.md");
    let (_, format) = readme.split_once("### Scenarios").unwrap_or_default();
    // Also those within a line's own table.
    let keys = WHOLE.split(['\n', '{', ',']).filter_map(|part| part.split_once('=')).map(|(key, _)| key.trim());
    for key in keys.filter(|key| key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')) {
        assert!(format.contains(&format!("`{key}`")) || format.contains(&format!(" {key} = ")), "{key}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_broken_scenario_is_refused_or_runs(changes in prop::collection::vec(any_change(), 1..5)) {
        let text = changes.iter().fold(WHOLE.to_owned(), |text, change| change.apply(&text));
        if let Err(wrong) = try_out(&text) {
            prop_assert!(false, "{wrong}\n{text}");
        }
    }
}
