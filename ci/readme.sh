#!/usr/bin/env bash
# The commands in the README work as written, in this repository alone, and print what the README shows.
source "$(dirname "$0")/lib.sh"

for subcommand in replay simulate; do
    command=$(grep -m1 "^cargo run --release -p sluicegate -- $subcommand " README.md)
    shown=$(awk -v command="$command" '
        $0 == command { found = 1 }
        found && /^```text$/ { inside = 1; next }
        inside && /^```$/ { exit }
        inside' README.md)
    echo "$command"
    printed=$($command)
    echo "$printed"
    diff <(echo "$shown") <(echo "$printed") || { echo "The README shows something else." >&2; exit 1; }
done
