//! What the leaky bucket promises, example by example: bounds, costs, slack, observers, bad clocks and racing threads.

mod support;

use core::cell::RefCell;
use core::time::Duration;

use sluicegate_core::{
    Admitted, Denied, LeakyBucket, ManualClock, Nanos, Observer, PER_SECOND, Pacing, QuotaError, Rate, Remaining,
};
use support::ideal::seen;
use support::{Numbers, race};

fn pacing(rate: &str, queue: u64) -> Pacing {
    Pacing::new(rate.parse().unwrap(), queue).unwrap()
}

#[test]
fn c06_a_burst_queues_up_to_the_bound_and_drains_at_the_rate() {
    for rate in ["100/1s", "11/1s", "7/3s", "999_999_937/1s"] {
        for queue in [0, 1, 2, 5, 100] {
            for start in [0, 1, 5_000_000_000, 123_456_789_012_345_678] {
                let bucket = LeakyBucket::with_clock(pacing(rate, queue), ManualClock::at(Nanos::new(start)));
                assert_eq!((bucket.inspect().level, bucket.inspect().capacity), (queue + 1, queue + 1));
                // One departs and `queue` wait, on every grid.
                for index in 0..=queue {
                    let departure = bucket.try_acquire(1).unwrap();
                    assert_eq!(departure.is_immediate(), index == 0);
                }
                assert_eq!(bucket.inspect().level, 0);
                let Err(Denied::RateLimited { retry_after }) = bucket.try_acquire(1) else { panic!("{rate} {queue}") };
                bucket.clock().advance(retry_after - Duration::from_nanos(1));
                assert!(bucket.try_acquire(1).is_err(), "{rate} {queue}");
                bucket.clock().advance(Duration::from_nanos(1));
                assert!(bucket.try_acquire(1).is_ok() && bucket.try_acquire(1).is_err(), "{rate} {queue}");
            }
        }
    }
}

#[test]
fn c06_costs_take_as_many_slots() {
    let pacing = pacing("10/1s", 6).with_largest_cost(9).unwrap();
    let bucket = LeakyBucket::with_clock(pacing, ManualClock::new());
    let at = |cost| bucket.try_acquire(cost).map(|departure| departure.at.as_u64() / 100_000_000);
    assert_eq!((at(2), at(3), at(1)), (Ok(0), Ok(2), Ok(5)));
    // Behind six tokens, and then behind fifteen.
    assert_eq!(at(9), Ok(6));
    assert_eq!(at(1), Err(Denied::RateLimited { retry_after: Duration::from_millis(900) }));
    assert_eq!(at(10), Err(Denied::CostExceedsLimit { cost: 10, limit: 9 }));
    assert_eq!(at(0), Ok(0), "nothing needs no slot");
}

#[test]
fn slack_makes_up_for_so_much_lost_time_and_no_more() {
    let pacing = pacing("10/1s", 2).with_slack(3).unwrap();
    for idle in [0, 10_000, 1_000_000] {
        let bucket = LeakyBucket::with_clock(pacing, ManualClock::at(Nanos::from_millis(idle)));
        let delays = || (0..9).map_while(|_| bucket.try_acquire(1).ok()).map(|departure| departure.delay.as_millis());
        // Four at once, as if three had come late, and two that wait.
        assert_eq!(delays().collect::<Vec<_>>(), [0, 0, 0, 0, 100, 200], "idle for {idle} ms");
        // Busy until 300 ms; then 250 ms are lost, of which two whole slots and the next come at once.
        bucket.clock().advance(Duration::from_millis(550));
        assert_eq!(delays().collect::<Vec<_>>(), [0, 0, 0, 50, 150], "idle for {idle} ms");
    }
    // Without slack lost time is lost.
    let strict = LeakyBucket::with_clock(self::pacing("10/1s", 2), ManualClock::at(Nanos::from_secs(1_000)));
    assert!(strict.try_acquire(1).unwrap().is_immediate());
    assert_eq!(strict.try_acquire(1).unwrap().delay, Duration::from_millis(100));
    strict.clock().advance(Duration::from_millis(999));
    assert!(strict.try_acquire(1).unwrap().is_immediate());
    assert_eq!(strict.try_acquire(1).unwrap().delay, Duration::from_millis(100));
}

#[test]
fn what_cannot_be_paced_is_an_error_when_it_is_built() {
    let rate: Rate = "10/1s".parse().unwrap();
    assert!(matches!(Pacing::new(Rate::new(u64::MAX, PER_SECOND).unwrap(), 1), Err(QuotaError::RateTooHigh { .. })));
    let Err(QuotaError::PacingTooLarge { tokens, largest }) = Pacing::new(rate, u64::MAX / 3) else { panic!() };
    assert_eq!(tokens, u64::MAX / 3 * 2);
    let half = largest / 2;
    assert!(Pacing::new(rate, half).is_ok() && Pacing::new(rate, half + 1).is_err());
    assert!(Pacing::new(rate, 1).unwrap().with_slack(largest).is_err());
    assert!(Pacing::new(rate, 1).unwrap().with_largest_cost(0).is_err());
    assert!(Pacing::new(rate, 0).unwrap().with_largest_cost(largest).is_ok());
    let text = Pacing::new(rate, u64::MAX).unwrap_err().to_string();
    assert!(text.contains("18446744073709551615"), "{text}");
}

#[test]
fn an_observer_is_told_of_departures_refusals_and_cancellations() {
    #[derive(Default)]
    struct Journal(RefCell<Vec<String>>);
    impl Observer for Journal {
        fn admitted(&self, now: Nanos, cost: u64, admitted: &Admitted) {
            let Admitted { remaining: Remaining::Exactly(left), at, .. } = *admitted else { panic!() };
            self.0.borrow_mut().push(format!("{now}: {cost} departs {at}, {left} left"));
        }
        fn denied(&self, now: Nanos, cost: u64, denied: &Denied) {
            self.0.borrow_mut().push(format!("{now}: {cost} {denied}"));
        }
        fn refunded(&self, cost: u64) {
            self.0.borrow_mut().push(format!("{cost} cancelled"));
        }
    }
    let bucket = LeakyBucket::with_clock(pacing("1/10ns", 2), ManualClock::new()).observed_by(Journal::default());
    drop(bucket.try_acquire(1));
    let second = bucket.try_acquire(2).unwrap();
    drop(bucket.try_acquire(1));
    bucket.cancel(second).unwrap();
    let _ = bucket.peek(1);
    let told = bucket.observer().0.take();
    assert_eq!(
        told,
        [
            "0 ns: 1 departs 0 ns, 2 left",
            "0 ns: 2 departs 10 ns, 0 left",
            "0 ns: 1 rate limited, retry after 10ns",
            "2 cancelled"
        ]
    );
}

#[test]
fn does_not_panic_on_any_clock_and_locks_nobody_out() {
    const YEAR: u64 = 31_557_600_000_000_000;
    let horizon = Nanos::HORIZON.as_u64();
    let mut numbers = Numbers(5);
    let mut readings: Vec<u64> = vec![0, u64::MAX, 0, horizon, horizon + 1, horizon - 1, 1, 29 * YEAR, 0, u64::MAX - 1];
    readings.extend((0..300).map(|_| numbers.below(u64::MAX) >> numbers.below(64)));
    readings.extend((0..50).map(|index| horizon - 25 + index));
    for rate in ["1/1s", "7/3s", "9_700_000_000/1s", "1/18446744073709551615ns", "11/1s", "1/1ns"] {
        for (queue, slack, largest) in [(0, 0, 1), (5, 2, 3), (1_000_000, 0, 1_000_000), (0, 40, 1)] {
            let Ok(pacing) = Pacing::new(rate.parse().unwrap(), queue) else { continue };
            let Ok(pacing) = pacing.with_slack(slack).and_then(|pacing| pacing.with_largest_cost(largest)) else {
                continue;
            };
            let (bucket, mut latest) = (LeakyBucket::with_clock(pacing, ManualClock::new()), 0);
            for (index, &reading) in readings.iter().enumerate() {
                let now = Nanos::new(reading);
                bucket.clock().set(now);
                latest = latest.max(seen(now));
                let cost = [1, largest, 0, u64::MAX, largest.saturating_add(1)][index % 5];
                let inspection = bucket.inspect();
                assert!(inspection.level <= inspection.capacity && inspection.capacity == queue + slack + 1);
                match bucket.try_acquire(cost) {
                    Ok(departure) => {
                        assert!(departure.at >= now && cost <= largest);
                        if index % 3 == 0 {
                            bucket.cancel(departure).unwrap();
                        }
                    }
                    Err(Denied::RateLimited { retry_after }) => {
                        assert!(!retry_after.is_zero() && inspection.level == 0);
                        // No longer than until the latest reading seen, and what can be queued and cost from there on.
                        let tokens = u128::from(slack + largest + 1) * u128::from(pacing.rate().period_nanos());
                        let most = u128::from(latest - seen(now)) + tokens / u128::from(pacing.rate().tokens()) + 4;
                        assert!(retry_after.as_nanos() <= most, "{rate}: {retry_after:?} at {now}, {most}");
                    }
                    Err(_) => assert!(cost > largest),
                }
            }
        }
    }
}

#[test]
fn a_clock_that_steps_back_moves_no_departure() {
    let bucket = LeakyBucket::with_clock(pacing("10/1s", 5), ManualClock::at(Nanos::from_secs(100)));
    let first = bucket.try_acquire(1).unwrap();
    bucket.clock().step_back(Duration::from_millis(300));
    let second = bucket.try_acquire(1).unwrap();
    assert_eq!(second.at, first.at + Duration::from_millis(100));
    assert_eq!(second.delay, Duration::from_millis(400));
}

#[test]
fn racing_threads_get_slots_of_their_own() {
    let bucket = LeakyBucket::with_clock(pacing("3/10ns", 1_000_000), ManualClock::at(Nanos::new(77)));
    let mut slots: Vec<u64> = race(8, |_| {
        let mut slots: Vec<u64> = Vec::new();
        for round in 0..20_000 {
            let Ok(departure) = bucket.try_acquire(1) else { continue };
            if round % 5 == 0 {
                // Given up if it still is the newest; if not, it stays used.
                if let Err(departure) = bucket.cancel(departure) {
                    slots.push(departure.at.as_u64());
                }
            } else {
                slots.push(departure.at.as_u64());
            }
        }
        slots
    })
    .into_iter()
    .flatten()
    .collect();
    slots.sort_unstable();
    let expected: Vec<u64> = (0..slots.len() as u64).map(|index| 77 + (index * 10).div_ceil(3)).collect();
    assert!(slots == expected, "each slot once, and none left out");
}

#[test]
fn racing_threads_fill_the_queue_exactly() {
    for round in 0..200 {
        let bucket = LeakyBucket::with_clock(pacing("1/1s", 6), ManualClock::at(Nanos::new(round)));
        let accepted: usize = race(4, |_| (0..5).filter(|_| bucket.try_acquire(1).is_ok()).count()).into_iter().sum();
        assert_eq!(accepted, 7);
    }
}
