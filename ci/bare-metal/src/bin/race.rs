//! An interrupt races the main loop for the same limiters: every unit that was there is admitted, and no other.
//!
//! Only on a bare target. The interrupt comes after some thousand instructions, at another place in the main loop each
//! time. The limiter that is planted here with a bug must admit too much, or the race was none.

#![no_std]
#![no_main]

use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use portable_atomic::AtomicU64;
use sluicegate_bare_metal::machine::Ticks;
use sluicegate_core::{
    AdjustableBucket, BucketState, BucketStep, Clock, FixedShard, Inheritance, Limit, ManualClock, Quota, Shard,
    ShardedWindow, TokenBucket, WindowLimit, quota,
};

sluicegate_bare_metal::program!(race);
sluicegate_bare_metal::on_tick!(on_tick);

fn race(out: &mut dyn fmt::Write) -> fmt::Result {
    for stage in Stage::ALL {
        let (taken, there) = run(stage, out)?;
        let is_right = if matches!(stage, Stage::Broken) { taken > there } else { taken == there };
        if !is_right {
            writeln!(out, "That is wrong.")?;
            return Err(fmt::Error);
        }
    }
    Ok(())
}

/// Races until enough interrupts have come. Returns what was taken, and what there was to take.
fn run(stage: Stage, out: &mut dyn fmt::Write) -> Result<(u32, u32), fmt::Error> {
    let door = stage.door();
    for counter in [&TICKS, &STEPS, &TAKEN_BY_INTERRUPT] {
        counter.store(0, Ordering::Relaxed);
    }
    STAGE.store(stage as u32, Ordering::Relaxed);

    let mut taken = 0;
    let mut calls = 0;
    Ticks::start();
    while TICKS.load(Ordering::Relaxed) < INTERRUPTS {
        calls += 1;
        if calls % 8 == 0 {
            door.change();
        }
        let cost = 1 + calls % 2;
        if door.take(cost) {
            taken += cost;
            if cost == 2 && door.keeps_refunds() {
                door.refund(1);
                taken -= 1;
            }
        }
    }
    Ticks::stop();

    let by_interrupt = TAKEN_BY_INTERRUPT.load(Ordering::Relaxed);
    let there = door.capacity() + STEPS.load(Ordering::Relaxed) * door.per_step() - door.level();
    writeln!(
        out,
        "{}: the main loop took {taken}, the interrupt {by_interrupt}, together {} of {there}",
        door.name(),
        taken + by_interrupt
    )?;
    if taken == 0 || by_interrupt == 0 { Err(fmt::Error) } else { Ok((taken + by_interrupt, there)) }
}

/// What the interrupt does: it takes, too, and gives some of it back; and once all was taken it moves the clock on, so that
/// nothing is lost at a full bucket or at the end of a window.
fn on_tick() {
    let stage = STAGE.load(Ordering::Relaxed);
    let door = Stage::ALL[stage as usize].door();
    let tick = add(&TICKS, 1);
    if door.take(1) {
        if tick % 4 == 0 {
            door.refund(1);
        } else {
            add(&TAKEN_BY_INTERRUPT, 1);
        }
    }
    if door.level() == 0 {
        CLOCK.advance(STEP);
        add(&STEPS, 1);
    }
}

/// A load and a store: each counter has one writer at a time.
fn add(counter: &AtomicU32, number: u32) -> u32 {
    let sum = counter.load(Ordering::Relaxed).wrapping_add(number);
    counter.store(sum, Ordering::Relaxed);
    sum
}

#[derive(Clone, Copy)]
enum Stage {
    Bucket,
    Window,
    Adjustable,
    Broken,
}

impl Stage {
    const ALL: [Self; 4] = [Self::Bucket, Self::Window, Self::Adjustable, Self::Broken];

    fn door(self) -> &'static dyn Door {
        match self {
            Self::Bucket => &BUCKET,
            Self::Window => &WINDOW,
            Self::Adjustable => &ADJUSTABLE,
            Self::Broken => &BROKEN,
        }
    }
}

/// What is raced for.
trait Door {
    fn name(&self) -> &'static str;
    fn take(&self, cost: u32) -> bool;
    fn refund(&self, cost: u32);
    fn level(&self) -> u32;
    /// What is there at first, and the most that there can be.
    fn capacity(&self) -> u32;
    /// What each step of the clock brings.
    fn per_step(&self) -> u32;
    /// Whether a refund counts whenever it comes, and not only until the next step.
    fn keeps_refunds(&self) -> bool;
    /// What the main loop does once in a while, without taking anything.
    fn change(&self) {}
}

impl Door for TokenBucket<&ManualClock> {
    fn name(&self) -> &'static str {
        "bucket"
    }
    fn take(&self, cost: u32) -> bool {
        self.try_acquire(cost.into()).is_ok()
    }
    fn refund(&self, cost: u32) {
        self.refund(cost.into());
    }
    fn level(&self) -> u32 {
        self.inspect().level as u32
    }
    fn capacity(&self) -> u32 {
        QUOTA.capacity() as u32
    }
    fn per_step(&self) -> u32 {
        3
    }
    fn keeps_refunds(&self) -> bool {
        true
    }
}

/// One shard: costs over several wait for each other, which must not be done from an interrupt.
impl Door for ShardedWindow<[Shard; 1], &ManualClock, FixedShard> {
    fn name(&self) -> &'static str {
        "window"
    }
    fn take(&self, cost: u32) -> bool {
        self.try_acquire(cost.into()).is_ok()
    }
    fn refund(&self, cost: u32) {
        self.refund(self.clock().now(), cost.into());
    }
    fn level(&self) -> u32 {
        self.inspect().level as u32
    }
    fn capacity(&self) -> u32 {
        5
    }
    fn per_step(&self) -> u32 {
        5
    }
    fn keeps_refunds(&self) -> bool {
        false
    }
}

/// Its quota is replaced by an equal one all the time.
impl Door for AdjustableBucket<&ManualClock> {
    fn name(&self) -> &'static str {
        "adjustable bucket"
    }
    fn take(&self, cost: u32) -> bool {
        self.try_acquire(cost.into()).is_ok()
    }
    fn refund(&self, cost: u32) {
        self.refund(cost.into());
    }
    fn level(&self) -> u32 {
        self.inspect().level as u32
    }
    fn capacity(&self) -> u32 {
        QUOTA.capacity() as u32
    }
    fn per_step(&self) -> u32 {
        3
    }
    fn keeps_refunds(&self) -> bool {
        true
    }
    fn change(&self) {
        self.adjust(Limit::Quota(QUOTA), Inheritance::Level);
    }
}

/// The bug: a new state is stored without looking whether the old one is still there.
struct StoredWithoutComparing(AtomicU64);

impl StoredWithoutComparing {
    fn state(&self) -> BucketState {
        BucketState::from_bits(self.0.load(Ordering::Relaxed))
    }
}

impl Door for StoredWithoutComparing {
    fn name(&self) -> &'static str {
        "bucket with a bug"
    }
    fn take(&self, cost: u32) -> bool {
        let (state, decision) = BROKEN_STEP.try_acquire(self.state(), CLOCK.now(), cost.into());
        if decision.is_ok() {
            self.0.store(state.to_bits(), Ordering::Relaxed);
        }
        decision.is_ok()
    }
    fn refund(&self, cost: u32) {
        self.0.store(BROKEN_STEP.refund(self.state(), cost.into()).to_bits(), Ordering::Relaxed);
    }
    fn level(&self) -> u32 {
        BROKEN_STEP.inspect(self.state(), CLOCK.now()).level as u32
    }
    fn capacity(&self) -> u32 {
        QUOTA.capacity() as u32
    }
    fn per_step(&self) -> u32 {
        3
    }
    fn keeps_refunds(&self) -> bool {
        true
    }
}

static CLOCK: ManualClock = ManualClock::new();
static BUCKET: TokenBucket<&ManualClock> = TokenBucket::with_limit(Limit::Quota(QUOTA), &CLOCK);
static WINDOW: ShardedWindow<[Shard; 1], &ManualClock, FixedShard> = ShardedWindow::with_array(
    match WindowLimit::parse("5/3us") {
        Ok(limit) => limit,
        Err(_) => panic!("not a limit for a window"),
    },
    &CLOCK,
    FixedShard(0),
);
static ADJUSTABLE: AdjustableBucket<&ManualClock> = AdjustableBucket::with_limit(Limit::Quota(QUOTA), &CLOCK);
static BROKEN: StoredWithoutComparing = StoredWithoutComparing(AtomicU64::new(0));

static STAGE: AtomicU32 = AtomicU32::new(0);
static TICKS: AtomicU32 = AtomicU32::new(0);
static STEPS: AtomicU32 = AtomicU32::new(0);
static TAKEN_BY_INTERRUPT: AtomicU32 = AtomicU32::new(0);

/// A step brings 3 tokens, and the main loop may have one to give back: that never exceeds 5.
const QUOTA: Quota = quota!("1/1us burst 5");
const BROKEN_STEP: BucketStep = BucketStep::new(QUOTA);
const STEP: Duration = Duration::from_micros(3);
/// Many for each instruction of a bucket's decision.
const INTERRUPTS: u32 = 3000;
