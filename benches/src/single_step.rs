//! What one decision costs, on one thread without contention.

use alloc::boxed::Box;
use core::cell::Cell;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use governor::Quota;
use governor::clock::{Clock as _, FakeRelativeClock, MonotonicClock, QuantaClock};
use sluicegate_threads::sluicegate_core::{ShardedWindow, TokenBucket};
use sluicegate_threads::{
    Clock, CoarseClock, CpuShard, ManualClock, Nanos, OsClock, PER_SECOND, Rate, Shard, ShardId, ThreadShard, TscClock,
    quota, sharded_window_with,
};

use crate::interleaved::{Contestant, Effort, Timing, compare};
use crate::rival;

/// One table of the record.
#[derive(Debug)]
pub struct Heat {
    /// What is compared.
    pub title: &'static str,
    /// What a reader must know to judge it.
    pub note: &'static str,
    /// Whose time is 1.
    pub baseline: &'static str,
    /// Who is meant to stay below which ratio.
    pub targets: &'static [(&'static str, f64)],
    /// The contestants.
    pub contestants: Vec<Contestant<'static>>,
}

impl Heat {
    /// Measures.
    pub fn run(&mut self, effort: Effort) -> Vec<Timing> {
        compare(&mut self.contestants, self.baseline, effort)
    }
}

/// governor's `check` on its default clock, as a program calls it.
const SHIPPED: &str = "governor `check`";

/// All tables.
pub fn heats() -> Vec<Heat> {
    vec![given_admitted(), given_denied(), clock_admitted(), clock_denied(), readings()]
}

/// 1000 tokens a second, which both can express exactly, and a reading that is a token later each time.
fn given_admitted() -> Heat {
    const STEP: u64 = 1_000_000;
    let bucket = leak(TokenBucket::with_clock(quota!("1000/1s"), ManualClock::new()));
    let window = leak(window("1000000/1s", ManualClock::new()));
    let (reading, other): (&Cell<u64>, &Cell<u64>) = (leak(Cell::new(0)), leak(Cell::new(0)));
    let rival = Quota::per_second(rival::count(1_000));
    let (plain, whole) = (leak(rival::given::<1>(rival, reading)), leak(rival::given::<2>(rival, other)));

    let later = || {
        let mut now = 0;
        move || {
            now += STEP;
            Nanos::new(black_box(now))
        }
    };
    let (mut first, mut second, mut third, mut fourth) = (later(), later(), later(), later());
    let fake = FakeRelativeClock::default();
    let with_fake = leak(rival::Direct::direct_with_clock(rival, fake.clone()));
    let word = AtomicU64::new(0);
    let shipped = leak(rival::Direct::direct(Quota::per_second(rival::count(1_000_000_000))));
    Heat {
        title: "Reading given, admitted",
        note: "1000 tokens per second; each reading is one token later than the last. The baseline is governor's `check` as \
               a program calls it, on its default clock: what a step with a reading that the request already has is used \
               instead of. `reading given` hands governor a reading too. A load and a compare-and-swap, which no exact \
               limiter does without, are most of that. `answer` hands the whole result on, with ours the number of \
               remaining tokens too, which governor does not compute; the others only ask whether the request may pass. \
               The window has 4 shards.",
        baseline: SHIPPED,
        targets: &[("`TokenBucket::try_acquire_at`", 0.35), ("`ShardedWindow::try_acquire_at`", 0.4)],
        contestants: vec![
            Contestant::new(SHIPPED, || {
                black_box(shipped.check().is_ok());
            }),
            Contestant::new("governor `check`, reading given", move || {
                reading.set(black_box(reading.get() + STEP));
                black_box(plain.check().is_ok());
            }),
            Contestant::new("governor `check`, reading given, answer", move || {
                other.set(black_box(other.get() + STEP));
                let _ = black_box(whole.check());
            }),
            Contestant::new("governor `check`, its `FakeRelativeClock`", move || {
                fake.advance(Duration::from_millis(1));
                black_box(with_fake.check().is_ok());
            }),
            Contestant::new("`TokenBucket::try_acquire_at`", move || {
                black_box(bucket.try_acquire_at(first(), 1).is_ok());
            }),
            Contestant::new("`TokenBucket::try_acquire_at`, answer", move || {
                let _ = black_box(bucket.try_acquire_at(second(), 1));
            }),
            Contestant::new("`ShardedWindow::try_acquire_at`", move || {
                black_box(window.try_acquire_at(third(), 1).is_ok());
            }),
            Contestant::new("`ShardedWindow::try_acquire_at`, answer", move || {
                let _ = black_box(window.try_acquire_at(fourth(), 1));
            }),
            Contestant::new("load and compare-and-swap alone", move || {
                let seen = word.load(Ordering::Relaxed);
                let _ = black_box(word.compare_exchange_weak(seen, seen + 1, Ordering::Relaxed, Ordering::Relaxed));
            }),
        ],
    }
}

/// Everything is spent and the reading stands.
fn given_denied() -> Heat {
    let now = Nanos::from_secs(1);
    let bucket = leak(TokenBucket::with_clock(quota!("1000/1s"), ManualClock::new()));
    let window = leak(window("1000/1s", ManualClock::new()));
    let reading: &Cell<u64> = leak(Cell::new(now.as_u64()));
    let rival = Quota::per_second(rival::count(1_000));
    let (plain, whole) = (leak(rival::given::<3>(rival, reading)), leak(rival::given::<4>(rival, reading)));
    let with_wait = leak(rival::given::<5>(rival, reading));
    let everything = rival::count(1_000);
    assert!(matches!(plain.check_n(everything), Ok(Ok(()))));
    assert!(matches!(whole.check_n(everything), Ok(Ok(()))));
    assert!(matches!(with_wait.check_n(everything), Ok(Ok(()))));
    let shipped = leak(rival::Direct::direct(Quota::per_hour(rival::count(1))));
    assert!(shipped.check().is_ok());
    while bucket.try_acquire_at(now, 1).is_ok() {}
    while window.try_acquire_at(now, 1).is_ok() {}

    Heat {
        title: "Reading given, denied",
        note: "As above, with everything spent. `answer` hands the whole result on, with ours `retry_after` too; governor \
               computes the wait only when asked, which `wait` does. A window that is spent is \
               marked, so that none of its 4 shards has to be counted again.",
        baseline: SHIPPED,
        targets: &[("`TokenBucket::try_acquire_at`", 0.35), ("`ShardedWindow::try_acquire_at`", 0.4)],
        contestants: vec![
            Contestant::new(SHIPPED, || {
                black_box(shipped.check().is_ok());
            }),
            Contestant::new("governor `check`, reading given", move || {
                reading.set(black_box(reading.get()));
                black_box(plain.check().is_ok());
            }),
            Contestant::new("governor `check`, reading given, answer", move || {
                reading.set(black_box(reading.get()));
                let _ = black_box(whole.check());
            }),
            Contestant::new("governor `check`, reading given, wait", move || {
                reading.set(black_box(reading.get()));
                let _ = black_box(
                    with_wait.check().map_err(|not_until| not_until.wait_time_from(rival::Given(reading).now())),
                );
            }),
            Contestant::new("`TokenBucket::try_acquire_at`", move || {
                black_box(bucket.try_acquire_at(black_box(now), 1).is_ok());
            }),
            Contestant::new("`TokenBucket::try_acquire_at`, answer", move || {
                let _ = black_box(bucket.try_acquire_at(black_box(now), 1));
            }),
            Contestant::new("`ShardedWindow::try_acquire_at`", move || {
                black_box(window.try_acquire_at(black_box(now), 1).is_ok());
            }),
            Contestant::new("`ShardedWindow::try_acquire_at`, answer", move || {
                let _ = black_box(window.try_acquire_at(black_box(now), 1));
            }),
        ],
    }
}

/// A token a nanosecond, so that no call comes too early.
fn clock_admitted() -> Heat {
    let quota = quota!("1000000000/1s");
    let rival = Quota::per_second(rival::count(1_000_000_000));
    let with_quanta = leak(rival::timed::<1>(rival));
    let as_shipped = leak(rival::Direct::direct(rival));
    let with_instant = leak(rival::Direct::direct_with_clock(rival, MonotonicClock));
    let tsc = leak(TokenBucket::with_clock(quota, TscClock::new()));
    let os = leak(TokenBucket::with_clock(quota, OsClock));
    let coarse = leak(TokenBucket::with_clock(quota, coarse_clock()));
    let window = leak(window("1000000000/1s", TscClock::new()));
    Heat {
        title: "With a clock, admitted",
        note: "10^9 tokens per second with as large a burst. `governor on quanta` reads \
               what its default clock reads and is inlined; `RateLimiter::direct` is that clock as shipped. `TscClock` \
               reads the same counter. Coarse readings every millisecond.",
        baseline: "governor on quanta",
        targets: &[
            ("`TokenBucket`, `TscClock`", 1.05),
            ("`TokenBucket`, `CoarseClock`", 0.5),
            ("`ShardedWindow`, `TscClock`", 1.05),
        ],
        contestants: vec![
            Contestant::new("governor on quanta", || {
                black_box(with_quanta.check().is_ok());
            }),
            Contestant::new("governor, `RateLimiter::direct`", || {
                black_box(as_shipped.check().is_ok());
            }),
            Contestant::new("governor, `MonotonicClock` (`Instant`)", || {
                black_box(with_instant.check().is_ok());
            }),
            Contestant::new("`TokenBucket`, `TscClock`", || {
                black_box(tsc.try_acquire(1).is_ok());
            }),
            Contestant::new("`TokenBucket`, `OsClock`", || {
                black_box(os.try_acquire(1).is_ok());
            }),
            Contestant::new("`TokenBucket`, `CoarseClock`", || {
                black_box(coarse.try_acquire(1).is_ok());
            }),
            Contestant::new("`ShardedWindow`, `TscClock`", || {
                black_box(window.try_acquire(1).is_ok());
            }),
        ],
    }
}

/// One token an hour, spent.
fn clock_denied() -> Heat {
    let quota = quota!("1/1h");
    let with_quanta = leak(rival::timed::<2>(Quota::per_hour(rival::count(1))));
    let tsc = leak(TokenBucket::with_clock(quota, TscClock::new()));
    let os = leak(TokenBucket::with_clock(quota, OsClock));
    let coarse = leak(TokenBucket::with_clock(quota, coarse_clock()));
    let window = leak(window("1/1h", TscClock::new()));
    assert!(with_quanta.check().is_ok() && tsc.try_acquire(1).is_ok() && os.try_acquire(1).is_ok());
    assert!(coarse.try_acquire(1).is_ok() && window.try_acquire(1).is_ok());
    Heat {
        title: "With a clock, denied",
        note: "One token per hour, spent.",
        baseline: "governor on quanta",
        targets: &[
            ("`TokenBucket`, `TscClock`", 1.05),
            ("`TokenBucket`, `CoarseClock`", 0.5),
            ("`ShardedWindow`, `TscClock`", 1.05),
        ],
        contestants: vec![
            Contestant::new("governor on quanta", || {
                black_box(with_quanta.check().is_ok());
            }),
            Contestant::new("`TokenBucket`, `TscClock`", || {
                black_box(tsc.try_acquire(1).is_ok());
            }),
            Contestant::new("`TokenBucket`, `OsClock`", || {
                black_box(os.try_acquire(1).is_ok());
            }),
            Contestant::new("`TokenBucket`, `CoarseClock`", || {
                black_box(coarse.try_acquire(1).is_ok());
            }),
            Contestant::new("`ShardedWindow`, `TscClock`", || {
                black_box(window.try_acquire(1).is_ok());
            }),
        ],
    }
}

/// The parts of a decision that core does not make.
fn readings() -> Heat {
    let quanta = leak(QuantaClock::default());
    let tsc = leak(TscClock::new());
    let coarse = leak(coarse_clock());
    Heat {
        title: "Readings and shard numbers alone",
        note: "`nothing` is the loop itself, which every figure on this page includes.",
        baseline: "governor `QuantaClock`",
        targets: &[],
        contestants: vec![
            Contestant::new("governor `QuantaClock`", || {
                black_box(quanta.now());
            }),
            Contestant::new("`TscClock`", || {
                black_box(tsc.now());
            }),
            Contestant::new("`OsClock`", || {
                black_box(OsClock.now());
            }),
            Contestant::new("`CoarseClock`", || {
                black_box(coarse.now());
            }),
            Contestant::new("`ThreadShard`", || {
                black_box(ThreadShard.shard());
            }),
            Contestant::new("`CpuShard`", || {
                black_box(CpuShard.shard());
            }),
            Contestant::new("nothing", || {
                black_box(0_u64);
            }),
        ],
    }
}

fn window<C>(rate: &str, clock: C) -> ShardedWindow<Box<[Shard]>, C, ThreadShard> {
    let rate: Rate = rate.parse().expect("a rate");
    debug_assert!(rate.period() >= PER_SECOND);
    sharded_window_with(rate, 4.try_into().expect("not 0"), clock, ThreadShard).expect("a window for this rate")
}

fn coarse_clock() -> CoarseClock {
    CoarseClock::new(Duration::from_millis(1)).expect("a thread for the ticker")
}

/// Benchmarks run until the process ends.
fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heat_runs_and_names_its_own_contestants() {
        for mut heat in heats() {
            let timings = heat.run(Effort::TRIAL);
            for name in heat.targets.iter().map(|(name, _)| *name).chain([heat.baseline]) {
                assert!(timings.iter().any(|timing| timing.name == name), "{}: {name}", heat.title);
            }
        }
    }

    #[test]
    fn admitted_is_admitted_and_denied_is_denied() {
        // The loops above would measure the wrong path if these did not hold.
        let bucket = TokenBucket::with_clock(quota!("1000/1s"), ManualClock::new());
        let window = window("1000000/1s", ManualClock::new());
        let reading = Cell::new(0);
        let direct = rival::given::<6>(Quota::per_second(rival::count(1_000)), &reading);
        for now in (0..5_000).map(|call| call * 1_000_000) {
            reading.set(now);
            assert!(bucket.try_acquire_at(Nanos::new(now), 1).is_ok());
            assert!(window.try_acquire_at(Nanos::new(now), 1).is_ok());
            assert!(direct.check().is_ok());
        }
    }
}
