//! Tasks of an embassy executor wait for one token bucket on a microcontroller: they are granted their tokens in order, and to the
//! tick.
//!
//! Nothing is allocated: no global allocator is linked here, and without one a program that might allocate is not built.
//!
//! Only on a Cortex-M. Where the emulator derives its time from the instructions executed, every run prints the same.

#![no_std]
#![no_main]

mod time;

use core::cell::RefCell;
use core::time::Duration;

use critical_section::Mutex;
use embassy_executor::Spawner;
use embassy_time::{Instant, TICK_HZ, TimeoutError, Timer, with_timeout};
use heapless::Deque;
use semihosting::{println, process};
use sluicegate_embassy::{Admitted, Clock, Denied, EmbassyTime, Nanos, Quota, Runtime, TokenBucket, quota};
use static_cell::StaticCell;

type Limiter = TokenBucket<3>;

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    time::start(cortex_m::Peripherals::take().expect("taken once").SYST);
    static LIMITER: StaticCell<Limiter> = StaticCell::new();
    let limiter: &Limiter = LIMITER.init(TokenBucket::of(LIMIT));
    // Emptied elsewhere than at the origin.
    Timer::after_ticks(5).await;
    let begin = limiter.try_acquire(LIMIT.capacity()).expect("it is full").at;
    let mut account = Account { begin, spent: 0 };

    in_order(spawner, limiter, &mut account).await;
    timeout(spawner, limiter, &mut account).await;
    cancel(spawner, limiter, &mut account).await;

    let now = EmbassyTime.now();
    let level = limiter.limiter().inspect_at(now).level;
    println!("{now}: {level} left");
    assert_eq!(level, account.level(now), "a token was lost, or made");
    assert_eq!(limiter.waiters(), 0);
    process::exit(0);
}

/// Three tasks take turns, each with its own cost. There is room for three: one more is told so at once.
async fn in_order(spawner: Spawner, limiter: &'static Limiter, account: &mut Account) {
    for (name, cost) in TASKS {
        spawner.spawn(take_turns(limiter, name, cost).expect("room for three tasks"));
        Timer::after_ticks(1).await;
    }
    assert_eq!(limiter.waiters(), 3);
    assert_eq!(limiter.acquire(1).await, Err(Denied::QueueFull));

    let total: u64 = TASKS.iter().map(|(_, cost)| u64::from(TURNS) * cost).sum();
    after(account.due(total)).await;
    for (name, cost) in (0..TURNS).flat_map(|_| TASKS) {
        account.spent += cost;
        let (told, due) = (next_told(), account.due(0));
        println!("{}: {cost} for {}, there since {due}", told.at, told.name);
        assert_eq!(told.name, name, "first in, first out");
        assert_eq!(told.at, on_a_tick(due), "at the first tick that is not too early");
        assert_eq!(told.answer.map(|admitted| admitted.at), Ok(told.at));
    }
}

/// One waits for two tokens, and has too little time left once another has taken one of them.
async fn timeout(spawner: Spawner, limiter: &'static Limiter, account: &mut Account) {
    // Whatever printing took: on every processor at the same reading, and at the beginning of a tick.
    after(account.due(0) + Duration::from_millis(20)).await;
    let timeout = EmbassyTime.now() + PATIENCE;
    spawner.spawn(hurry(limiter, "hasty").expect("it runs once"));
    after(account.due(1)).await;
    limiter.try_acquire(1).expect("there is one");
    account.spent += 1;

    after(timeout).await;
    let told = next_told();
    println!("{}: {} has waited until {timeout}, {:?}", told.at, told.name, told.answer);
    assert_eq!(told.at, on_a_tick(timeout));
    let retry_after = told.answer.expect_err("in vain").retry_after().expect("it can be had later");
    assert_eq!(told.at + retry_after, account.due(2));
}

/// One waits for more than there is and gives up: at that tick, one that stood behind it has the token that was there all along.
async fn cancel(spawner: Spawner, limiter: &'static Limiter, account: &mut Account) {
    after(account.due(1) + Duration::from_millis(20)).await;
    assert_eq!(account.level(EmbassyTime.now()), 1);
    let gives_up = Instant::now() + GIVES_UP;
    spawner.spawn(give_up(limiter).expect("it runs once"));
    Timer::after_ticks(1).await;
    spawner.spawn(take_one(limiter, "patient").expect("it runs once"));
    Timer::after_ticks(1).await;
    assert_eq!(limiter.waiters(), 2);

    Timer::at(gives_up).await;
    Timer::after_ticks(1).await;
    let told = next_told();
    account.spent += 1;
    println!("{}: 1 for {}, the one ahead has given up at {}", told.at, told.name, reading(gives_up.as_ticks()));
    assert_eq!(told.at, reading(gives_up.as_ticks()));
    assert_eq!(told.answer.map(|admitted| admitted.at), Ok(told.at));
}

#[embassy_executor::task(pool_size = 3)]
async fn take_turns(limiter: &'static Limiter, name: &'static str, cost: u64) {
    for _ in 0..TURNS {
        tell(name, limiter.acquire(cost).await);
    }
}

#[embassy_executor::task]
async fn hurry(limiter: &'static Limiter, name: &'static str) {
    tell(name, limiter.acquire_timeout(2, PATIENCE).await);
}

#[embassy_executor::task]
async fn give_up(limiter: &'static Limiter) {
    assert_eq!(with_timeout(GIVES_UP, limiter.acquire(LIMIT.capacity())).await, Err(TimeoutError));
}

#[embassy_executor::task]
async fn take_one(limiter: &'static Limiter, name: &'static str) {
    tell(name, limiter.acquire(1).await);
}

/// What a task was told, and at which reading it learnt of it.
struct Told {
    name: &'static str,
    answer: Result<Admitted, Denied>,
    at: Nanos,
}

static TOLD: Mutex<RefCell<Deque<Told, 16>>> = Mutex::new(RefCell::new(Deque::new()));

fn tell(name: &'static str, answer: Result<Admitted, Denied>) {
    let told = Told { name, answer, at: EmbassyTime.now() };
    let kept = critical_section::with(|section| TOLD.borrow_ref_mut(section).push_back(told));
    assert!(kept.is_ok());
}

fn next_told() -> Told {
    critical_section::with(|section| TOLD.borrow_ref_mut(section).pop_front()).expect("somebody is still waiting")
}

/// What a bucket that was emptied at a reading must have left, in whole numbers that need no rounding.
struct Account {
    begin: Nanos,
    spent: u64,
}

impl Account {
    /// When so many more tokens than were spent have come, to the nanosecond.
    fn due(&self, more: u64) -> Nanos {
        let nanos = ((self.spent + more) * PERIOD).div_ceil(RATE);
        self.begin + Duration::from_nanos(nanos)
    }

    fn level(&self, now: Nanos) -> u64 {
        let nanos = now.as_u64() - self.begin.as_u64();
        nanos * RATE / PERIOD - self.spent
    }
}

/// The reading at the first tick that is not before `at`, which is some seconds after the origin at most.
fn on_a_tick(at: Nanos) -> Nanos {
    reading((at.as_u64() * TICK_HZ).div_ceil(1_000_000_000))
}

fn reading(ticks: u64) -> Nanos {
    Nanos::new(ticks * 1_000_000_000 / TICK_HZ)
}

/// Lets everybody do what there is to do at the first tick that is not before `at`, and goes on at the next.
async fn after(at: Nanos) {
    EmbassyTime.sleep_until(at).await;
    assert_eq!(EmbassyTime.now(), on_a_tick(at), "a sleep ends at the first tick that is not too early");
    Timer::after_ticks(1).await;
}

/// A token comes in between two ticks, mostly.
const LIMIT: Quota = quota!("30/1s burst 4");
const RATE: u64 = 30;
const PERIOD: u64 = 1_000_000_000;
const TASKS: [(&str, u64); 3] = [("a", 3), ("b", 1), ("c", 2)];
const TURNS: u32 = 4;
/// Two tokens come within it, and three do not.
const PATIENCE: Duration = Duration::from_millis(60);
const GIVES_UP: embassy_time::Duration = embassy_time::Duration::from_ticks(10);
