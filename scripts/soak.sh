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

for _ in $(seq "$(nproc)"); do
  timeout 6h bash -c 'while :; do :; done' &
  started+=($!)
done

# one_run CLOCK: a server of its own, one run of the suite, the server's end.
one_run() {
  local target=$dir/target.yaml server code=0
  rm -f "$target"
  bin/brimline serve --listen 127.0.0.1:0 --control 127.0.0.1:0 --clock "$1" \
    --write-target "$target" >"$dir/server.log" 2>&1 &
  server=$!
  started+=("$server")
  for _ in $(seq 300); do
    [ ! -s "$target" ] || break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  timeout 15m bin/brimline check --target "$target" --out "$dir/out" >"$dir/check.log" 2>&1 || code=$?
  kill "$server" 2>/dev/null || true
  wait "$server" || true
  unset 'started[-1]'
  return "$code"
}

for clock in frozen real; do
  for n in $(seq "$runs"); do
    code=0
    begin=$SECONDS
    one_run "$clock" || code=$?
    if [ "$code" -ne 0 ]; then
      cat "$dir/check.log"
      echo "soak: run $n of $runs on a $clock clock ended with exit code $code; the server said:" >&2
      tail -n 20 "$dir/server.log" >&2
      exit 1
    fi
    printf '%s clock: %d of %d passed (%d s)\n' "$clock" "$n" "$runs" $((SECONDS - begin))
  done
done
echo "soak: $runs of $runs passed on each clock, $(nproc) cores kept busy, $SECONDS s"
