//! A store of buckets by key of a fixed capacity: more keys than slots, clean-up, and what overflows.

use core::fmt;
use core::hash::{BuildHasherDefault, Hasher};
use core::time::Duration;

use sluicegate_core::{FixedKeyedTokenBucket, Limit, ManualClock, Nanos, Overflow, quota};

use crate::{Random, decision};

/// Twenty keys on eight slots, under each policy for what does not fit.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    for overflow in [Overflow::Deny, Overflow::from(quota!("3/1s"))] {
        let mut store: FixedKeyedTokenBucket<u32, BuildHasherDefault<Fixed>, ManualClock, 8> =
            FixedKeyedTokenBucket::new(Limit::Quota(quota!("7/3s burst 3")), overflow);
        let mut random = Random::new(13);
        let mut now = Nanos::ZERO;
        for _ in 0..150 {
            now = now + Duration::from_nanos(random.below(150_000_000));
            let key = (random.below(20) * random.below(2)) as u32;
            let cost = random.one_of(&[1, 1, 2, 3, 4, 0]);
            match random.below(10) {
                0 => writeln!(out, "refund {cost} to {key}: {}", store.refund(&key, cost))?,
                1 => writeln!(out, "look at {key}: {:?}", store.inspect_at(&key, now))?,
                2 => store.clean_up_at(now),
                _ => {
                    let answer = store.decide_at(&key, now, cost);
                    decision(out, format_args!("{key} {cost}, {:?}", answer.by), &answer.decision)?;
                }
            }
            writeln!(out, "{} keys", store.len())?;
        }
    }
    Ok(())
}

/// A hasher that is the same everywhere. Where others choose the keys, use a seeded one.
#[derive(Default)]
struct Fixed(u64);

impl Hasher for Fixed {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}
