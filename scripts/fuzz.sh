#!/usr/bin/env bash
# fuzz.sh TIME runs every fuzz target for TIME, one after another, and stops at
# the first that fails.
set -euo pipefail
cd "$(dirname "$0")/.."

count=0
while IFS=: read -r file target; do
  echo "$target  ${file%/*}"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "./${file%/*}"
  count=$((count + 1))
done < <(git grep --untracked -oE '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' | sed 's/:func /:/')

if [ "$count" -eq 0 ]; then
  echo "no fuzz target found" >&2
  exit 2
fi
echo "$count fuzz targets ran for $1 each"
