#!/usr/bin/env bash
# Formatting of every member, and of the workspaces of their own.
source "$(dirname "$0")/lib.sh"

cargo fmt --all --check
cargo fmt --manifest-path fuzz/Cargo.toml --all --check
cargo fmt --manifest-path ci/bare-metal/Cargo.toml --all --check
