#!/usr/bin/env bash
# Every interleaving of every concurrent piece, within the bounds that each test states, and the planted bugs.
#
# LOOM_MAX_PREEMPTIONS=3 deepens every bound below 3, and takes far longer. On two cores the default takes some 6 minutes,
# and the first build one.
source "$(dirname "$0")/lib.sh"

echo "bounds: preemptions as each model states, at least ${LOOM_MAX_PREEMPTIONS:-0}; branches ${LOOM_MAX_BRANCHES:-1000}"
# The panics of planted bugs need no backtraces.
RUST_BACKTRACE=0 RUSTFLAGS="${RUSTFLAGS:-} --cfg sluicegate_loom" \
    cargo test --quiet --profile loom -p sluicegate-loom-tests --tests --target-dir "${CARGO_TARGET_DIR:-target}/loom" -- \
    --test-threads=2 --nocapture
