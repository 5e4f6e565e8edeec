//! How many bytes does a key take, and what does a flood of five million keys do? Counted by the allocator.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::fmt::Write as _;
use core::hash::Hash;
use core::net::Ipv6Addr;
use core::time::Duration;
use std::alloc::System;
use std::time::Instant;

use governor::{Quota, RateLimiter};
use sluicegate_benches::keyed::Ours;
use sluicegate_benches::{is_measuring, record, rival};
use sluicegate_threads::{KeyedOptions, ManualClock, Nanos, Overflow, SeededState, quota};

/// The system's allocator, which also counts what each thread has out.
struct Counting;

std::thread_local! {
    static OUT: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: everything is the system allocator's; the counts touch no memory of its, and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let out = OUT.get() + layout.size() as isize;
        OUT.set(out);
        MOST.set(MOST.get().max(out));
        // SAFETY: the caller's promise is what the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        OUT.set(OUT.get() - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> std::io::Result<()> {
    let scale = if is_measuring() { 1 } else { 1_000 };
    let mut page = record::memory_head();
    page.push_str(
        "\n## Bytes a key\n\nWhat each holds after so many first uses, shards and all, divided by the keys; and the most it held at once (means over stores with other seeds, where they are small) \
         on the way. governor is `RateLimiter::keyed`.\n\n| key | keys | Sluicegate | governor | ratio | \
         most, Sluicegate | most, governor | ratio |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for keys in FILLS {
        row(&mut page, "`u64`", keys / scale, |number| number);
    }
    for keys in FILLS {
        row(&mut page, "`[u8; 16]`", keys / scale, |number| u128::from(number).to_le_bytes());
    }
    doubling(&mut page, scale);
    flood(&mut page, 5_000_000 / scale);
    if is_measuring() {
        println!("{page}");
        println!("wrote {}", record::write("keyed-memory.md", &page)?.display());
    }
    Ok(())
}

/// How full tables are differs with the number of keys, so one number says little: a whole doubling, in steps of equal ratio.
fn doubling(page: &mut String, scale: u64) {
    page.push_str(
        "\n## Bytes a key, over all fills\n\nA table of governor's doubles, so that it has been as full as it gets once the keys have doubled: eight numbers of `u64` keys, \
         each 2^(1/8) of the one before.\n\n| key | keys | Sluicegate | governor | ratio | most, Sluicegate | most, governor | ratio |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let held = DOUBLING.map(|keys| row(page, "`u64`", keys / scale, |number| number));
    let [ours, theirs] = [0, 1].map(|who| held.iter().map(|each| each[who]).sum::<f64>() / held.len() as f64);
    let _ = writeln!(
        page,
        "\n| | Sluicegate | governor | ratio | target |\n|---|--:|--:|--:|--:|\n| bytes held of a key, mean over these fills | {ours:.1} | {theirs:.1} | {:.2} | {} |",
        ours / theirs,
        record::verdict(ours / theirs, 0.8)
    );
}

const DOUBLING: [u64; 8] = [100_000, 109_051, 118_921, 129_684, 141_421, 154_221, 168_179, 183_401];

const FILLS: [u64; 6] = [1_000, 10_000, 50_000, 100_000, 400_000, 1_000_000];

/// Returns the bytes of a key that each holds.
fn row<K: Clone + Eq + Hash>(page: &mut String, name: &str, keys: u64, key: impl Fn(u64) -> K) -> [f64; 2] {
    // Seeds decide which shards of a small store have just grown.
    let stores = (200_000 / keys.max(1)).clamp(1, 100);
    let ours = count(stores, || {
        let store: Ours<K, SeededState, _> = Ours::with_clock(quota!("1/1h"), ManualClock::new());
        (0..keys).for_each(|number| {
            let _ = store.try_acquire(&key(number), 1);
        });
        assert_eq!(store.len() as u64, keys);
        store
    });
    let theirs = count(stores, || {
        let limiter = RateLimiter::keyed(Quota::per_hour(rival::count(1)));
        (0..keys).for_each(|number| {
            let _ = limiter.check_key(&key(number));
        });
        limiter
    });
    let each = |bytes: isize| bytes as f64 / keys.max(1) as f64;
    let _ = writeln!(
        page,
        "| {name} | {keys} | {:.1} | {:.1} | {:.2} | {:.1} | {:.1} | {:.2} |",
        each(ours.0),
        each(theirs.0),
        ours.0 as f64 / theirs.0 as f64,
        each(ours.1),
        each(theirs.1),
        ours.1 as f64 / theirs.1 as f64,
    );
    [each(ours.0), each(theirs.0)]
}

/// Bytes held by what `make` makes, and the most while it was made: means of so many.
fn count<T>(times: u64, make: impl Fn() -> T) -> (isize, isize) {
    let (mut held, mut most) = (0, 0);
    for _ in 0..times {
        let before = OUT.get();
        MOST.set(before);
        let made = make();
        held += OUT.get() - before;
        most += MOST.get() - before;
        drop(made);
    }
    (held / times as isize, most / times as isize)
}

/// So many new addresses at 20 000 a second against a cap of 10 000, and one abuser among them.
fn flood(page: &mut String, addresses: u64) {
    const CAP: usize = 10_000;
    let address = |number: u64| Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number));
    let options = KeyedOptions::new(quota!("10/1m")).cap(CAP).overflow(Overflow::Shared(quota!("600/1m").into()));
    let before = OUT.get();
    MOST.set(before);
    let store: Ours<Ipv6Addr, SeededState, _> = Ours::with_clock(options, ManualClock::new());
    let (abuser, honest) = (address(u64::MAX), address(u64::MAX - 1));
    let (step, mut now) = (Duration::from_micros(50), Nanos::ZERO);
    let (mut served, mut abused) = (0_u64, 0_u64);
    let start = Instant::now();
    for number in 0..addresses {
        now = now + step;
        served += u64::from(store.try_acquire_at(&address(number), now, 1).is_ok());
        if number % 10 == 0 {
            abused += u64::from(store.try_acquire_at(&abuser, now, 1).is_ok());
        }
    }
    let nanos = start.elapsed().as_nanos() as f64 / (addresses as f64 * 1.1);
    let most = MOST.get() - before;
    assert!(most as usize <= store.memory_bound(), "{most} bytes are more than the bound");
    assert!(store.len() <= CAP);
    let seconds = now.as_u64() / 1_000_000_000;
    assert_eq!(abused, 10 + seconds / 6, "the abuser got a fresh quota");
    assert!(store.try_acquire_at(&abuser, now, 1).is_err());
    // Tries ten times a second while the flood goes on.
    let mut number = addresses;
    let tries = (1..=200).find(|_| {
        for _ in 0..2_000 {
            now = now + step;
            number += 1;
            let _ = store.try_acquire_at(&address(number), now, 1);
        }
        store.try_acquire_at(&honest, now, 1).is_ok()
    });
    assert!(tries.is_some(), "the honest client was never served");
    let _ = writeln!(
        page,
        "\n## A flood\n\n{addresses} distinct IPv6 addresses at 20 000 a second of virtual time, `10/1m` each, against a cap of {CAP} with \
         `600/1m` for all others together; one abuser tries 2000 times a second.\n\n| | |\n|---|--:|\n| most bytes at once | {most} \
         |\n| the stated bound | {} |\n| requests of the flood that were served | {served} |\n| admitted to the abuser in {seconds} s; exact | \
         {abused}; {} |\n| tries of an honest client, ten a second, until it was served while the flood went on | {} |\n| ns a request | {nanos:.0} |",
        store.memory_bound(),
        10 + seconds / 6,
        tries.unwrap_or(0),
    );
}
