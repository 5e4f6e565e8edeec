//! Operations on a concurrency limit, beside a list of what is held.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sluicegate_core::{ConcurrencyLimit, Denied, Outcome, Permit};

#[derive(Arbitrary, Debug)]
struct Input {
    limit: u32,
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Acquire(u8),
    AcquireAny(u64),
    /// All that is free, and this much more.
    AcquireFree(i8),
    Release(u8),
    Finish(u8, bool),
    Leak(u8),
    Split(u8, u32),
    Merge(u8, u8),
    SetLimit(u32),
    SetSmallLimit(u8),
}

fuzz_target!(|input: Input| {
    let limiter = ConcurrencyLimit::new(input.limit);
    let mut limit = u64::from(input.limit);
    let mut held: Vec<(Permit<&ConcurrencyLimit>, u64)> = Vec::new();
    let mut leaked = 0_u64;
    for operation in input.operations.iter().take(256) {
        let in_use = leaked + held.iter().map(|&(_, cost)| cost).sum::<u64>();
        let cost = match *operation {
            Operation::Acquire(cost) => cost.into(),
            Operation::AcquireAny(cost) => cost,
            Operation::AcquireFree(more) => limit.saturating_sub(in_use).saturating_add_signed(more.into()),
            Operation::SetLimit(new) => {
                limiter.set_limit(new);
                limit = new.into();
                continue;
            }
            Operation::SetSmallLimit(new) => {
                limiter.set_limit(new.into());
                limit = new.into();
                continue;
            }
            _ if held.is_empty() => continue,
            Operation::Release(which) => {
                drop(held.swap_remove(usize::from(which) % held.len()));
                continue;
            }
            Operation::Finish(which, success) => {
                let (permit, _) = held.swap_remove(usize::from(which) % held.len());
                permit.release(if success { Outcome::Success } else { Outcome::Ignored });
                continue;
            }
            Operation::Leak(which) => {
                let (permit, cost) = held.swap_remove(usize::from(which) % held.len());
                core::mem::forget(permit);
                leaked += cost;
                continue;
            }
            Operation::Split(which, cost) => {
                let which = usize::from(which) % held.len();
                let (permit, rest) = &mut held[which];
                let part = permit.split(cost.into());
                assert_eq!(part.is_some(), u64::from(cost) <= *rest);
                if let Some(part) = part {
                    *rest -= u64::from(cost);
                    held.push((part, cost.into()));
                }
                continue;
            }
            Operation::Merge(into, which) => {
                let (other, cost) = held.swap_remove(usize::from(which) % held.len());
                let count = held.len();
                match held.get_mut(usize::from(into) % count.max(1)) {
                    Some((permit, sum)) => {
                        assert!(permit.merge(other).is_ok());
                        *sum += cost;
                    }
                    None => held.push((other, cost)),
                }
                continue;
            }
        };
        let expected = match cost {
            _ if limit == 0 => Err(Denied::Closed),
            _ if cost > limit => Err(Denied::CostExceedsLimit { cost, limit }),
            _ if cost > 0 && in_use + cost > limit => Err(Denied::ConcurrencyLimited),
            _ => Ok(in_use + cost),
        };
        assert_eq!(limiter.peek(cost).map(|usage| u64::from(usage.in_use)), expected);
        match limiter.try_acquire(cost) {
            Ok(permit) => {
                assert!(expected.is_ok());
                held.push((permit, cost));
            }
            Err(denied) => assert_eq!(Err(denied), expected),
        }
        let in_use = leaked + held.iter().map(|&(_, cost)| cost).sum::<u64>();
        let usage = limiter.usage();
        assert_eq!((u64::from(usage.in_use), u64::from(usage.limit)), (in_use, limit));
        assert!(held.iter().all(|(permit, cost)| permit.cost() == *cost));
    }
    held.clear();
    assert_eq!(u64::from(limiter.in_use()), leaked);
});
