//! Small scenarios, any of them, and how they are written.

use std::fmt::Write;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::Time;

const MS: Time = 1_000_000;

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) duration: Time,
    pub(crate) seed: u64,
    pub(crate) loads: Vec<Load>,
    pub(crate) services: Vec<Service>,
    /// Tokens and a period.
    pub(crate) provider: Option<(u64, Time)>,
    pub(crate) provider_quota: Option<(u64, Time)>,
    pub(crate) limit: Limit,
    pub(crate) when_empty: WhenEmpty,
    pub(crate) most_waiting: Option<usize>,
    pub(crate) longest_wait: Option<Time>,
    pub(crate) timeout: Option<Time>,
    pub(crate) in_flight: Option<InFlight>,
    pub(crate) breaker: Option<BreakerOptions>,
}

#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) from: Time,
    pub(crate) requests: u64,
    pub(crate) period: Time,
    pub(crate) is_random: bool,
    pub(crate) cost: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) from: Time,
    pub(crate) latency: Time,
    pub(crate) jitter: Time,
    pub(crate) capacity: Option<usize>,
    pub(crate) queue: usize,
    /// Percentages.
    pub(crate) failures: u64,
    pub(crate) overloaded: u64,
    pub(crate) refuses_in: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Off,
    Deny,
    Quota { tokens: u64, period: Time, capacity: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenEmpty {
    Reject,
    Degrade,
    Queue,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum InFlight {
    Fixed(u32),
    Aimd { least: u32, initial: u32, most: u32 },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BreakerOptions {
    pub(crate) window: Time,
    pub(crate) minimum_calls: usize,
    pub(crate) failure_percent: u64,
    pub(crate) slow_from: Option<Time>,
    pub(crate) slow_percent: u64,
    pub(crate) consecutive_failures: Option<u32>,
    pub(crate) cool_down: Time,
    pub(crate) longest_cool_down: Time,
    pub(crate) probes: u32,
    pub(crate) patience: Time,
}

impl Scenario {
    pub(crate) fn text(&self) -> String {
        let mut text = format!("title = \"Random\"\nduration = \"{}ns\"\nseed = {}\n", self.duration, self.seed);
        for load in &self.loads {
            let rate =
                if load.requests == 0 { "none".to_owned() } else { format!("{}/{}ns", load.requests, load.period) };
            let arrivals = if load.is_random { "random" } else { "even" };
            let _ = writeln!(
                text,
                "[[load]]\nfrom = \"{}ns\"\nrate = \"{rate}\"\narrivals = \"{arrivals}\"\ncost = {}",
                load.from, load.cost
            );
        }
        for service in &self.services {
            let _ = writeln!(
                text,
                "[[service]]\nfrom = \"{}ns\"\nlatency = \"{}ns\"\njitter = \"{}ns\"\nfailures = {}\noverloaded = {}\nrefuses_in = \"{}ns\"",
                service.from, service.latency, service.jitter, service.failures, service.overloaded, service.refuses_in
            );
            if let Some(capacity) = service.capacity {
                let _ = writeln!(text, "capacity = {capacity}\nqueue = {}", service.queue);
            }
            for (name, limit) in [("provider", self.provider), ("provider_quota", self.provider_quota)] {
                if let Some((tokens, period)) = limit {
                    let _ = writeln!(text, "{name} = \"{tokens}/{period}ns\"");
                }
            }
        }
        self.write_flow(&mut text);
        text
    }

    fn write_flow(&self, text: &mut String) {
        let quota = match self.limit {
            Limit::Off => "off".to_owned(),
            Limit::Deny => "deny".to_owned(),
            Limit::Quota { tokens, period, capacity } => format!("{tokens}/{period}ns burst {capacity}"),
        };
        let when_empty = match self.when_empty {
            WhenEmpty::Reject => "reject",
            WhenEmpty::Degrade => "degrade",
            WhenEmpty::Queue => "queue",
        };
        let _ = writeln!(text, "[flow]\nquota = \"{quota}\"\nwhen_empty = \"{when_empty}\"");
        if let (Some(most), WhenEmpty::Queue) = (self.most_waiting, self.when_empty) {
            let _ = writeln!(text, "most_waiting = {most}");
        }
        if let (Some(longest), WhenEmpty::Queue) = (self.longest_wait, self.when_empty) {
            let _ = writeln!(text, "longest_wait = \"{longest}ns\"");
        }
        if let Some(timeout) = self.timeout {
            let _ = writeln!(text, "timeout = \"{timeout}ns\"");
        }
        match self.in_flight {
            None => {}
            Some(InFlight::Fixed(calls)) => _ = writeln!(text, "in_flight = {calls}"),
            Some(InFlight::Aimd { least, initial, most }) => {
                _ = writeln!(
                    text,
                    "in_flight = {{ law = \"aimd\", least = {least}, initial = {initial}, most = {most} }}"
                );
            }
        }
        let Some(breaker) = &self.breaker else { return };
        let _ = writeln!(
            text,
            "[flow.breaker]\nwindow = \"{}ns\"\nminimum_calls = {}\nfailure_share = {}\ncool_down = \"{}ns\"\n\
             longest_cool_down = \"{}ns\"\nprobes = {}\nprobe_patience = \"{}ns\"",
            breaker.window,
            breaker.minimum_calls,
            breaker.failure_percent,
            breaker.cool_down,
            breaker.longest_cool_down,
            breaker.probes,
            breaker.patience
        );
        if let Some(from) = breaker.slow_from {
            let _ = writeln!(text, "slow_calls = {{ from = \"{from}ns\", share = {} }}", breaker.slow_percent);
        }
        if let Some(failures) = breaker.consecutive_failures {
            let _ = writeln!(text, "consecutive_failures = {failures}");
        }
    }
}

/// A few seconds, some hundred calls.
pub(crate) fn any_scenario() -> impl Strategy<Value = Scenario> {
    // Rates of which core's buckets are exact: up to 9 tokens per period in lowest terms. Of others an instant is right to within about 0.1 ns, and so
    // the nanosecond may be another one.
    let period = prop_oneof![Just(50), Just(100), 10_u64..100, 100_u64..600];
    let rate = (1_u64..8, period.prop_map(|count| count * MS));
    let provider = option::weighted(0.3, (3_u64..8, (60_u64..1_000).prop_map(|count| count * MS)));
    let provider_quota = option::weighted(0.3, (5_u64..100, (1_u64..40).prop_map(|tenths| tenths * 100 * MS)));
    let limit = prop_oneof![
        1 => Just(Limit::Off),
        1 => Just(Limit::Deny),
        12 => (rate, 3_u64..40)
            .prop_map(|((tokens, period), capacity)| Limit::Quota { tokens, period, capacity }),
    ];
    let when_empty =
        prop_oneof![3 => Just(WhenEmpty::Reject), 1 => Just(WhenEmpty::Degrade), 2 => Just(WhenEmpty::Queue)];
    let flow = (
        limit,
        when_empty,
        option::of(0_usize..12),
        option::of(prop_oneof![any_usual_time(), 1_u64..900 * MS]),
        option::of(prop_oneof![any_usual_time(), (1_u64..900_000).prop_map(|thousands| thousands * 1_001)]),
        option::of(any_in_flight()),
        option::weighted(0.7, any_breaker()),
    );
    let loads = vec(any_load(), 1..4);
    let services = vec(any_service(), 1..4);
    (20_u64..60, any::<u32>(), loads, services, provider, provider_quota, flow).prop_map(
        |(tenths, seed, mut loads, mut services, provider, provider_quota, flow)| {
            let duration = tenths * 100 * MS;
            for (index, load) in (0..).zip(&mut loads) {
                load.from = index * 600 * MS;
            }
            for (index, service) in (0..).zip(&mut services) {
                service.from = index * 650 * MS + 7 * index.min(1);
            }
            let (limit, when_empty, most_waiting, longest_wait, timeout, in_flight, breaker) = flow;
            Scenario {
                duration,
                seed: seed.into(),
                loads,
                services,
                provider,
                provider_quota,
                limit,
                when_empty,
                most_waiting,
                longest_wait,
                timeout,
                in_flight,
                breaker,
            }
        },
    )
}

fn any_load() -> impl Strategy<Value = Load> {
    let rate = prop_oneof![
        1 => Just((0, 1)),
        6 => (1_u64..200, Just(1_000 * MS)),
        3 => (1_u64..30, Just(100 * MS)),
        2 => Just((1, 100 * MS)),
        2 => Just((1, 50 * MS)),
        1 => (1_u64..3_000, Just(60_000 * MS)),
    ];
    (rate, any::<bool>(), 1_u64..4).prop_map(|((requests, period), is_random, cost)| Load {
        from: 0,
        requests,
        period,
        is_random,
        cost,
    })
}

/// Some that are the same here and there, so that things happen at the same instant.
fn any_usual_time() -> impl Strategy<Value = Time> {
    prop_oneof![Just(50 * MS), Just(100 * MS), Just(200 * MS)]
}

fn any_service() -> impl Strategy<Value = Service> {
    let latency =
        prop_oneof![1 => Just(0), 4 => any_usual_time(), 6 => (1_u64..900_000).prop_map(|thousands| thousands * 999)];
    let jitter = prop_oneof![Just(0), 1..100 * MS];
    let failures = prop_oneof![3 => Just(0), 2 => 1_u64..40, 1 => Just(100)];
    let overloaded = prop_oneof![3 => Just(0), 1 => 1_u64..60];
    (latency, jitter, option::of(1_usize..12), 0_usize..12, failures, overloaded, 0..20 * MS).prop_map(
        |(latency, jitter, capacity, queue, failures, overloaded, refuses_in)| Service {
            from: 0,
            latency,
            jitter,
            capacity,
            queue,
            failures,
            overloaded,
            refuses_in,
        },
    )
}

fn any_in_flight() -> impl Strategy<Value = InFlight> {
    prop_oneof![
        (1_u32..12).prop_map(InFlight::Fixed),
        (1_u32..4, 0_u32..10, 0_u32..10).prop_map(|(least, more, most)| {
            let initial = least + more;
            InFlight::Aimd { least, initial, most: initial + most }
        }),
    ]
}

fn any_breaker() -> impl Strategy<Value = BreakerOptions> {
    let slow = option::of(10 * MS..500 * MS);
    let cool_down = (10_u64..800, 0_u64..2_000);
    (
        100_u64..3_000,
        1_usize..25,
        1_u64..=100,
        slow,
        1_u64..=100,
        option::of(1_u32..8),
        cool_down,
        1_u32..5,
        20_u64..900,
    )
        .prop_map(
            |(
                window,
                minimum_calls,
                failure_percent,
                slow_from,
                slow_percent,
                consecutive_failures,
                cool_down,
                probes,
                patience,
            )| {
                BreakerOptions {
                    window: window * MS + 5,
                    minimum_calls,
                    failure_percent,
                    slow_from,
                    slow_percent,
                    consecutive_failures,
                    cool_down: cool_down.0 * MS,
                    longest_cool_down: (cool_down.0 + cool_down.1) * MS,
                    probes,
                    patience: patience * MS,
                }
            },
        )
}
