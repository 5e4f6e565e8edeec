#!/usr/bin/env bash
# No hot path runs over 5 % more instructions than on record in benches/record/counts.txt, as valgrind counts them. The counts are those
# of one compiler: with another this check cannot run. `ci/counts.sh --bless` writes down what is counted now.
source "$(dirname "$0")/lib.sh"

install_valgrind() {
    command -v valgrind >/dev/null && return
    command -v apt-get >/dev/null && apt_install valgrind
}

install_valgrind || skip "instruction counts: no valgrind"
mkdir -p target
status=0
# Debug information changes no instruction and takes long to write.
CARGO_PROFILE_BENCH_DEBUG=false cargo bench --quiet --locked -p sluicegate-counts --bench counts -- "$@" 2> >(tee target/counts.err >&2) || status=$?
if grep -q '^the counts on record are for' target/counts.err; then
    skip "instruction counts: $(grep '^the counts on record are for' target/counts.err)"
fi
exit "$status"
