//! Windows shared by two cores, and by an interrupt handler and the code that it interrupts.
//!
//! Two cores: one shard each, so that they do not contend for a word while both have units left. An interrupt handler and
//! the main loop of one core: **one shard**. A cost that is spread over several shards holds a flag for some tens of
//! instructions; a handler that interrupted the holder and waited for the flag would wait for ever. With one shard there is
//! no flag. (A token bucket has none either.)
//!
//! Core number and uptime are set by hand here, so that the output is the same everywhere. On a chip `ShardId::shard` reads
//! the number of the core that runs it.
//!
//! ```sh
//! cargo run -p sluicegate-core --example window_for_two_cores
//! ```

use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};

use sluicegate_core::{FixedShard, ManualClock, Nanos, Shard, ShardId, ShardedWindow, WindowLimit};

/// What both cores may write to flash: 5 pages a second together.
static FLASH: ShardedWindow<[Shard; 2], &ManualClock, CoreNumber> =
    ShardedWindow::with_array(PAGES, &UPTIME, CoreNumber);
/// What main loop and receive interrupt of one core may log: 3 lines a second together.
static LOG: ShardedWindow<[Shard; 1], &ManualClock, FixedShard> =
    ShardedWindow::with_array(LINES, &UPTIME, FixedShard(0));

/// Both cores write pages, the first more than its share; then main loop and handler log.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    for (milliseconds, core, pages) in
        [(0, 0, 2), (100, 0, 1), (200, 1, 1), (300, 0, 1), (400, 1, 1), (1000, 1, 5), (1001, 0, 1)]
    {
        UPTIME.set(Nanos::from_millis(milliseconds));
        CORE.store(core, Ordering::Relaxed);
        match FLASH.try_acquire(pages) {
            Ok(admitted) => {
                writeln!(out, "{milliseconds:>4} ms, core {core}: {pages} written, {} left", admitted.remaining)?;
            }
            Err(denied) => writeln!(out, "{milliseconds:>4} ms, core {core}: {pages} not written: {denied}")?,
        }
    }

    log(out, "main", 2)?;
    log(out, "interrupt", 1)?;
    log(out, "main", 1)
}

fn log(out: &mut dyn fmt::Write, who: &str, lines: u64) -> fmt::Result {
    match LOG.try_acquire(lines) {
        Ok(admitted) => writeln!(out, "{who} logs {lines}, {} left", admitted.remaining),
        Err(denied) => writeln!(out, "{who} logs nothing: {denied}"),
    }
}

/// The number of the core that asks.
struct CoreNumber;

impl ShardId for CoreNumber {
    fn shard(&self) -> usize {
        CORE.load(Ordering::Relaxed)
    }
}

#[cfg(not(target_os = "none"))]
fn main() -> fmt::Result {
    let mut text = String::new();
    run(&mut text)?;
    print!("{text}");
    Ok(())
}

static UPTIME: ManualClock = ManualClock::new();
/// Stands for the register that holds the core's number.
static CORE: AtomicUsize = AtomicUsize::new(0);

const PAGES: WindowLimit = window(WindowLimit::parse("5/1s"));
const LINES: WindowLimit = window(WindowLimit::parse("3/1s"));

/// Lets the compiler refuse a limit that no window can keep.
const fn window(parsed: Result<WindowLimit, sluicegate_core::ParseError>) -> WindowLimit {
    match parsed {
        Ok(limit) => limit,
        Err(_) => panic!("not a limit for a window"),
    }
}
