//! One body, two ways to run it: every interleaving under loom, many times on real threads elsewhere.

use std::sync::Arc;

pub(crate) use imp::{AtomicU64, Mutex, MutexGuard, fence, give_way, thread_local};
use imp::{Gate, JoinHandle, spawn};
pub use imp::{model, models};

/// How often a thread may be interrupted where it need not be, in one interleaving.
///
/// Few races need more than two. `LOOM_MAX_PREEMPTIONS` deepens every bound below its value; it never makes one shallower.
#[derive(Clone, Copy, Debug)]
pub struct Bound(Option<usize>);

impl Bound {
    /// Every interleaving.
    pub const NONE: Self = Self(None);

    /// Every interleaving with up to `count` preemptions.
    pub const fn preemptions(count: usize) -> Self {
        Self(Some(count))
    }

    /// How many preemptions, or `None` for any number.
    pub const fn limit(self) -> Option<usize> {
        self.0
    }
}

/// Runs both at once on `shared`, the second one on the calling thread.
pub fn race2<S, A, B>(
    shared: &Arc<S>,
    first: impl FnOnce(&S) -> A + Send + 'static,
    second: impl FnOnce(&S) -> B,
) -> (A, B)
where
    S: Send + Sync + 'static,
    A: Send + 'static,
{
    let gate = Gate::new(2);
    let first = start(&gate, shared, first);
    gate.pass();
    let second = second(shared);
    (first.join().expect("its panic has been reported"), second)
}

/// Runs all three at once on `shared`, the third one on the calling thread.
pub fn race3<S, A, B, C>(
    shared: &Arc<S>,
    first: impl FnOnce(&S) -> A + Send + 'static,
    second: impl FnOnce(&S) -> B + Send + 'static,
    third: impl FnOnce(&S) -> C,
) -> (A, B, C)
where
    S: Send + Sync + 'static,
    A: Send + 'static,
    B: Send + 'static,
{
    let gate = Gate::new(3);
    let first = start(&gate, shared, first);
    let second = start(&gate, shared, second);
    gate.pass();
    let third = third(shared);
    (first.join().expect("its panic has been reported"), second.join().expect("its panic has been reported"), third)
}

fn start<S, R>(gate: &Arc<Gate>, shared: &Arc<S>, run: impl FnOnce(&S) -> R + Send + 'static) -> JoinHandle<R>
where
    S: Send + Sync + 'static,
    R: Send + 'static,
{
    // The reference count is std's in both builds: it is not under test, and loom's would multiply the interleavings.
    let (gate, shared) = (Arc::clone(gate), Arc::clone(shared));
    spawn(move || {
        gate.pass();
        run(&shared)
    })
}

#[cfg(sluicegate_loom)]
mod imp {
    use core::sync::atomic::{AtomicU64 as Unmodelled, Ordering};
    use std::sync::Arc;
    use std::time::Instant;

    pub(crate) use loom::sync::atomic::fence;
    pub(crate) use loom::sync::{Mutex, MutexGuard};
    pub(crate) use loom::thread::{JoinHandle, spawn};
    pub(crate) use loom::thread_local;
    pub(crate) use sluicegate_core::ModelAtomicU64 as AtomicU64;

    use super::Bound;

    /// Runs `body` once for each interleaving within `bound`, and says how many there were.
    ///
    /// `LOOM_MAX_DURATION` and `LOOM_MAX_PERMUTATIONS` are ignored: they would end a model early and let it pass.
    pub fn model<F: Fn() + Send + Sync + 'static>(bound: Bound, body: F) {
        let started = Instant::now();
        report::<F>("", explore(bound, body), bound, started);
    }

    /// The same for one body over many races.
    pub fn models<T, F>(bound: Bound, races: Vec<T>, body: F)
    where
        T: Send + Sync + 'static,
        F: Fn(&T) + Copy + Send + Sync + 'static,
    {
        let (started, count) = (Instant::now(), races.len());
        let runs = races.into_iter().map(|race| explore(bound, move || body(&race))).sum();
        report::<F>(&format!(" x {count}"), runs, bound, started);
    }

    fn explore(bound: Bound, body: impl Fn() + Send + Sync + 'static) -> u64 {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = bound.deepened();
        builder.max_duration = None;
        builder.max_permutations = None;
        let runs = Arc::new(Unmodelled::new(0));
        let counter = Arc::clone(&runs);
        builder.check(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            body();
        });
        runs.load(Ordering::Relaxed)
    }

    fn report<F>(times: &str, runs: u64, bound: Bound, started: Instant) {
        let name = without_paths(core::any::type_name::<F>());
        let preemptions = bound.deepened().map_or("any".to_owned(), |count| format!("<= {count}"));
        let seconds = started.elapsed().as_secs_f64();
        eprintln!("model: {name}{times}: {runs} interleavings, preemptions {preemptions}, {seconds:.2} s");
    }

    impl Bound {
        fn deepened(self) -> Option<usize> {
            let deeper = std::env::var("LOOM_MAX_PREEMPTIONS").ok();
            let deeper = deeper.map_or(0, |text| text.parse().expect("LOOM_MAX_PREEMPTIONS is a whole number"));
            self.limit().map(|count| count.max(deeper))
        }
    }

    /// Lets the others run, for the `attempt`th time in one wait, from 0.
    ///
    /// Two callers can wait in turns for ever for a third that loom does not run: an order no fair scheduler has. So an
    /// interleaving in which one call waits once too often is followed to its end in one fair order, and no other is
    /// tried from there. A wait that never ended would still exceed loom's limit of branches.
    pub(crate) fn give_way(attempt: u32) {
        if attempt >= PATIENCE {
            loom::skip_branch();
        }
        loom::thread::yield_now();
    }

    const PATIENCE: u32 = 1;

    /// `a::b<c::D>` as `b<D>`.
    fn without_paths(name: &str) -> String {
        let parts = name.split_inclusive(['<', '>', ',', ' ']);
        parts.map(|part| part.rsplit_once("::").map_or(part, |(_, last)| last)).collect()
    }

    /// Loom starts threads in every order by itself.
    pub(super) struct Gate;

    impl Gate {
        pub(super) fn new(_threads: usize) -> Arc<Self> {
            Arc::new(Self)
        }

        pub(super) fn pass(&self) {}
    }
}

#[cfg(not(sluicegate_loom))]
mod imp {
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, OnceLock};

    pub(crate) use core::sync::atomic::{AtomicU64, fence};
    pub(crate) use std::sync::{Mutex, MutexGuard};
    pub(crate) use std::thread::{JoinHandle, spawn};
    pub(crate) use std::thread_local;

    use super::Bound;

    /// Runs `body` many times on real threads: `SLUICEGATE_STRESS_RUNS`, or [`RUNS`].
    pub fn model<F: Fn() + Send + Sync + 'static>(_bound: Bound, body: F) {
        for _ in 0..runs() {
            body();
        }
    }

    /// The same for one body over many races, each as often as gives each model its time.
    pub fn models<T, F>(_bound: Bound, races: Vec<T>, body: F)
    where
        T: Send + Sync + 'static,
        F: Fn(&T) + Copy + Send + Sync + 'static,
    {
        for _ in 0..(runs() / races.len() as u32).max(1) {
            races.iter().for_each(body);
        }
    }

    fn runs() -> u32 {
        static CHOSEN: OnceLock<u32> = OnceLock::new();
        *CHOSEN.get_or_init(|| match std::env::var("SLUICEGATE_STRESS_RUNS") {
            Ok(text) => text.parse().expect("SLUICEGATE_STRESS_RUNS is a whole number"),
            Err(_) => RUNS,
        })
    }

    /// Lets the others run.
    pub(crate) fn give_way(_attempt: u32) {
        std::thread::yield_now();
    }

    /// Lets all through once all have come, so that they race rather than start one after another.
    pub(super) struct Gate {
        expected: usize,
        arrived: AtomicUsize,
    }

    impl Gate {
        pub(super) fn new(expected: usize) -> Arc<Self> {
            Arc::new(Self { expected, arrived: AtomicUsize::new(0) })
        }

        pub(super) fn pass(&self) {
            // Relaxed: the gate is to order nothing but the start.
            self.arrived.fetch_add(1, Ordering::Relaxed);
            let mut spins = 0_u32;
            while self.arrived.load(Ordering::Relaxed) < self.expected {
                spins += 1;
                if spins % SPINS == 0 { std::thread::yield_now() } else { core::hint::spin_loop() }
            }
        }
    }

    /// Some 30 us each, so that all models together take seconds.
    const RUNS: u32 = 2_000;
    /// Long enough to start together on free cores, short enough where there are more threads than cores.
    const SPINS: u32 = 256;
}
