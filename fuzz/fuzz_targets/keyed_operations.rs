//! Operations on both stores of keys, beside a map that never forgets.
#![no_main]

use core::hash::{BuildHasher, Hasher};
use core::num::NonZeroUsize;
use std::collections::HashMap;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sluicegate_core::{
    BucketState, BucketStep, DecidedBy, Denied, FixedKeyedTokenBucket, Inheritance, KeyedOptions, KeyedTokenBucket,
    Limit, ManualClock, Nanos, Overflow, PER_SECOND, Quota, Rate,
};

#[derive(Arbitrary, Debug)]
struct Input {
    tokens: u32,
    burst: u16,
    cap: u8,
    shards: u8,
    /// How many bits of a key are hashed: with none, all keys have one hash.
    hashed: u8,
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Acquire(u8, u16),
    Refund(u8, u8),
    Reset(u8),
    Remove(u8),
    CleanUp,
    /// For the store with locks only.
    SetQuota(u32, u16),
    Advance(u32),
    AdvanceFar(u64),
    /// From here on nobody may get more than without clean-up, and answers may differ.
    StepBack(u32),
}

type Shared = KeyedTokenBucket<u8, parking_lot::RawRwLock, Masked, ManualClock>;
type Fixed = FixedKeyedTokenBucket<u8, Masked, ManualClock, 8>;

fuzz_target!(|input: Input| {
    let Some(quota) = quota(input.tokens, input.burst) else { return };
    let (cap, shards) = (usize::from(input.cap % 20), NonZeroUsize::new(1 << (input.shards % 3)).unwrap());
    let masked = Masked(((1_u16 << (input.hashed % 9)) - 1) as u8);
    let options = KeyedOptions::new(quota).cap(cap).shards(shards).overflow(Overflow::Deny);
    let shared = Shared::with_parts(options, masked, ManualClock::new());
    let mut fixed = Fixed::with_parts(Limit::Quota(quota), Overflow::Deny, masked, ManualClock::new());
    let (mut first, mut second) = (Model::new(quota), Model::new(quota));
    let (mut now, mut latest) = (Nanos::from_secs(1), Nanos::from_secs(1));
    let mut is_steady = true;

    for operation in input.operations.iter().take(96) {
        match *operation {
            Operation::Acquire(key, cost) => {
                let cost = u64::from(cost);
                let was_present = shared.inspect_at(&key, now).is_some();
                let decided = shared.decide_at(&key, now, cost);
                first.judge(key, now, cost, decided.decision, is_steady);
                assert!(decided.by == DecidedBy::Key || (!was_present && decided.decision == Err(Denied::TooManyKeys)));

                let was_present = fixed.inspect_at(&key, now).is_some();
                let decided = fixed.decide_at(&key, now, cost);
                second.judge(key, now, cost, decided.decision, is_steady);
                assert!(decided.by == DecidedBy::Key || (!was_present && decided.decision == Err(Denied::TooManyKeys)));
            }
            Operation::Refund(key, cost) => {
                if shared.refund(&key, cost.into()) {
                    first.change(key, |step, state| step.refund(state, cost.into()));
                }
                if fixed.refund(&key, cost.into()) {
                    second.change(key, |step, state| step.refund(state, cost.into()));
                }
            }
            Operation::Reset(key) => {
                if shared.reset(&key) {
                    first.change(key, |_, _| BucketState::FULL);
                }
                if fixed.reset(&key) {
                    second.change(key, |_, _| BucketState::FULL);
                }
            }
            Operation::Remove(key) => {
                shared.remove(&key);
                first.keys.remove(&key);
                fixed.remove(&key);
                second.keys.remove(&key);
            }
            Operation::CleanUp => {
                shared.clean_up_at(now);
                fixed.clean_up_at(now);
            }
            Operation::SetQuota(tokens, burst) => {
                // Under a clock that stepped back a change settles the two at different levels.
                if let (true, Some(quota)) = (is_steady, self::quota(tokens, burst)) {
                    shared.set_quota_at((), quota, now, Inheritance::Level).unwrap();
                    first.set_quota(quota, now);
                }
            }
            Operation::Advance(span) => now = Nanos::new(now.as_u64().saturating_add(span.into())),
            Operation::AdvanceFar(span) => now = Nanos::new(now.as_u64().saturating_add(span)),
            Operation::StepBack(span) => {
                now = Nanos::new(now.as_u64().saturating_sub(span.into()));
                is_steady &= now == latest;
            }
        }
        latest = latest.max(now);
        assert!(shared.len() <= cap && fixed.len() <= Fixed::CAP);
        let mut shown = [0, 0];
        shared.for_each_at(now, |_, _| shown[0] += 1);
        fixed.for_each_at(now, |_, _| shown[1] += 1);
        assert_eq!(shown, [shared.len(), fixed.len()]);
        if is_steady {
            for key in 0..=u8::MAX {
                first.compare(key, now, shared.inspect_at(&key, now).map(|seen| seen.level));
                second.compare(key, now, fixed.inspect_at(&key, now).map(|seen| seen.level));
            }
        }
    }
});

struct Model {
    step: BucketStep,
    new: BucketState,
    keys: HashMap<u8, BucketState>,
}

impl Model {
    fn new(quota: Quota) -> Self {
        Self { step: BucketStep::new(quota), new: BucketState::FULL, keys: HashMap::new() }
    }

    fn of(&self, key: u8) -> BucketState {
        self.keys.get(&key).copied().unwrap_or(self.new)
    }

    fn judge(&mut self, key: u8, now: Nanos, cost: u64, decision: sluicegate_core::Decision, is_steady: bool) {
        if decision == Err(Denied::TooManyKeys) {
            return;
        }
        let (next, expected) = self.step.try_acquire(self.of(key), now, cost);
        assert!(decision.is_err() || expected.is_ok(), "{key} got {cost} at {now:?}, which it had spent");
        if is_steady {
            assert_eq!(decision, expected);
        }
        if decision.is_ok() {
            self.keys.insert(key, next);
        }
    }

    fn change(&mut self, key: u8, change: impl FnOnce(&BucketStep, BucketState) -> BucketState) {
        let next = change(&self.step, self.of(key));
        self.keys.insert(key, next);
    }

    fn set_quota(&mut self, quota: Quota, now: Nanos) {
        let new = BucketStep::new(quota);
        for state in self.keys.values_mut().chain([&mut self.new]) {
            *state = new.inherit(&self.step, *state, now, Inheritance::Level);
        }
        self.step = new;
    }

    fn compare(&self, key: u8, now: Nanos, level: Option<u64>) {
        let (expected, of_new) = (self.step.inspect(self.of(key), now), self.step.inspect(self.new, now));
        match level {
            Some(level) => assert_eq!(level, expected.level),
            None => assert_eq!(expected, of_new, "{key} was dropped and is not as a new key is"),
        }
    }
}

fn quota(tokens: u32, burst: u16) -> Option<Quota> {
    Quota::with_burst(Rate::new(tokens.into(), PER_SECOND).ok()?, burst.into()).ok()
}

/// Hashes some bits of a key, so that keys meet.
#[derive(Clone, Copy, Default)]
struct Masked(u8);

struct MaskedHasher(u8, u64);

impl BuildHasher for Masked {
    type Hasher = MaskedHasher;

    fn build_hasher(&self) -> MaskedHasher {
        MaskedHasher(self.0, 0)
    }
}

impl Hasher for MaskedHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.1 = u64::from(bytes.iter().fold(0, |hash, byte| hash ^ byte) & self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.1
    }
}
