#!/usr/bin/env bash
# Every check, on a fresh machine too. All run, whatever fails. Ends with what was skipped and what failed, and the number of tests
# that ran. Under CI, what a check built is removed when no later one reads it: a full disk fails them all.
#
# Two at a time, because much of a build, and of a model, keeps one core busy: those that share a target directory are in one lane.
# What a check prints is shown once it has ended.
source "$(dirname "$0")/lib.sh"

mkdir -p target/ci
rm -f target/ci/*.log target/ci/apt-is-updated target/ci/failed
lanes=("format lint docs test counts readme" "msrv bare-metal fuzz loom")
trap 'kill 0' INT TERM

# What is left on the disk, and what the builds take of it.
disk() {
    df -BM --output=avail . | awk 'NR == 2 { printf "%s free", $1 }'
    { du -sBM target fuzz/target 2>/dev/null || true; } | awk '{ used += $1 } END { printf ", %dM built\n", used }'
}

# Removes what the check named was the last to read.
clean_up_after() {
    [ -n "${CI:-}" ] || return 0
    case $1 in
        test) rm -rf target/debug ;;
        readme) rm -rf target/release ;;
        msrv) rm -rf target/msrv target/ci/msrv ;;
        loom) rm -rf target/loom ;;
        bare-metal) rm -rf target/bare-metal ;;
        fuzz) rm -rf fuzz/target ;;
    esac
}

run() {
    local check=$1 started=$SECONDS verdict=ok
    echo "-- $check begins"
    bash "ci/$check.sh" >"target/ci/$check.log" 2>&1 || verdict=FAILED
    [ "$verdict" = ok ] || echo "$check" >>target/ci/failed
    {
        one_at_a_time 9
        printf '\n== %s\n' "$check"
        cat "target/ci/$check.log"
        echo "== $check: $verdict, $((SECONDS - started)) s"
        disk
    } 9>target/ci/printing
    clean_up_after "$check"
}

for lane in "${lanes[@]}"; do
    for check in $lane; do run "$check"; done &
done
wait

printf '\n== summary, %s s\n' "$SECONDS"
grep -h '^SKIPPED: \|^FAILED: ' target/ci/*.log || true
count_tests target/ci/*.log
if [ -e target/ci/failed ]; then
    echo "failed: $(paste -sd' ' target/ci/failed)"
    exit 1
fi
