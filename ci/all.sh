#!/usr/bin/env bash
# Every check, one after another, on a fresh machine too. All run, whatever fails. Ends with what was skipped and what failed, and
# the number of tests that ran. Under CI, what a check built is removed when no later one reads it: a full disk fails them all.
source "$(dirname "$0")/lib.sh"

mkdir -p target/ci
rm -f target/ci/*.log target/ci/apt-is-updated
failed=()

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

for check in format lint docs test counts readme msrv loom bare-metal fuzz; do
    printf '\n== %s\n' "$check"
    started=$SECONDS
    if bash "ci/$check.sh" 2>&1 | tee "target/ci/$check.log"; then
        echo "== $check: ok, $((SECONDS - started)) s"
    else
        echo "== $check: FAILED, $((SECONDS - started)) s"
        failed+=("$check")
    fi
    disk
    clean_up_after "$check"
done

printf '\n== summary, %s s\n' "$SECONDS"
grep -h '^SKIPPED: \|^FAILED: ' target/ci/*.log || true
count_tests target/ci/*.log
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}"
    exit 1
fi
