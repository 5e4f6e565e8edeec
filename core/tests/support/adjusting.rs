//! An adjustable bucket beside the ideal one: each operation runs on both, and every answer is checked.

use sluicegate_core::{
    AdjustableBucket, Debit, Decision, Denied, Inheritance, Limit, ManualClock, Nanos, Quota, Remaining, Reservation,
};

use super::ideal::{Ideal, Tokens, seen, slack, unit, whole};

type Bucket = AdjustableBucket<ManualClock>;

/// The most that can be held at once.
const HELD_MAX: u64 = (1 << 40) - 1;

pub(crate) struct Beside<'a> {
    bucket: &'a Bucket,
    limit: Limit,
    /// The quota in force or the last one, and the ideal bucket under it.
    counted: Option<(Quota, Ideal)>,
    /// How far the bucket's level may be above the ideal one, and below. Where all quotas have exact grids it is never above.
    pub(crate) above: Tokens,
    pub(crate) below: Tokens,
    reservations: Vec<Held<'a>>,
    /// The reading of the last change.
    changed: Nanos,
    /// The reading that the latest denial named.
    pub(crate) hinted: Nanos,
}

struct Held<'a> {
    reservation: Reservation<&'a Bucket>,
    held: u64,
    since: Nanos,
}

impl<'a> Beside<'a> {
    /// `bucket` was just made.
    pub(crate) fn new(bucket: &'a Bucket) -> Self {
        let limit = bucket.limit();
        let counted = limit.quota().map(|quota| (quota, Ideal::full(quota)));
        let slack = limit.quota().map_or(whole(0), slack);
        Self {
            bucket,
            limit,
            counted,
            above: slack.clone(),
            below: slack,
            reservations: Vec::new(),
            changed: Nanos::ZERO,
            hinted: Nanos::ZERO,
        }
    }

    pub(crate) fn held(&self) -> u64 {
        self.reservations.iter().map(|held| held.held).sum()
    }

    pub(crate) fn reservations(&self) -> usize {
        self.reservations.len()
    }

    pub(crate) fn quota(&self) -> Option<Quota> {
        self.limit.quota()
    }

    pub(crate) fn level(&self, now: Nanos) -> Tokens {
        self.counted.as_ref().map_or(whole(0), |(_, ideal)| ideal.level(now))
    }

    pub(crate) fn acquire(&mut self, now: Nanos, cost: u64) -> Decision {
        let peeked = self.bucket.peek_at(now, cost);
        let before = format!("{:?}", self.bucket);
        let decision = self.bucket.try_acquire_at(now, cost);
        assert_eq!(peeked, decision, "peeking tells what acquiring does");
        assert!(decision.is_ok() || format!("{:?}", self.bucket) == before, "a denial writes nothing");
        self.check(now, cost, decision, false);
        if let (Ok(_), Limit::Quota(_), Some((_, ideal))) = (decision, self.limit, &mut self.counted) {
            if cost > 0 {
                ideal.take(now, cost);
            }
        }
        decision
    }

    pub(crate) fn reserve(&mut self, now: Nanos, cost: u64) -> Option<Denied> {
        let before = self.bucket.inspect_at(now);
        match self.bucket.reserve_at(now, cost) {
            Ok(reservation) => {
                let after = self.bucket.inspect_at(now);
                assert_eq!(reservation.cost(), cost);
                let (held, remaining) = match self.limit {
                    Limit::Quota(_) => (cost, Remaining::Exactly(after.level)),
                    _ => (0, Remaining::Unlimited),
                };
                assert_eq!(before.level - after.level, held);
                // As if the answer had been an admission.
                self.check_admitted(now, cost, remaining);
                self.reservations.push(Held { reservation, held, since: now });
                None
            }
            Err(denied) => {
                self.check(now, cost, Err(denied), true);
                assert_eq!(self.bucket.inspect_at(now), before);
                Some(denied)
            }
        }
    }

    /// Cancels one of the reservations, if there is one.
    pub(crate) fn cancel(&mut self, which: usize) {
        if !self.reservations.is_empty() {
            let held = self.reservations.swap_remove(which % self.reservations.len());
            held.reservation.cancel();
        }
    }

    pub(crate) fn settle(&mut self, which: usize, now: Nanos, spent: u64) {
        if self.reservations.is_empty() {
            return;
        }
        let Held { reservation, held, since } = self.reservations.swap_remove(which % self.reservations.len());
        let debit = reservation.settle_at(now, spent);
        let now = now.max(since);
        assert_eq!(u128::from(debit.charged) + u128::from(debit.unpaid), u128::from(spent));
        let covered = spent.min(held);
        if let Some((_, ideal)) = &mut self.counted {
            if covered > 0 {
                ideal.take(now, covered);
            }
        }
        assert!(debit.charged >= covered, "what was held is there");
        match self.limit {
            Limit::Quota(_) => self.check_debit(now, spent - covered, debit.charged - covered),
            Limit::Unlimited => assert_eq!(debit.unpaid, 0),
            Limit::DenyAll => assert_eq!(debit.charged, covered),
        }
    }

    pub(crate) fn debit(&mut self, now: Nanos, cost: u64) -> Debit {
        let debit = self.bucket.debit_at(now, cost);
        assert_eq!(u128::from(debit.charged) + u128::from(debit.unpaid), u128::from(cost));
        match self.limit {
            Limit::Quota(_) => self.check_debit(now, cost, debit.charged),
            Limit::Unlimited => assert_eq!(debit.unpaid, 0),
            Limit::DenyAll => assert_eq!(debit.charged, 0),
        }
        debit
    }

    pub(crate) fn refund(&mut self, cost: u64) {
        self.bucket.refund(cost);
        if let (Limit::Quota(_), Some((_, ideal))) = (self.limit, &mut self.counted) {
            ideal.give_back(cost);
        }
    }

    pub(crate) fn adjust(&mut self, now: Nanos, limit: Limit, inheritance: Inheritance) {
        self.bucket.adjust_at(now, limit, inheritance);
        assert_eq!(self.bucket.limit(), limit);
        let now = if inheritance == Inheritance::Full { now } else { now.max(self.changed) };
        self.limit = limit;
        // Without a quota the last one goes on; the first one starts full.
        let Some(next) = limit.quota().or(self.counted.as_ref().map(|(quota, _)| *quota)) else { return };
        let (old, mut ideal) = self.counted.take().unwrap_or_else(|| {
            (self.above, self.below) = (slack(next), slack(next));
            (next, Ideal::full(next))
        });
        let anew = matches!(inheritance, Inheritance::Full | Inheritance::Empty);
        if old != next || anew {
            self.changed = now;
            let scale = match inheritance {
                Inheritance::Fraction => whole(next.capacity()) / whole(old.capacity()),
                _ => whole(1),
            };
            let scale = scale.max(whole(1));
            ideal.change(now, next, inheritance);
            if inheritance == Inheritance::Full {
                (self.above, self.below) = (slack(next), slack(next));
            } else {
                self.above = &self.above * &scale + slack(next);
                self.below = &self.below * &scale + slack(next) + unit(next);
            }
        }
        self.counted = Some((next, ideal));
    }

    /// What the bucket shows is what the ideal one has.
    pub(crate) fn look(&self, now: Nanos) {
        let held = self.held();
        assert_eq!(self.bucket.held(), held);
        let inspection = self.bucket.inspect_at(now);
        let capacity = match self.limit {
            Limit::Unlimited => u64::MAX,
            Limit::DenyAll => 0,
            Limit::Quota(quota) => quota.capacity(),
        };
        assert_eq!(inspection.capacity, capacity);
        assert!(inspection.level <= capacity);
        let (Limit::Quota(quota), Some((_, ideal))) = (self.limit, &self.counted) else {
            assert_eq!((inspection.level, inspection.owed), (capacity, 0));
            return;
        };
        let level = ideal.level(now);
        self.check_whole(&(&level - whole(held)), inspection.level);
        if quota.debt() == 0 {
            assert_eq!(inspection.owed, 0);
        } else {
            let owed = whole(inspection.owed);
            assert!(&owed + &level <= whole(1) + &self.below || inspection.owed == 0, "{owed} at {level}");
            assert!(owed + level + &self.above >= whole(0), "{} owed", inspection.owed);
        }
    }

    /// Cancels all that is left.
    pub(crate) fn finish(mut self, now: Nanos) {
        self.reservations.clear();
        self.look(now);
        assert_eq!(self.bucket.held(), 0);
    }

    fn check(&mut self, now: Nanos, cost: u64, decision: Decision, is_hold: bool) {
        let denied = match decision {
            Ok(admitted) => {
                assert_eq!(admitted.at, now);
                return self.check_admitted(now, cost, admitted.remaining);
            }
            Err(denied) => denied,
        };
        let (Limit::Quota(quota), Some((_, ideal))) = (self.limit, &self.counted) else {
            assert_eq!((self.limit, denied), (Limit::DenyAll, Denied::Closed));
            return;
        };
        let (held, capacity) = (self.held(), quota.capacity());
        match denied {
            Denied::CostExceedsLimit { cost: asked, limit } => {
                let most = if is_hold { capacity.min(HELD_MAX) } else { capacity };
                assert!(cost > most);
                assert_eq!((asked, limit), (cost, most));
            }
            Denied::ConcurrencyLimited => {
                let fits = held.checked_add(cost).is_some_and(|all| all <= capacity);
                assert!(cost <= capacity && (!fits || is_hold && held + cost > HELD_MAX), "{cost} beside {held}");
            }
            Denied::RateLimited { retry_after } => {
                assert!(cost > 0 && !retry_after.is_zero() && held + cost <= capacity);
                let level = ideal.level(now) - whole(held);
                assert!(level < whole(cost) + &self.below, "denied {cost} of {level}");
                let reading = Nanos::new(seen(now)) + retry_after;
                if reading <= Nanos::HORIZON {
                    self.hinted = reading;
                    assert!(self.bucket.peek_at(reading, cost).is_ok(), "too early");
                    assert!(self.bucket.peek_at(Nanos::new(reading.as_u64() - 1), cost).is_err(), "too late");
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn check_admitted(&self, now: Nanos, cost: u64, remaining: Remaining) {
        let (Limit::Quota(quota), Some((_, ideal))) = (self.limit, &self.counted) else {
            assert_eq!((self.limit, remaining), (Limit::Unlimited, Remaining::Unlimited));
            return;
        };
        if cost == 0 {
            return;
        }
        let Remaining::Exactly(left) = remaining else { panic!("{remaining:?}") };
        let level = ideal.level(now) - whole(self.held());
        assert!(level.clone() + &self.above >= whole(cost), "admitted {cost} of {level}");
        assert!(self.held() + cost <= quota.capacity());
        self.check_whole(&(level - whole(cost)), left);
    }

    fn check_debit(&mut self, now: Nanos, asked: u64, charged: u64) {
        let held = self.held();
        let Some((_, ideal)) = &mut self.counted else { panic!("no quota") };
        let room = ideal.room(now, held);
        assert!(charged <= asked);
        assert!(charged == 0 || whole(charged) <= &room + &self.above, "{charged} of {room}");
        assert!(charged == asked || whole(charged) + whole(1) > room.clone() - &self.below, "{charged} of {room}");
        if charged > 0 {
            ideal.take(now, charged);
        }
    }

    /// Whether `tokens` are the whole ones of `level`.
    fn check_whole(&self, level: &Tokens, tokens: u64) {
        assert!(whole(tokens) <= level.clone().max(whole(0)) + &self.above, "{tokens} of {level}");
        assert!(whole(tokens) + whole(1) > level.clone() - &self.below, "{tokens} of {level}");
    }
}
