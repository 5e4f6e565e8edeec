//! When requests arrive.

use super::Time;
use super::random::Random;
use super::scenario::{Load, Scenario};

/// A request, in parts that divide evenly at every rate and time of these scenarios.
const REQUEST: u128 = 3_600_000_000_000;

/// The times, and costs. Requests are summed up; the first arrives at half of one, and each other one request later. Of random ones the distance is one on average.
pub(super) fn arrivals(scenario: &Scenario) -> Vec<(Time, u64)> {
    let mut random = Random::new(scenario.seed, 1);
    let mut arrivals = Vec::new();
    let mut sum = 0;
    let mut mark = match &scenario.loads[0] {
        Load { is_random: true, .. } => random.exponential(REQUEST),
        Load { is_random: false, .. } => REQUEST / 2,
    };
    for (index, load) in scenario.loads.iter().enumerate() {
        let end = scenario.loads.get(index + 1).map_or(scenario.duration, |next| next.from);
        let in_all = u128::from(end - load.from) * u128::from(load.requests) * REQUEST;
        assert_eq!(in_all % u128::from(load.period), 0, "scenarios are chosen so that nothing is rounded");
        let in_all = in_all / u128::from(load.period);
        while mark < sum + in_all {
            let passed = (mark - sum) * u128::from(load.period) / (u128::from(load.requests) * REQUEST);
            arrivals.push((load.from + passed as u64, load.cost));
            mark += if load.is_random { random.exponential(REQUEST) } else { REQUEST };
        }
        sum += in_all;
    }
    arrivals
}
