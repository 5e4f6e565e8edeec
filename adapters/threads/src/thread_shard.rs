//! Numbers of threads.

use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};

use sluicegate_core::ShardId;

use crate::waiting;

/// The number of the calling thread: the default choice for a limiter that threads share.
///
/// Every thread that asks has a number of its own while it lives. It gets the smallest that is free, and gives it back
/// when it ends, so that numbers stay below the greatest number of threads that ever lived at once and shards are used
/// evenly, also when threads come and go. Threads beyond 4096 at once get larger numbers that are not given back.
///
/// A reading costs one thread-local load. It allocates nothing, takes no lock, and works while thread-locals are being
/// destroyed; a thread that asks for the first time then is told 0.
///
/// `give_way` spins a little and then yields to the operating system.
///
/// ```
/// use sluicegate_threads::{ShardId, ThreadShard};
///
/// let mine = ThreadShard.shard();
/// assert_eq!(ThreadShard.shard(), mine);
/// let other = std::thread::spawn(|| ThreadShard.shard()).join().unwrap();
/// assert_ne!(other, mine);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ThreadShard;

impl ShardId for ThreadShard {
    #[inline]
    fn shard(&self) -> usize {
        // Where a platform destroys even this, the answer is any number: 0.
        match NUMBER.try_with(Cell::get) {
            Ok(UNKNOWN) => first_number(),
            number => number.unwrap_or(0),
        }
    }

    #[inline]
    fn give_way(&self, attempt: u32) {
        waiting::give_way(attempt);
    }
}

thread_local! {
    // Two, so that the one that is read on every call needs no destructor, and with it no check whether it still lives.
    static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
    static LEASE: Lease = const { Lease(Cell::new(None)) };
}

/// Gives the thread's number back when the thread ends.
struct Lease(Cell<Option<usize>>);

impl Drop for Lease {
    fn drop(&mut self) {
        // `NUMBER` keeps it: later destructors of this thread may share it with a new thread, which costs only speed.
        if let Some(number) = self.0.take() {
            NUMBERS.give_back(number);
        }
    }
}

#[cold]
fn first_number() -> usize {
    let leased = LEASE.try_with(|lease| {
        let number = NUMBERS.take();
        lease.0.set(Some(number));
        number
    });
    // Without a lease nothing would give the number back.
    let number = leased.unwrap_or(0);
    let _ = NUMBER.try_with(|cell| cell.set(number));
    number
}

static NUMBERS: Numbers = Numbers::new();

/// The numbers that are taken, a bit each.
///
/// Relaxed everywhere: a number only spreads callers and publishes nothing. That no two threads take one number follows
/// from the order of the changes of its one word.
struct Numbers {
    words: [AtomicUsize; WORDS],
    /// Numbers beyond the bits.
    beyond: AtomicUsize,
}

impl Numbers {
    const fn new() -> Self {
        Self { words: [const { AtomicUsize::new(0) }; WORDS], beyond: AtomicUsize::new(0) }
    }

    /// The smallest number that is free.
    fn take(&self) -> usize {
        for (index, word) in self.words.iter().enumerate() {
            let taken = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bits| {
                (bits != usize::MAX).then(|| bits | 1 << bits.trailing_ones())
            });
            if let Ok(before) = taken {
                return index * BITS + before.trailing_ones() as usize;
            }
        }
        // Halved, so that it never reaches `UNKNOWN`. It may come again after wrapping, which does no harm.
        COUNT + self.beyond.fetch_add(1, Ordering::Relaxed) % (usize::MAX / 2)
    }

    fn give_back(&self, number: usize) {
        if let Some(word) = self.words.get(number / BITS) {
            word.fetch_and(!(1 << (number % BITS)), Ordering::Relaxed);
        }
    }
}

/// A thread that has not asked yet.
const UNKNOWN: usize = usize::MAX;
/// As many threads as a process usually has at most; 512 bytes.
const COUNT: usize = 4096;
const BITS: usize = usize::BITS as usize;
const WORDS: usize = COUNT / BITS;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn smallest_free_number_comes_first() {
        let numbers = Numbers::new();
        for expected in 0..200 {
            assert_eq!(numbers.take(), expected);
        }
        for number in [150, 3, 64] {
            numbers.give_back(number);
        }
        assert_eq!([numbers.take(), numbers.take(), numbers.take(), numbers.take()], [3, 64, 150, 200]);
    }

    #[test]
    fn more_threads_than_bits_still_get_numbers() {
        let numbers = Numbers::new();
        for _ in 0..COUNT {
            numbers.take();
        }
        let beyond = numbers.take();
        assert!(beyond >= COUNT);
        numbers.give_back(beyond);
        assert!(numbers.take() >= COUNT, "nothing within the bits was given back");
        numbers.give_back(7);
        assert_eq!(numbers.take(), 7);
    }

    #[test]
    fn racing_threads_get_different_numbers() {
        const THREADS: usize = 100;
        let numbers = Numbers::new();
        let start = Barrier::new(THREADS);
        let taken: BTreeSet<usize> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        // Take and give back in a race; what is held at the end counts.
                        for _ in 0..100 {
                            numbers.give_back(numbers.take());
                        }
                        numbers.take()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(taken, (0..THREADS).collect());
    }
}
