//! A concurrency limit that adapts itself, shared by callers: what is a sample, what its lock is not held for, and who may set the limit.
#![cfg(all(feature = "alloc", feature = "lock_api"))]

mod support;

extern crate alloc;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::cell::{Cell, RefCell};
use core::time::Duration;

use sluicegate_core::{
    AdaptiveConcurrency, AimdLaw, AimdOptions, Clock, ClosedWindow, ConcurrencyController, ConcurrencyLaw,
    ConcurrencyLimit, Denied, GradientOptions, ManualClock, Nanos, Outcome, PermitObserver, SampleOptions, Usage,
};
use support::{Numbers, race};

type Adaptive<L = AimdLaw, C = ManualClock, O = ()> = AdaptiveConcurrency<parking_lot::RawMutex, L, C, O>;

/// Windows of 10 ms and up to a second, with so many samples.
fn controller<L: ConcurrencyLaw>(samples: u32, law: L) -> ConcurrencyController<L> {
    let options = SampleOptions::new().lasting(Duration::from_millis(10), Duration::from_secs(1));
    ConcurrencyController::new(options.samples(samples).build().unwrap(), law)
}

fn aimd(least: u32, initial: u32, most: u32) -> AimdLaw {
    AimdOptions::new().limits(least, initial, most).build().unwrap()
}

/// Held in a pause it is not in use: nothing grows for it, and a pause is no part of a call's time.
#[test]
fn c17_what_is_paused_is_neither_used_nor_slow() {
    let windows = Cell::new(0);
    for pauses in [true, false] {
        let limit = Adaptive::<_, ManualClock>::new(controller(2, aimd(1, 8, 50)), ManualClock::new()).into_limit();
        let mut idle = [(); 7].map(|()| limit.try_acquire(1).unwrap());
        idle.iter_mut().filter(|_| pauses).for_each(|permit| permit.pause());
        for _ in 0..20 {
            let call = limit.try_acquire(1).unwrap();
            limit.observer().clock().advance(Duration::from_millis(10));
            call.success();
        }
        windows.set(limit.observer().controller().closed_windows());
        assert!(windows.get() >= 8 && (limit.limit() == 8) == pauses, "{} at {}", limit.limit(), windows.get());
        // Given back in the pause, or resumed and used, all of them are accounted for.
        let (given_back, used) = idle.split_at_mut(3);
        used.iter_mut().for_each(|permit| permit.resume());
        given_back.iter_mut().for_each(|permit| permit.pause());
        drop(idle);
        assert_eq!(limit.in_use(), 0);
    }
    let law = GradientOptions::new().limits(1, 5, 50).build().unwrap();
    let limit = Adaptive::<_, ManualClock>::new(controller(2, law), ManualClock::new()).into_limit();
    for _ in 0..20 {
        let mut call = limit.try_acquire(1).unwrap();
        call.pause();
        limit.observer().clock().advance(Duration::from_millis(300));
        call.resume();
        limit.observer().clock().advance(Duration::from_millis(10));
        call.success();
    }
    assert_eq!(limit.observer().controller().law().baseline(), Some(Duration::from_millis(10)));
}

/// Two calls one after the other, of 10 ms each: enough for a window that wants two samples.
fn call_twice(limit: &ConcurrencyLimit<Adaptive>, outcome: Outcome) {
    for _ in 0..2 {
        let permit = limit.try_acquire(1).unwrap();
        limit.observer().clock().advance(Duration::from_millis(10));
        permit.release(outcome);
    }
}

#[test]
fn the_release_that_closes_a_window_moves_the_limit() {
    let limit = Adaptive::new(controller(2, aimd(1, 2, 3)), ManualClock::new()).into_limit();
    assert_eq!(limit.limit(), 2);
    call_twice(&limit, Outcome::Success);
    assert_eq!(limit.limit(), 3);
    call_twice(&limit, Outcome::Ignored);
    assert_eq!(limit.observer().controller().closed_windows(), 1);
    call_twice(&limit, Outcome::Dropped);
    assert_eq!((limit.limit(), limit.in_use()), (2, 0));
    // What is out counts, itself included, and a cost as what it is.
    let limit = Adaptive::new(controller(2, aimd(1, 10, 20)), ManualClock::new()).into_limit();
    let held = limit.try_acquire(3).unwrap();
    call_twice(&limit, Outcome::Success);
    assert_eq!(limit.limit(), 10, "four of ten");
    held.ignore();
    let held = limit.try_acquire(4).unwrap();
    call_twice(&limit, Outcome::Success);
    assert_eq!(limit.limit(), 11, "five of ten");
    drop(held);
}

#[test]
fn each_part_of_a_permit_is_a_sample_and_what_was_merged_is_one() {
    let law = GradientOptions::new().limits(1, 8, 20).build().unwrap();
    let limit = Adaptive::new(controller(4, law), ManualClock::new()).into_limit();
    let mut whole = limit.try_acquire(8).unwrap();
    limit.observer().clock().advance(Duration::from_millis(10));
    let mut parts: Vec<_> = (0..4).map(|_| whole.split(1).unwrap()).collect();
    whole.merge(parts.pop().unwrap()).unwrap();
    parts.into_iter().for_each(|part| part.success());
    limit.observer().clock().advance(Duration::from_millis(10));
    whole.success();
    // Three of 10 ms, and one of 20.
    assert_eq!(limit.observer().controller().law().baseline(), Some(Duration::from_micros(12_500)));
    assert_eq!(limit.observer().controller().closed_windows(), 1);
    assert_eq!(limit.in_use(), 0);
}

#[test]
fn a_limit_that_was_set_beyond_the_bounds_stays_and_one_within_them_does_not() {
    let limit = Adaptive::new(controller(2, aimd(2, 5, 8)), ManualClock::new()).into_limit();
    for by_hand in [0, 1, 9, u32::MAX] {
        let out = (limit.try_acquire(1).unwrap(), limit.try_acquire(1).unwrap());
        limit.set_limit(by_hand);
        limit.observer().clock().advance(Duration::from_millis(100));
        drop(out);
        limit.observer().clock().advance(Duration::from_millis(100));
        if by_hand > 0 {
            limit.try_acquire(1).unwrap().success();
        }
        assert_eq!(limit.limit(), by_hand);
        assert_eq!(limit.observer().controller().closed_windows(), 0, "what happens then is no sample");
        limit.set_limit(8);
        assert_eq!(limit.limit(), 8);
        limit.try_acquire(1).unwrap().ignore();
        assert_eq!(limit.limit(), 5, "the law goes on where it was");
    }
    limit.set_limit(0);
    assert_eq!(limit.try_acquire(1).unwrap_err(), Denied::Closed);
}

/// Asks for limits, and lets somebody else set one while it does.
struct Meddled {
    limit: Cell<Option<&'static ConcurrencyLimit<Meddled>>>,
    /// Set by somebody else when it is asked next.
    meanwhile: RefCell<Vec<u32>>,
    asked: RefCell<Vec<u32>>,
    told: RefCell<Vec<u32>>,
}

impl PermitObserver for Meddled {
    type Mark = ();

    fn acquired(&self, _cost: u64, _usage: Usage) {}

    fn released(&self, _mark: &(), _cost: u64, _outcome: Outcome, _usage: Usage) {}

    fn limit_after(&self, usage: Usage) -> Option<u32> {
        self.asked.borrow_mut().push(usage.limit);
        if let (Some(limit), Some(meanwhile)) = (self.limit.get(), self.meanwhile.borrow_mut().pop()) {
            limit.set_limit(meanwhile);
        }
        (usage.limit > 0).then_some(usage.limit + 1)
    }

    fn limit_set(&self, usage: Usage) {
        self.told.borrow_mut().push(usage.limit);
    }
}

#[test]
fn what_was_set_while_the_observer_decided_is_not_overwritten_but_shown_to_it() {
    let observer = Meddled {
        limit: Cell::new(None),
        meanwhile: RefCell::new(vec![0, 7]),
        asked: RefCell::default(),
        told: RefCell::default(),
    };
    let limit: &'static ConcurrencyLimit<Meddled> = Box::leak(Box::new(ConcurrencyLimit::new(3).observed_by(observer)));
    limit.observer().limit.set(Some(limit));
    limit.try_acquire(1).unwrap().success();
    assert_eq!(*limit.observer().asked.borrow(), [3, 7, 0]);
    assert_eq!(*limit.observer().told.borrow(), [7, 0]);
    assert_eq!(limit.limit(), 0, "it was closed meanwhile");
    limit.set_limit(3);
    limit.try_acquire(1).unwrap().success();
    assert_eq!(limit.observer().asked.borrow()[3..], [3], "asked once where nobody meddles");
    assert_eq!(limit.usage().limit, 4);
    // The answer of an observer behind a reference counts too.
    let by_reference = ConcurrencyLimit::new(5).observed_by(limit.observer());
    by_reference.try_acquire(1).unwrap().success();
    assert_eq!(by_reference.limit(), 6);
}

type Reentered = ConcurrencyLimit<Adaptive<AimdLaw, Outside, Outside>>;

/// A clock and an observer that lock the controller themselves, which under its lock would never end.
#[derive(Default)]
struct Outside {
    limit: Cell<Option<&'static Reentered>>,
    clock: ManualClock,
    calls: Cell<u32>,
}

impl Outside {
    fn is_called(&self) {
        if let Some(limit) = self.limit.get() {
            let _ = limit.observer().controller();
            self.calls.set(self.calls.get() + 1);
        }
    }
}

impl Clock for Outside {
    fn now(&self) -> Nanos {
        self.is_called();
        self.clock.now()
    }
}

impl PermitObserver for Outside {
    type Mark = u32;

    fn acquired(&self, _cost: u64, usage: Usage) -> u32 {
        self.is_called();
        usage.in_use
    }

    fn denied(&self, _cost: u64, _denied: &Denied) {
        self.is_called();
    }

    fn released(&self, mark: &u32, _cost: u64, _outcome: Outcome, _usage: Usage) {
        assert_eq!(*mark, 1, "its own mark comes back");
        self.is_called();
    }

    fn limit_set(&self, _usage: Usage) {
        self.is_called();
    }
}

#[test]
fn nobody_is_called_under_the_lock() {
    let adaptive = Adaptive::new(controller(2, aimd(1, 2, 4)), Outside::default()).observed_by(Outside::default());
    let limit: &'static Reentered = Box::leak(Box::new(adaptive.into_limit()));
    let (clock, inner) = (limit.observer().clock(), limit.observer().inner());
    clock.limit.set(Some(limit));
    inner.limit.set(Some(limit));
    for _ in 0..4 {
        let permit = limit.try_acquire(1).unwrap();
        assert!(limit.try_acquire(9).is_err());
        clock.clock.advance(Duration::from_millis(10));
        permit.success();
    }
    // Two windows were closed, and the limit was set once, because one of three is less than half.
    assert_eq!((limit.limit(), limit.observer().controller().closed_windows()), (3, 2));
    assert_eq!((clock.calls.get(), inner.calls.get()), (8, 13));
}

/// Counts the windows that it went by, and takes the limit to and fro between its bounds.
#[derive(Clone)]
struct Counting {
    windows: Vec<u64>,
    limit: u32,
}

impl ConcurrencyLaw for Counting {
    fn limit(&self) -> u32 {
        self.limit
    }

    fn bounds(&self) -> core::ops::RangeInclusive<u32> {
        4..=12
    }

    fn update(&mut self, window: &ClosedWindow) -> u32 {
        self.windows.push(window.samples());
        // Out of its bounds now and then: whoever applies it holds it there.
        self.limit = [2, 4, 7, 12, 40][self.windows.len() % 5];
        self.limit
    }
}

#[test]
fn many_threads_never_see_a_limit_out_of_bounds_and_lose_no_sample() {
    const THREADS: usize = 8;
    const CALLS: u64 = 3_000;
    let law = Counting { windows: Vec::new(), limit: 8 };
    let limit = Adaptive::new(controller(3, law), ManualClock::new()).into_limit();
    let limit = Arc::new(limit);
    let counted: u64 = race(THREADS, |index| {
        let mut numbers = Numbers(index as u64);
        let mut counted = 0;
        for _ in 0..CALLS {
            let permit = limit.try_acquire_owned(1 + numbers.below(2));
            limit.observer().clock().advance(Duration::from_millis(numbers.below(4)));
            assert!((4..=12).contains(&limit.limit()), "{}", limit.limit());
            assert!(limit.in_use() <= 12);
            let Ok(permit) = permit else { continue };
            let outcome = [Outcome::Success, Outcome::Dropped, Outcome::Ignored][numbers.below(3) as usize];
            counted += u64::from(outcome != Outcome::Ignored);
            permit.release(outcome);
        }
        counted
    })
    .into_iter()
    .sum();
    assert_eq!(limit.in_use(), 0);
    let controller = limit.observer().controller();
    let windows = &controller.law().windows;
    assert_eq!(windows.len() as u64, controller.closed_windows());
    assert!(windows.len() > 100, "{} windows of {counted} samples", windows.len());
    // Some are left out after each fall of the limit, and some are in a window that is still open, but none is in two.
    assert!(windows.iter().sum::<u64>() <= counted);
    assert!(windows.iter().all(|samples| *samples >= 3));
    limit.try_acquire(1).unwrap().ignore();
    assert_eq!(limit.limit(), controller.limit(), "what the law came to last is in force");
}
