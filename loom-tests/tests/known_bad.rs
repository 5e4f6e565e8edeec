//! Planted bugs. For each there is a model that must find it, and the same limiter without the bug passes that model.
//!
//! They are found only under loom, which tries every interleaving. On real threads the sound limiters are stressed and
//! the planted bugs are reported as ignored: a race that a real thread may miss proves nothing by being missed.

#[cfg(not(sluicegate_loom))]
#[test]
#[ignore = "planted bugs are looked for under loom only: run ci/loom.sh"]
fn planted_bugs_are_found() {}

/// One test a bug: the limiter with it fails the model within so many preemptions, the limiter without it passes.
macro_rules! planted {
    ($door:ident: $flaws:ident; $($(#[$doc:meta])* $test:ident: $flaw:ident in $models:ident::$model:ident within $preemptions:literal;)+) => {
        $(
            mod $test {
                use sluicegate_loom_tests::Bound;
                use sluicegate_loom_tests::known_bad::{$door, $flaws, Sound};

                const BOUND: Bound = Bound::preemptions($preemptions);

                #[cfg(sluicegate_loom)]
                $(#[$doc])*
                #[test]
                fn is_found() {
                    struct Planted;
                    impl $flaws for Planted {
                        const $flaw: bool = true;
                    }
                    super::assert_found(BOUND, sluicegate_loom_tests::$models::$model::<$door<Planted>>);
                }

                #[test]
                fn is_not_found_where_it_is_not() {
                    const { assert!(!<Sound as $flaws>::$flaw) };
                    sluicegate_loom_tests::model(BOUND, sluicegate_loom_tests::$models::$model::<$door<Sound>>);
                }
            }
        )+
    };
}

planted! { CompactBucket: BucketFlaws;
    /// Two read the same level, both store what they would leave.
    bucket_stores_back: STORES_BACK in bucket::last_token_of_two within 2;
    /// A cost that does not fit is there for an instant, and another is denied because of it.
    bucket_takes_first: TAKES_FIRST in bucket::denial_takes_nothing within 2;
    /// A late caller turns the last reading back, and the next one earns the same second again.
    bucket_late_reading_turns_back: LATE_READING_TURNS_BACK in bucket::late_reading within 2;
    /// What is given back to a full bucket makes it fuller.
    bucket_refunds_above_capacity: REFUNDS_ABOVE_CAPACITY in bucket::refund_never_above_capacity within 2;
}

planted! { CompactTally: TallyFlaws;
    /// Two see that a burst is over, and it counts as another beginning.
    tally_counts_twice: COUNTS_TWICE in tally::burst_seen_by_two within 2;
    /// Two read the same sum, both store what they make of it.
    tally_stores_back: STORES_BACK in tally::costs_of_two within 2;
}

planted! { CompactClocked: ClockedFlaws;
    /// Others took at a later reading what came until then; by the old one it is missing.
    clocked_denies_by_an_old_reading: DENIES_BY_AN_OLD_READING in own_clock::overtaken_at_a_later_reading within 2;
    /// What was seen after the reading is no sign that nobody came between.
    clocked_reads_the_clock_first: READS_THE_CLOCK_FIRST in own_clock::overtaken_at_a_later_reading within 2;
    /// The second reading is as old as the first: only the memory orders allow that.
    clocked_relaxed_word: RELAXED_WORD in own_clock::overtaken_at_a_later_reading within 2;
}

planted! { CompactAdjustable: AdjustableFlaws;
    /// A hold is replaced by refill, and then comes back on top of it.
    adjustable_hold_is_take: HOLD_IS_TAKE in adjustable::hold_outlives_refill within 2;
    /// Two let go of what they hold, both store what the other still held.
    adjustable_cancel_stores_back: CANCEL_STORES_BACK in adjustable::cancel_against_cancel within 2;
    /// What a reservation held is taken by another before it can be spent.
    adjustable_settles_in_two_steps: SETTLES_IN_TWO_STEPS in adjustable::held_is_there_to_settle within 2;
    /// A decision under the old quota finds the same word and lands after the change.
    adjustable_word_without_version: WORD_WITHOUT_VERSION in adjustable::nothing_old_lands_after_a_change within 2;
    /// Rate of one quota, capacity of another.
    adjustable_torn_quota: TORN_QUOTA in adjustable::two_changes_within_a_decision within 3;
    /// Both write the same slot and take the same version.
    adjustable_changes_at_once: CHANGES_AT_ONCE in adjustable::change_against_change within 3;
}

planted! { CompactTree: HierarchyFlaws;
    /// The inner level loses a unit to a request that the outer one refused.
    hierarchy_forgets_to_let_go: FORGETS_TO_LET_GO in hierarchy::last_unit_of_the_root within 2;
    /// Two requests saw the last unit, both are admitted.
    hierarchy_trusts_its_look: TRUSTS_ITS_LOOK in hierarchy::last_unit_of_the_root within 2;
    /// A single is denied a unit that a request holds and then lets go.
    hierarchy_denies_at_once: DENIES_AT_ONCE in hierarchy::path_against_singles within 2;
    /// A request is denied what another one holds and then lets go.
    hierarchy_believes_a_failed_hold: BELIEVES_A_FAILED_HOLD in hierarchy::path_against_path_and_single within 2;
    /// A single comes between a hold and its announcement.
    hierarchy_announces_late: ANNOUNCES_LATE in hierarchy::path_against_singles within 2;
    /// A request that cannot be admitted holds a unit for a while, and a single is denied because of it.
    hierarchy_holds_first: HOLDS_FIRST in hierarchy::hopeless_request_holds_nothing within 2;
}

planted! { CompactPacer: PacerFlaws;
    /// Two read the same free slot, and both take it.
    pacer_stores_back: STORES_BACK in pacer::slots_of_two within 2;
    /// An item that is refused has a slot for an instant, and another departs behind it.
    pacer_takes_first: TAKES_FIRST in pacer::refusal_takes_nothing within 2;
    /// A late item takes a slot that is taken.
    pacer_late_reading_turns_back: LATE_READING_TURNS_BACK in pacer::late_reading within 2;
    /// A slot is given up after another item came, whose slot goes with it.
    pacer_cancel_stores_back: CANCEL_STORES_BACK in pacer::cancel_against_arrival within 2;
    /// The next item gets the slot of one that has been told its departure.
    pacer_cancel_moves_others: CANCEL_MOVES_OTHERS in pacer::cancel_against_arrival within 2;
}

planted! { CompactPermits: PermitFlaws;
    /// Two read what is in use, both store what it would be with theirs.
    permits_acquire_stores_back: ACQUIRE_STORES_BACK in permits::last_unit_of_two within 2;
    /// A cost that does not fit is in use for an instant, and another is denied because of it.
    permits_take_first: TAKES_FIRST in permits::denial_takes_nothing within 2;
    /// Two read what is in use, both store what it would be without theirs.
    permits_release_stores_back: RELEASE_STORES_BACK in permits::release_against_release within 2;
    /// The new limit is stored with what was in use before a permit was given out.
    permits_limit_stores_back: LIMIT_STORES_BACK in permits::shrink_against_acquire within 2;
    /// A limit of its own word: a permit is given out under the old limit after the new one was set.
    permits_limit_apart: LIMIT_APART in permits::shrink_then_acquire_against_acquire within 2;
    /// Dropped where it was moved into another, it comes back twice.
    permits_release_twice: RELEASES_TWICE in permits::release_against_release within 2;
    /// The next holder does not see what the last one did: only the memory orders allow that.
    permits_relaxed_release: RELAXED_RELEASE in permits::release_is_seen within 2;
    /// The same, with the release published and nobody looking.
    permits_relaxed_acquire: RELAXED_ACQUIRE in permits::release_is_seen within 2;
}

planted! { CompactAdapting: AdaptingFlaws;
    /// Two find that their sample closes the window, and it is closed twice.
    adapting_closes_by_an_old_look: CLOSES_BY_AN_OLD_LOOK in adapting::window_closed_by_two within 2;
    /// The older of two limits is put in force last.
    adapting_sets_blindly: SETS_BLINDLY in adapting::two_windows_closed within 2;
    /// The limit that was set meanwhile is seen, but not the law's that it came from: only the memory orders allow that.
    adapting_looks_unlocked: LOOKS_UNLOCKED in adapting::two_windows_closed within 2;
    /// What was closed by hand is open again.
    adapting_reopens: SETS_BLINDLY in adapting::closed_by_hand_against_a_window within 2;
}

planted! { CompactWindow: WindowFlaws;
    /// A late caller starts its old window anew in a shard that is in a later one.
    window_late_reading_resets: LATE_READING_RESETS in window::rollover_in_one_shard within 2;
    /// Three shards of a limit of one have one each.
    window_caps_round_up: CAPS_ROUND_UP in window::sweep_against_sweep within 2;
    /// Two read the same count, both store theirs.
    window_stores_back: STORES_BACK in window::last_unit_across_shards within 2;
    /// A cost that does not fit is there for an instant, and another is denied because of it.
    window_takes_first: TAKES_FIRST in window::denial_takes_nothing within 2;
    /// More is given back to a shard than it counts.
    window_refunds_unchecked: REFUNDS_UNCHECKED in window::refund_against_refund within 2;
    /// A unit of the old window comes back in the new one.
    window_refunds_into_later_window: REFUNDS_INTO_LATER_WINDOW in window::refund_against_rollover within 2;
    /// The free unit moves behind a sweep's back, which has seen no flag.
    window_ignores_give_backs: IGNORES_GIVE_BACKS in window::unit_always_free within 2;
    /// A large cost holds what it will not get, and a single is denied because of it.
    window_holds_unseen: HOLDS_UNSEEN in window::both_shards_against_singles within 2;
    /// A sweep meets a hold that is over, with what it held given back, when the sweep looks at the flag again.
    window_forgets_broken_holds: FORGETS_BROKEN_HOLDS in window::both_shards_against_two_in_a_row within 3;
    /// A sweep of the old window finds one shard spent before the new window, and the other after.
    window_skips_later_windows: SKIPS_LATER_WINDOWS in window::denial_under_rollover within 2;
    /// A sweep sees what followed a give-back but not the count of it: only the memory orders allow that.
    window_relaxed_words: RELAXED_WORDS in window::unit_always_free within 2;
}

planted! { CompactCounter: CounterFlaws;
    /// Two read the same count, both store theirs.
    counter_stores_back: STORES_BACK in counter::last_unit_of_two within 2;
    /// A cost that does not fit is there for an instant, and another is denied because of it.
    counter_takes_first: TAKES_FIRST in counter::denial_takes_nothing within 2;
    /// Two move on to the new window, and the second of them forgets what the first has taken there.
    counter_rolls_over_apart: ROLLS_OVER_APART in counter::rollover_against_rollover within 2;
    /// The new window starts with nothing before it.
    counter_forgets_previous: FORGETS_PREVIOUS in counter::rollover_against_rollover within 2;
    /// A late caller starts its old window anew.
    counter_late_reading_resets: LATE_READING_RESETS in counter::rollover_against_late_reading within 2;
    /// A unit of the old window comes back in the new one.
    counter_refunds_into_later_window: REFUNDS_INTO_LATER_WINDOW in counter::refund_against_rollover within 2;
    /// More is given back than was taken.
    counter_refunds_unchecked: REFUNDS_UNCHECKED in counter::refund_against_refund within 2;
}

planted! { CompactBreaker: BreakerFlaws;
    /// The phase is open, and calls pass.
    breaker_leaves_the_door_open: LEAVES_THE_DOOR_OPEN in breaker::trip_is_seen within 2;
    /// It is closed by hand and then tripped, and the open door of the first of them is written last.
    breaker_writes_the_door_late: WRITES_THE_DOOR_LATE in breaker::close_against_trip within 2;
    /// Somebody sees that it is open, and finds the door open too.
    breaker_shuts_the_door_late: WRITES_THE_DOOR_LATE in breaker::trip_is_seen within 2;
    /// It is closed between the look and the trip, and the door says so although it has tripped.
    breaker_writes_the_door_early: WRITES_THE_DOOR_EARLY in breaker::close_against_trip within 2;
    /// A call from before the trip fails, and trips what a probe has closed.
    breaker_counts_late_failures: COUNTS_LATE_RESULTS in breaker::late_failure_against_trip_and_probe within 2;
    /// A call from before it was closed anew succeeds between two failures.
    breaker_counts_late_successes: COUNTS_LATE_RESULTS in breaker::late_success_against_failures within 2;
    /// A probe that was given up fails, and the next ones with it.
    breaker_counts_late_probes: COUNTS_LATE_RESULTS in breaker::late_failure_of_a_probe within 2;
    /// Two see the last place.
    breaker_counts_probes_late: COUNTS_PROBES_LATE in breaker::two_probes_of_three within 2;
    /// Nobody probes any more.
    breaker_keeps_dropped_probes: KEEPS_DROPPED_PROBES in breaker::dropped_probe_against_two within 2;
    /// A probe that was given up makes room for a second one beside the next.
    breaker_gives_places_to_later: GIVES_PLACES_TO_LATER in breaker::patience_against_drop within 2;
    /// Two failures both see that it is too much, and it cools down as after the second time.
    breaker_trips_in_two_steps: TRIPS_IN_TWO_STEPS in breaker::racing_trips within 2;
    /// A probe that was given up succeeds, and only one of the next two has to.
    breaker_gives_up_in_the_same_epoch: GIVES_UP_IN_THE_SAME_EPOCH in breaker::late_success_of_a_probe within 2;
    /// Two saw it closed, and both tell of the trip.
    breaker_tells_by_an_old_look: TELLS_BY_AN_OLD_LOOK in breaker::racing_trips within 2;
    /// An observer that asks the breaker for anything would wait for ever.
    breaker_tells_under_the_lock: TELLS_UNDER_THE_LOCK in breaker::racing_trips within 2;
}

planted! { CompactFlow: FlowFlaws;
    /// An open breaker burns tokens.
    flow_keeps_the_token: KEEPS_THE_TOKEN in flow::trip_against_a_call within 2;
    /// A call has no token, because one that the breaker refuses has it for an instant.
    flow_takes_the_token_first: TAKES_THE_TOKEN_FIRST in flow::refused_call_against_the_last_token within 2;
    /// A call that had no token keeps the only probe's place.
    flow_keeps_the_probe: KEEPS_THE_PROBE in flow::denied_token_against_denied_token within 2;
    /// What the breaker refused is in flight for ever.
    flow_keeps_the_place: KEEPS_THE_PLACE in flow::trip_against_a_call within 2;
    /// A call that had no token opens the breaker.
    flow_counts_refusals: COUNTS_REFUSALS in flow::last_token_of_two within 2;
    /// A call that was cancelled is in flight for ever.
    flow_keeps_cancelled: KEEPS_CANCELLED in flow::cancel_against_a_call within 2;
    /// It is told to ask the breaker again, and what it lacks is a token.
    flow_names_who_was_asked: NAMES_WHO_WAS_ASKED in flow::denied_token_against_denied_token within 2;
}

planted! { CompactQueue: QueueFlaws;
    /// Each of the two, who gives back and who begins to wait, misses the other: only the memory orders allow that.
    queue_gives_back_unfenced: GIVES_BACK_UNFENCED in waiting::give_back_against_beginning within 2;
    /// The same, with the fence missing on the other side.
    queue_joins_unfenced: JOINS_UNFENCED in waiting::give_back_against_beginning within 2;
    /// What came back between its decision and its place in the line is left there.
    queue_joins_blindly: JOINS_BLINDLY in waiting::give_back_against_beginning within 2;
    /// A line that was closed meanwhile is never looked at again.
    queue_joins_a_closed_line: JOINS_A_CLOSED_LINE in waiting::close_against_beginning within 2;
    /// It left with what it was granted, and the second one waits for that.
    queue_keeps_a_lost_grant: KEEPS_A_LOST_GRANT in waiting::give_back_against_cancel within 2;
    /// The others could go, and the one who held them up was the one to tell them.
    queue_leaves_silently: LEAVES_SILENTLY in waiting::large_head_leaves_against_beginning within 2;
    /// The same: who slept for all has left, and nobody sleeps.
    queue_leaves_time_unminded: LEAVES_SILENTLY in waiting::head_leaves_against_the_turn within 2;
    /// It is granted what it waited for between its look and its leaving.
    queue_expires_by_an_old_look: EXPIRES_BY_AN_OLD_LOOK in waiting::timeout_against_give_back within 2;
    /// The head sleeps until what came back would have come by itself.
    queue_lets_the_head_sleep: LETS_THE_HEAD_SLEEP in waiting::give_back_against_the_timer within 2;
    /// Who begins to wait after the look waits for what is settled then.
    queue_settles_after_looking: SETTLES_AFTER_LOOKING in waiting::settle_against_beginning within 2;
    /// The head sleeps on although all it needs is there.
    queue_settles_silently: SETTLES_SILENTLY in waiting::settle_against_the_timer within 2;
    /// It waits in a line that it is not in.
    queue_evicts_untold: EVICTS_UNTOLD in waiting::eviction_against_give_back within 2;
    /// It is granted what comes back between the look and the eviction, and that is lost.
    queue_evicts_by_an_old_look: EVICTS_BY_AN_OLD_LOOK in waiting::eviction_against_give_back within 2;
    /// Two see the same one, and there is one more than may be.
    queue_evicts_one_twice: EVICTS_BY_AN_OLD_LOOK in waiting::eviction_against_eviction within 2;
    /// The older one sleeps for longer.
    queue_leaves_time_to_another: LEAVES_TIME_TO_ANOTHER in waiting::newest_first_against_the_timer within 2;
    /// Who stands at the head will not look, and the one that would has looked.
    queue_is_relieved_once: IS_RELIEVED_ONCE in waiting::relief_against_barging within 2;
    /// The next one is taken for one whose time is minded.
    queue_keeps_the_time: KEEPS_THE_TIME in waiting::relief_against_a_call within 2;
}

planted! { CompactKeys: KeyQueueFlaws;
    /// Each of the two sees the other one still there.
    key_queue_gives_up_late: GIVES_UP_LATE in key_waiting::two_leave_at_once within 2;
    /// The last one takes the queue away that the next one waits in.
    key_queue_joins_uncounted: JOINS_UNCOUNTED in key_waiting::last_leaves_against_joining within 2;
    /// The last one saw somebody look, who does not take the queue away.
    key_queue_looks_and_leaves_it: LOOKS_AND_LEAVES_IT in key_waiting::look_against_the_last_who_leaves within 2;
    /// What came back before it had joined is left there.
    key_queue_joins_blindly: JOINS_BLINDLY in key_waiting::give_back_against_joining within 2;
    /// It left with what it was granted, and the second one waits for that.
    key_queue_keeps_a_lost_grant: KEEPS_A_LOST_GRANT in key_waiting::give_back_against_leaving within 2;
    /// There was no queue yet.
    key_queue_closes_the_queue: CLOSES_THE_QUEUE in key_waiting::close_against_joining within 2;
}

planted! { CompactStore: StoreFlaws;
    /// Two first uses both find the key absent, and both add it.
    store_adds_unseen: ADDS_UNSEEN in keyed::first_use_of_two within 2;
    /// Two read the same state of a present key, both store theirs.
    store_stores_back: STORES_BACK in keyed::last_token_of_a_present_key within 2;
    /// What was spent is gone with the key, and the next request gets it again.
    store_drops_spent: DROPS_SPENT in keyed::clean_up_of_a_spent_key within 2;
    /// A key that was full is spent when it is dropped.
    store_drops_by_an_old_look: DROPS_BY_AN_OLD_LOOK in keyed::clean_up_against_acquire within 2;
    /// A caller with an earlier reading gets what was spent at that reading.
    store_forgets_what_it_dropped: FORGETS_WHAT_IT_DROPPED in keyed::clean_up_against_late_reading within 2;
    /// Two see the same last place.
    store_counts_late: COUNTS_LATE in keyed::last_place_of_two within 2;
    /// A request between reading a state and putting the converted one back is undone.
    store_converts_among_readers: CONVERTS_AMONG_READERS in keyed::change_of_quota_against_acquire within 2;
    /// A new key has more than a full one kept.
    store_forgets_absent_keys: FORGETS_ABSENT_KEYS in keyed::change_of_quota_against_first_use within 2;
    /// The first change comes last in one shard, and the second one in the other.
    store_changes_beside_others: CHANGES_BESIDE_OTHERS in keyed::two_changes_of_quota within 2;
    /// What a handle takes between the look and the end is taken again.
    store_ends_in_two_steps: ENDS_IN_TWO_STEPS in handles::change_of_quota_against_a_handle within 2;
    /// The last handle is gone, and a look does not see what it took: only the memory orders allow that.
    store_ends_by_a_stale_look: ENDS_IN_TWO_STEPS in handles::drop_of_the_last_handle_against_clean_up within 2;
    /// A handle is denied tokens that are there, because they have been taken back from it.
    store_denies_by_an_end: DENIES_BY_AN_END in handles::tokens_are_there_before_and_after within 2;
    /// The same key has nothing for an instant.
    store_shows_an_end: SHOWS_AN_END in handles::tokens_are_there_before_and_after within 2;
    /// The handle goes on with a state that is nobody's.
    store_drops_kept: DROPS_KEPT in handles::clean_up_against_a_handle within 2;
    /// What its handles take is taken from a key that is gone, and then again from the new one.
    store_removes_untold: REMOVES_UNTOLD in handles::remove_against_a_handle within 2;
    /// What a handle took at a later reading is settled at an earlier one, and paid off at the new rate.
    store_reads_the_clock_first: READS_THE_CLOCK_FIRST in handles::change_by_clock_against_a_handle within 2;
    /// The same by a reading that follows: only the memory orders allow that.
    store_ends_relaxed: ENDS_RELAXED in handles::change_by_clock_against_a_handle within 2;
}

/// Asserts that the model fails, and fails by a promise rather than by a limit of the model checker.
#[cfg(sluicegate_loom)]
fn assert_found(bound: sluicegate_loom_tests::Bound, body: impl Fn() + Send + Sync + 'static) {
    use core::panic::AssertUnwindSafe;

    let found = std::panic::catch_unwind(AssertUnwindSafe(|| sluicegate_loom_tests::model(bound, body)));
    let panic = found.expect_err("the model is blind to this bug");
    let message = panic.downcast_ref::<String>().map_or("no text", String::as_str);
    assert!(message.starts_with(sluicegate_loom_tests::BROKEN), "not a broken promise: {message}");
}
