#!/usr/bin/env bash
# need.sh PROGRAM PACKAGE... sees to it that PROGRAM is there: installs Debian
# packages where that needs no question, else says what to run.
set -euo pipefail

program=$1
shift
if command -v "$program" >/dev/null; then
  exit 0
fi

root=()
if [ "$(id -u)" -ne 0 ]; then
  root=(sudo -n)
fi
if ! command -v apt-get >/dev/null || ! "${root[@]}" true 2>/dev/null; then
  echo "$program is missing; install it and run this again, on Debian: sudo apt-get update && sudo apt-get install -y $*" >&2
  exit 2
fi

echo "installing $*"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Debian starts a service as soon as it is installed. Tests start their own, so
# nothing else is to listen; see invoke-rc.d(8) for the file that forbids it.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$log"; "${root[@]}" rm -f "$policy"' EXIT
  "${root[@]}" sh -c 'printf "#!/bin/sh\nexit 101\n" >"$0" && chmod 755 "$0"' "$policy"
fi
if ! { "${root[@]}" apt-get update &&
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } >"$log" 2>&1 </dev/null; then
  cat "$log" >&2
  exit 2
fi
if [ -d /run/systemd/system ]; then
  echo "no service was started; to keep those of $* from starting with the machine: sudo systemctl disable NAME"
fi
