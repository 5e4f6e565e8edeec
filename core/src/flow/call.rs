//! Calls through a flow: of closures and of futures.

use core::future::{Future, poll_fn};
use core::pin::pin;

use super::limiter::Flow;
use super::parts::{CallBreaker, CallLimit, FlowObserver};
use super::refusal::{FlowError, FlowRefusal};
use crate::{CallOutcome, Clock, Limiter};

impl<L: Limiter, C: Clock, B: CallBreaker, P: CallLimit, O: FlowObserver> Flow<L, C, B, P, O> {
    /// Calls `call` if every part lets it pass. `Ok` is a success, and every error a failure.
    ///
    /// A panic of `call` is a failure, and goes on to the caller.
    ///
    /// # Errors
    /// [`FlowError::Refused`] where it was not called, [`FlowError::Failed`] with its own error.
    #[inline]
    pub fn call<T, E>(&self, cost: u64, call: impl FnOnce() -> Result<T, E>) -> Result<T, FlowError<E>> {
        self.call_judged(cost, CallOutcome::of, call)?.map_err(FlowError::Failed)
    }

    /// Calls `call` if every part lets it pass, and has `judge` say how it ended: which errors are the other side's, and which of them say that it has
    /// too much to do.
    ///
    /// A panic of either is a failure, and goes on to the caller.
    ///
    /// # Errors
    /// [`FlowRefusal`] where it was not called.
    ///
    /// ```
    /// use sluicegate_core::{CallOutcome, Flow, ManualClock, TokenBucket, quota};
    ///
    /// let flow = Flow::new(TokenBucket::with_limit(quota!("10/1s").into(), ()), ManualClock::new());
    /// let judge = |status: &u16| match status {
    ///     429 | 503 => CallOutcome::Overloaded,
    ///     500.. => CallOutcome::Failure,
    ///     400.. => CallOutcome::Ignored,
    ///     _ => CallOutcome::Success,
    /// };
    /// assert_eq!(flow.call_judged(1, judge, || 429), Ok(429));
    /// assert_eq!(flow.take_overloaded(), 1);
    /// ```
    #[inline]
    pub fn call_judged<T>(
        &self,
        cost: u64,
        judge: impl FnOnce(&T) -> CallOutcome,
        call: impl FnOnce() -> T,
    ) -> Result<T, FlowRefusal> {
        let mut permit = self.enter(cost)?;
        permit.while_calling();
        let answer = call();
        let outcome = judge(&answer);
        permit.finish(outcome);
        Ok(answer)
    }

    /// As [`call`](Self::call), of a future. `call` is called, and the future polled, once every part has let it pass; the flow is entered
    /// at the first poll.
    ///
    /// Cancel-safe: dropped before it is ready, the call counts as [`cancelled_as`](Self::cancelled_as) says, and every place is given
    /// back. Its cost stays taken, because it may have reached the other side.
    ///
    /// # Errors
    /// As `call`.
    pub async fn call_async<T, E, F: Future<Output = Result<T, E>>>(
        &self,
        cost: u64,
        call: impl FnOnce() -> F,
    ) -> Result<T, FlowError<E>> {
        self.call_async_judged(cost, CallOutcome::of, call).await?.map_err(FlowError::Failed)
    }

    /// As [`call_judged`](Self::call_judged), of a future, as [`call_async`](Self::call_async).
    ///
    /// # Errors
    /// As `call_judged`.
    pub async fn call_async_judged<T, F: Future<Output = T>>(
        &self,
        cost: u64,
        judge: impl FnOnce(&T) -> CallOutcome,
        call: impl FnOnce() -> F,
    ) -> Result<T, FlowRefusal> {
        let mut permit = self.enter(cost)?;
        permit.while_calling();
        let mut future = pin!(call());
        let answer = poll_fn(|context| {
            // Dropped within the poll, it is by a panic; and between two, by whoever cancels.
            permit.while_calling();
            let polled = future.as_mut().poll(context);
            permit.while_pending();
            polled
        })
        .await;
        permit.while_calling();
        let outcome = judge(&answer);
        permit.finish(outcome);
        Ok(answer)
    }
}
