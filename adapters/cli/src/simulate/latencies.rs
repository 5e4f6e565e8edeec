//! How long calls took, in few counts.

/// A histogram: 64 steps for each doubling, so that what it tells is less than 1.6 % too long.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies {
    /// As many as have been needed.
    counts: Vec<u64>,
    total: u64,
}

impl Latencies {
    pub(super) fn add(&mut self, nanos: u64) {
        let index = index_of(nanos);
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.total += 1;
    }

    /// The time within which so many of a thousand ended, rounded up to a step.
    pub(super) fn quantile(&self, thousandths: u64) -> Option<u64> {
        if self.total == 0 {
            return None;
        }
        let rank = (u128::from(self.total) * u128::from(thousandths)).div_ceil(1_000).max(1);
        let mut sum = 0;
        self.counts
            .iter()
            .position(|count| {
                sum += u128::from(*count);
                sum >= rank
            })
            .map(end_of)
    }
}

fn index_of(nanos: u64) -> usize {
    let doublings = nanos.checked_ilog2().unwrap_or(0).saturating_sub(STEP_BITS);
    // The last term is from STEPS to twice that, or, without doublings, from 0.
    ((u64::from(doublings) << STEP_BITS) + (nanos >> doublings)) as usize
}

/// The longest time that is counted there.
fn end_of(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * STEPS {
        return index;
    }
    let doublings = (index >> STEP_BITS) - 1;
    let first = u128::from(STEPS + (index & (STEPS - 1))) << doublings;
    u64::try_from(first + (1 << doublings) - 1).unwrap_or(u64::MAX)
}

const STEP_BITS: u32 = 6;
const STEPS: u64 = 1 << STEP_BITS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_counted_where_it_is_told_of() {
        let times = (0..64).flat_map(|bits| [0, 1, 17].map(|more| (1_u64 << bits) + more)).chain([0, u64::MAX]);
        for nanos in times {
            let end = end_of(index_of(nanos));
            assert!(end >= nanos && end - nanos <= nanos / 64, "{nanos}: {end}");
            assert_eq!(index_of(end), index_of(nanos));
            assert!(end == u64::MAX || index_of(end + 1) == index_of(nanos) + 1, "{nanos}");
        }
    }

    #[test]
    fn quantiles_are_ranks() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(500), None);
        (1..=100).for_each(|nanos| latencies.add(nanos));
        assert_eq!([1, 500, 990, 1_000].map(|part| latencies.quantile(part)), [1, 50, 99, 100].map(Some));
    }
}
