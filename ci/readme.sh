#!/usr/bin/env bash
# The command in the README works as written, in this repository alone.
source "$(dirname "$0")/lib.sh"

command=$(grep -m1 '^cargo run --release -p sluicegate -- replay ' README.md)
echo "$command"
output=$($command)
echo "$output"
grep -qi 'denied' <<<"$output"
