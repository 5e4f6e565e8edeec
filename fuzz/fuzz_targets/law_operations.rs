//! Laws of concurrency fed with any calls at any readings, and alerts with any counts: what holds of every limit and every change.
#![no_main]

use core::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sluicegate_core::{
    AdaptiveConcurrency, AimdOptions, Alert, AlertOptions, Alerts, ConcurrencyController, ConcurrencyLaw, Counters,
    GradientOptions, Limit, ManualClock, Nanos, Outcome, Quota, Rate, SampleOptions, SampleWindow, Share, TokenBucket,
};

#[derive(Arbitrary, Debug)]
struct Input {
    lasting: (u64, u64),
    samples: u32,
    limits: (u32, u32, u32),
    backoff: u32,
    aimd: Option<u32>,
    tolerance: u16,
    smoothing: u32,
    baseline: Option<(u64, u64, u32)>,
    quota: (u64, u64, u64),
    alerts: [u32; 5],
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Advance(u32),
    MoveTo(u64),
    Take(u8),
    Release(u8, u8),
    SetLimit(u8),
    Ask(u8),
    Evaluate,
}

fn share(number: u32) -> Share {
    Share::parts_per_million(number % 1_000_000 + 1).expect("in range")
}

fuzz_target!(|input: Input| {
    let nanos = |(least, most)| (Duration::from_nanos(least), Duration::from_nanos(most));
    let (least, longest) = nanos(input.lasting);
    let Ok(window) = SampleOptions::new().lasting(least, longest).samples(input.samples).build() else { return };
    let (least, initial, most) = input.limits;
    if let Some(increase) = input.aimd {
        let options = AimdOptions::new().limits(least, initial, most).increase(increase);
        let Ok(law) = options.backoff(share(input.backoff)).build() else { return };
        run(&input, window, law);
    } else {
        let options = GradientOptions::new().limits(least, initial, most).tolerance(input.tolerance.into());
        let options = options.smoothing(share(input.smoothing)).backoff(share(input.backoff));
        let options = input.baseline.map_or(options, |(least, most, rise)| {
            let (least, most) = nanos((least, most));
            options.baseline(least, most).baseline_rise(share(rise))
        });
        let Ok(law) = options.build() else { return };
        run(&input, window, law);
    }
});

fn run(input: &Input, window: SampleWindow, law: impl ConcurrencyLaw + Clone) {
    let (tokens, period, burst) = input.quota;
    let quota = Rate::new(tokens, Duration::from_nanos(period)).and_then(|rate| Quota::with_burst(rate, burst));
    let limit = quota.map_or(Limit::Unlimited, Limit::Quota);
    let bucket = TokenBucket::with_limit(limit, ()).observed_by(Counters::new(limit));
    let [above, until, bursts, adjustments, recovery] = input.alerts;
    let options =
        AlertOptions::new().rejections(share(above), share(until)).bursts(bursts.into(), u64::from(bursts) / 2);
    let options = options.adjustments(adjustments.into(), 0).recovery(Duration::from_nanos(recovery.into()));
    let mut alerts = Alerts::new(options.build().unwrap_or_default());
    let mut is_raised = [false; Alert::ALL.len()];

    let (bounds, clock) = (law.bounds(), ManualClock::new());
    let controller = ConcurrencyController::new(window, law);
    let places = AdaptiveConcurrency::<parking_lot::RawMutex, _, _>::new(controller, &clock).into_limit();
    let (mut permits, mut by_hand) = (Vec::new(), false);
    for step in input.steps.iter().take(256) {
        match *step {
            Step::Advance(by) => clock.advance(Duration::from_nanos(by.into())),
            Step::MoveTo(to) => clock.set(Nanos::new(to)),
            Step::Take(cost) => permits.extend(places.try_acquire(cost.into())),
            Step::Release(which, outcome) if !permits.is_empty() => {
                let permit = permits.swap_remove(usize::from(which) % permits.len());
                permit.release([Outcome::Success, Outcome::Dropped, Outcome::Ignored][usize::from(outcome % 3)]);
            }
            Step::Release(..) => {}
            Step::SetLimit(limit) => {
                places.set_limit(limit.into());
                by_hand = !bounds.contains(&limit.into());
            }
            Step::Ask(cost) => _ = bucket.try_acquire_at(sluicegate_core::Clock::now(&clock), cost.into()),
            Step::Evaluate => {
                let now = sluicegate_core::Clock::now(&clock);
                for change in alerts.evaluate(now, &bucket.observer().snapshot(), bucket.inspect_at(now)) {
                    let raised = &mut is_raised[change.alert as usize];
                    assert_ne!(*raised, change.is_raised, "told twice");
                    *raised = change.is_raised;
                }
                assert!(Alert::ALL.iter().all(|alert| alerts.is_raised(*alert) == is_raised[*alert as usize]));
            }
        }
        assert!(by_hand || bounds.contains(&places.limit()), "{} of {bounds:?}", places.limit());
    }
    drop(permits);
    assert_eq!(places.in_use(), 0);
}
