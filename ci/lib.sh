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

# Refreshes the distribution's package lists, once a run, as root or through sudo.
apt_update() {
    local sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    [ -e target/ci/apt-is-updated ] && return
    $sudo apt-get update -qq >/dev/null && mkdir -p target/ci && touch target/ci/apt-is-updated
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
