#!/usr/bin/env bash
# Every interleaving of every concurrent piece, within the bounds that each test states, and the planted bugs.
#
# LOOM_MAX_PREEMPTIONS=4 deepens every bound below 4 (hours); SLUICEGATE_STRESS_RUNS sets the runs of each model on
# real threads. On one core the default takes about 2 minutes, and the first build a minute.
source "$(dirname "$0")/lib.sh"

echo "bounds: preemptions as each model states, at least ${LOOM_MAX_PREEMPTIONS:-0}; branches ${LOOM_MAX_BRANCHES:-1000}"
# Without a debugger attached nobody reads the panics of the planted bugs, so no backtraces.
RUST_BACKTRACE=0 RUSTFLAGS="${RUSTFLAGS:-} --cfg sluicegate_loom" \
    cargo test --quiet --profile loom -p sluicegate-loom-tests --tests -- --test-threads=1 --nocapture
