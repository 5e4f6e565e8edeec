//! What the suite asks of an executor.

use alloc::sync::Arc;
use core::future::Future;
use core::time::Duration;

use lock_api::RawMutex;
use sluicegate_runtime::{Admitted, ConcurrencyLimit, Permit, Room, Runtime, Spawn};

/// An executor, in virtual time.
pub trait Executor {
    /// Its clock, timer and spawn.
    type Runtime: Runtime<Sleep: Send> + Spawn + Clone + Send + Sync + 'static;

    /// The lock around those who wait.
    type Lock: RawMutex + Send + Sync + 'static;

    /// The room for those who wait.
    type Room: SharedRoom;

    /// How late its timer may wake somebody, in its own time.
    const GRAIN: Duration;

    /// Runs `case` until it is done, and panics if it never will be.
    ///
    /// The clock MUST stand still while any task has something to do, and otherwise move to the next wake-up.
    fn run<C: Future<Output = ()> + Send + 'static>(case: impl FnOnce(Self::Runtime) -> C);
}

/// Room for those who wait for what the cases share between threads.
pub trait SharedRoom:
    Room<Slots: Send, Places<Admitted>: Send> + Room<Places<Permit<Arc<ConcurrencyLimit>>>: Send>
{
}

impl<S> SharedRoom for S where
    S: Room<Slots: Send, Places<Admitted>: Send> + Room<Places<Permit<Arc<ConcurrencyLimit>>>: Send>
{
}

/// Makes a test of each case of the suite, on an [`Executor`].
#[macro_export]
macro_rules! suite {
    ($executor:ty) => {
        $crate::suite! { $executor:
            a11_a_limit_of_n_admits_n_of_any_racing_callers
            a17_n_of_200_racing_callers_are_admitted
            a17_n_of_400_racing_callers_are_admitted
            a17_racing_waiters_get_the_limit_in_each_window
            b03_a_refusal_takes_nothing
            b03_what_can_never_be_is_refused_at_once
            b04_the_hint_is_exact
            b05_a_deadline_ends_the_wait
            b05_a_timeout_ends_the_wait
            b05_a_timeout_of_the_hint_is_long_enough
            b05_closing_ends_every_wait
            b05_it_waits_until_all_can_be_taken_at_once
            b05_zero_succeeds_only_if_it_is_free_now
            b06_cancellations_at_random_change_nothing_for_the_rest
            b06_cancellations_that_race_with_grants_lose_nothing
            b06_who_is_dropped_lets_those_behind_move_up
            b06_who_is_dropped_while_all_wait_takes_nothing
            b06_who_is_never_polled_again_holds_nobody_up_for_good
            b06_who_times_out_lets_those_behind_move_up
            b06_who_was_granted_and_is_dropped_passes_it_on
            b07_a_large_head_is_not_overtaken
            b07_try_acquire_barges_by_default
            b07_try_acquire_queues_when_fair
            b07_waiters_go_first_in_first_out
            b07_waiters_of_a_window_go_first_in_first_out
            b08_looking_takes_nothing
            b09_nothing_is_left_when_nobody_waits
            b09_only_the_head_has_a_timer
            c05_the_outcome_says_what_was_done
            c06_a_burst_departs_at_the_rate
            c08_waiters_see_a_change_of_rate_at_once
            c08_waiters_see_a_larger_limit_at_once
            c08_waiters_see_a_limit_below_their_cost_at_once
            c17_a_permit_that_nobody_fetches_goes_to_the_next
            c17_permits_compose_with_tokens_and_go_in_order
            d02_what_is_given_back_goes_to_who_waits_at_once
            d04_an_hour_is_waited_in_no_time
        }
    };
    ($executor:ty: $($case:ident)+) => {$(
        #[test]
        fn $case() {
            <$executor as $crate::Executor>::run($crate::cases::$case::<$executor>);
        }
    )+};
}
