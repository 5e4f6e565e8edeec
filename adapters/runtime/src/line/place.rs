//! A waiter's place in a line.

use core::task::Waker;

use sluicegate_core::{Nanos, Ticket};

use crate::grant::Grantor;

/// What one waiter is to be told.
#[derive(Debug)]
pub enum Place<C, A> {
    /// Nobody's: the number of the next one that is nobody's.
    Free(Option<u32>),
    /// It waits. `None` for the waker of one that has been woken and was not polled since.
    Waiting {
        /// Its ticket.
        ticket: Ticket,
        /// What it wants.
        wish: Wish<C>,
        /// Wakes it.
        waker: Option<Waker>,
    },
    /// It has been woken to fetch this.
    Over {
        /// The reading at which the wait ended.
        at: Nanos,
        /// What it wanted.
        wish: Wish<C>,
        /// What it is told.
        answer: A,
    },
}

/// What a waiter wants.
#[derive(Clone, Copy, Debug)]
pub struct Wish<C> {
    pub(crate) cost: C,
    pub(crate) hold: Hold,
    /// Whether it has all the time there is.
    pub(crate) is_patient: bool,
}

/// What becomes of what is held for a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// It is kept once the waiter learns of it.
    UntilFetched,
    /// It stays held for as long as the waiter likes.
    Reserved,
    /// It is kept already, because the waiter did not come for it for so long.
    Kept,
}

/// What a waiter was granted and has not fetched.
pub(crate) struct Unfetched<L: Grantor + ?Sized> {
    pub(crate) at: Nanos,
    pub(crate) cost: L::Cost,
    pub(crate) grant: L::Grant,
    /// Whether it counts as taken, because it was not fetched for so long.
    pub(crate) is_kept: bool,
}

/// An answer that was fetched.
pub(crate) struct Fetched<L: Grantor + ?Sized> {
    pub(crate) at: Nanos,
    pub(crate) cost: L::Cost,
    pub(crate) answer: Result<L::Grant, L::Denial>,
}
