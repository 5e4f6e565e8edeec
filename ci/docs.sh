#!/usr/bin/env bash
# Documentation builds without a warning: no public item undocumented, no link broken.
source "$(dirname "$0")/lib.sh"

export RUSTDOCFLAGS="-D warnings"
for package in sluicegate-core sluicegate-runtime sluicegate-tokio sluicegate-async-std sluicegate-smol sluicegate-embassy sluicegate-threads sluicegate-telemetry sluicegate-http sluicegate; do
    cargo doc --quiet --no-deps -p "$package" --all-features --document-private-items
done
