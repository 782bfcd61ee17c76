#!/usr/bin/env bash
# replay-compare.sh writes an access log of LINES_EACH=10000000 lines, some 1.5 GB in
# TMPDIR, puts it through brimline replay and through goaccess, and prints what
# each cost. Arguments go on to replaycompare: -users 20000
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/need.sh goaccess goaccess
mkdir -p out/replay-compare
CGO_ENABLED=0 go build -o out/replay-compare/replaycompare ./scripts/replaycompare
exec out/replay-compare/replaycompare -tools bin -lines "${LINES_EACH:-10000000}" "$@"
