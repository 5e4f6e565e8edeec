//! Taking from, and giving back to, many shards at once.
//!
//! # How it stays exact
//!
//! The limit is split into caps, one a shard, that sum to it exactly. A shard's word holds a window number and a count,
//! and changes only by compare-and-swap, so no shard ever exceeds its cap and no window its limit.
//!
//! What needs an argument is a *denial*: it must be right at some instant between call and return, although the shards
//! are read one after another. Within one window free units only shrink, as long as nothing is given back. So the sum of
//! what one sweep saw free bounds what is free at its end, and a sweep that found too little is a right denial if
//! meanwhile (a) nothing was given back and nobody held units that might be, and (b) no shard moved on to a later window.
//! For (a) there is the control word: everything that gives units back does so while holding its flag, and counts itself
//! there when it lets go. For (b) the shards' window numbers are read once more after the sweep. If either fails, the
//! caller looks again; that happens only when another call has moved, so calls as a whole always make progress.
//!
//! A cost that no single shard can serve is taken from several while holding the flag. Such costs serialise among
//! themselves, so one of them comes up short only when single-shard calls really took the units; then it gives back what
//! it has and looks again. Who finds nothing free while the flag is held waits for the holder, for some tens of
//! instructions. Nothing of the caller's runs while the flag is held: no panic or cancellation can leave it so.
//!
//! Once a sweep has found nothing at all free, the window is *marked* as spent, under the flag and only if the control word is
//! still as it was when the sweep began: so nothing was given back since, and nothing is free. A refund takes the mark away
//! before it gives anything back, under the flag too; a cost over several shards gets nothing from a window that is marked, and
//! so gives nothing back to it. So who meets the mark knows that nothing is free, without a sweep, for as long as no shard has
//! moved on to a later window.
//!
//! Units within one window are interchangeable: giving back subtracts from whichever shards count that window, first the
//! caller's own. As only the holder of the flag subtracts, counts otherwise grow, and one sweep finds all there is.
//!
//! # Memory order
//!
//! Shard words change with acquire and release and are read with acquire; the flag is taken with acquire and let go with
//! release. A sweep that saw an effect of a holder therefore also sees that holder's flag, or its count, when it reads
//! the control word for the second time. A sweep that saw no effect may be ordered before that holder.

use super::shards::Shards;
use super::step::Layout;
use crate::decision::{Admitted, Decision, Remaining};
use crate::shard::CachePadded;
use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::{Clock, Nanos, ShardId};

pub(super) struct Control {
    /// Bit 0 is the flag; the bits above count how often units were given back.
    word: AtomicU64,
    /// The base of the window that is marked as spent, or `NONE`. Only who holds the flag writes it.
    spent: AtomicU64,
}

impl Control {
    const_unless_loom! {
        pub(super) fn new() -> Self {
            Self { word: AtomicU64::new(0), spent: AtomicU64::new(NONE) }
        }
    }

    /// The base of the window that is marked as spent, if one is.
    #[inline(always)]
    fn spent(&self) -> u64 {
        // Acquire: a clock that is read afterwards, and words, are read after this.
        self.spent.load(Ordering::Acquire)
    }

    /// Marks the window of `base`, of which nothing was free in a sweep that began when the control word was `control`.
    #[inline]
    fn mark(&self, base: u64, control: Option<u64>) {
        // Relaxed: a guess; not to mark is always right. Late callers meet what is marked already at every denial.
        if self.spent.load(Ordering::Relaxed) == base {
            return;
        }
        if let Some(control) = control.filter(|&control| self.try_hold(control)) {
            // Release: who meets the mark sees all that was taken before.
            self.spent.store(base, Ordering::Release);
            self.release(control, false);
        }
    }

    /// Takes the mark of the window of `base` away, before something is given back there.
    fn unmark(&self, base: u64) {
        // Relaxed: only who holds the flag writes it, and this one has acquired it.
        if self.spent.load(Ordering::Relaxed) == base {
            // Release: as above. That nobody meets what is given back and the mark after it follows from its release.
            self.spent.store(NONE, Ordering::Release);
        }
    }

    /// The count, or `None` while the flag is held.
    #[inline]
    fn read(&self) -> Option<u64> {
        // Acquire: what is read afterwards is read after this.
        let control = self.word.load(Ordering::Acquire);
        if control & FLAG == 0 { Some(control) } else { None }
    }

    /// Takes the flag if the control word still is `control`.
    #[inline]
    fn try_hold(&self, control: u64) -> bool {
        // Acquire: the holder sees what the previous one did. That others see the flag before the holder's effects
        // follows from the release of those effects.
        self.word.compare_exchange(control, control | FLAG, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Lets go of the flag.
    #[inline]
    fn release(&self, control: u64, gave_back: bool) {
        let next = if gave_back { control.wrapping_add(FLAG << 1) } else { control };
        // Release: pairs with the acquire in `read` and `try_hold`. A plain store, because nobody else writes meanwhile.
        self.word.store(next, Ordering::Release);
    }
}

/// The slices of the shards: they sum to the limit, and the remainder lies on the low shards, one unit each.
#[derive(Clone, Copy)]
pub(super) struct Caps {
    least: u64,
    /// How many shards have one more.
    larger: usize,
}

impl Caps {
    /// `limit` over `shards`, which is at least 1.
    pub(super) const fn new(limit: u64, shards: usize) -> Self {
        Self { least: limit / shards as u64, larger: (limit % shards as u64) as usize }
    }

    #[inline]
    pub(super) const fn of(self, index: usize) -> u64 {
        if index < self.larger { self.least + 1 } else { self.least }
    }
}

/// The counts of one sharded window.
pub(super) struct Counts<S> {
    layout: Layout,
    caps: Caps,
    shards: S,
    control: CachePadded<Control>,
}

impl<S> Counts<S> {
    const_unless_loom! {
        /// Counts of nothing in `shards`, of which there are `count`, at least 1.
        pub(super) fn new(layout: Layout, shards: S, count: usize) -> Self {
            let caps = Caps::new(layout.rate.tokens(), count);
            Self { layout: layout.with_cap(caps.of(0)), caps, shards, control: CachePadded::new(Control::new()) }
        }
    }

    pub(super) const fn caps(&self) -> Caps {
        self.caps
    }

    pub(super) const fn limit(&self) -> u64 {
        self.layout.rate.tokens()
    }
}

impl<S: Shards> Counts<S> {
    pub(super) fn shard_count(&self) -> usize {
        self.shards.shards().len()
    }

    /// Takes `cost` at `now`, starting at the caller's shard.
    #[inline(always)]
    pub(super) fn try_acquire(&self, now: Nanos, cost: u64, shard_id: &impl ShardId) -> Decision {
        let start = self.first_shard(shard_id);
        match self.take(start, cost, |word| self.layout.met_at(word, now)) {
            Ok(word) => Ok(self.admitted(start, word, now)),
            Err(_) if self.is_spent(self.control.spent(), now) => {
                Err(self.layout.denial(self.layout.base_of(now), now, cost))
            }
            Err(_) => self.search_at(now, cost, start, shard_id),
        }
    }

    #[cold]
    fn search_at(&self, now: Nanos, cost: u64, start: usize, shard_id: &impl ShardId) -> Decision {
        self.search(now, &|| now, cost, start, shard_id).1
    }

    /// The same at a reading of `clock`, and that reading.
    ///
    /// A caller may be suspended between reading the clock and deciding, while its window ends and late callers take the last
    /// of it. So the clock is read again after a sweep by which a request is denied; but not where the window was marked as spent before
    /// the reading, because then it was denied rightly at that.
    #[inline(always)]
    pub(super) fn try_acquire_by(&self, clock: &impl Clock, cost: u64, shard_id: &impl ShardId) -> (Nanos, Decision) {
        let (start, spent) = (self.first_shard(shard_id), self.control.spent());
        let now = clock.now();
        match self.take(start, cost, |word| self.layout.met_at(word, now)) {
            Ok(word) => (now, Ok(self.admitted(start, word, now))),
            Err(_) if self.is_spent(spent, now) => (now, Err(self.layout.denial(self.layout.base_of(now), now, cost))),
            Err(_) => self.search(now, &|| clock.now(), cost, start, shard_id),
        }
    }

    /// What `try_acquire` would answer.
    pub(super) fn peek(&self, now: Nanos, cost: u64, shard_id: &impl ShardId) -> Decision {
        let (base, free) = self.settled_sweep(now, shard_id);
        match free.checked_sub(cost) {
            Some(left) => Ok(Admitted::new(self.remaining(left), self.layout.reading_in(base, now))),
            None => Err(self.layout.denial(base, now, cost)),
        }
    }

    /// What is free at `now`: at most what was free when the call began, and at least what is when it ends.
    pub(super) fn free(&self, now: Nanos, shard_id: &impl ShardId) -> u64 {
        self.settled_sweep(now, shard_id).1
    }

    /// Gives `cost` back to the window of `taken_at`, as far as that is still counted, and tells how far.
    pub(super) fn refund(&self, taken_at: Nanos, cost: u64, shard_id: &impl ShardId) -> u64 {
        let base = self.layout.base_of(taken_at);
        let start = self.first_shard(shard_id);
        if self.shard_count() == 1 {
            return self.give_back(start, base, cost);
        }
        let control = self.hold(shard_id);
        self.control.unmark(base);
        let returned = self.give_back(start, base, cost);
        self.control.release(control, true);
        returned
    }

    /// Whether the window of `now` is that of `spent`, which was marked, and no later one has begun.
    #[inline(always)]
    fn is_spent(&self, spent: u64, now: Nanos) -> bool {
        spent == self.layout.base_of(now) && self.is_latest(spent)
    }

    /// The slow path: the caller's shard was too short at the reading `now`. `clock` is read again before a denial. Returns the
    /// reading that decided, too.
    #[cold]
    fn search(
        &self,
        mut now: Nanos,
        clock: &impl Fn() -> Nanos,
        cost: u64,
        start: usize,
        shard_id: &impl ShardId,
    ) -> (Nanos, Decision) {
        let mut base = self.layout.base_of(now);
        if cost > self.limit() {
            return (now, Err(self.layout.denial(base, now, cost)));
        }
        let mut attempt = 0;
        loop {
            let control = self.control.read();
            let seen = self.sweep(base);
            if seen.free >= cost {
                if let Some((index, word)) = self.take_anywhere(start, base, cost, control) {
                    return (now, Ok(self.admitted(index, word, now)));
                }
                // Other calls took it.
            } else if seen.latest > base {
                base = seen.latest;
                continue;
            } else if self.is_settled(base, control) {
                if seen.free == 0 && self.shard_count() > 1 {
                    self.control.mark(base, control);
                }
                now = clock();
                if !self.layout.has_passed(base, now) {
                    return (now, Err(self.layout.denial(base, now, cost)));
                }
                // What a window that has passed lacks, it may have lacked only since.
                base = self.layout.base_of(now);
                continue;
            }
            shard_id.give_way(attempt);
            attempt = attempt.saturating_add(1);
        }
    }

    /// Takes `cost` in the window of `base` from the first shard from `start` on and around that has it, or else, if the
    /// control word still is `control`, from several. Returns the shard that completed it, and its word.
    fn take_anywhere(&self, start: usize, base: u64, cost: u64, control: Option<u64>) -> Option<(usize, u64)> {
        let mut index = start;
        for _ in 0..self.shard_count() {
            // One that has moved on to a later window is left alone while this one has enough.
            let word = self.layout.met(self.read(index), base);
            if self.layout.base_in(word) == base && self.layout.free(word, self.caps.of(index)) >= cost {
                if let Ok(word) = self.take(index, cost, |word| self.layout.met(word, base)) {
                    return Some((index, word));
                }
            }
            index = self.next_shard(index);
        }
        if self.shard_count() == 1 {
            // There are no others to take from, and who interrupts a holder must not have to wait for it.
            return None;
        }
        let control = control.filter(|&control| self.control.try_hold(control))?;
        let (taken, gave_back) = self.take_from_several(start, base, cost);
        self.control.release(control, gave_back);
        taken
    }

    /// Takes `cost` from shards in the window of `base` while the flag is held, or gives back what it got. Returns the last
    /// shard and its word, and whether anything was given back.
    fn take_from_several(&self, start: usize, base: u64, cost: u64) -> (Option<(usize, u64)>, bool) {
        let mut needed = cost;
        let mut index = start;
        for _ in 0..self.shard_count() {
            let (taken, word) = self.take_up_to(index, base, needed);
            needed -= taken;
            if needed == 0 {
                return (Some((index, word)), false);
            }
            index = self.next_shard(index);
        }
        self.give_back(start, base, cost - needed);
        (None, cost > needed)
    }

    /// Reads every shard once.
    #[inline(always)]
    fn sweep(&self, base: u64) -> Seen {
        let mut free = 0;
        let mut latest = base;
        for (index, shard) in self.shards.shards().iter().enumerate() {
            // Acquire: see the module's text.
            let word = self.layout.met(shard.word.load(Ordering::Acquire), base);
            latest = latest.max(word);
            let is_in_window = self.layout.base_in(word) == base;
            free += if is_in_window { self.layout.free(word, self.caps.of(index)) } else { 0 };
        }
        Seen { free, latest: self.layout.base_in(latest) }
    }

    /// The base to count from, which may be later than that of `now`, and what is free there: at most what was free when
    /// the call began, and at least what is when it ends.
    fn settled_sweep(&self, now: Nanos, shard_id: &impl ShardId) -> (u64, u64) {
        let mut base = self.layout.base_of(now);
        let mut attempt = 0;
        loop {
            let control = self.control.read();
            let seen = self.sweep(base);
            if seen.latest > base {
                base = seen.latest;
            } else if self.is_settled(base, control) {
                return (base, seen.free);
            } else {
                shard_id.give_way(attempt);
                attempt = attempt.saturating_add(1);
            }
        }
    }

    /// Whether what a sweep of the window of `base` saw, begun when the control word was `control`, bounds what is free: no
    /// shard has moved on to a later window, the flag was not held and nothing has been given back.
    #[inline]
    fn is_settled(&self, base: u64, control: Option<u64>) -> bool {
        self.is_latest(base) && control.is_some() && self.control.read() == control
    }

    /// Whether no shard has moved on to a later window than that of `base`.
    #[inline]
    fn is_latest(&self, base: u64) -> bool {
        // Words are ordered first by window, so one look at the largest tells. Acquire: see the module's text.
        let latest =
            self.shards.shards().iter().fold(base, |latest, shard| latest.max(shard.word.load(Ordering::Acquire)));
        self.layout.base_in(latest) == base
    }

    #[inline]
    fn read(&self, index: usize) -> u64 {
        // Acquire: see the module's text.
        self.shards.shards()[index].word.load(Ordering::Acquire)
    }

    /// Takes `cost` from one shard, in the window that `met` says it meets there. Returns the shard's word: the new one, or
    /// the one that was too short.
    #[inline(always)]
    fn take(&self, index: usize, cost: u64, met: impl Fn(u64) -> u64) -> Result<u64, u64> {
        let (word, cap) = (&self.shards.shards()[index].word, self.caps.of(index));
        // Acquire here, and acquire and release below: see the module's text.
        let mut current = word.load(Ordering::Acquire);
        loop {
            let met = met(current);
            if cost > self.layout.free(met, cap) {
                return Err(met);
            }
            if cost == 0 {
                return Ok(met);
            }
            match word.compare_exchange_weak(current, met + cost, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(met + cost),
                Err(seen) => current = seen,
            }
        }
    }

    /// Takes what one shard has in the window of `base`, at most `needed`; nothing if it is in a later one. Returns what it
    /// took, and the shard's word.
    fn take_up_to(&self, index: usize, base: u64, needed: u64) -> (u64, u64) {
        let (word, cap) = (&self.shards.shards()[index].word, self.caps.of(index));
        // Orders as in `take`.
        let mut current = word.load(Ordering::Acquire);
        loop {
            let met = self.layout.met(current, base);
            let taken = if self.layout.base_in(met) == base { self.layout.free(met, cap).min(needed) } else { 0 };
            if taken == 0 {
                return (0, met);
            }
            match word.compare_exchange_weak(current, met + taken, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return (taken, met + taken),
                Err(seen) => current = seen,
            }
        }
    }

    /// Gives back up to `cost` of what is counted in the window of `base`, and tells how much. With several shards, only under
    /// the flag.
    fn give_back(&self, start: usize, base: u64, cost: u64) -> u64 {
        let mut owed = cost;
        let mut index = start;
        for _ in 0..self.shard_count() {
            let word = &self.shards.shards()[index].word;
            // Orders as in `take`.
            let mut current = word.load(Ordering::Acquire);
            loop {
                let returned = self.layout.returnable(current, base, owed);
                if returned == 0 {
                    break;
                }
                match word.compare_exchange_weak(current, current - returned, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => {
                        owed -= returned;
                        break;
                    }
                    Err(seen) => current = seen,
                }
            }
            index = self.next_shard(index);
        }
        cost - owed
    }

    /// Waits for the flag.
    fn hold(&self, shard_id: &impl ShardId) -> u64 {
        let mut attempt = 0;
        loop {
            if let Some(control) = self.control.read().filter(|&control| self.control.try_hold(control)) {
                return control;
            }
            shard_id.give_way(attempt);
            attempt = attempt.saturating_add(1);
        }
    }

    #[inline(always)]
    fn first_shard(&self, shard_id: &impl ShardId) -> usize {
        let (shard, count) = (shard_id.shard(), self.shard_count());
        // Numbers are usually small already, and a division costs more than everything else here.
        if shard < count { shard } else { shard % count }
    }

    #[inline]
    fn next_shard(&self, index: usize) -> usize {
        if index + 1 == self.shard_count() { 0 } else { index + 1 }
    }

    #[inline(always)]
    fn admitted(&self, index: usize, word: u64, now: Nanos) -> Admitted {
        let left = self.layout.free(word, self.caps.of(index));
        Admitted::new(self.remaining(left), self.layout.reading_in(word, now))
    }

    #[inline]
    fn remaining(&self, left: u64) -> Remaining {
        if self.shard_count() == 1 { Remaining::Exactly(left) } else { Remaining::AtLeast(left) }
    }
}

/// What a sweep saw.
struct Seen {
    /// What the shards in the caller's window had free together.
    free: u64,
    /// The base of the latest window that any shard counts, at least the caller's.
    latest: u64,
}

const FLAG: u64 = 1;
/// No base: their low bits, which are the count's, are 0.
const NONE: u64 = u64::MAX;
