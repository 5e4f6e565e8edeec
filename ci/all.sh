#!/usr/bin/env bash
# Every check, one after another, on a fresh machine too. All run, whatever fails. Ends with what was skipped and what failed, and
# the number of tests that ran.
source "$(dirname "$0")/lib.sh"

mkdir -p target/ci
rm -f target/ci/*.log target/ci/apt-is-updated
failed=()
for check in format lint docs test counts readme msrv loom bare-metal fuzz; do
    printf '\n== %s\n' "$check"
    started=$SECONDS
    if bash "ci/$check.sh" 2>&1 | tee "target/ci/$check.log"; then
        echo "== $check: ok, $((SECONDS - started)) s"
    else
        echo "== $check: FAILED, $((SECONDS - started)) s"
        failed+=("$check")
    fi
done

printf '\n== summary, %s s\n' "$SECONDS"
grep -h '^SKIPPED: \|^FAILED: ' target/ci/*.log || true
count_tests target/ci/*.log
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}"
    exit 1
fi
