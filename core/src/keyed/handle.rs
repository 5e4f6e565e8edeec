//! A key that was looked up once, and is decided on without a look-up from then on.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::ops::Deref;

use lock_api::RawRwLock;

use super::kept::KeptCell;
use super::lookup::Lookup;
use super::quotas::Quotas;
use super::store::KeyedTokenBucket;
use crate::decision::{Decision, Inspection};
use crate::observer::{Observer, report};
use crate::{BucketStep, Clock, Debit, Limiter, Nanos};

/// A key of a [`KeyedTokenBucket`] that was looked up once, for whoever asks for it often: a connection, a session, a tenant, a worker.
///
/// It and the store share the key's one budget, whoever asks and by which way. `P` is what points to the store: a reference, an
/// `Arc`, a `&'static`. Clones share the key too; give each thread or task one of its own.
///
/// # Guarantees
///
/// - The law of [`TokenBucket`](crate::TokenBucket), for everyone together who asks for the key by any handle or by the store.
/// - A request takes no lock and calls neither the hasher nor the key's `Eq`; a denial writes nothing that callers share. Looks do
///   neither.
/// - The key stays in the store for as long as it has a handle that [is current](Self::is_current), also when it is full, and counts
///   against the [cap](KeyedTokenBucket::cap). Once it has none it goes as any key goes, by clean-up.
///
/// # When the store takes it back
///
/// A change of the key's quota or tier and [`remove`](KeyedTokenBucket::remove) are right at once, for handles too: they take the key's
/// state back from them. A handle then goes on, with the same answers as before, by asking the store each time, until its holder
/// [renews](Self::renew) it: every so often, or after each use. While it is current that does nothing.
///
/// Giving back, charging and resetting always go by the store.
///
/// # Trade-offs
///
/// The state of a key with a handle has cache lines of its own: 256 bytes, which
/// [`memory_bound`](KeyedTokenBucket::memory_bound) does not count. Whoever asks the store for such a key pays for one more access to
/// memory. Handles are for keys that you choose, not for whatever clients send: a handle a client is a place under the cap a client.
///
/// # Complexity
///
/// A request O(1). Making or renewing one is a first use: O(1), amortised, under the lock of a shard for writing.
///
/// # Example
///
/// ```
/// use std::hash::RandomState;
/// use std::sync::Arc;
/// use sluicegate_core::{Inheritance, KeyHandle, KeyedTokenBucket, ManualClock, quota};
///
/// let calls: Arc<KeyedTokenBucket<String, parking_lot::RawRwLock, RandomState, ManualClock>> =
///     Arc::new(KeyedTokenBucket::new(quota!("3/1m")));
/// let mut ada = KeyHandle::new(Arc::clone(&calls), "ada".to_owned())?;
/// assert!(ada.try_acquire(2).is_ok());
/// assert!(calls.try_acquire("ada", 1).is_ok());
/// assert!(ada.try_acquire(1).is_err());
///
/// // Without tiers, the tier of every key is `()`.
/// calls.set_quota((), quota!("5/1m"), Inheritance::Full)?;
/// assert!(ada.try_acquire(4).is_ok() && !ada.is_current());
/// ada.renew()?;
/// assert!(ada.try_acquire(1).is_ok() && ada.is_current());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct KeyHandle<P, K> {
    store: P,
    key: K,
    held: Option<Held>,
}

/// The key's state, and the quota that it is decided by until it ends.
#[derive(Clone)]
struct Held {
    cell: KeptCell,
    step: BucketStep,
}

impl Held {
    /// An answer that is not a use, unless the store has taken the key back.
    #[inline(always)]
    fn look<T>(&self, look: impl FnOnce(&BucketStep, &crate::BucketCell) -> T) -> Option<T> {
        let seen = look(&self.step, &self.cell);
        // Asked afterwards: what has not ended now had not before.
        if self.cell.has_ended() { None } else { Some(seen) }
    }

    /// `decision` unless it was made of a state that has ended. One that took something was not.
    #[inline(always)]
    fn stands(&self, cost: u64, decision: &Decision) -> bool {
        (decision.is_ok() && cost != 0) || !self.cell.has_ended()
    }
}

impl<P, K, R, S, C, O, Q> KeyHandle<P, K>
where
    P: Deref<Target = KeyedTokenBucket<K, R, S, C, O, Q>>,
    K: Hash + Lookup<K>,
    R: RawRwLock,
    S: BuildHasher,
    O: Observer,
    Q: Quotas,
{
    /// A handle of `key`, which is added if it is not in the store.
    ///
    /// Without a quota ([`Limit::Unlimited`](crate::Limit::Unlimited), [`Limit::DenyAll`](crate::Limit::DenyAll)) nothing is added, no clock is
    /// read, and the store answers.
    ///
    /// # Errors
    /// [`TooManyKeys`] where `key` is not in the store and that is at its cap, whatever its [`Overflow`](crate::Overflow) says.
    pub fn new(store: P, key: K) -> Result<Self, TooManyKeys>
    where
        C: Clock,
    {
        let now = store.reading();
        Self::new_at(store, key, now)
    }

    /// The same at the reading `now`, by which keys that are full are dropped where there is no place.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn new_at(store: P, key: K, now: Nanos) -> Result<Self, TooManyKeys> {
        let held = store.keep(&key, now)?;
        Ok(Self { store, key, held })
    }

    /// Whether requests are decided without the store. Where it has no quota they never need it.
    pub fn is_current(&self) -> bool {
        self.held.as_ref().map_or(self.store.limit().quota().is_none(), |held| !held.cell.has_ended())
    }

    /// Looks the key up again if the store has taken it back, and adds it if it was removed.
    ///
    /// # Errors
    /// As [`new`](Self::new). Then the handle goes on as it was.
    pub fn renew(&mut self) -> Result<(), TooManyKeys>
    where
        C: Clock,
    {
        if self.is_current() {
            return Ok(());
        }
        self.held = self.store.keep(&self.key, self.store.reading())?;
        Ok(())
    }

    /// Takes `cost` tokens at the reading `now`, or nothing. Without a limit nobody is told.
    ///
    /// # Errors
    /// As [`KeyedTokenBucket::try_acquire_at`].
    // Inlined with what the store does, so that a caller who asks only whether it may pass does not pay for the rest of the answer.
    #[inline(always)]
    pub fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        if let Some(held) = &self.held {
            let decision = held.cell.try_acquire(&held.step, now, cost);
            if held.stands(cost, &decision) {
                return report(&self.store.observer, now, cost, decision);
            }
        }
        self.store.try_acquire_at(&self.key, now, cost)
    }

    /// Takes `cost` tokens now, or nothing.
    ///
    /// # Errors
    /// As [`KeyedTokenBucket::try_acquire_at`].
    #[inline(always)]
    pub fn try_acquire(&self, cost: u64) -> Decision
    where
        C: Clock,
    {
        if let Some(held) = &self.held {
            let (now, decision) = held.cell.try_acquire_by(&held.step, &self.store.clock, cost);
            if held.stands(cost, &decision) {
                return report(&self.store.observer, now, cost, decision);
            }
        }
        self.store.try_acquire(&self.key, cost)
    }

    /// What [`try_acquire_at`](Self::try_acquire_at) would answer, taking nothing and telling nobody.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    pub fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        let own = self.held.as_ref().and_then(|held| held.look(|step, cell| cell.peek(step, now, cost)));
        own.unwrap_or_else(|| self.store.peek_at(&self.key, now, cost))
    }

    /// What [`try_acquire`](Self::try_acquire) would answer, taking nothing and telling nobody.
    ///
    /// # Errors
    /// As `try_acquire`.
    pub fn peek(&self, cost: u64) -> Decision
    where
        C: Clock,
    {
        let own = self.held.as_ref().and_then(|held| {
            // The word before the clock: see `BucketCell::try_acquire_by`.
            held.look(|step, cell| step.try_acquire(cell.seen(), self.store.clock.now(), cost).1)
        });
        own.unwrap_or_else(|| self.store.peek(&self.key, cost))
    }

    /// The tokens at `now`; where the key has been removed from the store, those of a new one. Changes nothing.
    pub fn inspect_at(&self, now: Nanos) -> Inspection {
        let own = self.held.as_ref().and_then(|held| held.look(|step, cell| cell.inspect(step, now)));
        own.unwrap_or_else(|| self.store.key(&self.key).inspect_at(now))
    }

    /// The tokens now; see [`inspect_at`](Self::inspect_at).
    pub fn inspect(&self) -> Inspection
    where
        C: Clock,
    {
        self.inspect_at(self.store.reading())
    }

    /// Gives `cost` tokens back; see [`KeyedTokenBucket::refund`].
    pub fn refund(&self, cost: u64) -> bool {
        self.store.refund(&self.key, cost)
    }

    /// Takes `cost` tokens at `now` whether or not they are there; see [`KeyedTokenBucket::debit_at`].
    pub fn debit_at(&self, now: Nanos, cost: u64) -> Debit {
        self.store.debit_at(&self.key, now, cost)
    }

    /// Takes `cost` tokens now whether or not they are there; see [`KeyedTokenBucket::debit`].
    pub fn debit(&self, cost: u64) -> Debit
    where
        C: Clock,
    {
        self.store.debit(&self.key, cost)
    }

    /// Gives the key its full budget back; see [`KeyedTokenBucket::reset`].
    pub fn reset(&self) -> bool {
        self.store.reset(&self.key)
    }
}

impl<P, K> KeyHandle<P, K> {
    /// The key.
    pub const fn key(&self) -> &K {
        &self.key
    }

    /// What points to the store.
    pub const fn store(&self) -> &P {
        &self.store
    }
}

impl<P, K, R, S, C, O, Q> Limiter for KeyHandle<P, K>
where
    P: Deref<Target = KeyedTokenBucket<K, R, S, C, O, Q>>,
    K: Hash + Lookup<K>,
    R: RawRwLock,
    S: BuildHasher,
    O: Observer,
    Q: Quotas,
{
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        Self::try_acquire_at(self, now, cost)
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        let own = self.held.as_ref().and_then(|held| held.look(|step, cell| cell.peek(step, now, cost)));
        own.unwrap_or_else(|| self.store.key(&self.key).peek_at(now, cost))
    }

    fn inspect_at(&self, now: Nanos) -> Inspection {
        Self::inspect_at(self, now)
    }

    fn take_at(&self, now: Nanos, cost: u64) -> Decision {
        if let Some(held) = &self.held {
            let decision = held.cell.try_acquire(&held.step, now, cost);
            if held.stands(cost, &decision) {
                return decision;
            }
        }
        self.store.key(&self.key).take_at(now, cost)
    }

    fn tell(&self, now: Nanos, cost: u64, decision: &Decision) {
        self.store.key(&self.key).tell(now, cost, decision);
    }

    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
        self.store.key(&self.key).earliest_at(now, total)
    }
}

impl<K: Hash, R: RawRwLock, S: BuildHasher, C, O, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q> {
    /// Has handles keep the state of `key`, which is added as a new key where it is absent. `None` without a quota.
    fn keep<B: Lookup<K> + ?Sized>(&self, key: &B, now: Nanos) -> Result<Option<Held>, TooManyKeys> {
        let Some((hash, index, mut open)) = self.open_for(key) else { return Ok(None) };
        if open.shard.find(hash, key).is_none() {
            let (_, state) = open.shard.absent();
            if !self.add(&mut open, (hash, index), key, state, Q::Tier::default(), now) {
                return Err(TooManyKeys);
            }
        }
        Ok(open.shard.keep(hash, key).map(|(cell, step)| Held { cell, step }))
    }
}

impl<P: Clone, K: Clone> Clone for KeyHandle<P, K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), key: self.key.clone(), held: self.held.clone() }
    }
}

impl<P, K: fmt::Debug> fmt::Debug for KeyHandle<P, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyHandle")
            .field("key", &self.key)
            .field("is_kept", &self.held.as_ref().is_some_and(|held| !held.cell.has_ended()))
            .finish_non_exhaustive()
    }
}

/// There are as many keys as there may be, and no place for one more: come back once some have become full again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TooManyKeys;

impl fmt::Display for TooManyKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many keys, retry once some have become full again")
    }
}

impl core::error::Error for TooManyKeys {}
