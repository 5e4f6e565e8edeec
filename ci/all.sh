#!/usr/bin/env bash
# Every check, one after another, on a fresh machine too. Ends with the number of tests that ran.
source "$(dirname "$0")/lib.sh"

mkdir -p target/ci
rm -f target/ci/*.log target/ci/apt-is-updated
failed=()
for check in format lint docs test readme msrv loom bare-metal fuzz; do
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
grep -h 'SKIPPED' target/ci/*.log || true
awk '/^test result: / { for (i = 2; i <= NF; i++) {
        if ($i ~ /^passed/) passed += $(i - 1)
        if ($i ~ /^failed/) failures += $(i - 1)
        if ($i ~ /^ignored/) ignored += $(i - 1)
    } }
    END { printf "%d passed, %d failed, %d skipped\n", passed, failures, ignored }' target/ci/*.log
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}"
    exit 1
fi
