#!/usr/bin/env bash
# soak.sh N proves that the suite raises no false alarm: N runs against a correct
# server on a frozen clock and N on a real one, while every core is kept busy. It
# stops at the first run that is no pass, with that run's output.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=$1
if ! [[ $runs =~ ^[1-9][0-9]{0,3}$ ]]; then
  echo "SOAK is \"$runs\": a whole number from 1 to 9999 is wanted" >&2
  exit 2
fi

dir=$(mktemp -d)
started=() # processes of ours, ended by pid
finish() {
  [ ${#started[@]} -eq 0 ] || kill "${started[@]}" 2>/dev/null || true
  wait
  rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Busy work ends with this script, however that ends.
busy='while kill -0 "$1" 2>/dev/null; do for ((i = 0; i < 200000; i++)); do :; done; done'
for _ in $(seq "$(nproc)"); do
  timeout 6h bash -c "$busy" busy $$ &
  started+=($!)
done

# one_run CLOCK: a server of its own, one run of the suite, the server's end.
one_run() {
  local target=$dir/target.yaml server check code=0
  rm -rf "$target" "$dir/out"
  bin/brimline serve --listen 127.0.0.1:0 --control 127.0.0.1:0 --clock "$1" \
    --write-target "$target" >"$dir/server.log" 2>&1 &
  server=$!
  started+=("$server")
  for _ in $(seq 300); do
    if [ -s "$target" ] || ! kill -0 "$server" 2>/dev/null; then
      break
    fi
    sleep 0.1
  done
  # In the background and waited for, so that Ctrl-C need not wait for its end.
  timeout 15m bin/brimline check --strict --target "$target" --out "$dir/out" >"$dir/check.log" 2>&1 &
  check=$!
  started+=("$check")
  wait "$check" || code=$?
  kill "$server" 2>/dev/null || true
  wait "$server" || true
  started=("${started[@]:0:${#started[@]}-2}")
  [ "$code" -eq 0 ] && [ "$(count setup_failed)" -eq 0 ]
}

# count WORD is how many clauses of the latest run got this verdict.
count() {
  grep -m 1 -oP "^    \"$1\": \K[0-9]+" "$dir/out/conformance.json"
}

undecided=0
for clock in frozen real; do
  for n in $(seq "$runs"); do
    begin=$SECONDS
    if ! one_run "$clock"; then
      cat "$dir/check.log"
      echo "soak: run $n of $runs on a $clock clock was no pass; the server's last lines:" >&2
      tail -n 20 "$dir/server.log" >&2
      exit 1
    fi
    undecided=$((undecided + $(count inconclusive)))
    printf '%-6s clock: %d of %d passed  %d clauses pass, %d inconclusive, %d not run  %d s\n' \
      "$clock" "$n" "$runs" "$(count pass)" "$(count inconclusive)" "$(count not_run)" $((SECONDS - begin))
  done
done
echo "soak: $runs of $runs passed on each clock, $undecided verdicts inconclusive, $(nproc) cores kept busy, $SECONDS s"
