#!/usr/bin/env bash
# The command in the README works as written, in this repository alone, and prints what the README shows.
source "$(dirname "$0")/lib.sh"

command=$(grep -m1 '^cargo run --release -p sluicegate -- replay ' README.md)
shown=$(awk '/^```text$/ { inside = 1; next } inside && /^```$/ { exit } inside' README.md)
echo "$command"
printed=$($command)
echo "$printed"
diff <(echo "$shown") <(echo "$printed") || { echo "The README shows something else." >&2; exit 1; }
