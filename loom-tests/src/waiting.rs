//! Bodies of the models of waiting. Bounds and costs are beside the tests that run them.
//!
//! A waiter is polled once when it begins, and then only when it was woken: what nobody tells it of, it misses.

use std::sync::Arc;

use sluicegate_core::Denied;

use crate::{Queue, Reserving, Waiter, Ways, promise, race2, race3};

/// All there is comes back while somebody begins to wait for it: it is not left there unseen.
pub fn give_back_against_beginning<Q: Queue>() {
    let queue = Arc::new(Q::new(1));
    let held = take(&*queue, 1);
    let (mut waiter, ()) = race2(&queue, |queue| begin(queue, 1), |queue| queue.give_back(held));
    waiter.run();
    promise!(waiter.is_granted(), "it is there, and who waits for it was not told: {waiter:?}");
    promise!(queue.free() == 0, "{} is free as well", queue.free());
}

/// Two begin to wait while what both need comes back: both get it.
pub fn give_back_against_two<Q: Queue>() {
    let queue = Arc::new(Q::new(2));
    let held = take(&*queue, 2);
    let (mut a, mut b, ()) =
        race3(&queue, |queue| begin(queue, 1), |queue| begin(queue, 1), |queue| queue.give_back(held));
    run(&mut [&mut a, &mut b]);
    promise!(a.is_granted() && b.is_granted(), "there is one for each: {a:?}, {b:?}");
    promise!(queue.free() == 0, "{} is free as well", queue.free());
}

/// The first of two leaves while what both wait for comes back, and the second one may look in between: granted to the first or
/// not, the second one gets it.
pub fn give_back_against_cancel<Q: Queue>() {
    let queue = Arc::new(Q::new(1));
    let held = take(&*queue, 1);
    let (first, mut second) = (begin(&*queue, 1), begin(&*queue, 1));
    let run = |_: &Q| {
        second.run();
        second
    };
    let (mut second, (), ()) = race3(&queue, run, |_| drop(first), |queue| queue.give_back(held));
    second.run();
    promise!(second.is_granted(), "the first one left, and what came back is lost: {second:?}");
    promise!(queue.free() == 0, "{} is free as well", queue.free());
}

/// The first of two leaves, whose cost was too large, while another begins: those behind it fit into what is free.
pub fn large_head_leaves_against_beginning<Q: Queue>() {
    let queue = Arc::new(Q::new(3));
    let _held = take(&*queue, 1);
    let (large, mut second) = (begin(&*queue, 3), begin(&*queue, 1));
    let (mut third, ()) = race2(&queue, |queue| begin(queue, 1), |_| drop(large));
    run(&mut [&mut second, &mut third]);
    promise!(second.is_granted() && third.is_granted(), "there is one for each: {second:?}, {third:?}");
    promise!(queue.free() == 0, "{} is free as well", queue.free());
}

/// Somebody begins to wait while the limiter is closed: it does not wait for ever, and who comes after that is told at once.
pub fn close_against_beginning<Q: Queue>() {
    let queue = Arc::new(Q::new(1));
    let _held = take(&*queue, 1);
    let (mut waiter, late) = race2(
        &queue,
        |queue| begin(queue, 1),
        |queue| {
            queue.close();
            begin(queue, 1).answer()
        },
    );
    waiter.run();
    promise!(waiter.answer() == Some(Err(Denied::Closed)), "it waits for a limiter that is closed: {waiter:?}");
    promise!(late == Some(Err(Denied::Closed)), "it was closed before: {late:?}");
}

/// What somebody waits for comes back while the limiter is closed: it is taken, or still there, and then
/// nobody gets it any more.
pub fn close_against_give_back<Q: Queue>() {
    let queue = Arc::new(Q::new(1));
    let held = take(&*queue, 1);
    let mut waiter = begin(&*queue, 1);
    race2(&queue, Q::close, |queue| queue.give_back(held));
    waiter.run();
    let left = u64::from(!waiter.is_granted());
    promise!(waiter.answer().is_some(), "it waits for a limiter that is closed");
    promise!(queue.free() == left, "{} is free, and the waiter was told {:?}", queue.free(), waiter.answer());
    promise!(begin(&*queue, 1).answer() == Some(Err(Denied::Closed)), "it is closed, whatever is free");
}

/// What another caller has taken before a waiter comes back at the end of the waiter's patience: the waiter gets what it waited
/// for, or all of it is still there.
pub fn timeout_against_give_back<Q: Queue>() {
    let queue = Arc::new(Q::new(2));
    take(&*queue, 2);
    let mut waiter = Waiter::begin(queue.acquire(2, Some(2)));
    queue.tick();
    let barged = take(&*queue, 1);
    waiter.run();
    let tick_and_run = |queue: &Q| {
        queue.tick();
        waiter.run();
        waiter
    };
    let (waiter, ()) = race2(&queue, tick_and_run, |queue| queue.give_back(barged));
    over_and_counted(&*queue, waiter, 2);
}

/// The only permit is released at the end of a waiter's patience: the waiter gets it, or it is still there.
pub fn timeout_against_release<Q: Queue>() {
    let queue = Arc::new(Q::new(1));
    let held = take(&*queue, 1);
    let mut waiter = Waiter::begin(queue.acquire(1, Some(1)));
    let tick_and_run = |queue: &Q| {
        queue.tick();
        waiter.run();
        waiter
    };
    let (waiter, ()) = race2(&queue, tick_and_run, |queue| queue.give_back(held));
    over_and_counted(&*queue, waiter, 1);
}

fn over_and_counted<Q: Queue>(queue: &Q, mut waiter: Waiter<Q::Held>, cost: u64) {
    waiter.run();
    let left = if waiter.is_granted() { 0 } else { cost };
    promise!(waiter.answer().is_some(), "it waits beyond its patience");
    promise!(queue.free() == left, "{} is free, and the waiter was told {:?}", queue.free(), waiter.answer());
    promise!(queue.sleepers() == 0, "nobody waits, and {} sleep", queue.sleepers());
}

/// A token comes at the end of a waiter's patience, and another caller may take it: exactly one of them has it.
pub fn timeout_against_barging<Q: Queue>() {
    let queue = Arc::new(Q::new(2));
    take(&*queue, 2);
    let mut waiter = Waiter::begin(queue.acquire(1, Some(1)));
    let run = |_: &Q| {
        waiter.run();
        waiter
    };
    let (mut waiter, (), barged) = race3(&queue, run, Q::tick, |queue| queue.try_acquire(1));
    waiter.run();
    promise!(waiter.answer().is_some(), "it waits beyond its patience");
    promise!(waiter.is_granted() != barged.is_some(), "one has it: {waiter:?}, {}", barged.is_some());
    promise!(queue.free() == 0, "{} is free as well", queue.free());
    promise!(queue.sleepers() == 0, "nobody waits, and {} sleep", queue.sleepers());
}

/// Half of what the head waits for comes back while it sleeps until all of it would have come by itself, or is about to: with what
/// comes meanwhile it has enough, and must not sleep any longer.
pub fn give_back_against_the_timer<Q: Queue>() {
    let queue = Arc::new(Q::new(2));
    let held = take(&*queue, 1);
    take(&*queue, 1);
    let mut head = begin(&*queue, 2);
    let run = |_: &Q| {
        head.run();
        head
    };
    let (mut head, (), ()) = race3(&queue, run, Q::tick, |queue| queue.give_back(held));
    head.run();
    promise!(head.is_granted(), "two are there, and it sleeps");
    promise!(queue.free() == 0, "{} is free as well", queue.free());
    promise!(queue.sleepers() == 0, "nobody waits, and {} sleep", queue.sleepers());
}

/// What the head waits for comes back in two parts, and it looks in between: having been woken in vain, it is woken again.
pub fn give_back_in_two_parts<Q: Queue>() {
    let queue = Arc::new(Q::new(2));
    let (one, two) = (take(&*queue, 1), take(&*queue, 1));
    let mut head = begin(&*queue, 2);
    let run = |_: &Q| {
        head.run();
        head
    };
    let give_back_both = |queue: &Q| {
        queue.give_back(one);
        queue.give_back(two);
    };
    let (mut head, ()) = race2(&queue, run, give_back_both);
    head.run();
    promise!(head.is_granted(), "two are there, and nobody told it");
    promise!(queue.free() == 0 && queue.sleepers() == 0, "{} free, {} sleep", queue.free(), queue.sleepers());
}

/// The head, who waits for less, leaves while another begins to wait: somebody minds the time of that one afterwards.
pub fn head_leaves_and_time_is_minded<Q: Queue>() {
    let queue = Arc::new(Q::new(2));
    take(&*queue, 2);
    let head = begin(&*queue, 1);
    let ((), mut second) = race2(&queue, |_| drop(head), |queue| begin(queue, 2));
    second.run();
    promise!(second.answer().is_none(), "nothing has come yet: {second:?}");
    promise!(queue.sleepers() == 1, "one minds the time, and {} do", queue.sleepers());
    queue.tick();
    queue.tick();
    second.run();
    promise!(second.is_granted(), "its tokens have come, and nobody told it");
    promise!(queue.free() == 0 && queue.sleepers() == 0, "{} free, {} sleep", queue.free(), queue.sleepers());
}

/// The head, who waits for more, leaves while what the second one waits for comes: the second one gets it.
pub fn head_leaves_against_the_turn<Q: Queue>() {
    let queue = Arc::new(Q::new(2));
    take(&*queue, 2);
    let (head, mut second) = (begin(&*queue, 2), begin(&*queue, 1));
    let run = |_: &Q| {
        second.run();
        second
    };
    let (mut second, (), ()) = race3(&queue, run, |_| drop(head), Q::tick);
    second.run();
    promise!(second.is_granted(), "its token has come, and nobody told it");
    promise!(queue.free() == 0 && queue.sleepers() == 0, "{} free, {} sleep", queue.free(), queue.sleepers());
}

/// Somebody begins to wait while a reservation of all there is is settled at less: what it did not need is not left there unseen.
pub fn settle_against_beginning<Q: Reserving>() {
    let queue = Arc::new(Q::new(2));
    let held = take(&*queue, 2);
    let (mut waiter, ()) = race2(&queue, |queue| begin(queue, 1), |queue| queue.settle(held, 1));
    waiter.run();
    promise!(waiter.is_granted(), "it is there, and who waits for it was not told: {waiter:?}");
    promise!(queue.free() == 0, "{} is free as well", queue.free());
}

/// One of two tokens is held and the other was spent, and the head waits for both. It looks while the reservation is settled at nothing
/// and a second passes: having both, it must not sleep, and before it has, it must.
pub fn settle_against_the_timer<Q: Reserving>() {
    let queue = Arc::new(Q::new(2));
    let (held, spent) = (take(&*queue, 1), take(&*queue, 1));
    queue.settle(spent, 1);
    let mut head = begin(&*queue, 2);
    let run = |_: &Q| {
        head.run();
        head
    };
    let (mut head, (), ()) = race3(&queue, run, Q::tick, |queue| queue.settle(held, 0));
    head.run();
    promise!(head.is_granted(), "two are there, and it sleeps");
    promise!(queue.free() == 0 && queue.sleepers() == 0, "{} free, {} sleep", queue.free(), queue.sleepers());
}

/// The head leaves, granted or not, while a reservation is settled at less: the next one has what is left, and a second later the rest
/// is there for one more.
pub fn settle_against_cancel<Q: Reserving>() {
    let queue = Arc::new(Q::new(2));
    let held = take(&*queue, 2);
    let (head, mut second) = (begin(&*queue, 2), begin(&*queue, 1));
    let run = |_: &Q| {
        second.run();
        second
    };
    let (mut second, (), ()) = race3(&queue, run, |_| drop(head), |queue| queue.settle(held, 1));
    second.run();
    promise!(second.is_granted(), "one is there, and nobody told it");
    promise!(queue.free() == 0 && queue.sleepers() == 0, "{} free, {} sleep", queue.free(), queue.sleepers());
    queue.tick();
    promise!(begin(&*queue, 1).is_granted() && queue.free() == 1, "one has come since: {}", queue.free());
}

/// One comes back, or comes by itself, and the first of two has it while the second one waits for all that there can be: what the
/// first one has not learnt of has no time to come back, and once it has, the second one's turn is minded.
pub fn all_of_it_behind_one_that_was_granted<Q: Queue>() {
    let queue = Arc::new(Q::new(2));
    let held = take(&*queue, 1);
    take(&*queue, 1);
    let (mut first, mut second) = (begin(&*queue, 1), begin(&*queue, 2));
    let run_first = |_: &Q| {
        first.run();
        first
    };
    let (mut first, (), ()) = race3(&queue, run_first, Q::tick, |queue| queue.give_back(held));
    run(&mut [&mut first, &mut second]);
    promise!(first.is_granted(), "one has come back: {first:?}");
    promise!(second.answer().is_none() && queue.sleepers() == 1, "one minds the time, and {} do", queue.sleepers());
    queue.tick();
    queue.tick();
    second.run();
    promise!(second.is_granted(), "its tokens have come, and nobody told it");
    promise!(queue.free() == 0 && queue.sleepers() == 0, "{} free, {} sleep", queue.free(), queue.sleepers());
}

/// All there is comes back while the only place to wait in is taken by a newer one: one of the two gets it, and the older one does not
/// wait in vain.
pub fn eviction_against_give_back<Q: Queue>() {
    let queue = Arc::new(Q::with(1, Ways { bound: Some(1), ..Ways::default() }));
    let held = take(&*queue, 1);
    let mut oldest = begin(&*queue, 1);
    let (mut newest, ()) = race2(&queue, |queue| begin(queue, 1), |queue| queue.give_back(held));
    run(&mut [&mut oldest, &mut newest]);
    let is_full = oldest.answer() == Some(Err(Denied::QueueFull));
    promise!(oldest.is_granted() || is_full, "it has no place, and was not told: {oldest:?}");
    promise!(oldest.is_granted() != newest.is_granted(), "one has it: {oldest:?}, {newest:?}");
    promise!(queue.free() == 0, "{} is free as well", queue.free());
}

/// Two come at once where one may wait, and one is there: two of the three make room for the third, which gets what comes back.
pub fn eviction_against_eviction<Q: Queue>() {
    let queue = Arc::new(Q::with(1, Ways { bound: Some(1), ..Ways::default() }));
    let held = take(&*queue, 1);
    let mut oldest = begin(&*queue, 1);
    let (mut a, mut b) = race2(&queue, |queue| begin(queue, 1), |queue| begin(queue, 1));
    queue.give_back(held);
    run(&mut [&mut oldest, &mut a, &mut b]);
    let told = [&oldest, &a, &b].map(Waiter::answer);
    let full = told.iter().filter(|told| **told == Some(Err(Denied::QueueFull))).count();
    promise!(told[0] == Some(Err(Denied::QueueFull)) && full == 2, "two make room: {told:?}");
    promise!(a.is_granted() || b.is_granted(), "what came back is lost: {told:?}");
}

/// Where the newest goes first, one comes that waits for less than the head, which sleeps until its own turn: somebody minds the time
/// of the newer one, and afterwards that of the older.
pub fn newest_first_against_the_timer<Q: Queue>() {
    let queue = Arc::new(Q::with(2, Ways { is_newest_first: true, ..Ways::default() }));
    take(&*queue, 2);
    let mut old = begin(&*queue, 2);
    let run_old = |_: &Q| {
        old.run();
        old
    };
    let (mut old, (), mut newest) = race3(&queue, run_old, Q::tick, |queue| begin(queue, 1));
    run(&mut [&mut newest, &mut old]);
    promise!(newest.is_granted(), "its token has come, and nobody told it");
    promise!(old.answer().is_none() && queue.sleepers() == 1, "one minds the time, and {} do", queue.sleepers());
    queue.tick();
    queue.tick();
    old.run();
    promise!(old.is_granted(), "its tokens have come, and nobody told it");
    promise!(queue.free() == 0 && queue.sleepers() == 0, "{} free, {} sleep", queue.free(), queue.sleepers());
}

/// The head is never polled again. The second one is relieved while somebody calls the limiter: the second has its token
/// then, and the third, which waits for its turn, is told of it.
pub fn relief_against_a_call<Q: Queue>() {
    let queue = Arc::new(Q::with(3, Ways { relief: Some(1), ..Ways::default() }));
    take(&*queue, 3);
    let nothing = take(&*queue, 0);
    let (stuck, mut second, mut third) = (begin(&*queue, 1), begin(&*queue, 1), begin(&*queue, 2));
    queue.tick();
    queue.tick();
    let tick_and_run = |queue: &Q| {
        queue.tick();
        second.run();
        second
    };
    let (mut second, ()) = race2(&queue, tick_and_run, |queue| queue.give_back(nothing));
    run(&mut [&mut second, &mut third]);
    promise!(second.is_granted(), "its relief has passed, and it waits");
    promise!(third.answer().is_none(), "nothing has come yet: {third:?}");
    queue.tick();
    third.run();
    promise!(third.is_granted(), "its tokens have come, and nobody told it");
    promise!(queue.free() == 0, "{} is free as well", queue.free());
    drop(stuck);
    promise!(queue.free() == 1, "what the stuck one had is back, and {} is free", queue.free());
    promise!(queue.sleepers() == 0, "nobody waits, and {} sleep", queue.sleepers());
}

/// Two at the head are never polled again, and another caller may take what is there for them and the third before that one is
/// relieved: it minds the time of all until it has its own token.
pub fn relief_against_barging<Q: Queue>() {
    let queue = Arc::new(Q::with(3, Ways { relief: Some(1), ..Ways::default() }));
    take(&*queue, 3);
    let (_stuck, _too, mut third) = (begin(&*queue, 1), begin(&*queue, 1), begin(&*queue, 1));
    (0..3).for_each(|_| queue.tick());
    let tick_and_run = |queue: &Q| {
        queue.tick();
        third.run();
        third
    };
    let (mut third, barged) = race2(&queue, tick_and_run, |queue| queue.try_acquire(3));
    for _ in 0..3 {
        queue.tick();
        third.run();
    }
    promise!(third.is_granted(), "its token has come, and nobody told it; barged: {}", barged.is_some());
    promise!(queue.sleepers() == 0, "nobody waits, and {} sleep", queue.sleepers());
}

fn take<Q: Queue>(queue: &Q, cost: u64) -> Q::Held {
    queue.try_acquire(cost).expect("nobody races yet")
}

fn begin<Q: Queue>(queue: &Q, cost: u64) -> Waiter<Q::Held> {
    Waiter::begin(queue.acquire(cost, None))
}

/// Runs each, until none was woken: one may wake another.
fn run<H>(waiters: &mut [&mut Waiter<H>]) {
    for _ in 0..=waiters.len() {
        waiters.iter_mut().for_each(|waiter| waiter.run());
    }
}
