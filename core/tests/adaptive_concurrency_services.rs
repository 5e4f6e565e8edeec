//! Laws of concurrency limits before services in virtual time: where they settle, and how they come back.

mod support;

extern crate alloc;

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;
use core::time::Duration;

use proptest::prelude::*;
use sluicegate_core::{
    AimdOptions, ConcurrencyController, ConcurrencyLaw, GradientOptions, Nanos, Outcome, SampleOptions,
};
use support::{Numbers, cases};

const MILLI: u64 = 1_000_000;

fn gradient(least: u32, initial: u32, most: u32) -> GradientOptions {
    GradientOptions::new().limits(least, initial, most)
}

/// Works on `servers` calls at once, in order; a call that would take longer than `timeout` altogether is given up then.
struct Service {
    /// When each can begin with the next call.
    servers: BinaryHeap<Reverse<u64>>,
    latency: u64,
    /// In percent of the latency, up and down.
    jitter: u64,
    timeout: u64,
    numbers: Numbers,
}

impl Service {
    fn new(servers: usize, latency: u64, jitter: u64, timeout: u64) -> Self {
        let servers = (0..servers).map(|_| Reverse(0)).collect();
        Self { servers, latency, jitter, timeout, numbers: Numbers(latency) }
    }

    fn call(&mut self, now: u64) -> (u64, Outcome) {
        let Reverse(free) = *self.servers.peek().unwrap();
        let swing = self.latency * self.jitter / 100;
        let takes = self.latency - swing + self.numbers.below(2 * swing + 1);
        let done = free.max(now) + takes;
        if done > now + self.timeout {
            return (now + self.timeout, Outcome::Dropped);
        }
        self.servers.pop();
        self.servers.push(Reverse(done));
        (done, Outcome::Success)
    }
}

/// Callers that use whatever the limit lets them, up to `demand` at once.
struct Callers<L> {
    controller: ConcurrencyController<L>,
    now: u64,
    in_flight: BinaryHeap<Reverse<(u64, u64, bool)>>,
}

impl<L: ConcurrencyLaw> Callers<L> {
    /// Windows of four times the latency of the service.
    fn new(law: L, service: &Service) -> Self {
        let options = SampleOptions::new();
        let window =
            options.lasting(Duration::from_nanos(4 * service.latency), Duration::from_secs(10)).build().unwrap();
        let controller = ConcurrencyController::new(window, law);
        Self { controller, now: 0, in_flight: BinaryHeap::new() }
    }

    /// Calls for so many windows, and returns the limits after each.
    fn run(&mut self, service: &mut Service, demand: u32, windows: u64) -> Vec<u32> {
        let until = self.controller.closed_windows() + windows;
        let mut limits = vec![self.controller.limit()];
        while self.controller.closed_windows() < until {
            while self.in_flight.len() < self.controller.limit().min(demand) as usize {
                let (ended, outcome) = service.call(self.now);
                self.in_flight.push(Reverse((ended, self.now, outcome == Outcome::Success)));
            }
            let in_use = self.in_flight.len() as u32;
            let Reverse((ended, started, is_success)) = self.in_flight.pop().unwrap();
            self.now = ended;
            let outcome = if is_success { Outcome::Success } else { Outcome::Dropped };
            limits.extend(self.controller.add(Nanos::new(started), Nanos::new(ended), outcome, in_use));
        }
        limits
    }
}

proptest! {
    #![proptest_config(cases(10))]

    #[test]
    fn the_gradient_law_settles_above_what_a_service_can_do(
        servers in 1..80_u32,
        initial in 1..=100_u32,
        latency in 1..100_u64,
        jitter in 0..20_u64,
    ) {
        let mut service = Service::new(servers as usize, latency * MILLI, jitter, u64::MAX >> 1);
        let initial = initial.min(servers);
        let mut callers = Callers::new(gradient(1, initial, 1_000).build().unwrap(), &service);
        let way = callers.run(&mut service, u32::MAX, 300);
        prop_assert!(way.iter().all(|limit| (1..=2 * servers + 4).contains(limit)), "{way:?}");
        // All of the service is used, and its queue is short.
        let settled = callers.run(&mut service, u32::MAX, 300);
        prop_assert!(settled.iter().all(|limit| (servers..=2 * servers + 3).contains(limit)), "{settled:?}");
    }

    #[test]
    fn a_service_that_has_become_slower_for_good_gets_its_limit_back(
        servers in 4..40_u32,
        latency in 1..20_u64,
        slower in 2..10_u64,
    ) {
        let mut service = Service::new(servers as usize, latency * MILLI, 0, u64::MAX >> 1);
        let mut callers = Callers::new(gradient(1, 4, 1_000).build().unwrap(), &service);
        callers.run(&mut service, u32::MAX, 300);
        service.latency *= slower;
        let way = callers.run(&mut service, u32::MAX, 400);
        prop_assert!(way.contains(&1), "it is not known to be slower");
        let settled = callers.run(&mut service, u32::MAX, 300);
        prop_assert!(settled.iter().all(|limit| (servers..=2 * servers + 3).contains(limit)), "{settled:?}");
    }

    #[test]
    fn aimd_keeps_just_below_what_times_out(servers in 2..60_u32, latency in 1..50_u64, jitter in 0..20_u64) {
        // Twice as many as it works on at once take twice as long.
        let mut service = Service::new(servers as usize, latency * MILLI, jitter, 2 * latency * MILLI);
        let mut callers = Callers::new(AimdOptions::new().limits(1, servers, 1_000).build().unwrap(), &service);
        callers.run(&mut service, u32::MAX, 200);
        let settled = callers.run(&mut service, u32::MAX, 200);
        prop_assert!(settled.iter().all(|limit| (servers..=2 * servers + 2).contains(limit)), "{settled:?}");

        // It answers nobody, and then everybody again.
        let timeout = core::mem::replace(&mut service.timeout, MILLI / 2);
        callers.run(&mut service, u32::MAX, 100);
        prop_assert_eq!(callers.controller.limit(), 1);
        service.timeout = timeout;
        callers.run(&mut service, u32::MAX, 300);
        prop_assert!(callers.controller.limit() >= servers);
    }

    #[test]
    fn what_callers_do_not_use_is_not_granted(demand in 1..50_u32, latency in 1..50_u64) {
        let mut service = Service::new(100, latency * MILLI, 10, u64::MAX >> 1);
        let mut gradient = Callers::new(gradient(1, 1, 1_000).build().unwrap(), &service);
        let mut aimd = Callers::new(AimdOptions::new().limits(1, 1, 1_000).build().unwrap(), &service);
        gradient.run(&mut service, demand, 500);
        aimd.run(&mut Service::new(100, latency * MILLI, 10, u64::MAX >> 1), demand, 500);
        for limit in [gradient.controller.limit(), aimd.controller.limit()] {
            prop_assert!((demand..=2 * demand + 3).contains(&limit), "{limit} for {demand}");
        }
    }
}
