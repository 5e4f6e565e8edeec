//! Random numbers that are the same for a seed everywhere.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

#[derive(Clone, Debug)]
pub(super) struct Random(Pcg64);

impl Random {
    /// Streams of the same seed have nothing to do with each other.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        Self(Pcg64::new(u128::from(seed), u128::from(stream)))
    }

    /// Below `end`; 0 for 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        // No number is off its share by more than 2^-64.
        ((u128::from(self.0.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// True in so many of a million cases.
    pub(super) fn happens(&mut self, millionths: u32) -> bool {
        self.below(1_000_000) < u64::from(millionths)
    }

    /// How far it is to the next event of a Poisson process whose events are `mean` apart, which is below 2^64: by comparisons of uniform
    /// numbers alone (John von Neumann, *Various Techniques Used in Connection With Random Digits*, 1951), because logarithms differ by machine.
    pub(super) fn exponential(&mut self, mean: u128) -> u128 {
        let mut whole = 0;
        loop {
            let first = self.0.next_u64();
            let (mut last, mut length) = (first, 1_u32);
            loop {
                let next = self.0.next_u64();
                if next >= last {
                    break;
                }
                (last, length) = (next, length + 1);
            }
            if length % 2 == 1 {
                return whole + ((mean * u128::from(first)) >> 64);
            }
            whole += mean;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_s_numbers_never_change() {
        let mut random = Random::new(7, 1);
        let numbers: Vec<_> = (0..4).map(|_| random.below(1_000_000)).collect();
        assert_eq!(numbers, FIRST);
        assert_ne!(Random::new(7, 2).below(u64::MAX), Random::new(7, 1).below(u64::MAX));
    }

    #[test]
    fn distances_are_exponential() {
        let (mut random, count, mean) = (Random::new(1, 0), 200_000_u32, 1_000_000_u128);
        let distances: Vec<_> = (0..count).map(|_| random.exponential(mean)).collect();
        let average = distances.iter().sum::<u128>() / u128::from(count);
        assert!(average.abs_diff(mean) < mean / 100, "{average}");
        // More than n times the mean: e^-n of them.
        for (times, share) in [(1, 367_879), (2, 135_335), (3, 49_787)] {
            let longer = distances.iter().filter(|distance| **distance > times * mean).count() as u64;
            assert!((longer * 5).abs_diff(share) < 4_000, "{times}: {longer}");
        }
    }

    #[test]
    fn a_share_is_a_share() {
        let mut random = Random::new(3, 0);
        let mut count = |millionths| (0..100_000).filter(|_| random.happens(millionths)).count();
        assert_eq!((count(0), count(1_000_000)), (0, 100_000));
        assert!(count(250_000).abs_diff(25_000) < 700);
    }

    const FIRST: [u64; 4] = [877_870, 532_164, 87_594, 281_441];
}
