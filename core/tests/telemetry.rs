//! Counters and alerts: against slow models, at their thresholds, raced by many callers, and under clocks that misbehave.

mod support;

use core::cell::RefCell;
use core::time::Duration;

use num_bigint::BigInt;
use num_rational::Ratio;
use proptest::prelude::*;
use sluicegate_core::{
    AdjustableBucket, Admitted, Alert, AlertChange, AlertOptions, AlertOptionsError, AlertPolicy, Alerts, Clock,
    CounterSnapshot, Counters, Debit, Denied, FixedShard, Inheritance, Inspection, Limit, ManualClock, Nanos, Observer,
    Quota, Rate, Remaining, Shard, ShardedWindow, Share, TokenBucket, WindowLimit, quota,
};
use support::{cases, magnitude, period, race};

const SECOND: u64 = 1_000_000_000;

fn share(parts: u32) -> Share {
    Share::parts_per_million(parts).unwrap()
}

fn counts(admitted: u64, denied: u64, bursts: u64, adjustments: u64) -> CounterSnapshot {
    let mut counts = CounterSnapshot::default();
    (counts.admitted, counts.denied, counts.bursts, counts.adjustments) = (admitted, denied, bursts, adjustments);
    counts
}

// Recovery times.

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn c16_recovery_times_are_capacity_by_rate_rounded_up_once(
        tokens in magnitude(), period in period(), burst in magnitude(), parts in 1..=1_000_000_u32
    ) {
        let rate = Rate::new(tokens, Duration::from_nanos(period)).unwrap();
        let Ok(quota) = Quota::with_burst(rate, burst) else { return Ok(()) };
        for (time, parts) in [(quota.recovery_time(), 1_000_000), (quota.recovery_time_to(share(parts)), parts)] {
            let [tokens, period, burst, parts] = [tokens, period, burst, parts.into()].map(BigInt::from);
            let exact = Ratio::new(burst * parts * period, tokens * BigInt::from(1_000_000)).ceil().to_integer();
            let longest = BigInt::from(Duration::MAX.as_nanos());
            prop_assert_eq!(BigInt::from(time.as_nanos()), exact.min(longest));
        }
    }

    #[test]
    fn c16_an_emptied_bucket_is_full_after_its_recovery_time_and_not_before(
        tokens in magnitude(), period in period(), burst in magnitude()
    ) {
        let rate = Rate::new(tokens, Duration::from_nanos(period)).unwrap();
        let Ok(quota) = Quota::with_burst(rate, burst) else { return Ok(()) };
        let full = Nanos::ZERO + quota.recovery_time();
        prop_assume!(full <= Nanos::HORIZON);
        let bucket = TokenBucket::with_clock(quota, ManualClock::new());
        bucket.try_acquire(burst).unwrap();
        prop_assert_eq!(bucket.inspect_at(full).level, burst);
        prop_assert!(bucket.inspect_at(full - Duration::from_nanos(1)).level < burst);
    }
}

#[test]
fn c16_the_recovery_time_of_a_quota_says_whether_it_can_be_slow() {
    assert_eq!(quota!("7/3s burst 20").recovery_time(), Duration::from_nanos(8_571_428_572));
    assert_eq!(
        Quota::with_burst(Rate::new(1, Duration::from_nanos(u64::MAX)).unwrap(), 1 << 61).unwrap().recovery_time(),
        Duration::MAX
    );
    let policy = AlertOptions::new().recovery(Duration::from_secs(30)).build().unwrap();
    assert!(policy.recovers_in_time(quota!("60/1m")) && !policy.recovers_in_time(quota!("60/1m burst 61")));
    let without = AlertOptions::new().without(Alert::SlowRecovery).build().unwrap();
    assert!(without.recovers_in_time(quota!("1/24h")));
}

// Counters.

/// Says what it is told.
#[derive(Default)]
struct Log(RefCell<Vec<String>>);

impl Observer for &Log {
    fn admitted(&self, now: Nanos, cost: u64, admitted: &Admitted) {
        self.0.borrow_mut().push(format!("{now}: {cost}, {}", admitted.remaining));
    }
    fn denied(&self, now: Nanos, cost: u64, _denied: &Denied) {
        self.0.borrow_mut().push(format!("{now}: {cost} denied"));
    }
    fn refunded(&self, cost: u64) {
        self.0.borrow_mut().push(format!("{cost} back"));
    }
    fn debited(&self, now: Nanos, debit: &Debit) {
        self.0.borrow_mut().push(format!("{now}: {} debited", debit.charged));
    }
    fn settled(&self, now: Nanos, held: u64, debit: &Debit) {
        self.0.borrow_mut().push(format!("{now}: {held} settled as {}", debit.charged));
    }
    fn adjusted(&self, now: Nanos, from: Limit, to: Limit) {
        self.0.borrow_mut().push(format!("{now}: {from} to {to}"));
    }
}

#[test]
fn c16_two_observers_are_told_everything_one_after_the_other() {
    let (first, second) = (Log::default(), Log::default());
    let both = Log::default();
    let bucket = AdjustableBucket::with_clock(quota!("10/1s"), ManualClock::at(Nanos::new(5)))
        .observed_by(((&first, &both), (&second, &both)));
    bucket.try_acquire(1).unwrap();
    bucket.try_acquire(11).unwrap_err();
    bucket.refund(1);
    let _ = bucket.debit_at(Nanos::new(5), 2);
    let _ = bucket.reserve(3).unwrap().settle(1);
    drop(bucket.reserve(4).unwrap());
    bucket.adjust(quota!("20/1s"), Inheritance::Level);
    let told = [
        "5 ns: 1, 9",
        "5 ns: 11 denied",
        "1 back",
        "5 ns: 2 debited",
        "5 ns: 3, 5",
        "5 ns: 3 settled as 1",
        "5 ns: 4, 3",
        "4 back",
        "5 ns: 10/1s to 20/1s",
    ];
    assert_eq!(*first.0.borrow(), told);
    assert_eq!(*second.0.borrow(), told);
    let twice = told.iter().flat_map(|event| [event, event]).copied().collect::<Vec<_>>();
    assert_eq!(*both.0.borrow(), twice);
}

proptest! {
    #![proptest_config(cases(500))]

    /// On a clock that stands still, what was consumed and what is left are the capacity.
    #[test]
    fn c16_counted_costs_are_what_is_missing_from_the_bucket(
        steps in prop::collection::vec((0..6_u8, 0..30_u64, 0..30_u64), 1..60)
    ) {
        const LIMIT: Quota = quota!("100/1h");
        let bucket = AdjustableBucket::with_clock(LIMIT, ManualClock::new()).observed_by(Counters::new(LIMIT));
        let (mut requests, mut denied) = (0, 0);
        for (what, cost, spent) in steps {
            match what {
                0..=1 => (requests, denied) = (requests + 1, denied + u64::from(bucket.try_acquire(cost).is_err())),
                2 => {
                    let missing = 100 - bucket.inspect().level;
                    bucket.refund(cost.min(missing));
                }
                3 => _ = bucket.debit_at(Nanos::ZERO, cost),
                what => {
                    requests += 1;
                    match bucket.reserve(cost) {
                        Ok(reservation) if what == 4 => _ = reservation.settle(spent),
                        Ok(reservation) => drop(reservation),
                        Err(_) => denied += 1,
                    }
                }
            }
            let counted = bucket.observer().snapshot();
            prop_assert_eq!((counted.requests(), counted.denied), (requests, denied));
            prop_assert_eq!(counted.consumed(), 100 - bucket.inspect().level);
        }
    }

    /// Against fractions, and states that are written out.
    #[test]
    fn c16_a_burst_is_from_half_full_to_less_than_a_tenth(
        capacity in magnitude(), other in magnitude(),
        events in prop::collection::vec((0..=1_000_u64, 0..=1_000_u64, 0..20_u8), 1..100)
    ) {
        let quota = |capacity| Quota::with_burst(Rate::new(1, Duration::from_secs(1)).unwrap(), capacity);
        let (Ok(quota), Ok(other)) = (quota(capacity), quota(other)) else { return Ok(()) };
        let counters = Counters::new(quota);
        let (mut capacity, mut is_primed, mut is_empty) = (quota.capacity(), false, false);
        let (mut bursts, mut emptied, mut recovered, mut lowest) = (0, 0, 0, None);
        for (left, before, what) in events {
            if what == 0 {
                counters.adjusted(Nanos::ZERO, quota.into(), other.into());
                capacity = other.capacity();
                continue;
            }
            let part = |thousandths| (u128::from(capacity) * u128::from(thousandths) / 1_000) as u64;
            let (left, before) = (part(left.min(before)), part(left.max(before)));
            counters.admitted(Nanos::ZERO, before - left, &Admitted::new(Remaining::Exactly(left), Nanos::ZERO));
            let percent = |tokens: u64| Ratio::new(u128::from(tokens) * 100, u128::from(capacity));
            if percent(before) >= 50.into() {
                recovered += u64::from(is_empty);
                (is_primed, is_empty) = (true, false);
            }
            if percent(left) < 10.into() {
                bursts += u64::from(is_primed);
                is_primed = false;
            }
            if percent(left) < 1.into() {
                emptied += u64::from(!is_empty);
                is_empty = true;
            }
            let fill = (percent(left) * 10_000).to_integer() as u32;
            lowest = Some(lowest.map_or(fill, |lowest: u32| lowest.min(fill)));
            if what == 1 {
                prop_assert_eq!(counters.take_lowest_fill(), lowest.take());
            }
        }
        let counted = counters.snapshot();
        prop_assert_eq!((counted.bursts, counted.emptied, counted.recovered), (bursts, emptied, recovered));
        prop_assert_eq!(counters.take_lowest_fill(), lowest);
        prop_assert_eq!(counters.take_lowest_fill(), None);
    }
}

#[test]
fn c16_many_callers_are_counted_to_the_last_and_a_burst_once() {
    let counters = Counters::new(quota!("1000/1h"));
    for round in 1..=50 {
        for left in [500, 0] {
            race(4, |_| {
                for _ in 0..10 {
                    counters.admitted(Nanos::ZERO, 1, &Admitted::new(Remaining::Exactly(left), Nanos::ZERO));
                    counters.denied(Nanos::ZERO, 3, &Denied::QueueFull);
                }
            });
        }
        let counted = counters.snapshot();
        assert_eq!((counted.bursts, counted.emptied, counted.recovered), (round, round, round - 1));
        assert_eq!((counted.admitted, counted.admitted_cost), (80 * round, 80 * round));
        assert_eq!((counted.denied, counted.denied_cost), (80 * round, 240 * round));
    }
}

#[test]
fn c16_no_cost_drowns_the_counts() {
    let counters = Counters::without_fill();
    let too_much = Denied::CostExceedsLimit { cost: u64::MAX, limit: 10 };
    counters.denied(Nanos::ZERO, u64::MAX, &too_much);
    assert_eq!((counters.snapshot().denied, counters.snapshot().denied_cost), (1, 0));
    for _ in 0..3 {
        counters.denied(Nanos::ZERO, u64::MAX, &Denied::QueueFull);
        counters.admitted(Nanos::ZERO, u64::MAX - 1, &Admitted::new(Remaining::Exactly(u64::MAX), Nanos::ZERO));
        counters.refunded(u64::MAX);
    }
    let counted = counters.snapshot();
    assert_eq!((counted.denied_cost, counted.admitted_cost, counted.refunded_cost), (u64::MAX, u64::MAX, u64::MAX));
    assert_eq!(counted.consumed(), 0);
    assert_eq!((counters.take_lowest_fill(), counted.bursts, counted.emptied), (None, 0, 0), "no fill is seen");
}

#[test]
fn c16_where_what_is_left_is_not_known_no_fill_is_seen() {
    let limit = WindowLimit::new(quota!("4/1s").into()).unwrap();
    let window: ShardedWindow<[Shard; 4], _, _> = ShardedWindow::with_array(limit, ManualClock::new(), FixedShard(0));
    let window = window.observed_by(Counters::new(quota!("4/1s")));
    window.try_acquire(4).unwrap();
    window.try_acquire(1).unwrap_err();
    let counted = window.observer().snapshot();
    assert_eq!((counted.requests(), counted.denied, counted.bursts, counted.emptied), (2, 1, 0, 0));
    assert_eq!(window.observer().take_lowest_fill(), None);
    // Without a limit, or under one that admits nothing, there is no capacity.
    for limit in [Limit::Unlimited, Limit::DenyAll] {
        let counters = Counters::new(limit);
        counters.admitted(Nanos::ZERO, 1, &Admitted::new(Remaining::Exactly(0), Nanos::ZERO));
        assert_eq!(counters.take_lowest_fill(), None);
    }
}

// Alerts.

/// What has to come out, from all that was ever told.
struct Model {
    options: [(u64, u64); 4],
    minimum: u64,
    longest: u64,
    told: Vec<(u64, CounterSnapshot, Inspection)>,
    last: Option<u64>,
    steps_back: Vec<usize>,
    raised: [bool; 5],
}

impl Model {
    /// What was counted in the last `span`: since the oldest evaluation in it that is the first of its twelfth.
    fn in_the_last(&self, span: u64, count: impl Fn(&CounterSnapshot) -> u64) -> u64 {
        let (latest, earlier) = self.told.split_last().unwrap();
        let part = span / 12;
        let is_first = |index: usize| index == 0 || earlier[index - 1].0 / part < earlier[index].0 / part;
        let within = |index: &usize| latest.0 - earlier[*index].0 <= span && is_first(*index);
        match (0..earlier.len()).find(within) {
            Some(base) => count(&latest.1) - count(&earlier[base].1),
            None => earlier.last().map_or(0, |last| {
                let counted = u128::from(count(&latest.1) - count(&last.1));
                (counted * u128::from(span) / u128::from((latest.0 - last.0).max(span))) as u64
            }),
        }
    }

    /// For how long it has been empty and not half full.
    fn empty_for(&self) -> Option<u64> {
        let mut since = None;
        let mut known_end = 0;
        for (index, (at, counted, holds)) in self.told.iter().enumerate() {
            let is_half_full = holds.level * 2 >= holds.capacity;
            let recovered_before = if index == 0 { 0 } else { self.told[index - 1].1.recovered };
            if is_half_full || counted.recovered > recovered_before {
                since = None;
            }
            if self.steps_back.contains(&index) {
                since = since.map(|_| *at);
            }
            if is_half_full {
                known_end = counted.emptied;
            } else if holds.level * 100 < holds.capacity || counted.emptied > counted.recovered.max(known_end) {
                since = since.or(Some(*at));
            }
        }
        since.map(|since| self.told.last().unwrap().0 - since)
    }

    fn evaluate(&mut self, now: u64, counted: CounterSnapshot, holds: Inspection) -> Vec<(Alert, bool)> {
        let last = self.last.replace(now).unwrap_or(now);
        if now < last {
            self.steps_back.push(self.told.len());
        }
        let elapsed = self.told.last().map_or(0, |told| told.0) + now.saturating_sub(last);
        self.told.push((elapsed, counted, holds));

        let denied = self.in_the_last(60 * SECOND, |counts| counts.denied);
        let requests = denied + self.in_the_last(60 * SECOND, |counts| counts.admitted);
        let percentage = Ratio::new(u128::from(denied) * 1_000_000, u128::from(requests.max(1)));
        let fill = Ratio::new(u128::from(holds.level) * 1_000_000, u128::from(holds.capacity.max(1)));
        let bursts = self.in_the_last(60 * SECOND, |counts| counts.bursts);
        let adjustments = self.in_the_last(3_600 * SECOND, |counts| counts.adjustments);
        let empty_for = self.empty_for();

        let limits =
            self.options.map(|(raise, clear)| (Ratio::from(u128::from(raise)), Ratio::from(u128::from(clear))));
        let whole = |count: u64| Ratio::from(u128::from(count));
        let found = [
            (requests >= self.minimum && percentage > limits[0].0, percentage <= limits[0].1),
            (holds.capacity > 0 && fill < limits[1].0, holds.capacity == 0 || fill >= limits[1].1),
            (whole(bursts) > limits[2].0, whole(bursts) <= limits[2].1),
            (whole(adjustments) > limits[3].0, whole(adjustments) <= limits[3].1),
            (empty_for.is_some_and(|time| time > self.longest), empty_for.is_none()),
        ];
        let mut changed = Vec::new();
        for ((alert, raised), (is_beyond, is_back)) in Alert::ALL.into_iter().zip(&mut self.raised).zip(found) {
            let before = *raised;
            *raised = if before { !is_back } else { is_beyond };
            if *raised != before {
                changed.push((alert, *raised));
            }
        }
        changed
    }
}

/// How far the clock goes, and what happens meanwhile.
fn step() -> impl Strategy<Value = (i64, [u64; 6], u64)> {
    let nanos = prop_oneof![
        12 => 0..8_000_000_000_i64,
        1 => 0..200_000_000_000_i64,
        1 => 0..20_000_000_000_000_i64,
        1 => -40_000_000_000..0_i64,
    ];
    let often = prop_oneof![3 => Just(0), 2 => 0..=3_u64];
    let counts = (0..60_u64, prop_oneof![2 => Just(0), 3 => 0..=5_u64], often.clone(), often.clone(), often);
    let level = prop_oneof![2 => Just(0), 1 => 0..20_u64, 1 => 0..=100_u64];
    let capacity = prop_oneof![10 => Just(100), 1 => Just(0_u64)];
    (nanos, counts, level, capacity)
        .prop_map(|(nanos, (a, d, b, j, t), level, capacity)| (nanos, [a, d, b, j, t, capacity], level.min(capacity)))
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn c16_alerts_are_those_of_a_model_that_forgets_nothing(
        steps in prop::collection::vec(step(), 1..150),
        rejections in (2..80_000_u32, 0..50_000_u32),
        fill in (10_000..200_000_u32, 1..300_000_u32),
        bursts in (1..20_u64, 0..10_u64),
        adjustments in (1..20_u64, 0..10_u64),
        (minimum, longest) in (1..100_u64, 1..60 * SECOND),
    ) {
        let rejections = (rejections.0, rejections.1.clamp(1, rejections.0 - 1));
        let fill = (fill.0, fill.0 + fill.1);
        let bursts = (bursts.0, bursts.1.min(bursts.0 - 1));
        let adjustments = (adjustments.0, adjustments.1.min(adjustments.0 - 1));
        let policy = AlertOptions::new()
            .rejections(share(rejections.0), share(rejections.1))
            .fill(share(fill.0), share(fill.1))
            .bursts(bursts.0, bursts.1)
            .adjustments(adjustments.0, adjustments.1)
            .minimum_requests(minimum)
            .recovery(Duration::from_nanos(longest));
        let mut alerts = Alerts::new(policy.build().unwrap());
        let widen = |(raise, clear): (u32, u32)| (raise.into(), clear.into());
        let mut model = Model {
            options: [widen(rejections), widen(fill), bursts, adjustments],
            minimum, longest,
            told: Vec::new(), last: None, steps_back: Vec::new(), raised: [false; 5],
        };
        let (mut now, mut counted, mut turns) = (1_000 * SECOND, CounterSnapshot::default(), 0);
        for (nanos, [admitted, denied, bursts, adjustments, more, capacity], level) in steps {
            now = now.saturating_add_signed(nanos);
            counted.admitted += admitted;
            counted.denied += denied;
            counted.bursts += bursts;
            counted.adjustments += adjustments;
            turns += more;
            (counted.emptied, counted.recovered) = (turns.div_ceil(2), turns / 2);
            let holds = Inspection::new(level, capacity);
            let changes = alerts.evaluate(Nanos::new(now), &counted, holds).map(|change| (change.alert, change.is_raised));
            prop_assert_eq!(changes.collect::<Vec<_>>(), model.evaluate(now, counted, holds));
            prop_assert_eq!(Alert::ALL.map(|alert| alerts.is_raised(alert)), model.raised);
        }
    }

    /// Nothing panics or wraps; and what is beyond nothing raises nothing, whatever the clock does.
    #[test]
    fn c16_no_clock_and_no_count_makes_alerts_panic(
        steps in prop::collection::vec((any::<u64>(), prop::array::uniform7(any::<u64>()), 0..64_u32), 1..40)
    ) {
        let mut alerts = Alerts::new(AlertPolicy::default());
        let mut idle = Alerts::new(AlertPolicy::default());
        for (now, counted, shift) in steps {
            let [admitted, denied, bursts, adjustments, emptied, level, capacity] = counted.map(|count| count >> shift);
            let mut counted = counts(admitted, denied, bursts, adjustments);
            (counted.emptied, counted.recovered) = (emptied, emptied.wrapping_sub(1));
            let holds = Inspection::new(level.min(capacity), capacity);
            alerts.evaluate(Nanos::new(now), &counted, holds).for_each(drop);
            let changes = idle.evaluate(Nanos::new(now), &CounterSnapshot::default(), Inspection::new(1, 1));
            prop_assert_eq!(changes.count(), 0);
        }
    }
}

/// Evaluates at so many seconds, on a limiter of 1000 at once.
struct Watch(Alerts);

impl Watch {
    fn new(options: AlertOptions) -> Self {
        Self(Alerts::new(options.build().unwrap()))
    }

    fn at(&mut self, seconds: u64, counted: CounterSnapshot, level: u64) -> Vec<String> {
        let changes = self.0.evaluate(Nanos::from_secs(seconds), &counted, Inspection::new(level, 1_000));
        changes.map(|change: AlertChange| change.to_string()).collect()
    }
}

#[test]
fn c16_rejections_are_alerted_above_5_percent_until_2_5_percent() {
    let mut watch = Watch::new(AlertOptions::new());
    let none: [&str; 0] = [];
    assert_eq!(watch.at(0, counts(0, 0, 0, 0), 1_000), none);
    assert_eq!(watch.at(5, counts(950, 50, 0, 0), 1_000), none, "exactly 5 %");
    assert_eq!(watch.at(10, counts(950, 51, 0, 0), 1_000), ["rejections raised: 5.0949 %, limit 5 %"]);
    assert_eq!(watch.at(15, counts(1_988, 51, 0, 0), 1_000), none, "51 of 2039 is more than 2.5 %");
    assert_eq!(watch.at(20, counts(1_989, 51, 0, 0), 1_000), ["rejections cleared: 2.5 %, limit 5 %"]);
    // A minute later nothing of it counts any more, and too few requests say nothing.
    assert_eq!(watch.at(90, counts(1_989, 51, 0, 0), 1_000), none);
    assert_eq!(watch.at(95, counts(1_989, 70, 0, 0), 1_000), none, "19 of 19");
    assert_eq!(watch.at(96, counts(1_989, 71, 0, 0), 1_000), ["rejections raised: 100 %, limit 5 %"]);
    // Fewer do not clear it; none do.
    assert_eq!(watch.at(155, counts(1_989, 72, 0, 0), 1_000), none);
    assert_eq!(watch.at(216, counts(1_989, 72, 0, 0), 1_000), ["rejections cleared: 0 %, limit 5 %"]);
}

#[test]
fn c16_fill_is_alerted_below_10_percent_until_20_percent() {
    let mut watch = Watch::new(AlertOptions::new().without(Alert::SlowRecovery));
    let found = [100, 99, 100, 199, 200, 199, 99].map(|level| watch.at(0, counts(0, 0, 0, 0), level).concat());
    let expected = ["", "low_fill raised: 9.9 %, limit 10 %", "", "", "low_fill cleared: 20 %, limit 10 %", ""];
    assert_eq!(found[..6], expected);
    assert_eq!(found[6], expected[1]);
    let closed = watch.0.evaluate(Nanos::ZERO, &counts(0, 0, 0, 0), Inspection::new(0, 0));
    assert_eq!(closed.map(|change| change.is_raised).collect::<Vec<_>>(), [false], "there is nothing to fill");
}

#[test]
fn c16_bursts_are_alerted_above_20_a_minute_until_10() {
    let mut watch = Watch::new(AlertOptions::new());
    // One every three seconds, 20 in each minute, for ten minutes.
    for turn in 0..200 {
        assert!(watch.at(3 * turn, counts(0, 0, turn, 0), 1_000).is_empty());
    }
    // One every two and a half seconds for a minute, then none.
    let times = (1..=24).map(|turn| (600 + turn * 5 / 2, 200 + turn)).chain((0..12).map(|turn| (665 + turn * 5, 224)));
    let changes = times.flat_map(|(at, bursts)| {
        watch.at(at, counts(0, 0, bursts, 0), 1_000).into_iter().map(move |change| (at, change))
    });
    // In the minute up to 612 s there are 16 of the first kind and 5 of the second; up to 695 s 10 of the second are left.
    let expected = [(612, "bursts raised: 21, limit 20"), (695, "bursts cleared: 10, limit 20")];
    assert_eq!(changes.collect::<Vec<_>>(), expected.map(|(at, change)| (at, change.to_owned())));
}

#[test]
fn c16_adjustments_are_alerted_above_10_an_hour_until_5() {
    let mut watch = Watch::new(AlertOptions::new());
    let mut told = Vec::new();
    // One a minute for 11 minutes, then none.
    for minute in 0..90 {
        let changes = watch.at(60 * minute, counts(0, 0, 0, minute.min(11)), 1_000);
        told.extend(changes.into_iter().map(|change| (minute, change)));
    }
    assert_eq!(
        told,
        [(11, "adjustments raised: 11, limit 10".into()), (66, "adjustments cleared: 1, limit 10".into())],
        "at 65 minutes the hour begins with the evaluation at 5, at 66 with the next that is kept, at 10"
    );
}

#[test]
fn c16_a_recovery_is_alerted_after_30_s_until_half_full() {
    let mut watch = Watch::new(AlertOptions::new().without(Alert::LowFill));
    let none: [&str; 0] = [];
    let idle = counts(0, 0, 0, 0);
    assert_eq!(watch.at(0, idle, 10), none);
    assert_eq!(watch.at(40, idle, 10), none, "a hundredth is not empty");
    assert_eq!(watch.at(41, idle, 9), none);
    assert_eq!(watch.at(71, idle, 499), none, "30 s are not longer than 30 s");
    assert_eq!(watch.at(72, idle, 499), ["slow_recovery raised: 31s, limit 30s"]);
    assert_eq!(watch.at(99, idle, 0), none);
    assert_eq!(watch.at(100, idle, 500), ["slow_recovery cleared: 0ns, limit 30s"]);

    // By what admissions saw between evaluations.
    let emptied = |emptied, recovered| {
        let mut counted = idle;
        (counted.emptied, counted.recovered) = (emptied, recovered);
        counted
    };
    assert_eq!(watch.at(105, emptied(1, 0), 300), none);
    assert_eq!(watch.at(130, emptied(2, 1), 300), none, "half full meanwhile, and empty again");
    assert_eq!(watch.at(160, emptied(2, 1), 300), none);
    assert_eq!(watch.at(161, emptied(2, 1), 300), ["slow_recovery raised: 31s, limit 30s"]);
    assert_eq!(watch.at(165, emptied(2, 2), 300), ["slow_recovery cleared: 0ns, limit 30s"]);
    // An inspection has seen the end of the third time: what is less than half full later was not emptied again.
    assert_eq!(watch.at(170, emptied(3, 2), 600), none);
    assert_eq!(watch.at(175, emptied(3, 2), 300), none);
    assert_eq!(watch.at(300, emptied(3, 2), 300), none);
}

#[test]
fn c16_a_clock_that_steps_back_raises_nothing() {
    let mut watch = Watch::new(AlertOptions::new().without(Alert::LowFill));
    let none: [&str; 0] = [];
    assert_eq!(watch.at(1_000, counts(0, 0, 0, 0), 0), none);
    assert_eq!(watch.at(1_020, counts(0, 0, 20, 0), 0), none);
    assert_eq!(watch.at(5, counts(0, 0, 20, 0), 0), none);
    assert_eq!(watch.at(35, counts(0, 0, 20, 0), 0), none, "the wait for a recovery began anew");
    assert_eq!(watch.at(36, counts(0, 0, 20, 0), 0), ["slow_recovery raised: 31s, limit 30s"]);
    // What was counted goes on to age: 20 more are not 40 in a minute, though the clock is far behind.
    assert_eq!(watch.at(100, counts(0, 0, 40, 0), 0), none);
    assert_eq!(watch.at(101, counts(0, 0, 0, 0), 0), none, "counted anew");
    assert_eq!(watch.at(102, counts(0, 0, 21, 0), 0), ["bursts raised: 21, limit 20"]);
}

#[test]
fn c16_leaps_to_the_end_of_time_stop_no_alert() {
    let mut alerts = Alerts::new(AlertPolicy::default());
    let mut evaluate = |now, admitted, denied| {
        let changes = alerts.evaluate(now, &counts(admitted, denied, 0, 0), Inspection::new(100, 100));
        changes.filter(|change| change.alert == Alert::Rejections).map(|change| change.is_raised).collect::<Vec<_>>()
    };
    for turn in 0..40 {
        assert_eq!(evaluate(Nanos::ZERO, 1_000 * turn, 1_000 * turn), []);
        let _ = evaluate(Nanos::MAX, 1_000 * turn, 1_000 * turn);
        assert_eq!(evaluate(Nanos::from_secs(1), 1_000 * turn, 1_000 * turn), []);
        assert_eq!(evaluate(Nanos::from_secs(6), 1_000 * turn, 1_000 * (turn + 1)), [true], "after {turn} leaps");
        assert_eq!(
            evaluate(Nanos::from_secs(120), 1_000 * (turn + 1), 1_000 * (turn + 1)),
            [false],
            "after {turn} leaps"
        );
    }
}

#[test]
fn c16_options_are_checked_and_say_what_they_want() {
    use AlertOptionsError as Error;
    let (low, high) = (share(10), share(20));
    let new = AlertOptions::new;
    let found = [
        (new().rejections(low, low), Error::Rejections { above: low, until: low }),
        (new().rejections(low, high), Error::Rejections { above: low, until: high }),
        (new().minimum_requests(0), Error::NoMinimumRequests),
        (new().fill(high, high), Error::Fill { below: high, until: high }),
        (new().fill(high, low), Error::Fill { below: high, until: low }),
        (new().bursts(0, 0), Error::Bursts { above: 0, until: 0 }),
        (new().adjustments(3, 4), Error::Adjustments { above: 3, until: 4 }),
        (new().recovery(Duration::ZERO), Error::NoTimeToRecover),
    ];
    for (options, error) in found {
        assert_eq!(options.build(), Err(error));
        assert!(!error.to_string().is_empty());
    }
    assert_eq!(new().build(), Ok(AlertPolicy::default()));
    assert_eq!(AlertPolicy::default().options(), &new());
    let error = Error::Fill { below: high, until: low };
    assert_eq!(error.to_string(), "fill alerted below 0.002 % and until 0.001 %: the second has to be higher");
    // None of them is raised where it is off.
    let mut off =
        Alert::ALL.iter().fold(new(), |options, alert| options.without(*alert)).build().map(Alerts::new).unwrap();
    let mut most = counts(0, 0, 0, 0);
    for turn in 1..100_u64 {
        (most.denied, most.bursts, most.adjustments, most.emptied) = (100 * turn, 100 * turn, 100 * turn, 1);
        assert_eq!(off.evaluate(Nanos::from_secs(turn), &most, Inspection::new(0, 100)).count(), 0);
    }
}

/// A day of a bucket: alerts by its own counters, evaluated every five seconds.
#[test]
fn c16_alerts_follow_a_bucket_through_its_day() {
    const LIMIT: Quota = quota!("100/1s burst 500");
    let bucket = TokenBucket::with_clock(LIMIT, ManualClock::new()).observed_by(Counters::new(LIMIT));
    let mut alerts = Alerts::new(AlertPolicy::default());
    let mut told = Vec::new();
    // Requests a second, evenly: half of what flows in, a little more than all, and half again.
    for (rate, seconds) in [(50, 60), (120, 120), (50, 120)] {
        for _ in 0..seconds / 5 {
            for _ in 0..5 * rate {
                let _ = bucket.try_acquire(1);
                bucket.clock().advance(Duration::from_nanos(SECOND / rate));
            }
            let now = bucket.clock().now();
            let changes = alerts.evaluate(now, &bucket.observer().snapshot(), bucket.inspect_at(now));
            told.extend(changes.map(|change| (now.as_u64() / SECOND, change.alert, change.is_raised)));
        }
    }
    let times = |alert| told.iter().filter(|told| told.1 == alert).map(|told| (told.0, told.2)).collect::<Vec<_>>();
    // 500 are used up by 20 a second in 25 s.
    assert_eq!(times(Alert::LowFill)[0], (84, true), "{told:?}");
    assert!(told.iter().all(|told| told.1 != Alert::Adjustments && told.1 != Alert::Bursts));
    for alert in [Alert::Rejections, Alert::LowFill, Alert::SlowRecovery] {
        let times = times(alert);
        assert_eq!(times.iter().map(|time| time.1).collect::<Vec<_>>(), [true, false], "{alert}: {told:?}");
    }
}
