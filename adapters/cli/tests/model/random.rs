//! PCG XSL RR 128/64 (Melissa O'Neill, *PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random Number Generation*,
//! 2014), and what is drawn from it.

pub(super) struct Random {
    state: u128,
    increment: u128,
}

impl Random {
    pub(super) fn new(seed: u64, stream: u128) -> Self {
        let increment = 2 * stream + 1;
        let mut random = Self { state: u128::from(seed).wrapping_add(increment), increment };
        random.step();
        random
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645).wrapping_add(self.increment);
    }

    fn next(&mut self) -> u64 {
        self.step();
        let (high, low) = ((self.state >> 64) as u64, self.state as u64);
        (high ^ low).rotate_right((self.state >> 122) as u32)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        (u128::from(self.next()) * u128::from(end) / (1 << 64)) as u64
    }

    pub(super) fn happens_in(&mut self, percent: u64) -> bool {
        self.below(1_000_000) < percent * 10_000
    }

    /// Von Neumann's: the first of a run of falling numbers, if the run has an odd length; else one more whole mean, and again.
    pub(super) fn exponential(&mut self, mean: u128) -> u128 {
        for whole in 0.. {
            let mut run = vec![self.next()];
            loop {
                let next = self.next();
                if next >= run[run.len() - 1] {
                    break;
                }
                run.push(next);
            }
            if run.len() % 2 == 1 {
                return mean * whole + mean * u128::from(run[0]) / (1 << 64);
            }
        }
        unreachable!("it ends some time")
    }
}
