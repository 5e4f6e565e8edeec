//! The simulator does what a slow model of it does, in every part of the time, whatever the scenario.
#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc)]

mod model;
mod support;

use model::{PHASES, Part, any_scenario, simulate};
use proptest::prelude::*;
use serde_json::Value;
use support::Place;

/// What the command says of a part, but for how long calls took, which is only known to a step of its histogram.
fn part_of(row: &Value) -> Part {
    let number = |name: &str| row[name].as_u64().unwrap_or_else(|| panic!("{name} in {row}"));
    Part {
        offered: number("offered"),
        admitted: number("admitted"),
        queued: number("queued"),
        refused_by_limiter: number("refused_by_limiter"),
        refused_by_breaker: number("refused_by_breaker"),
        refused_by_concurrency: number("refused_by_concurrency"),
        degraded: number("degraded"),
        succeeded: number("succeeded"),
        failed: number("failed"),
        too_many: number("too_many"),
        timed_out: number("timed_out"),
        most_in_flight: number("most_in_flight"),
        most_waiting: number("most_waiting"),
        in_flight_limit: row["in_flight_limit"].as_u64(),
        phases: PHASES.map(number),
        took: Vec::new(),
    }
}

/// The time within which so many of a hundred ended, exactly.
fn quantile(took: &mut [u64], hundredths: usize) -> Option<u64> {
    took.sort_unstable();
    let rank = (took.len() * hundredths).div_ceil(100).max(1);
    took.get(rank - 1).copied()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_part_of_the_time_is_as_the_model_says(scenario in any_scenario()) {
        let place = Place::new("simulate-model");
        let report = place.run("simulate", &["-", "--json"], scenario.text().as_bytes()).json();
        let (parts, refused) = simulate(&scenario);
        let rows = report["over_time"].as_array().unwrap();
        prop_assert_eq!(rows.len(), parts.len());
        for (row, mut part) in rows.iter().zip(parts) {
            let mut took = std::mem::take(&mut part.took);
            prop_assert_eq!(part_of(row), part, "from {} ns on, of\n{}", &row["from_ns"], scenario.text());
            for (name, hundredths) in [("latency_median_ns", 50), ("latency_p99_ns", 99)] {
                let (said, exact) = (row[name].as_u64(), quantile(&mut took, hundredths));
                let is_close = said.zip(exact).is_some_and(|(said, exact)| (exact..=exact + exact / 64).contains(&said));
                prop_assert!(is_close || (said, exact) == (None, None), "{name}: {said:?}, not {exact:?}");
            }
        }
        prop_assert_eq!(report["provider"]["refused"].as_u64().unwrap_or(0), refused);
    }
}
