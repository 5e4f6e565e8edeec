//! What is to be said to others once the lock is open.

use core::task::Waker;

/// Wakers that are called when the lock is open: a waker runs code of its executor, which may come back here.
pub(crate) struct News {
    wakers: [Option<Waker>; MOST],
    len: usize,
}

impl News {
    pub(crate) const fn none() -> Self {
        Self { wakers: [const { None }; MOST], len: 0 }
    }

    /// Whether no more waits may be ended before these are told. One waker can still be added.
    pub(crate) const fn is_full(&self) -> bool {
        self.len + 2 >= MOST
    }

    pub(crate) fn wake(&mut self, waker: Option<Waker>) {
        if let Some(slot) = self.wakers.get_mut(self.len).filter(|_| waker.is_some()) {
            *slot = waker;
            self.len += 1;
        }
    }

    /// Calls them all, in the order in which their waits ended. The lock is open.
    pub(crate) fn tell(&mut self) {
        for waker in &mut self.wakers[..self.len] {
            if let Some(waker) = waker.take() {
                waker.wake();
            }
        }
        self.len = 0;
    }
}

impl Drop for News {
    /// If one panics, the others are called all the same.
    fn drop(&mut self) {
        self.tell();
    }
}

/// A few are told at a time, so that others come in between; enough to make locking again cheap.
const MOST: usize = 18;
