#!/usr/bin/env bash
# Tests, each package alone and with each set of features that it offers. Documentation examples are among them.
source "$(dirname "$0")/lib.sh"

cargo test -p sluicegate-core
cargo test -p sluicegate-core --features alloc
cargo test -p sluicegate-core --features heapless
cargo test -p sluicegate-core --features alloc,heapless,keyed
# Decisions are the same without debug assertions and overflow checks.
cargo test -p sluicegate-core --features alloc,heapless,keyed --release --tests
cargo test -p sluicegate-threads --no-default-features
cargo test -p sluicegate-threads --all-features
cargo test -p sluicegate
cargo test -p sluicegate-loom-tests
cargo test -p sluicegate-benches
