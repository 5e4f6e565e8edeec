#!/usr/bin/env bash
# Tests, each package alone, with no features and with all, and where a feature replaces another with that one. Documentation examples
# are among them. What other sets there are is compiled by ci/lint.sh.
#
# All run, whatever fails. Ends with what failed, by name, and the number of tests that ran.
source "$(dirname "$0")/lib.sh"

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=()

try() {
    local log names
    log=$(mktemp -p "$logs")
    echo "-- cargo test $*"
    cargo test --no-fail-fast "$@" 2>&1 | tee "$log" && return
    names=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log" | paste -sd, | sed 's/,/, /g')
    failed+=("FAILED: cargo test $*: ${names:-no test, but what is above}")
}

try -p sluicegate-core
# What is kept in place instead of on the heap, without an allocator in sight.
try -p sluicegate-core --features heapless --lib --test sliding_log --test wait_queue_law --test wait_queue_promises
try -p sluicegate-core --features alloc,heapless,keyed
# Decisions are the same without debug assertions and overflow checks.
laws=(adaptive_reference breaker debt flow hierarchy hostile_clock keyed_law leaky_bucket_law quota_bounds reconfiguration reservations
    sharded_window_law sliding_counter sliding_log token_bucket_law wait_queue_law)
try -p sluicegate-core --features alloc,heapless,keyed --release --lib "${laws[@]/#/--test=}"
try -p sluicegate-threads --no-default-features
try -p sluicegate-threads --all-features
try -p sluicegate-runtime
try -p sluicegate-runtime --all-features
try -p sluicegate-embassy
try -p sluicegate-tokio
try -p sluicegate-tokio --all-features
try -p sluicegate-smol --all-features
try -p sluicegate-async-std --all-features
try -p sluicegate-telemetry
try -p sluicegate-telemetry --all-features
try -p sluicegate-http
# One suite of promises about waiting, on every executor.
try -p sluicegate-conformance
try -p sluicegate
try -p sluicegate-loom-tests
try -p sluicegate-benches
try -p sluicegate-counts
try -p sluicegate-paused-benches

printf '%s\n' '' "${failed[@]}"
count_tests "$logs"/*
[ ${#failed[@]} -eq 0 ]
