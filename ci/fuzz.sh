#!/usr/bin/env bash
# Every fuzz target for ${FUZZ_SECONDS:-6} seconds, with AddressSanitizer. Needs a nightly compiler.
source "$(dirname "$0")/lib.sh"

if ! cargo +nightly --version >/dev/null 2>&1 &&
    ! rustup toolchain install nightly --profile minimal >/dev/null 2>&1; then
    skip "fuzz targets: no nightly toolchain (rustup toolchain install nightly --profile minimal)"
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
    cargo install cargo-fuzz --version '^0.13' --locked --quiet
fi

# All at once, on every core.
cargo +nightly fuzz build
for target in $(cd fuzz && cargo +nightly fuzz list); do
    mkdir -p "fuzz/corpus/$target"
    echo "-- $target"
    # New inputs go to the first directory; the committed seeds are only read.
    cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="${FUZZ_SECONDS:-6}" -print_final_stats=1 -verbosity=0
done
