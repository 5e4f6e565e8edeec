//! A compact adjustable bucket, right unless one of its flaws is switched on.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use sluicegate_core::{Nanos, Quota};

use crate::shim::{AtomicU64, give_way};
use crate::{Adjustable, Held};

/// Bugs that an adjustable bucket may have, one switch each.
pub trait AdjustableFlaws: Send + Sync + 'static {
    /// Takes what it should hold, and gives it back to whatever refill has made of the bucket.
    const HOLD_IS_TAKE: bool = false;
    /// Stores what is held back without looking whether somebody else has changed it.
    const CANCEL_STORES_BACK: bool = false;
    /// Lets go of what is held first, and then takes what was spent.
    const SETTLES_IN_TWO_STEPS: bool = false;
    /// The word does not tell the version of the quota that it was written under.
    const WORD_WITHOUT_VERSION: bool = false;
    /// Uses a quota without looking whether it was overwritten while it was read.
    const TORN_QUOTA: bool = false;
    /// Changes do not exclude one another.
    const CHANGES_AT_ONCE: bool = false;
}

/// The word holds a version above, then what is held, and what was consumed in thousandths of tokens since the origin
/// below. A quota is two words, of which there are two.
pub struct CompactAdjustable<F> {
    word: AtomicU64,
    slots: [Slot; 2],
    changing: AtomicU64,
    flaws: PhantomData<F>,
}

struct Slot {
    per_second: AtomicU64,
    capacity: AtomicU64,
    version: AtomicU64,
}

#[derive(Clone, Copy)]
struct Rule {
    per_second: u64,
    capacity: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Account {
    version: u64,
    held: u64,
    consumed: u64,
}

impl<F: AdjustableFlaws> CompactAdjustable<F> {
    fn rule(&self, version: u64) -> Option<Rule> {
        let slot = &self.slots[(version % 2) as usize];
        let rule = Rule { per_second: slot.per_second.load(Acquire), capacity: slot.capacity.load(Acquire) };
        (F::TORN_QUOTA || slot.version.load(Relaxed) == version).then_some(rule)
    }

    fn write(&self, version: u64, rule: Rule) {
        let slot = &self.slots[(version % 2) as usize];
        slot.version.store(u64::MAX, Relaxed);
        slot.per_second.store(rule.per_second, Release);
        slot.capacity.store(rule.capacity, Release);
        slot.version.store(version, Release);
    }

    /// The account and its rule; without a version in the word, those in force when the caller came.
    fn read(&self) -> (Account, Rule) {
        let mut attempt = 0;
        loop {
            let account = Account::from_word(self.word.load(Acquire));
            if let Some(rule) = self.rule(account.version) {
                return (account, rule);
            }
            give_way(attempt);
            attempt += 1;
        }
    }

    /// Changes the account unless `change` has nothing to change.
    fn update(&self, change: impl Fn(Account, Rule) -> Option<Account>) -> bool {
        let (mut account, mut rule) = self.read();
        loop {
            let Some(next) = change(account, rule) else { return false };
            match self.swap(account, next) {
                Ok(()) => return true,
                Err(seen) if F::WORD_WITHOUT_VERSION => account = seen,
                Err(_) => (account, rule) = self.read(),
            }
        }
    }

    fn swap(&self, account: Account, next: Account) -> Result<(), Account> {
        let mut expected = account.to_word();
        loop {
            match self.word.compare_exchange(expected, next.to_word(), AcqRel, Acquire) {
                Ok(_) => return Ok(()),
                // Whatever the version: who does not look at it takes the word for the same, and leaves the version there.
                Err(seen) => {
                    let there = Account::from_word(seen);
                    if !F::WORD_WITHOUT_VERSION || (Account { version: account.version, ..there }) != account {
                        return Err(there);
                    }
                    let next = Account { version: there.version, ..next };
                    match self.word.compare_exchange(seen, next.to_word(), AcqRel, Acquire) {
                        Ok(_) => return Ok(()),
                        Err(_) => expected = seen,
                    }
                }
            }
        }
    }

    fn take(&self, now: Nanos, cost: u64) -> bool {
        self.update(|account, rule| {
            let consumed = account.consumed.max(rule.accrued(now)) + cost * TOKEN;
            let fits = consumed + account.held * TOKEN <= rule.accrued(now) + rule.capacity * TOKEN;
            fits.then_some(Account { consumed, ..account })
        })
    }

    fn hold(&self, now: Nanos, cost: u64) -> bool {
        self.update(|account, rule| {
            let held = account.held + cost;
            let consumed = account.consumed.max(rule.accrued(now));
            let fits = consumed + held * TOKEN <= rule.accrued(now) + rule.capacity * TOKEN;
            fits.then_some(Account { held, ..account })
        })
    }

    fn let_go(&self, cost: u64) {
        if F::CANCEL_STORES_BACK {
            let account = Account::from_word(self.word.load(Acquire));
            self.word.store(Account { held: account.held - cost, ..account }.to_word(), Release);
            return;
        }
        self.update(|account, _| Some(Account { held: account.held - cost, ..account }));
    }

    fn give_back(&self, cost: u64) {
        self.update(|account, _| Some(Account { consumed: account.consumed.saturating_sub(cost * TOKEN), ..account }));
    }
}

impl<F: AdjustableFlaws> Adjustable for CompactAdjustable<F> {
    fn new(quota: Quota) -> Self {
        let Rule { per_second, capacity } = Rule::of(quota);
        let slot = |version| Slot {
            per_second: AtomicU64::new(per_second),
            capacity: AtomicU64::new(capacity),
            version: AtomicU64::new(version),
        };
        Self {
            word: AtomicU64::new(Account { version: 0, held: 0, consumed: 0 }.to_word()),
            slots: [slot(0), slot(u64::MAX)],
            changing: AtomicU64::new(0),
            flaws: PhantomData,
        }
    }

    fn try_acquire(&self, now: Nanos, cost: u64) -> bool {
        self.take(now, cost)
    }

    fn reserve(&self, now: Nanos, cost: u64) -> Option<Box<dyn Held + '_>> {
        let has = if F::HOLD_IS_TAKE { self.take(now, cost) } else { self.hold(now, cost) };
        has.then(|| Box::new(CompactHeld { bucket: self, cost }) as Box<dyn Held>)
    }

    fn adjust(&self, now: Nanos, quota: Quota) {
        let mut attempt = 0;
        while !F::CHANGES_AT_ONCE && self.changing.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            give_way(attempt);
            attempt += 1;
        }
        let (mut account, old) = self.read();
        let new = Rule::of(quota);
        let version = account.version + 1;
        self.write(version, new);
        loop {
            let level =
                (old.accrued(now) + old.capacity * TOKEN).saturating_sub(account.consumed.max(old.accrued(now)));
            let consumed = new.accrued(now) + new.capacity * TOKEN - level.min(new.capacity * TOKEN);
            // A full bucket's word may be any that lies behind the clock: the least telling is the one that was there.
            let consumed = if consumed == new.accrued(now) { account.consumed.min(consumed) } else { consumed };
            let next = Account { version, consumed, ..account };
            match self.word.compare_exchange(account.to_word(), next.to_word(), AcqRel, Acquire) {
                Ok(_) => break,
                Err(seen) => account = Account::from_word(seen),
            }
        }
        if !F::CHANGES_AT_ONCE {
            self.changing.store(0, Release);
        }
    }

    fn level(&self, now: Nanos) -> u64 {
        let (account, rule) = self.read();
        let consumed = account.consumed.max(rule.accrued(now)) + account.held * TOKEN;
        (rule.accrued(now) + rule.capacity * TOKEN).saturating_sub(consumed) / TOKEN
    }
}

struct CompactHeld<'a, F> {
    bucket: &'a CompactAdjustable<F>,
    cost: u64,
}

impl<F: AdjustableFlaws> Held for CompactHeld<'_, F> {
    fn cancel(self: Box<Self>) {
        if F::HOLD_IS_TAKE { self.bucket.give_back(self.cost) } else { self.bucket.let_go(self.cost) }
    }

    fn settle(self: Box<Self>, now: Nanos, spent: u64) -> u64 {
        if F::HOLD_IS_TAKE {
            self.bucket.give_back(self.cost - spent);
            return spent;
        }
        if F::SETTLES_IN_TWO_STEPS {
            self.bucket.let_go(self.cost);
            return if self.bucket.take(now, spent) { spent } else { 0 };
        }
        self.bucket.update(|account, rule| {
            let consumed = account.consumed.max(rule.accrued(now)) + spent * TOKEN;
            Some(Account { held: account.held - self.cost, consumed, ..account })
        });
        spent
    }
}

impl Rule {
    fn of(quota: Quota) -> Self {
        Self { per_second: quota.rate().tokens(), capacity: quota.capacity() }
    }

    fn accrued(self, now: Nanos) -> u64 {
        now.as_u64() / 1_000_000 * self.per_second
    }
}

impl Account {
    fn from_word(word: u64) -> Self {
        Self { version: word >> 56, held: word >> 48 & 0xff, consumed: word & 0xffff_ffff_ffff }
    }

    fn to_word(self) -> u64 {
        self.version << 56 | self.held << 48 | self.consumed
    }
}

impl<F> fmt::Debug for CompactAdjustable<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactAdjustable").finish_non_exhaustive()
    }
}

const TOKEN: u64 = 1_000;
