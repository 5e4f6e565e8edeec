#!/usr/bin/env bash
# Lints, each package alone: a workspace build unifies features and proves nothing about one of them.
source "$(dirname "$0")/lib.sh"

for package in sluicegate-core sluicegate-threads sluicegate sluicegate-loom-tests sluicegate-benches sluicegate-counts sluicegate-paused-benches; do
    cargo clippy --quiet -p "$package" --all-targets -- -D warnings
done
for features in alloc heapless keyed alloc,heapless,keyed; do
    cargo clippy --quiet -p sluicegate-core --features "$features" --all-targets -- -D warnings
done
for features in "" alloc heapless alloc,heapless,keyed,futures; do
    cargo clippy --quiet -p sluicegate-runtime --features "$features" --all-targets -- -D warnings
done
for package in tokio async-std smol embassy conformance; do
    cargo clippy --quiet -p "sluicegate-$package" --all-targets --all-features -- -D warnings
done
for features in "" metrics tracing runtime metrics,tracing metrics,runtime tracing,runtime metrics,tracing,runtime; do
    cargo clippy --quiet -p sluicegate-telemetry --features "$features" --all-targets -- -D warnings
done
cargo clippy --quiet -p sluicegate-http --all-targets -- -D warnings
cargo clippy --quiet -p sluicegate-threads --all-features --all-targets -- -D warnings
# The same code over loom's atomics.
RUSTFLAGS="--cfg sluicegate_loom" \
    cargo clippy --quiet -p sluicegate-loom-tests --all-targets --target-dir target/loom -- -D warnings
cargo clippy --quiet --manifest-path ci/bare-metal/Cargo.toml --features heapless --lib --bin decisions \
    --target-dir target/bare-metal/host -- -D warnings
