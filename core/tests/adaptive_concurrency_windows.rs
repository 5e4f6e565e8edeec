//! Windows of samples that laws of concurrency limits go by: when they are closed or dropped, and what a law makes of them.

use core::time::Duration;

use sluicegate_core::{
    AimdLaw, AimdOptions, ClosedWindow, ConcurrencyController, GradientLaw, GradientOptions, LawOptionsError, Nanos,
    Outcome, SampleOptions, SampleOptionsError, SampleWindow, Sampled, Share,
};

fn gradient(least: u32, initial: u32, most: u32) -> GradientOptions {
    GradientOptions::new().limits(least, initial, most)
}

fn at(milliseconds: u64) -> Nanos {
    Nanos::from_millis(milliseconds)
}

fn sampling(least: u64, longest: u64, samples: u32) -> SampleWindow {
    let options = SampleOptions::new().lasting(Duration::from_millis(least), Duration::from_millis(longest));
    options.samples(samples).build().unwrap()
}

#[test]
fn a_window_needs_its_time_and_its_samples() {
    let mut window = sampling(100, 1_000, 3);
    let mut call = |start, end, outcome, in_use| window.add(at(start), at(end), outcome, in_use, 100);
    assert_eq!(call(0, 10, Outcome::Success, 2), Sampled::Counted);
    assert_eq!(call(5, 10, Outcome::Success, 7), Sampled::Counted);
    assert_eq!(call(5, 109, Outcome::Dropped, 1), Sampled::Counted, "enough, but too early");
    assert_eq!(call(5, 110, Outcome::Ignored, 99), Sampled::NotCounted);
    let Sampled::Closed(closed) = call(90, 110, Outcome::Success, 3) else { panic!("time and samples are there") };
    assert_eq!((closed.successes, closed.dropped, closed.samples(), closed.most_in_use), (3, 1, 4, 7));
    assert_eq!((closed.latency_sum, closed.least_latency), (35_000_000, Duration::from_millis(5)));
    assert_eq!(closed.mean_latency(), Some(Duration::from_nanos(11_666_666)));
    assert_eq!(ClosedWindow::default().mean_latency(), None);
    // The next one begins with its own first sample.
    assert_eq!(call(110, 500, Outcome::Success, 1), Sampled::Counted);
    assert_eq!(call(110, 610, Outcome::Success, 1), Sampled::Counted, "long enough, but too few");
    let Sampled::Closed(closed) = call(110, 1_500, Outcome::Success, 1) else { panic!("exactly the longest time") };
    assert_eq!((closed.successes, closed.most_in_use), (3, 1));
}

#[test]
fn windows_with_too_few_samples_are_dropped_whole_and_told() {
    let mut window = sampling(100, 1_000, 3);
    assert_eq!(window.add(at(0), at(10), Outcome::Dropped, 50, 100), Sampled::Counted);
    assert_eq!(window.add(at(0), at(11), Outcome::Success, 50, 100), Sampled::Counted);
    assert_eq!(window.add(at(1_000), at(1_011), Outcome::Success, 4, 100), Sampled::Dropped { samples: 2 });
    assert_eq!(window.add(at(1_100), at(1_111), Outcome::Success, 4, 100), Sampled::Counted);
    let Sampled::Closed(closed) = window.add(at(1_200), at(1_211), Outcome::Success, 4, 100) else { panic!("three") };
    assert_eq!((closed.dropped, closed.successes, closed.most_in_use), (0, 3, 4), "nothing of the old one is left");

    // Enough of them, but nobody closed it in time: they are old.
    let mut window = sampling(100, 1_000, 2);
    assert_eq!(
        (0..5).filter(|turn| window.add(at(0), at(*turn), Outcome::Dropped, 9, 100) == Sampled::Counted).count(),
        5
    );
    assert_eq!(window.add(at(0), at(1_001), Outcome::Success, 1, 100), Sampled::Dropped { samples: 5 });

    let law = AimdOptions::new().limits(1, 10, 100).build().unwrap();
    let mut controller = ConcurrencyController::new(sampling(100, 1_000, 3), law);
    for turn in 1..100 {
        assert_eq!(controller.add(at(turn * 2_000 - 1), at(turn * 2_000), Outcome::Dropped, 10), None);
    }
    assert_eq!((controller.limit(), controller.closed_windows(), controller.dropped_windows()), (10, 0, 98));
}

#[test]
fn a_window_of_slow_calls_under_a_low_limit_is_closed_with_fewer_samples() {
    // One at a time, of 2 s each: never twenty in 10 s.
    for (limit, per_turn, closes_at) in [(1, 1, Some(5)), (2, 2, Some(5)), (3, 2, Some(5)), (6, 2, None)] {
        let mut window = SampleWindow::default();
        let samples = (0..12_u64).flat_map(|sample| (0..per_turn).map(move |_| sample));
        let closed = samples.enumerate().find_map(|(number, turn)| {
            let (start, end) = (at(1_000 * turn), at(1_000 * turn + 2_000));
            let sampled = window.add(start, end, Outcome::Success, per_turn, limit);
            matches!(sampled, Sampled::Closed(_)).then_some((number, turn))
        });
        match (closed, closes_at) {
            (Some((_, turn)), Some(expected)) => assert_eq!(turn, expected, "half of the longest time, at {limit}"),
            // Twelve are needed at most, and there are ten by half of the time.
            (Some((number, turn)), None) => assert_eq!((number + 1, turn), (12, 5)),
            (None, _) => panic!("it is never closed at {limit}"),
        }
    }
    // Before half of the time all of them are needed, and after all of it none do.
    let mut window = sampling(0, 1_000, 20);
    assert_eq!(
        (0..4).filter(|turn| window.add(at(0), at(100 * turn), Outcome::Success, 1, 1) == Sampled::Counted).count(),
        4
    );
    assert!(matches!(window.add(at(0), at(499), Outcome::Success, 1, 1), Sampled::Counted));
    assert!(matches!(window.add(at(0), at(500), Outcome::Success, 1, 1), Sampled::Closed(_)));
    assert_eq!(window.add(at(0), at(600), Outcome::Success, 1, 1), Sampled::Counted);
    assert_eq!(window.add(at(0), at(1_601), Outcome::Success, 1, 1), Sampled::Dropped { samples: 1 });
}

#[test]
fn a_limit_at_its_floor_recovers_also_where_calls_are_slow() {
    for seconds in [1, 2, 4, 9] {
        for latency_law in [false, true] {
            let mut aimd = ConcurrencyController::new(
                SampleWindow::default(),
                AimdOptions::new().limits(1, 1, 50).build().unwrap(),
            );
            let mut gradient = ConcurrencyController::new(SampleWindow::default(), gradient(1, 1, 50).build().unwrap());
            let mut now = 0;
            for _ in 0..200 {
                let limit = if latency_law { gradient.limit() } else { aimd.limit() };
                for _ in 0..limit {
                    let (start, end) = (at(now), at(now + 1_000 * seconds));
                    let _ = if latency_law {
                        gradient.add(start, end, Outcome::Success, limit)
                    } else {
                        aimd.add(start, end, Outcome::Success, limit)
                    };
                }
                now += 1_000 * seconds;
            }
            let limit = if latency_law { gradient.limit() } else { aimd.limit() };
            assert!(limit >= 5, "{limit} after {now} ms of calls of {seconds} s");
        }
    }
}

#[test]
fn one_burst_of_drops_lowers_the_limit_once() {
    let law = AimdOptions::new().limits(1, 100, 100).build().unwrap();
    let mut controller = ConcurrencyController::new(sampling(10, 1_000, 5), law);
    // All were let in at once, and time out one after the other, over many windows.
    for turn in 0..100_u32 {
        let _ = controller.add(at(0), at(500 + 5 * u64::from(turn)), Outcome::Dropped, 100 - turn);
    }
    assert_eq!((controller.limit(), controller.closed_windows()), (90, 1));
    // Those that were let in since count.
    for turn in 0..5 {
        let _ = controller.add(at(600), at(1_000 + 5 * turn), Outcome::Dropped, 5);
    }
    assert_eq!((controller.limit(), controller.closed_windows()), (81, 2));
    // And where all take longer than any window, they count from then on.
    for turn in 0..8 {
        let _ = controller.add(at(600), at(2_100 + 5 * turn), Outcome::Dropped, 5);
    }
    assert_eq!((controller.limit(), controller.closed_windows()), (72, 3));
}

#[test]
fn a_clock_that_steps_back_poisons_no_baseline_and_stops_nothing() {
    let law = gradient(1, 10, 100).build().unwrap();
    let mut controller = ConcurrencyController::new(sampling(100, 1_000, 5), law);
    const YEAR: u64 = 31_557_600_000;
    let feed = |controller: &mut ConcurrencyController<GradientLaw>, from: u64| {
        let before = controller.closed_windows();
        // One window is closed, and the next one is open when the clock steps back.
        for turn in 0..9 {
            let ended = from + 20 * turn;
            let _ = controller.add(at(ended - 10), at(ended), Outcome::Success, 10);
            // One that has started before the clock stepped back.
            let _ = controller.add(at(ended + 1_000_000), at(ended), Outcome::Success, 10);
        }
        assert!(controller.closed_windows() > before, "nothing is learnt from {from} on");
        assert_eq!(controller.law().baseline(), Some(Duration::from_millis(10)));
    };
    for from in [2 * YEAR, 10_000, 3 * YEAR, YEAR, YEAR - 10, 10] {
        feed(&mut controller, from);
    }
    // The same right after a limit was lowered.
    let _ = (0..12).map(|turn| controller.add(at(YEAR), at(YEAR + 20 * turn), Outcome::Dropped, 10)).count();
    feed(&mut controller, 10_000);
}

#[test]
fn what_cannot_be_built_says_why() {
    let aimd = AimdOptions::new();
    for (least, initial, most) in [(0, 1, 1), (2, 1, 3), (1, 4, 3)] {
        let error = LawOptionsError::Limits { least, initial, most };
        assert_eq!(aimd.limits(least, initial, most).build(), Err(error));
        assert_eq!(gradient(least, initial, most).build(), Err(error));
    }
    assert_eq!(aimd.increase(0).build(), Err(LawOptionsError::NoIncrease));
    assert_eq!(aimd.backoff(Share::ALL).build(), Err(LawOptionsError::NoBackoff));
    let options = GradientOptions::new();
    assert_eq!(options.backoff(Share::ALL).build(), Err(LawOptionsError::NoBackoff));
    assert_eq!(options.tolerance(1_001).build(), Err(LawOptionsError::Tolerance { percent: 1_001 }));
    let error = options.baseline(Duration::from_secs(2), Duration::from_secs(1)).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "a baseline of 2s to 1s: the least has to be above 0 s, the most no less and up to 30 years"
    );
    assert!(options.baseline(Duration::ZERO, Duration::from_secs(1)).build().is_err());
    assert!(options.baseline(Duration::from_secs(1), Duration::MAX).build().is_err());
    let (least, longest) = (Duration::from_secs(1), Duration::from_secs(1));
    assert_eq!(
        SampleOptions::new().lasting(least, longest).build(),
        Err(SampleOptionsError::Lasting { least, longest })
    );
    assert!(SampleOptions::new().lasting(least, Duration::MAX).build().is_err());
    assert_eq!(SampleOptions::new().samples(0).build(), Err(SampleOptionsError::NoSamples));
    assert_eq!(AimdLaw::default(), AimdOptions::default().build().unwrap());
    assert_eq!(GradientLaw::default(), GradientOptions::default().build().unwrap());
    assert_eq!(SampleWindow::default(), SampleOptions::default().build().unwrap());
}
