//! Bodies of the window's models. Bounds and costs are beside the tests that run them.
//!
//! Each shard has one unit in most of them: that is where a limit is hardest to keep and to use up. `NOW` lies in one
//! window, `LATER` in the next.

use std::sync::Arc;

use sluicegate_core::{Nanos, Remaining};

use crate::{Answer, Seat, Window, promise, race2, race3};

/// Two callers at one shard, one unit: one is admitted, left nothing; the other waits for the window's end.
pub fn last_unit_of_one_shard<W: Window>() {
    let window = Arc::new(W::new(2, 1));
    take(&*window, 0, 1);
    let one = |window: &W| window.try_acquire(0, NOW, 1);
    let (taken, wait) = match race2(&window, one, one) {
        (Ok(taken), Err(wait)) | (Err(wait), Ok(taken)) => (taken, wait),
        answers => return promise!(false, "exactly one of two gets the last unit: {answers:?}"),
    };
    promise!(taken.remaining == Remaining::Exactly(0) && taken.at == NOW, "the last unit leaves none: {taken:?}");
    promise!(wait == LATER.saturating_duration_since(NOW), "the window ends then: {wait:?}");
    promise!(window.free(0, NOW) == 0, "nothing is left");
}

/// A cost of 2 on one unit is denied whatever happens, and its denial takes nothing, not even for an instant.
pub fn denial_takes_nothing<W: Window>() {
    let window = Arc::new(W::new(2, 1));
    take(&*window, 0, 1);
    let (large, small) = race2(&window, admits(0, NOW, 2), admits(0, NOW, 1));
    promise!(!large, "two units were never there");
    promise!(small, "a unit was there all the time");
    promise!(window.free(0, NOW) == 0, "nothing is left");
}

/// Two callers at two shards, one unit in one of them: exactly one gets it.
pub fn last_unit_across_shards<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    take(&*window, 0, 1);
    let (a, b) = race2(&window, admits(0, NOW, 1), admits(1, NOW, 1));
    promise!(a != b, "exactly one of two gets the last unit: {:?}", (a, b));
    promise!(window.free(0, NOW) == 0, "nothing is left");
}

/// Two callers whose own shards have nothing at all, because the limit is smaller than the number of shards: exactly one
/// gets the only unit.
pub fn sweep_against_sweep<W: Window>() {
    let window = Arc::new(W::new(1, 3));
    let (a, b) = race2(&window, admits(1, NOW, 1), admits(2, NOW, 1));
    promise!(a != b, "exactly one of two gets the only unit: {:?}", (a, b));
    promise!(window.free(0, NOW) == 0, "nothing is left");
}

/// Three callers, two units in two shards: all of the limit is admitted and no more.
pub fn two_units_of_three<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    let (a, b, c) = race3(&window, admits(0, NOW, 1), admits(0, NOW, 1), admits(1, NOW, 1));
    promise!(sum([a, b, c]) == 2, "exactly two of three: {:?}", (a, b, c));
    promise!(window.free(0, NOW) == 0, "nothing is left");
}

/// A caller that opens the next window against one that is still in the old: neither window exceeds its limit, the new
/// one is used up, and the late reading neither reopens the old window nor resets the new.
pub fn rollover_against_late_reader<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    take(&*window, 0, 1);
    let twice = |seat, now| move |window: &W| [window.try_acquire(seat, now, 1), window.try_acquire(seat, now, 1)];
    let (new, late) = race2(&window, twice(0, LATER), twice(1, NOW));
    let answers: Vec<Answer> = new.into_iter().chain(late).collect();
    let (old_units, new_units) = (1 + counted_in(&answers, NOW), counted_in(&answers, LATER));
    promise!(old_units <= 2, "the old window exceeds its limit: {answers:?}");
    promise!(new_units == 2, "two were demanded in the new window and two must be admitted: {answers:?}");
    promise!(window.free(0, LATER) == 0 && window.free(1, NOW) == 0, "nothing is left");
}

/// A caller that opens the next window against a late one, at one shard where both windows meet in one word: the new one
/// admits its limit, and the old one stays closed.
pub fn rollover_in_one_shard<W: Window>() {
    let window = Arc::new(W::new(1, 1));
    let (new, late) = race2(&window, |w| w.try_acquire(0, LATER, 1), |w| w.try_acquire(0, NOW, 1));
    promise!(new.is_ok(), "the new window was unused: {new:?}");
    promise!(late.is_err() || counted_in(&[late], NOW) == 1, "the new window exceeds its limit: {late:?}");
    promise!(window.try_acquire(0, NOW, 1).is_err(), "a late reading reopened a window");
    promise!(window.free(0, LATER) == 0, "nothing is left");
}

/// A refund against an acquire of what it gives back: units are neither lost nor made.
pub fn refund_against_acquire<W: Window>() {
    refund_against_acquire_over::<W>(2);
}

/// A refund against an acquire with one shard, where a refund takes no flag: units are neither lost nor made.
pub fn refund_against_acquire_in_one_shard<W: Window>() {
    refund_against_acquire_over::<W>(1);
}

fn refund_against_acquire_over<W: Window>(shards: usize) {
    let window = Arc::new(W::new(2, shards));
    take(&*window, 0, 1);
    take(&*window, 1, 1);
    let (admitted, ()) = race2(&window, admits(1, NOW, 1), |window| window.refund(0, NOW, 1));
    let free = window.free(0, NOW);
    promise!(free + u64::from(admitted) == 1, "one unit came back: {admitted}, {free} free");
}

/// A look at one shard, whose only unit is given back and taken again while another caller asks for it: nobody has a hold
/// there that the look would have to wait for, so an interrupt handler may look.
pub fn look_at_one_shard_never_waits<W: Window>() {
    let window = Arc::new(W::new(1, 1));
    take(&*window, 0, 1);
    let (admitted, (again, seen)) = race2(&window, admits(0, NOW, 1), |window| {
        window.refund(0, NOW, 1);
        let again = window.try_acquire(0, NOW, 1).is_ok();
        (again, Seat::without_waiting(|| window.free(0, NOW)))
    });
    promise!(admitted != again, "exactly one of two gets the unit that came back: {:?}", (admitted, again));
    promise!(seen == 0 || !again, "nothing is free once it was taken: {seen}");
}

/// Two refunds, more than was taken: the window never has more than its limit free.
pub fn refund_against_refund<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    take(&*window, 0, 1);
    take(&*window, 1, 1);
    race2(&window, |window| window.refund(0, NOW, 1), |window| window.refund(0, NOW, 2));
    let free = window.free(0, NOW);
    promise!(free == 2, "all came back, and not more than all: {free}");
    let more = (0..3).filter(|_| window.try_acquire(0, NOW, 1).is_ok()).count();
    promise!(more == 2, "what is shown can be taken, and no more: {more}");
}

/// Denials that find nothing free, against what is given back: whoever asks afterwards gets it.
pub fn refund_against_denials<W: Window>() {
    given_back_is_there::<W>(false);
}

/// The same where somebody was denied before, and the window is known to be spent.
pub fn refund_against_known_spent<W: Window>() {
    given_back_is_there::<W>(true);
}

fn given_back_is_there<W: Window>(is_known: bool) {
    let window = Arc::new(W::new(2, 2));
    take(&*window, 0, 1);
    take(&*window, 1, 1);
    if is_known {
        promise!(window.try_acquire(0, NOW, 1).is_err(), "nothing is left");
    }
    let twice = |window: &W| [0, 1].map(|seat| window.try_acquire(seat, NOW, 1).is_ok());
    let (taken, ()) = race2(&window, twice, |window| window.refund(1, NOW, 1));
    let taken = taken.into_iter().filter(|taken| *taken).count() as u64;
    promise!(taken <= 1 && window.free(0, NOW) == 1 - taken, "one was given back: {taken} taken");
    promise!(window.try_acquire(0, NOW, 1).is_ok() == (taken == 0), "what was given back is there, once");
    promise!(window.try_acquire(0, NOW, 1).is_err(), "nothing is left");
}

/// A window that is known to be spent ends while a late caller asks for it: it is counted into the next one, or is told to wait.
pub fn known_spent_against_rollover<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    take(&*window, 0, 1);
    take(&*window, 1, 1);
    promise!(window.try_acquire(0, NOW, 1).is_err(), "nothing is left");
    let (next, late) = race2(&window, admits(0, LATER, 1), admits(1, NOW, 1));
    promise!(next, "the next window is free");
    promise!(window.free(0, LATER) == 1 - u64::from(late), "a late one counts into the next window: {late}");
    promise!(late || window.try_acquire(1, NOW, 1).is_ok(), "once that has begun there is room for it");
}

/// A refund of the old window against the new one: it gives nothing back there.
pub fn refund_against_rollover<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    take(&*window, 0, 1);
    let twice = |window: &W| [window.try_acquire(0, LATER, 1), window.try_acquire(0, LATER, 1)];
    let (answers, ()) = race2(&window, twice, |window| window.refund(0, NOW, 1));
    promise!(counted_in(&answers, LATER) == 2, "the new window was unused: {answers:?}");
    let free = window.free(0, LATER);
    promise!(free == 0, "the old window's unit came back in the new one: {free} free");
}

/// One unit at least is free at every instant, but it moves behind the back of a sweep: nobody may be denied.
pub fn unit_always_free<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    take(&*window, 0, 1);
    let (moved, admitted) = race2(&window, refund_and_take::<W>, admits(0, NOW, 1));
    promise!(moved && admitted, "a unit was free at every instant: {:?}", (moved, admitted));
    promise!(window.free(0, NOW) == 0, "nothing is left");
}

/// One unit at least is free at every instant, but it moves behind the back of a sweep: who looks must see it.
pub fn unit_always_seen<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    take(&*window, 0, 1);
    let look = |window: &W| (window.free(0, NOW), window.peek(0, NOW, 1).is_ok());
    let (moved, (free, would)) = race2(&window, refund_and_take::<W>, look);
    promise!(moved, "a unit was free at every instant");
    promise!((1..=2).contains(&free) && would, "a unit was free at every instant: {free}, {would}");
    promise!(window.free(0, NOW) == 1, "looking takes nothing");
}

/// Two of three units at least are free at every instant, but not always the same: a cost of two may not be denied.
pub fn pair_always_free<W: Window>() {
    let window = Arc::new(W::new(3, 3));
    take(&*window, 0, 1);
    let (moved, admitted) = race2(&window, refund_and_take::<W>, admits(0, NOW, 2));
    promise!(moved && admitted, "two units were free at every instant: {:?}", (moved, admitted));
    promise!(window.free(0, NOW) == 0, "nothing is left");
}

/// A cost of both shards against a single: never both, and never neither.
pub fn both_shards_against_single<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    let (both, single) = race2(&window, admits(0, NOW, 2), admits(1, NOW, 1));
    promise!(both != single, "exactly one of the two fits: {:?}", (both, single));
    promise!(window.free(0, NOW) == u64::from(single), "what was not admitted is free");
}

/// A cost of both shards against a single at each: two units are admitted whatever happens. What the large one holds
/// for a while and gives back denies nobody.
pub fn both_shards_against_singles<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    let (both, a, b) = race3(&window, admits(0, NOW, 2), admits(1, NOW, 1), admits(0, NOW, 1));
    let admitted = 2 * u64::from(both) + sum([a, b]);
    promise!(admitted == 2, "exactly two units: {:?}", (both, a, b));
    promise!(window.free(0, NOW) == 0, "nothing is left");
}

/// A cost of both shards against one caller of two singles, whose first may break the hold that the second then meets:
/// two units are admitted whatever happens. What was held and given back while the second swept must be counted.
pub fn both_shards_against_two_in_a_row<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    let two_in_a_row = |window: &W| [window.try_acquire(1, NOW, 1).is_ok(), window.try_acquire(1, NOW, 1).is_ok()];
    let (both, singles) = race2(&window, admits(0, NOW, 2), two_in_a_row);
    let admitted = 2 * u64::from(both) + sum(singles);
    promise!(admitted == 2, "exactly two units: {both}, {singles:?}");
    promise!(window.free(0, NOW) == 0, "nothing is left");
}

/// Two costs of two on three shards: exactly one, which leaves one unit.
pub fn pair_against_pair<W: Window>() {
    let window = Arc::new(W::new(3, 3));
    let (a, b) = race2(&window, admits(0, NOW, 2), admits(1, NOW, 2));
    promise!(a != b, "exactly one pair fits: {:?}", (a, b));
    promise!(window.free(0, NOW) == 1, "the third unit is left");
}

/// A cost of both shards against a refund of both: units are neither lost nor made.
pub fn both_shards_against_refund<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    take(&*window, 0, 1);
    take(&*window, 1, 1);
    let (both, ()) = race2(&window, admits(1, NOW, 2), |window| window.refund(0, NOW, 2));
    let free = window.free(0, NOW);
    promise!(free + 2 * u64::from(both) == 2, "two units came back: {both}, {free} free");
}

/// A cost of both shards, a refund and a single, with one unit free: the single is denied only by the large one.
pub fn both_shards_refund_and_single<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    take(&*window, 0, 1);
    let (both, (), single) = race3(&window, admits(0, NOW, 2), |window| window.refund(0, NOW, 1), admits(0, NOW, 1));
    promise!(both != single, "exactly one of the two fits: {:?}", (both, single));
    promise!(window.free(0, NOW) == u64::from(single), "what was not admitted is free");
}

/// A cost of both shards in the old window against one in the new: neither window exceeds its limit, and one that was
/// denied lost to the other.
pub fn both_shards_against_rollover<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    let (old, new) = race2(&window, |w| w.try_acquire(0, NOW, 2), |w| w.try_acquire(1, LATER, 2));
    let in_new = 2 * counted_in(&[old, new], LATER);
    promise!(in_new == 2, "two were demanded in the new window and two must be admitted: {old:?}, {new:?}");
    promise!(window.free(0, LATER) == 0, "nothing is left");
}

/// A cost of three of four units in the old window, while a single opens the new one in a shard that has room left there:
/// all three are counted in one window, and neither is denied.
pub fn hold_overtaken_by_a_window<W: Window>() {
    let window = Arc::new(W::new(4, 2));
    let (three, new) = race2(&window, |w| w.try_acquire(0, NOW, 3), |w| w.try_acquire(1, LATER, 1));
    promise!(three.is_ok() && new.is_ok(), "enough was free in either window: {three:?}, {new:?}");
    let in_new = 3 * counted_in(&[three], LATER) + counted_in(&[new], LATER);
    let free = window.free(0, LATER);
    promise!(free == 4 - in_new, "units of two windows were mixed: {in_new} taken in the new one, {free} free");
}

/// A hold in the old window that a single of the new one breaks, and a late single: what the hold gives back goes to
/// its own window, and the new one admits its limit.
pub fn broken_hold<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    let (both, new, late) =
        race3(&window, |w| w.try_acquire(0, NOW, 2), |w| w.try_acquire(1, LATER, 1), |w| w.try_acquire(0, NOW, 1));
    promise!(new.is_ok() || 2 * counted_in(&[both], LATER) + counted_in(&[late], LATER) == 2, "denied early");
    let in_old = 2 * counted_in(&[both], NOW) + counted_in(&[late], NOW);
    let in_new = 2 * counted_in(&[both], LATER) + counted_in(&[new, late], LATER);
    promise!(in_old <= 2 && in_new <= 2, "{in_old} and {in_new} units of 2: {both:?}, {new:?}, {late:?}");
    let free = window.free(0, LATER);
    promise!(free == 2 - in_new, "units were lost or made: {in_new} taken, {free} free");
}

/// A shard moves on to the next window while a sweep of the old one is under way. A unit is free at every instant in the
/// window that the caller then belongs to, so a denial would be right at none.
pub fn denial_under_rollover<W: Window>() {
    let window = Arc::new(W::new(2, 2));
    take(&*window, 0, 1);
    let open_and_fill = |window: &W| [window.try_acquire(0, LATER, 1), window.try_acquire(1, NOW, 1)];
    let (filled, admitted) = race2(&window, open_and_fill, |window| window.try_acquire(0, NOW, 1));
    promise!(filled[0].is_ok(), "the new window was unused: {filled:?}");
    promise!(admitted.is_ok(), "a unit was free at every instant: {filled:?}, {admitted:?}");
    let answers = [filled[0], filled[1], admitted];
    let (old_units, new_units) = (1 + counted_in(&answers, NOW), counted_in(&answers, LATER));
    promise!(old_units <= 2 && new_units <= 2, "a window exceeds its limit: {answers:?}");
    promise!(window.free(0, LATER) == 2 - new_units, "units were lost or made: {answers:?}");
}

/// Gives back shard 0's unit, then takes one, at shard 1 if that is free: the free unit moves from 1 to 0.
fn refund_and_take<W: Window>(window: &W) -> bool {
    window.refund(0, NOW, 1);
    window.try_acquire(1, NOW, 1).is_ok()
}

fn admits<W: Window>(seat: usize, now: Nanos, cost: u64) -> impl Fn(&W) -> bool + Copy + Send + 'static {
    move |window| window.try_acquire(seat, now, cost).is_ok()
}

fn take<W: Window>(window: &W, seat: usize, cost: u64) {
    promise!(window.try_acquire(seat, NOW, cost).is_ok(), "nobody races yet");
}

fn sum<const N: usize>(admitted: [bool; N]) -> u64 {
    admitted.into_iter().map(u64::from).sum()
}

/// How many were admitted in the window of `now`.
fn counted_in(answers: &[Answer], now: Nanos) -> u64 {
    answers.iter().flatten().filter(|taken| taken.at.as_u64() / SECOND == now.as_u64() / SECOND).count() as u64
}

const SECOND: u64 = 1_000_000_000;
const NOW: Nanos = Nanos::from_millis(100_250);
const LATER: Nanos = Nanos::from_millis(101_000);
