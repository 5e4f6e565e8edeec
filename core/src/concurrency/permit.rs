//! The guard of what was taken.

use core::fmt;

use super::{ConcurrencyLimit, Outcome, PermitObserver};

/// A cost taken from a [`ConcurrencyLimit`], held until it is released or dropped.
///
/// `H` is how it holds the limit: `Permit<&ConcurrencyLimit>` borrows it, `Permit<Arc<ConcurrencyLimit>>` shares it.
///
/// # Releasing
///
/// [`success`](Self::success), [`ignore`](Self::ignore) or a drop, which counts as [`Outcome::Dropped`]: an early return, a
/// cancelled task and a panic need no care. Each consumes the permit, so it cannot be released twice.
///
/// A permit that is leaked with [`core::mem::forget`] is never released: its cost stays in use, and an `Arc` that it holds stays
/// alive.
///
/// ```
/// use sluicegate_core::ConcurrencyLimit;
///
/// let limit = ConcurrencyLimit::new(5);
/// let mut permit = limit.try_acquire(5)?;
/// // Two fifths of the work are done before the rest.
/// let part = permit.split(2).expect("it holds 5");
/// part.success();
/// assert_eq!((permit.cost(), limit.in_use()), (3, 3));
/// drop(permit);
/// assert_eq!(limit.in_use(), 0);
/// # Ok::<(), sluicegate_core::Denied>(())
/// ```
#[must_use = "a permit that is dropped at once limits nothing"]
pub struct Permit<H: Holder> {
    holder: H,
    cost: u32,
    mark: <H::Observer as PermitObserver>::Mark,
    /// What a drop reports; `None` once another permit holds the cost.
    outcome: Option<Outcome>,
    is_paused: bool,
}

impl<H: Holder> Permit<H> {
    #[inline]
    pub(crate) const fn new(holder: H, cost: u32, mark: <H::Observer as PermitObserver>::Mark) -> Self {
        Self { holder, cost, mark, outcome: Some(Outcome::Dropped), is_paused: false }
    }

    /// Releases it: the work was done.
    #[inline]
    pub fn success(self) {
        self.release(Outcome::Success);
    }

    /// Releases it: the work says nothing about load.
    #[inline]
    pub fn ignore(self) {
        self.release(Outcome::Ignored);
    }

    /// Releases it with an outcome that is known only at run time.
    #[inline]
    pub fn release(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }

    /// Nothing is done under it for now, because its holder waits for something else: so that whoever adapts the limit takes that neither for work nor for
    /// use. It is held all the same. Released or dropped in a pause, it counts as [`Outcome::Ignored`].
    #[inline]
    pub fn pause(&mut self) {
        if !self.is_paused {
            self.is_paused = true;
            self.holder.limit().observer().paused(&mut self.mark, self.cost.into());
        }
    }

    /// Ends a [pause](Self::pause), if there is one: what it was taken for begins now, and its time counts from here.
    ///
    /// ```
    /// # #[cfg(feature = "lock_api")] {
    /// use core::time::Duration;
    /// use sluicegate_core::{AdaptiveConcurrency, AimdLaw, ConcurrencyController, ManualClock, SampleWindow};
    ///
    /// let controller = ConcurrencyController::new(SampleWindow::default(), AimdLaw::default());
    /// let limit = AdaptiveConcurrency::<parking_lot::RawMutex, _, _>::new(controller, ManualClock::new()).into_limit();
    /// let mut permit = limit.try_acquire(1)?;
    /// permit.pause();
    /// // A minute until there is a token, and a second for the call: the law learns of the second.
    /// limit.observer().clock().advance(Duration::from_secs(60));
    /// permit.resume();
    /// limit.observer().clock().advance(Duration::from_secs(1));
    /// permit.success();
    /// # }
    /// # Ok::<(), sluicegate_core::Denied>(())
    /// ```
    #[inline]
    pub fn resume(&mut self) {
        if self.is_paused {
            self.is_paused = false;
            self.holder.limit().observer().resumed(&mut self.mark, self.cost.into());
        }
    }

    /// The cost it holds.
    #[inline]
    pub const fn cost(&self) -> u64 {
        self.cost as u64
    }

    /// The limit it was taken from.
    #[inline]
    pub fn limit(&self) -> &ConcurrencyLimit<H::Observer> {
        self.holder.limit()
    }

    /// Splits `cost` off into a permit of its own, with a copy of the mark and paused if this one is; `None`, and no change, if it holds less. Nothing
    /// is released or taken.
    #[inline]
    pub fn split(&mut self, cost: u64) -> Option<Self>
    where
        H: Clone,
        <H::Observer as PermitObserver>::Mark: Clone,
    {
        let cost = u32::try_from(cost).ok()?;
        let rest = self.cost.checked_sub(cost)?;
        // Clones are the caller's code and may panic: the cost moves once both exist.
        let (holder, mark) = (self.holder.clone(), self.mark.clone());
        self.cost = rest;
        let mut part = Self::new(holder, cost, mark);
        part.is_paused = self.is_paused;
        Some(part)
    }

    /// Takes the cost of `other`, whose mark is forgotten. Nothing is released or taken; a pause of either ends.
    ///
    /// # Errors
    /// Gives `other` back, unchanged, if it was taken from another limit.
    #[inline]
    pub fn merge(&mut self, mut other: Self) -> Result<(), Self> {
        if !core::ptr::eq(self.limit(), other.limit()) {
            return Err(other);
        }
        self.resume();
        other.resume();
        // No overflow: both are out, and all that is out fits into 32 bits.
        self.cost += other.cost;
        other.outcome = None;
        Ok(())
    }
}

impl<H: Holder> Drop for Permit<H> {
    #[inline]
    fn drop(&mut self) {
        if let Some(outcome) = self.outcome {
            let outcome = if self.is_paused { Outcome::Ignored } else { outcome };
            self.holder.limit().release(self.cost, &self.mark, outcome);
        }
    }
}

impl<H: Holder> fmt::Debug for Permit<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("cost", &self.cost).finish_non_exhaustive()
    }
}

/// How a [`Permit`] holds its limit: by reference, or with the feature `alloc` by `Arc`.
pub trait Holder: sealed::Sealed {
    /// Who is told of the release.
    type Observer: PermitObserver;

    /// The limit.
    fn limit(&self) -> &ConcurrencyLimit<Self::Observer>;
}

impl<O: PermitObserver> Holder for &ConcurrencyLimit<O> {
    type Observer = O;

    #[inline]
    fn limit(&self) -> &ConcurrencyLimit<O> {
        self
    }
}

#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
impl<O: PermitObserver> Holder for alloc::sync::Arc<ConcurrencyLimit<O>> {
    type Observer = O;

    #[inline]
    fn limit(&self) -> &ConcurrencyLimit<O> {
        self
    }
}

mod sealed {
    use super::ConcurrencyLimit;

    pub trait Sealed {}
    impl<O> Sealed for &ConcurrencyLimit<O> {}
    #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
    impl<O> Sealed for alloc::sync::Arc<ConcurrencyLimit<O>> {}
}
