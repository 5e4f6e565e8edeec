//! Token buckets, whose origins move by whole periods.

use sluicegate_core::{BucketState, BucketStep, Nanos};

use super::{Level, Memory, SLACK, SpanError, since};
use crate::time::LogTime;

#[derive(Debug)]
pub(crate) struct Bucket {
    step: BucketStep,
    /// The shortest span, in nanoseconds, in which a whole number of tokens is generated.
    period: u64,
    /// What core's word moves by in that span. More than 128 bits cannot be: units a nanosecond are below 16.
    units: u128,
    /// Whether an empty bucket is full again within [`SLACK`].
    refills_soon: bool,
}

impl Bucket {
    pub(super) fn new(step: BucketStep) -> Self {
        let (quota, rate) = (step.quota(), step.quota().rate());
        let common = greatest_common_divisor(rate.tokens(), rate.period_nanos());
        let (tokens, period) = (rate.tokens() / common, rate.period_nanos() / common);
        // One token taken from a full bucket at the origin, where nothing was generated yet, is what the word then holds.
        let units_per_token = step.try_acquire(BucketState::FULL, Nanos::ZERO, 1).0.to_bits();
        let refill = (u128::from(quota.capacity()) * u128::from(period)).div_ceil(u128::from(tokens));
        Self {
            step,
            period,
            units: u128::from(tokens) * u128::from(units_per_token),
            refills_soon: refill <= u128::from(SLACK),
        }
    }

    pub(super) fn admits(&self, memory: &mut Memory, time: LogTime, cost: u64) -> Result<bool, SpanError> {
        let Level { origin, bits } = match memory.level() {
            None => self.unused(time),
            Some(level) => self.moved(level, time)?,
        };
        let now = self.reading(origin, time)?;
        let (next, decision) = self.step.try_acquire(BucketState::from_bits(bits), now, cost);
        // An origin moves only together with what is taken, so that whatever is kept was taken SLACK or more after it.
        if decision.is_ok() && cost > 0 {
            *memory = Memory::Word(Level { origin, bits: next.to_bits() });
        }
        Ok(decision.is_ok())
    }

    /// A full bucket whose clock reads at least SLACK at `time`, from a multiple of the period since the Unix epoch: then
    /// the instants at which a rate's periods begin have readings at which its tokens are whole.
    fn unused(&self, time: LogTime) -> Level {
        let latest = time.nanos() - SLACK as i64;
        let origin = match i64::try_from(self.period) {
            Ok(period) if self.period <= SLACK => latest.div_euclid(period) * period,
            _ => latest,
        };
        Level { origin, bits: BucketState::FULL.to_bits() }
    }

    /// `level` under an origin from which `time` can be told apart from later times.
    fn moved(&self, level: Level, time: LogTime) -> Result<Level, SpanError> {
        let elapsed = since(level.origin, time);
        if elapsed <= i128::from(Nanos::HORIZON.as_u64()) {
            return Ok(level);
        }
        if self.step.is_full(BucketState::from_bits(level.bits), Nanos::HORIZON) {
            return Ok(self.unused(time));
        }
        // Then the reading is between SLACK and SLACK plus a period.
        let periods = (elapsed - i128::from(SLACK)) / i128::from(self.period);
        let moved = periods * i128::from(self.period);
        if elapsed - moved > i128::from(Nanos::HORIZON.as_u64()) {
            return Err(SpanError);
        }
        // A state from before the new origin is full there, and so is 0.
        let units = self.units.saturating_mul(periods.unsigned_abs());
        let bits = u64::try_from(units).map_or(0, |units| level.bits.saturating_sub(units));
        let origin = i64::try_from(i128::from(level.origin) + moved).map_err(|_| SpanError)?;
        Ok(Level { origin, bits })
    }

    /// A time before the origin is at least SLACK late: what was taken since is not refilled, at this time or at the
    /// origin, if it takes less than SLACK to refill all. Both deny every cost, except 0, which both admit.
    fn reading(&self, origin: i64, time: LogTime) -> Result<Nanos, SpanError> {
        match u64::try_from(since(origin, time)) {
            Ok(reading) => Ok(Nanos::new(reading)),
            Err(_) if self.refills_soon => Ok(Nanos::ZERO),
            Err(_) => Err(SpanError),
        }
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
