//! Who waits for one limiter, and what each is told: plain data, always behind a lock.
//!
//! A waiter has a *place*, from its first poll until it has been told or has left. Its place is in the queue until the wait is
//! over; then the answer lies in the place until the waiter fetches it. What was granted to a waiter that leaves first is given
//! back to the limiter and so goes to the next.
//!
//! One waiter is in charge of time: whoever was last seen at the head. It sleeps until the next wait is over, its own or one by a
//! deadline. Everybody who locks the line lets all go whose wait is over, so a waiter that is never polled again takes what it is
//! granted and blocks nobody who acts.
//!
//! The queue keeps order and deadlines; what a waiter asks for, at one level or at several, is in its place, and summed here.

mod forecast;
mod place;

use core::task::{Poll, Waker};
use core::time::Duration;

use sluicegate_core::{Denied, Nanos, QueueFull, Ticket, Verdict, WaitQueue};

use crate::costs::Costs;
use crate::grant::{Grantor, Total};
use crate::news::News;
use crate::options::WaitOptions;
use crate::room::{Places, Room};

use forecast::never;
pub(crate) use place::{Fetched, Hold, Place, Unfetched, Wish};

/// Who waits for one limiter.
pub(crate) struct Line<S: Room, L: Grantor + ?Sized> {
    queue: WaitQueue<S::Slots>,
    places: S::Places<L::Cost, Result<L::Grant, L::Denial>>,
    free: Option<u32>,
    /// How many places are somebody's.
    taken: usize,
    /// What all who wait ask for, and the part of it that waits without a deadline.
    waiting: Total<L>,
    patient: Total<L>,
    /// Nobody who waits asks for more at any level. It comes down only when nobody waits or when all were looked at.
    largest: L::Cost,
    /// Who is in charge of time, for which head, and when it looks next. `None` where nobody is.
    timed: Option<Timed>,
    /// How many have not fetched what is held for them, is not refilled and is to be kept; and a reading before which none of it was
    /// granted.
    held: usize,
    held_since: Nanos,
    relief: Option<Duration>,
    is_newest_first: bool,
    is_evicting: bool,
    is_closed: bool,
}

type PlaceOf<L> = Place<<L as Grantor>::Cost, Result<<L as Grantor>::Grant, <L as Grantor>::Denial>>;

/// Somebody in charge of time.
struct Timed {
    /// Whose place it is that sleeps, or was woken to.
    minder: u32,
    head: Ticket,
    at: Nanos,
}

/// What a waiter does next.
pub(crate) enum Next {
    /// It sleeps until then at the latest.
    Until(Nanos),
    /// Somebody else will wake it.
    Woken,
}

impl<S: Room, L: Grantor> Line<S, L> {
    pub(crate) fn new(options: &WaitOptions) -> Self {
        let queue = S::queue(options.bound);
        Self {
            queue: if options.is_newest_first { queue.newest_first() } else { queue },
            places: S::Places::default(),
            free: None,
            taken: 0,
            waiting: L::Cost::OF_NONE,
            patient: L::Cost::OF_NONE,
            largest: L::Cost::NOTHING,
            timed: None,
            held: 0,
            held_since: Nanos::MAX,
            relief: options.relief,
            is_newest_first: options.is_newest_first,
            is_evicting: options.is_evicting,
            is_closed: false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// How many have not fetched what is held for them and would be missing for as long as it is.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether one who comes now goes after those who wait, if there are any.
    pub(crate) fn is_behind_others(&self) -> bool {
        !self.is_newest_first && !self.queue.is_empty()
    }

    /// What the head waits for.
    fn head_cost(&self) -> Option<L::Cost> {
        let number = *self.queue.payload(self.queue.head()?)?;
        Some(self.cost(number))
    }

    /// What a waiter waits for, or waited for.
    fn cost(&self, number: u32) -> L::Cost {
        match self.places.get(number) {
            Some(Place::Waiting { wish, .. } | Place::Over { wish, .. }) => wish.cost,
            _ => L::Cost::NOTHING,
        }
    }

    /// Takes a place at the end.
    pub(crate) fn join(
        &mut self,
        now: Nanos,
        grantor: &L,
        wish: Wish<L::Cost>,
        deadline: Option<Nanos>,
        waker: &mut Option<Waker>,
        news: &mut News,
    ) -> Result<u32, Denied> {
        if self.is_closed {
            return Err(Denied::Closed);
        }
        if self.queue.len() >= self.queue.bound() && !self.is_evicting {
            return Err(Denied::QueueFull);
        }
        let number = match self.free {
            Some(number) => number,
            None => self.places.push(Place::Free(None)).ok_or(Denied::QueueFull)?,
        };
        let pushed = self.queue.push_evicting(0, deadline, number);
        let Some(Place::Free(next)) = self.places.get(number) else { return Err(Denied::QueueFull) };
        self.free = *next;
        let (ticket, evicted) = match pushed {
            Ok(pushed) => pushed,
            Err(QueueFull(_)) => {
                self.free = Some(number);
                return Err(Denied::QueueFull);
            }
        };
        if let Some(place) = self.places.get_mut(number) {
            *place = Place::Waiting { ticket, wish, waker: waker.take() };
        }
        self.taken += 1;
        wish.cost.add_to(&mut self.waiting);
        if wish.is_patient {
            wish.cost.add_to(&mut self.patient);
        }
        self.largest = self.largest.or_more(wish.cost);
        if let Some((_, evicted)) = evicted {
            let denial = grantor.denial(now, L::Cost::OF_NONE, Denied::QueueFull);
            self.tell(evicted, now, Err(denial), news);
        }
        Ok(number)
    }

    /// Lets all go whose wait is over, as far as `news` can take it, and tells whether that was all of them.
    pub(crate) fn let_go(&mut self, now: Nanos, grantor: &L, news: &mut News) -> bool {
        self.keep_unfetched(now, grantor);
        while !news.is_full() {
            let Some(cost) = self.head_cost() else { return true };
            // A timer wakes late. Who could go at its deadline goes, by the reading of that.
            let at = self.queue.next_deadline().map_or(now, |deadline| deadline.min(now));
            let mut refusal = None;
            let take = |_| {
                let held = grantor.peek_hold_at(at, cost).and_then(|()| grantor.hold_at(at, cost));
                held.map_err(|denial| {
                    refusal = Some(denial);
                    denial.into()
                })
            };
            let Some(served) = self.queue.grant_next_with(at, take) else { return true };
            let answer = match (served.verdict, refusal) {
                (Verdict::Granted(grant), _) => Ok(grant),
                (Verdict::Refused(_), Some(denial)) => Err(denial),
                (Verdict::Refused(denied), None) => Err(grantor.denial(now, L::Cost::OF_NONE, denied)),
                (Verdict::Expired, _) => Err(self.denial_at_deadline(now, grantor, served.payload)),
            };
            self.tell(served.payload, at, answer, news);
        }
        false
    }

    /// Ends the waits that can never go, wherever in the line they are, as far as `news` can take it, and tells whether that was
    /// all of them. `next` is the place to go on from, `Some(0)` at first; `None` once all were looked at.
    pub(crate) fn refuse(&mut self, now: Nanos, grantor: &L, next: &mut Option<u32>, news: &mut News) -> bool {
        if *next == Some(0) && never(grantor, now, self.largest).is_ok() {
            *next = None;
        }
        while let Some(number) = *next {
            if news.is_full() {
                return false;
            }
            *next = match self.places.get(number) {
                Some(&Place::Waiting { ticket, wish, .. }) => {
                    if let Err(denial) = never(grantor, now, wish.cost) {
                        self.queue.cancel(ticket);
                        self.tell(number, now, Err(denial), news);
                    }
                    Some(number + 1)
                }
                Some(_) => Some(number + 1),
                None => {
                    self.recall_largest();
                    None
                }
            };
        }
        true
    }

    fn recall_largest(&mut self) {
        self.largest = L::Cost::NOTHING;
        let mut number = 0;
        while let Some(place) = self.places.get(number) {
            if let Place::Waiting { wish, .. } = place {
                self.largest = self.largest.or_more(wish.cost);
            }
            number += 1;
        }
    }

    /// Keeps what has been held for waiters for so long that they may never fetch it: what is held is not refilled, and would be
    /// missing for as long as they exist.
    fn keep_unfetched(&mut self, now: Nanos, grantor: &L) {
        if self.stuck_at().is_none_or(|at| at > now) {
            return;
        }
        self.held_since = Nanos::MAX;
        let mut number = 0;
        while let Some(place) = self.places.get_mut(number) {
            if let Place::Over { at, wish: Wish { cost, hold: hold @ Hold::UntilFetched, .. }, answer: Ok(grant) } =
                place
            {
                if is_stuck(*at, self.relief, now) {
                    grantor.keep(*cost, grant);
                    *hold = Hold::Kept;
                    self.held -= 1;
                } else {
                    self.held_since = self.held_since.min(*at);
                }
            }
            number += 1;
        }
    }

    /// A reading before which nothing has been held for too long; `None` where nothing is held.
    fn stuck_at(&self) -> Option<Nanos> {
        let after = self.relief.filter(|_| self.held > 0)?;
        Some(self.held_since.saturating_add(after))
    }

    /// Makes sure that somebody is in charge of time, after everything else.
    ///
    /// `polled` is the place of whoever is being polled, and whether it is in charge although it is not at the head, because it has
    /// found those ahead of it stuck. It learns from the answer when to look again; anybody else who has to is woken.
    pub(crate) fn mind_time(&mut self, now: Nanos, grantor: &L, polled: Option<(u32, bool)>, news: &mut News) -> Next {
        let (Some(head), Some(cost)) = (self.queue.head(), self.head_cost()) else {
            self.timed = None;
            return Next::Woken;
        };
        let next = self.queue.next_wake_with(now, |_| grantor.peek_hold_at(now, cost).map_err(Into::into));
        let number = self.queue.payload(head).copied();
        // Where no clock knows, it may be because of what is held for one that never comes for it.
        let next = next.or_else(|| self.stuck_at());
        if let Some((minder, _)) = polled.filter(|(polled, is_in_charge)| *is_in_charge || number == Some(*polled)) {
            self.timed = next.map(|at| Timed { minder, head, at });
            return next.map_or(Next::Woken, Next::Until);
        }
        let (Some(at), Some(number)) = (next, number) else { return Next::Woken };
        let is_minded = self.timed.as_ref().is_some_and(|timed| timed.head == head && timed.at <= at);
        if !is_minded {
            self.timed = Some(Timed { minder: number, head, at });
            if let Some(Place::Waiting { waker, .. }) = self.places.get_mut(number) {
                news.wake(waker.take());
            }
        }
        Next::Woken
    }

    /// Whoever has this place minds the time no longer, if it did: it is told, or leaves.
    fn minds_no_longer(&mut self, number: u32) {
        if self.timed.as_ref().is_some_and(|timed| timed.minder == number) {
            self.timed = None;
        }
    }

    pub(crate) fn is_over(&self, number: u32) -> bool {
        matches!(self.places.get(number), Some(Place::Over { .. }))
    }

    /// Fetches the answer, and keeps what was granted unless it is to be held; or leaves `current` to be woken for it, in exchange for
    /// the waker of before: that may run code of its executor when it is dropped, and so is not dropped here.
    pub(crate) fn fetch(&mut self, number: u32, grantor: &L, current: &mut Option<Waker>) -> Poll<Fetched<L>> {
        match self.places.get_mut(number) {
            Some(Place::Waiting { waker, .. }) => {
                if current.is_some() {
                    core::mem::swap(waker, current);
                }
                Poll::Pending
            }
            _ => Poll::Ready(match self.free_place(number) {
                Place::Over { at, wish: Wish { cost, hold, .. }, answer } => {
                    if let (Ok(grant), Hold::UntilFetched) = (&answer, hold) {
                        grantor.keep(cost, grant);
                    }
                    Fetched { at, cost, answer }
                }
                // A place belongs to one waiter, which gives it up when it has fetched its answer.
                _ => {
                    let denial = grantor.denial(Nanos::ZERO, L::Cost::OF_NONE, Denied::Closed);
                    Fetched { at: Nanos::ZERO, cost: L::Cost::NOTHING, answer: Err(denial) }
                }
            }),
        }
    }

    /// Gives up a place, and returns what its waiter was granted and has not fetched, or the waker that it left.
    pub(crate) fn leave(&mut self, number: u32) -> (Option<Unfetched<L>>, Option<Waker>) {
        match self.free_place(number) {
            Place::Waiting { ticket, wish, waker } => {
                self.queue.cancel(ticket);
                self.waits_no_longer(wish);
                (None, waker)
            }
            Place::Over { at, wish: Wish { cost, hold, .. }, answer } => {
                let unfetched = |grant| Unfetched { at, cost, grant, is_kept: hold == Hold::Kept };
                (answer.ok().map(unfetched), None)
            }
            Place::Free(_) => (None, None),
        }
    }

    /// Ends all waits, as far as `news` can take it, and all to come; tells whether that was all of them.
    pub(crate) fn close(&mut self, now: Nanos, grantor: &L, news: &mut News) -> bool {
        self.is_closed = true;
        while !news.is_full() {
            let Some((_, number)) = self.queue.pop() else { return true };
            let denial = grantor.denial(now, L::Cost::OF_NONE, Denied::Closed);
            self.tell(number, now, Err(denial), news);
        }
        false
    }

    /// Tells a waiter that is out of the queue.
    fn tell(&mut self, number: u32, at: Nanos, answer: Result<L::Grant, L::Denial>, news: &mut News) {
        let Some(place) = self.places.get_mut(number) else { return };
        let Place::Waiting { wish, waker, .. } = place else { return };
        let wish = *wish;
        news.wake(waker.take());
        if L::HELD_IS_NOT_REFILLED && answer.is_ok() && wish.hold == Hold::UntilFetched {
            self.held += 1;
            self.held_since = self.held_since.min(at);
        }
        *place = Place::Over { at, wish, answer };
        self.waits_no_longer(wish);
        self.minds_no_longer(number);
    }

    fn waits_no_longer(&mut self, wish: Wish<L::Cost>) {
        wish.cost.take_from(&mut self.waiting);
        if wish.is_patient {
            wish.cost.take_from(&mut self.patient);
        }
        if self.queue.is_empty() {
            self.largest = L::Cost::NOTHING;
        }
    }

    fn free_place(&mut self, number: u32) -> PlaceOf<L> {
        let Some(place) = self.places.get_mut(number) else { return Place::Free(None) };
        if let Place::Free(_) = place {
            return Place::Free(None);
        }
        let was = core::mem::replace(place, Place::Free(self.free));
        self.free = Some(number);
        self.taken -= 1;
        self.minds_no_longer(number);
        let is_unkept = matches!(was, Place::Over { wish: Wish { hold: Hold::UntilFetched, .. }, answer: Ok(_), .. });
        if L::HELD_IS_NOT_REFILLED && is_unkept {
            self.held -= 1;
            if self.held == 0 {
                self.held_since = Nanos::MAX;
            }
        }
        was
    }

    /// Once nobody has a place, the memory that a peak needed goes back.
    pub(crate) fn tidy(&mut self) {
        if self.taken == 0 && self.places.get(KEPT).is_some() {
            self.free = None;
            self.places.clear();
            self.queue.shrink();
        }
    }
}

/// So many places are kept for the next ones: some kilobytes, and no allocation where now and then somebody waits.
const KEPT: u32 = 32;

/// Whether what was granted at `at` has waited for too long to be fetched.
fn is_stuck(at: Nanos, relief: Option<Duration>, now: Nanos) -> bool {
    relief.is_some_and(|after| at.saturating_add(after) <= now)
}
