//! What the suite asks of an executor.

use alloc::sync::Arc;
use core::future::Future;
use core::time::Duration;

use lock_api::RawMutex;
use sluicegate_runtime::{Admitted, ConcurrencyLimit, Decision, Denied, DeniedBy, Permit, Room, Runtime, Spawn};

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

/// What a task panics with that a case breaks: it is gone then, and the executor goes on. (Any other panic is a broken promise.)
pub const AS_TOLD: &str = "as it was told to";

/// Room for those who wait for what the cases share between threads.
pub trait SharedRoom:
    Room<Slots: Send, Places<u64, Decision>: Send>
    + Room<Places<u64, Result<Permit<Arc<ConcurrencyLimit>>, Denied>>: Send>
    + Room<Places<[u64; 2], Result<[Admitted; 2], DeniedBy>>: Send>
{
}

impl<S> SharedRoom for S where
    S: Room<Slots: Send, Places<u64, Decision>: Send>
        + Room<Places<u64, Result<Permit<Arc<ConcurrencyLimit>>, Denied>>: Send>
        + Room<Places<[u64; 2], Result<[Admitted; 2], DeniedBy>>: Send>
{
}

/// Makes a test of each case of the suite, on an [`Executor`].
#[macro_export]
macro_rules! suite {
    ($executor:ty) => {
        $crate::suite! { $executor:
            a01_keys_do_not_hold_one_another_up
            a11_a_limit_of_n_admits_n_of_any_racing_callers
            a17_n_of_200_racing_callers_are_admitted
            a17_n_of_400_racing_callers_are_admitted
            a17_racing_waiters_get_the_limit_in_each_window
            b02_no_window_holds_more_than_the_count_whoever_waits
            b03_a_refusal_takes_nothing
            b03_what_can_never_be_is_refused_at_once
            b03_what_can_never_be_is_refused_at_once_by_a_flow
            b04_the_hint_is_exact
            b05_a_deadline_ends_the_wait
            b05_a_timeout_ends_the_wait
            b05_a_timeout_ends_the_wait_for_a_key
            b05_a_timeout_of_the_hint_is_long_enough
            b05_closing_comes_before_a_turn_that_nobody_has_come_for
            b05_closing_ends_every_wait
            b05_closing_ends_the_wait_for_every_key
            b05_it_waits_until_all_can_be_taken_at_once
            b05_zero_succeeds_only_if_it_is_free_now
            b06_any_call_moves_those_up_who_are_behind_one_that_is_stuck
            b06_cancellations_at_random_change_nothing_for_the_rest
            b06_cancellations_that_race_with_grants_lose_nothing
            b06_relief_holds_however_many_get_stuck_meanwhile
            b06_relief_lets_those_behind_one_that_is_stuck_go_on_time
            b06_what_a_stuck_one_was_granted_is_in_nobodys_way_for_good
            b06_what_nobody_fetched_leaves_no_trace
            b06_who_is_cancelled_in_a_flow_leaves_nothing
            b06_who_goes_to_another_task_is_woken_there
            b06_who_is_dropped_lets_those_behind_move_up
            b06_who_is_dropped_while_all_wait_takes_nothing
            b06_who_is_never_polled_again_holds_nobody_up_for_good
            b06_who_leaves_a_key_lets_those_behind_move_up
            b06_who_only_tries_is_not_kept_out_by_what_a_stuck_one_was_granted
            b06_who_panics_gives_its_place_up
            b06_who_times_out_lets_those_behind_move_up
            b06_who_waits_for_a_reservation_and_is_dropped_holds_nothing
            b06_who_was_granted_and_is_dropped_passes_it_on
            b07_a_large_head_is_not_overtaken
            b07_the_newest_goes_first_if_so_chosen
            b07_try_acquire_barges_by_default
            b07_try_acquire_queues_when_fair
            b07_waiters_for_a_key_go_first_in_first_out
            b07_waiters_go_first_in_first_out
            b07_waiters_of_a_sliding_counter_go_first_in_first_out
            b07_waiters_of_a_sliding_log_go_first_in_first_out
            b07_waiters_of_a_window_go_first_in_first_out
            b07_waiters_of_an_adjustable_bucket_go_first_in_first_out
            b08_looking_takes_nothing
            b09_no_queue_is_left_however_tasks_race
            b09_nothing_is_left_of_a_key_that_nobody_waits_for
            b09_nothing_is_left_when_nobody_waits
            b09_only_the_head_has_a_timer
            c05_a_flow_rejects_queues_or_degrades_as_configured
            c05_a_full_queue_refuses_one_more
            c05_the_oldest_makes_room_for_one_more
            c05_the_oldest_makes_room_where_the_newest_goes_first
            c05_the_outcome_says_what_was_done
            c06_a_burst_departs_at_the_rate
            c06_a_sink_takes_items_at_the_limiters_pace
            c06_a_stream_passes_its_items_on_at_the_limiters_pace
            c06_each_of_many_departs_at_its_turn
            c06_who_is_dropped_before_it_departs_gives_the_newest_slot_up
            c08_waiters_for_a_key_see_a_change_at_once
            c08_waiters_for_permits_see_a_limit_at_once
            c08_waiters_see_a_change_of_rate_at_once
            c08_waiters_see_a_larger_limit_at_once
            c08_waiters_see_a_limit_below_their_cost_at_once
            c09_a_hierarchy_is_waited_for_as_a_whole
            c09_who_waits_for_a_hierarchy_and_is_dropped_takes_nothing_at_any_level
            c13_a_flow_is_evaluated_every_5_s_and_returns_to_its_base
            c13_what_is_off_or_denied_adapts_to_nothing
            c14_a_breaker_that_opens_meanwhile_burns_no_token
            c14_a_call_that_takes_too_long_is_given_up
            c15_a_crashed_one_restarts_alone_with_its_last_configuration
            c15_a_policy_that_has_adapted_goes_on_from_there
            c15_a_restart_that_panics_is_tried_again_in_time
            c15_a_task_that_always_panics_closes_no_breaker
            c15_a_task_that_panics_again_and_again_begins_again_no_faster_than_its_quota
            c15_an_observer_that_panics_leaves_no_flow_and_no_alert_behind
            c15_dropping_the_registry_ends_everything_it_started
            c15_flows_are_made_and_removed_at_run_time
            c16_alerts_of_a_flow_are_raised_and_cleared
            c16_refusals_of_a_flow_are_told_once
            c17_a_call_in_flight_may_wait_for_more_tokens
            c17_a_flow_has_so_many_in_flight_and_goes_in_order
            c17_a_permit_that_nobody_fetches_goes_to_the_next
            c17_a_timeout_ends_the_wait_for_a_permit
            c17_permits_compose_with_tokens_and_go_in_order
            c17_the_places_of_a_flow_adapt_to_how_calls_end
            c17_waiting_for_tokens_is_no_call_in_flight
            d02_what_a_reservation_did_not_need_goes_to_who_waits_at_once
            d02_what_is_given_back_goes_to_who_waits_at_once
            d03_no_more_keys_are_waited_for_than_may
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
