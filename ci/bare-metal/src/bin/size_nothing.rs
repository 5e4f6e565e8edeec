//! A program that does nothing: what the others are measured against.

#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU32, Ordering};

use semihosting as _;

sluicegate_bare_metal::forever!(work);

fn work() {
    core::hint::black_box(&PASSED).store(core::hint::black_box(&TIME).load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Stands for a timer's register.
static TIME: AtomicU32 = AtomicU32::new(0);
/// Stands for what is to be limited.
static PASSED: AtomicU32 = AtomicU32::new(0);
