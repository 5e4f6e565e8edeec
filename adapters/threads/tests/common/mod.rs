//! What the racing tests share.

use std::sync::Barrier;
use std::thread;

/// Runs `call` on so many threads that start together, and returns what each of them returned.
pub(crate) fn race<R: Send>(threads: usize, call: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|index| {
                let (start, call) = (&start, &call);
                scope.spawn(move || {
                    start.wait();
                    call(index)
                })
            })
            .collect();
        running.into_iter().map(|thread| thread.join().expect("a racing caller panicked")).collect()
    })
}

/// Marsaglia's xorshift: repeatable choices, other ones for each seed.
pub(crate) struct Choices(u64);

impl Choices {
    pub(crate) fn new(seed: usize) -> Self {
        Self(0x9e37_79b9_7f4a_7c15 ^ (seed as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// A number from 0 to `bound - 1`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound
    }
}
