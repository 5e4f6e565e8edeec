//! A bucket's account and the version of its rule, as one word; and the rule, where racing callers can read it.
//!
//! Every decision is one compare-and-swap of a word that holds the state, what is held, and the version of the rule that it
//! was decided under. A change of rule is one compare-and-swap, too: it puts the settled state and the next version in. So
//! nothing that was decided under an old rule can land after something decided under a new one.
//!
//! The rule itself is too large for a word. There are two slots; the version's last bit says which one is in force, and a
//! change writes the other. A reader that was overtaken by two changes may read words that are being overwritten. It finds
//! out by the slot's own version, which is not the one it looked for, before it uses them.
//!
//! The version has 24 bits. A call would have to be suspended while 2^24 changes take place, or a multiple, and find the same
//! state again, to take an old rule for the new one.

use super::step::{Account, HELD_MAX};
use super::words::{Kind, Rule, Slot};
use crate::Nanos;
use crate::sync::{AtomicU64, AtomicU128, Ordering, const_unless_loom, spin_loop};
use crate::token_bucket::BucketState;

#[derive(Debug)]
pub(super) struct Cell {
    word: AtomicU128,
    slots: [Slot; 2],
    /// Whether a change is being made, `CHANGING`: changes follow one another. Else `UNLIMITED` if the rule in force is to admit whatever
    /// comes, so that a limit that is off costs one narrow load, and otherwise `LIMITED`.
    standing: AtomicU64,
    /// The reading of the last change that settled the bucket; only a change touches it.
    changed: AtomicU64,
}

/// The word as it was read, with the rule it was written under.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshot {
    word: u128,
    pub(super) rule: Rule,
}

impl Snapshot {
    #[inline(always)]
    pub(super) fn account(&self) -> Account {
        let held = (self.word >> STATE_BITS) as u64 & HELD_MAX;
        Account { state: BucketState::from_bits(self.word as u64), held }
    }
}

impl Cell {
    const_unless_loom! {
        pub(super) fn new(rule: Rule) -> Self {
            Self {
                word: AtomicU128::new(pack(0, Account::UNUSED)),
                slots: [Slot::new(0, rule), Slot::new(u64::MAX, rule)],
                standing: AtomicU64::new(standing(rule.kind)),
                changed: AtomicU64::new(0),
            }
        }
    }

    /// The account and the rule at one instant.
    #[inline(always)]
    pub(super) fn read(&self) -> Snapshot {
        // Acquire, paired with the release of a change: who sees a version sees the words of its slot.
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if let Some(rule) = self.slot(word).read(version_of(word)) {
                return Snapshot { word, rule };
            }
            // Two changes came between. More may, but each time somebody has made progress.
            spin_loop();
            word = self.word.load(Ordering::Acquire);
        }
    }

    /// Whether whatever comes is admitted, right at some instant within the call; if not, what is read says.
    #[inline(always)]
    pub(super) fn is_unlimited(&self) -> bool {
        // Acquire: who goes by a rule sees everything from before it was put in force.
        self.standing.load(Ordering::Acquire) == UNLIMITED
    }

    /// Puts `account` in place of what was read; or changes nothing and returns what is there now.
    #[inline(always)]
    pub(super) fn replace(&self, seen: &Snapshot, account: Account) -> Option<Snapshot> {
        let version = version_of(seen.word);
        // Release, so that who sees what is held also sees that its holder has announced it (see `hierarchy`); acquire on
        // failure as in `read`.
        match self.word.compare_exchange_weak(seen.word, pack(version, account), Ordering::Release, Ordering::Acquire) {
            Ok(_) => None,
            Err(word) if version_of(word) == version => Some(Snapshot { word, rule: seen.rule }),
            Err(_) => Some(self.read()),
        }
    }

    /// Puts `next` in force, with the account that `settle` makes of what there is at that instant, if it makes another. `at`
    /// says at which reading, given that of the last change; it is asked after what there is was read, so that it can be no
    /// earlier than any reading in there. Returns the change, or `None` because another one is being made.
    pub(super) fn change(
        &self,
        at: impl Fn(Nanos) -> Nanos,
        next: impl Fn(&Rule) -> Rule,
        settle: impl Fn(&Rule, &Rule, Account, Nanos) -> Option<Account>,
    ) -> Option<Change> {
        // Relaxed: a guess.
        let mut before = self.standing.load(Ordering::Relaxed);
        loop {
            if before == CHANGING {
                return None;
            }
            // Acquire, paired with the release in `Changing`: this change sees what the last one wrote. Whoever sees the next rule sees
            // that the bucket does not stand as it did.
            match self.standing.compare_exchange(before, CHANGING, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                // Another change came and went.
                Err(seen) => before = seen,
            }
        }
        let mut changing = Changing { standing: &self.standing, afterwards: before };
        let mut seen = self.read();
        let from = seen.rule;
        let to = next(&from);
        let version = (version_of(seen.word) + 1) & VERSION_MAX;
        self.slots[(version & 1) as usize].write(version, &to);
        loop {
            // Relaxed, here and below: ordered by `standing`.
            let now = at(Nanos::new(self.changed.load(Ordering::Relaxed)));
            let settled = settle(&from, &to, seen.account(), now);
            let word = pack(version, settled.unwrap_or(seen.account()));
            // Release, paired with the acquire in `read`; acquire on failure, so that the clock is read after what was found.
            match self.word.compare_exchange_weak(seen.word, word, Ordering::Release, Ordering::Acquire) {
                Ok(_) => {
                    if settled.is_some() {
                        self.changed.store(now.as_u64(), Ordering::Relaxed);
                    }
                    changing.afterwards = standing(to.kind);
                    return Some(Change { from, to, at: now });
                }
                Err(word) => seen.word = word,
            }
        }
    }

    #[inline(always)]
    fn slot(&self, word: u128) -> &Slot {
        &self.slots[(version_of(word) & 1) as usize]
    }
}

/// A change that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) from: Rule,
    pub(super) to: Rule,
    pub(super) at: Nanos,
}

/// Lets the next change begin when this one ends, also by a panic of the clock: then the bucket stands as it did.
struct Changing<'c> {
    standing: &'c AtomicU64,
    afterwards: u64,
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        // Release: the next change sees all of this one, and who sees that there is no limit what was there before.
        self.standing.store(self.afterwards, Ordering::Release);
    }
}

const fn standing(kind: Kind) -> u64 {
    match kind {
        Kind::Unlimited => UNLIMITED,
        Kind::DenyAll | Kind::Quota => LIMITED,
    }
}

#[inline(always)]
const fn pack(version: u64, account: Account) -> u128 {
    account.state.to_bits() as u128
        | (account.held as u128) << STATE_BITS
        | (version as u128) << (STATE_BITS + HELD_BITS)
}

#[inline(always)]
const fn version_of(word: u128) -> u64 {
    (word >> (STATE_BITS + HELD_BITS)) as u64
}

const LIMITED: u64 = 0;
const CHANGING: u64 = 1;
const UNLIMITED: u64 = 2;

const STATE_BITS: u32 = 64;
const HELD_BITS: u32 = HELD_MAX.trailing_ones();
const VERSION_MAX: u64 = (1 << (128 - STATE_BITS - HELD_BITS)) - 1;
