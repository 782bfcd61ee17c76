#!/usr/bin/env bash
# load-compare.sh sends the same traffic with brimline load and with other people's
# load generators, SECONDS_EACH=60 seconds each, and prints what each cost and what
# came of it. The tools are built once, into out/load-compare; k6 takes minutes.
# Arguments go on to loadcompare: -only most,even,mix,hold,users,freeze -tools a,b
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$PWD/out/load-compare
mkdir -p "$tools"
for tool in vegeta:github.com/tsenart/vegeta/v12@v12.13.0 hey:github.com/rakyll/hey@v0.1.5 \
  fortio:fortio.org/fortio@v1.66.5 k6:go.k6.io/k6@v1.8.1; do
  [ -x "$tools/${tool%%:*}" ] || GOFLAGS='' GOBIN=$tools go install "${tool#*:}"
done
scripts/need.sh wrk wrk

CGO_ENABLED=0 go build -o "$tools/loadcompare" ./scripts/loadcompare
PATH=$PWD/bin:$tools:$PATH exec "$tools/loadcompare" -seconds "${SECONDS_EACH:-60}" "$@"
