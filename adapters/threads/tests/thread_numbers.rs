//! Thread numbers, alone in their process: other tests' threads would take some.

use core::cell::RefCell;
use std::sync::mpsc;
use std::thread;

use sluicegate_threads::{ShardId, ThreadShard, quota, sharded_window};

#[test]
fn numbers_are_small_come_again_and_outlive_thread_locals() {
    assert_eq!(ThreadShard.shard(), 0, "the first thread that asks");

    // Threads that live together differ, and take the smallest numbers.
    let (numbers, end): (Vec<_>, Vec<_>) = (0..10)
        .map(|_| {
            let (tell, told) = mpsc::channel();
            let (end, ended) = mpsc::channel::<()>();
            let thread = thread::spawn(move || {
                tell.send(ThreadShard.shard()).unwrap();
                let _ = ended.recv();
                ThreadShard.shard()
            });
            (told.recv().unwrap(), (end, thread))
        })
        .unzip();
    assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
    for (expected, (end, thread)) in numbers.iter().zip(end) {
        drop(end);
        assert_eq!(thread.join().unwrap(), *expected, "a thread keeps its number");
    }

    // A thousand threads, one after the other, all take the same one.
    for _ in 0..1_000 {
        assert_eq!(thread::spawn(|| ThreadShard.shard()).join().unwrap(), 1);
    }

    // A destructor of a thread-local that runs before or after ours still gets an answer and can use a limiter.
    for ask_first in [true, false] {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            if ask_first {
                ThreadShard.shard();
            }
            LAST_WORDS.with(|words| *words.borrow_mut() = Some(LastWords(sender)));
            if !ask_first {
                ThreadShard.shard();
            }
        })
        .join()
        .unwrap();
        assert!(receiver.recv().unwrap(), "the destructor ran and was admitted");
    }
    // One that never asked before its destructors run takes no number for good.
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || LAST_WORDS.with(|words| *words.borrow_mut() = Some(LastWords(sender)))).join().unwrap();
    assert!(receiver.recv().unwrap());
    assert_eq!(thread::spawn(|| ThreadShard.shard()).join().unwrap(), 1);
}

thread_local! {
    static LAST_WORDS: RefCell<Option<LastWords>> = const { RefCell::new(None) };
}

struct LastWords(mpsc::Sender<bool>);

impl Drop for LastWords {
    fn drop(&mut self) {
        let window = sharded_window(quota!("1/1h")).unwrap();
        let _ = self.0.send(ThreadShard.shard() < 100 && window.try_acquire(1).is_ok());
    }
}
