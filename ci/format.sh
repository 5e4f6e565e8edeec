#!/usr/bin/env bash
# Formatting of every member, and of the fuzzing workspace.
source "$(dirname "$0")/lib.sh"

cargo fmt --all --check
cargo fmt --manifest-path fuzz/Cargo.toml --all --check
