# Shared by the scripts beside it: `source "$(dirname "$0")/lib.sh"`.
# shellcheck shell=bash

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
# Debug information doubles the size of a build and no check here reads it.
export CARGO_PROFILE_DEV_DEBUG=${CARGO_PROFILE_DEV_DEBUG:-none}
# What rustc keeps for the next build of the same code is half the size of a build, and no check builds the same code twice.
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}

# Says loudly that a check did not run. Under CI that is a failure.
skip() {
    echo "SKIPPED: $*" >&2
    if [ -n "${CI:-}" ]; then
        echo "A check that cannot run fails when CI is set." >&2
        exit 1
    fi
    exit 0
}

# Waits for whoever else has the file that is open under this number, where the system can tell.
one_at_a_time() {
    ! command -v flock >/dev/null || flock "$1"
}

# What only root may do.
as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Refreshes the distribution's package lists, once a run.
apt_update() {
    mkdir -p target/ci
    {
        one_at_a_time 8
        [ -e target/ci/apt-is-updated ] || { as_root apt-get update -qq >/dev/null && touch target/ci/apt-is-updated; }
    } 8>target/ci/apt
}

# Installs packages of the distribution.
apt_install() {
    apt_update || return
    {
        one_at_a_time 8
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >/dev/null 2>&1
    } 8>target/ci/apt
}

# The number of tests in the logs given.
count_tests() {
    awk '/^test result: / { for (i = 2; i <= NF; i++) {
            if ($i ~ /^passed/) passed += $(i - 1)
            if ($i ~ /^failed/) failures += $(i - 1)
            if ($i ~ /^ignored/) ignored += $(i - 1)
        } }
        END { printf "%d passed, %d failed, %d skipped\n", passed, failures, ignored }' "$@"
}
