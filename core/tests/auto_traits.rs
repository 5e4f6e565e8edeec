//! Which types may cross threads, be moved and survive a panic: a change here breaks users, so it is written down.

use core::cell::Cell;
use core::panic::{RefUnwindSafe, UnwindSafe};

use sluicegate_core::{
    AdjustError, AdjustableBucket, Admitted, AimdLaw, AlertChanges, AlertPolicy, Alerts, BucketCell, BucketState,
    BucketStep, CachePadded, ClosedWindow, ConcurrencyController, ConcurrencyLimit, CounterShard, CounterSnapshot,
    Counters, Debit, Denied, DeniedBy, Departure, DuplicateLevel, FixedShard, GradientLaw, HashedShard, Hierarchy,
    Holding, Inheritance, Inspection, LeakyBucket, LeakyBucketState, LeakyBucketStep, Level, Limit, Limiter,
    ManualClock, Nanos, Pacing, ParseError, Permit, Quota, QuotaError, Rate, Remaining, Reservation, SampleWindow,
    Shard, ShardedWindow, SlidingCounter, SlidingCounterCell, SlidingCounterState, SlidingCounterStep, TokenBucket,
    WindowLimit, WindowState, WindowStep,
};

/// Tells whether a type has a trait: the inherent constant wins where its bound holds, the trait's answers otherwise.
macro_rules! has {
    ($type:ty: $bound:path) => {{
        #[allow(dead_code, reason = "not named where the bound holds")]
        trait Otherwise {
            const HAS: bool = false;
        }
        impl<T: ?Sized> Otherwise for T {}
        struct Probe<T: ?Sized>(core::marker::PhantomData<T>);
        #[allow(dead_code, reason = "not named where the bound does not hold")]
        impl<T: ?Sized + $bound> Probe<T> {
            const HAS: bool = true;
        }
        <Probe<$type>>::HAS
    }};
}

macro_rules! table {
    ($($type:ty: $send:literal $sync:literal $unpin:literal $unwind:literal $ref_unwind:literal;)+) => {$(
        let has = [
            has!($type: Send),
            has!($type: Sync),
            has!($type: Unpin),
            has!($type: UnwindSafe),
            has!($type: RefUnwindSafe),
        ];
        assert_eq!(has, [$send, $sync, $unpin, $unwind, $ref_unwind], stringify!($type));
    )+};
}

type Window<C, I, O = ()> = ShardedWindow<[Shard; 4], C, I, O>;
type Adjustable<C = ManualClock, O = ()> = AdjustableBucket<C, O>;

#[test]
fn what_may_cross_threads() {
    table! {
        //                                      Send  Sync  Unpin UnwindSafe RefUnwindSafe
        Admitted:                               true  true  true  true  true;
        Adjustable:                             true  true  true  true  true;
        Adjustable<*const u64>:                 false false true  true  true;
        Adjustable<ManualClock, Cell<u64>>:     true  false true  true  false;
        AdjustError:                            true  true  true  true  true;
        AimdLaw:                                true  true  true  true  true;
        AlertChanges:                           true  true  true  true  true;
        AlertPolicy:                            true  true  true  true  true;
        Alerts:                                 true  true  true  true  true;
        BucketCell:                             true  true  true  true  true;
        BucketState:                            true  true  true  true  true;
        BucketStep:                             true  true  true  true  true;
        CachePadded<u64>:                       true  true  true  true  true;
        CachePadded<Cell<u64>>:                 true  false true  true  false;
        ClosedWindow:                           true  true  true  true  true;
        ConcurrencyController<AimdLaw>:         true  true  true  true  true;
        ConcurrencyController<Cell<u64>>:       true  false true  true  false;
        ConcurrencyLimit:                       true  true  true  true  true;
        ConcurrencyLimit<Cell<u64>>:            true  false true  true  false;
        CounterShard:                           true  true  true  true  true;
        Counters:                               true  true  true  true  true;
        CounterSnapshot:                        true  true  true  true  true;
        Debit:                                  true  true  true  true  true;
        Denied:                                 true  true  true  true  true;
        Departure:                              true  true  true  true  true;
        DeniedBy:                               true  true  true  true  true;
        DuplicateLevel:                         true  true  true  true  true;
        FixedShard:                             true  true  true  true  true;
        GradientLaw:                            true  true  true  true  true;
        HashedShard:                            true  true  true  true  true;
        Hierarchy<'static, 3>:                  true  true  true  false false;
        Hierarchy<'static, 3, Adjustable>:      true  true  true  true  true;
        Hierarchy<'static, 3, dyn Holding>:     false false true  false false;
        Inheritance:                            true  true  true  true  true;
        Inspection:                             true  true  true  true  true;
        LeakyBucket<ManualClock>:               true  true  true  true  true;
        LeakyBucket<ManualClock, Cell<u64>>:    true  false true  true  false;
        LeakyBucketState:                       true  true  true  true  true;
        LeakyBucketStep:                        true  true  true  true  true;
        Level<Adjustable>:                      true  true  true  true  true;
        Level<Cell<u64>>:                       true  false true  true  false;
        Limit:                                  true  true  true  true  true;
        ManualClock:                            true  true  true  true  true;
        Nanos:                                  true  true  true  true  true;
        Pacing:                                 true  true  true  true  true;
        ParseError:                             true  true  true  true  true;
        Permit<&'static ConcurrencyLimit>:      true  true  true  true  true;
        Quota:                                  true  true  true  true  true;
        QuotaError:                             true  true  true  true  true;
        Rate:                                   true  true  true  true  true;
        Remaining:                              true  true  true  true  true;
        Reservation<&'static Adjustable>:       true  true  true  true  true;
        Reservation<&'static Adjustable<ManualClock, Observed>>: false false true false false;
        SampleWindow:                           true  true  true  true  true;
        Shard:                                  true  true  true  true  true;
        SlidingCounterCell:                     true  true  true  true  true;
        SlidingCounterState:                    true  true  true  true  true;
        SlidingCounterStep:                     true  true  true  true  true;
        WindowLimit:                            true  true  true  true  true;
        WindowState:                            true  true  true  true  true;
        WindowStep:                             true  true  true  true  true;
        TokenBucket<ManualClock>:               true  true  true  true  true;
        TokenBucket<&'static ManualClock>:      true  true  true  true  true;
        TokenBucket<Cell<u64>>:                 true  false true  true  false;
        TokenBucket<*const u64>:                false false true  true  true;
        TokenBucket<ManualClock, Cell<u64>>:    true  false true  true  false;
        SlidingCounter<ManualClock>:            true  true  true  true  true;
        SlidingCounter<Cell<u64>>:              true  false true  true  false;
        SlidingCounter<*const u64>:             false false true  true  true;
        Window<ManualClock, CounterShard>:      true  true  true  true  true;
        Window<ManualClock, Cell<u64>>:         true  false true  true  false;
        Window<*const u64, FixedShard>:         false false true  true  true;
        Window<ManualClock, FixedShard, Cell<u64>>: true false true true false;
    }
}

#[cfg(feature = "alloc")]
#[test]
fn what_a_queue_may_cross_is_up_to_its_payload() {
    use sluicegate_core::{QueueFull, Served, Ticket, Verdict, WaitQueue, Waiting};

    table! {
        //                                      Send  Sync  Unpin UnwindSafe RefUnwindSafe
        QueueFull<u64>:                         true  true  true  true  true;
        Served<u64, Admitted>:                  true  true  true  true  true;
        Ticket:                                 true  true  true  true  true;
        Verdict<Admitted>:                      true  true  true  true  true;
        WaitQueue<Vec<Waiting<u64>>>:           true  true  true  true  true;
        WaitQueue<Vec<Waiting<Cell<u64>>>>:     true  false true  true  false;
        WaitQueue<Vec<Waiting<*const u64>>>:    false false true  true  true;
    }
}

/// An observer for one thread.
struct Observed(#[allow(dead_code)] Cell<u64>);

impl sluicegate_core::Observer for Observed {}

#[cfg(feature = "alloc")]
#[test]
fn what_may_cross_threads_with_alloc() {
    extern crate alloc;
    use alloc::sync::Arc;
    type Log = sluicegate_core::SlidingLog<alloc::collections::VecDeque<sluicegate_core::Run>>;
    table! {
        sluicegate_core::Run:                   true  true  true  true  true;
        Log:                                    true  true  true  true  true;
        Reservation<Arc<Adjustable>>:           true  true  true  true  true;
        Reservation<Arc<Adjustable<ManualClock, Observed>>>: false false true false false;
    }
}

/// What a user of trait objects relies on.
#[test]
fn what_coerces() {
    fn coerces<'a>(level: &'a Level<Adjustable>) -> (&'a Level<dyn Holding + 'a>, &'a (dyn Limiter + 'a)) {
        let shared: &Level<dyn Holding + Send + Sync> = level;
        (shared, level.limiter())
    }
    let level = Level::new("level", AdjustableBucket::with_limit(Limit::DenyAll, ManualClock::new()));
    assert_eq!(coerces(&level).0.name(), "level");
}

#[test]
fn what_is_a_plain_value() {
    fn plain<T: Copy + Eq + core::fmt::Debug + Send + Sync + 'static>() {}
    plain::<Admitted>();
    plain::<BucketState>();
    plain::<BucketStep>();
    plain::<AdjustError>();
    plain::<Debit>();
    plain::<Denied>();
    plain::<DeniedBy>();
    plain::<DuplicateLevel>();
    plain::<Inheritance>();
    plain::<FixedShard>();
    plain::<HashedShard>();
    plain::<Inspection>();
    plain::<LeakyBucketState>();
    plain::<LeakyBucketStep>();
    plain::<Limit>();
    plain::<Nanos>();
    plain::<Pacing>();
    plain::<ParseError>();
    plain::<Quota>();
    plain::<QuotaError>();
    plain::<Rate>();
    plain::<Remaining>();
    plain::<SlidingCounterState>();
    plain::<SlidingCounterStep>();
    plain::<WindowLimit>();
    plain::<WindowState>();
    plain::<WindowStep>();

    fn error<T: core::error::Error + Send + Sync + 'static>() {}
    error::<AdjustError>();
    error::<Denied>();
    error::<DeniedBy>();
    error::<DuplicateLevel>();
    error::<ParseError>();
    error::<QuotaError>();
}

#[test]
fn what_is_small() {
    use core::mem::size_of;
    assert_eq!((size_of::<BucketCell>(), size_of::<BucketState>(), size_of::<WindowState>()), (8, 8, 8));
    assert_eq!((size_of::<SlidingCounterCell>(), size_of::<SlidingCounterState>()), (8, 8));
    assert!(size_of::<Result<Admitted, Denied>>() <= 32);
    assert!(size_of::<Reservation<&Adjustable>>() <= 32);
    // 16 bytes of state, 224 of rules, and the clock.
    assert_eq!(size_of::<Adjustable>(), 256);
}
