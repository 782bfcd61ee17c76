#!/usr/bin/env bash
# vuln.sh [MODULE [DATABASE]] fails when the module in folder MODULE (this one)
# calls what is known to be vulnerable, and says which version mends it.
#
# What is known comes as a module through the Go module proxy, so nothing else
# need be in reach, and the same sources get the same answer until its version
# is raised in scripts/vuln/go.mod. DATABASE is a folder of other OSV entries.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 # nothing here needs a C compiler
tools=scripts/vuln

module=$(realpath "${1:-.}")
database=${2:-}
if [ -z "$database" ]; then
  go -C $tools mod download golang.org/x/vulndb
  database=$(go -C $tools list -m -f '{{.Dir}}' golang.org/x/vulndb)/data/osv
fi
govulncheck=$(go -C $tools tool -n govulncheck)

status=0
found=$("$govulncheck" -C "$module" -db "file://$(realpath "$database")" ./... 2>&1) || status=$?
[ $status -ne 0 ] || exit 0
if [ $status -ne 3 ]; then # 3: it has found something
  echo "$found"
  exit 1
fi

# One line for each vulnerability of a module.
awk '
  /^Vulnerability #/ { id = $3; what = ""; titled = 0 }
  $1 == "More" { titled = 1 }
  id && !titled && !/^Vulnerability #/ { sub(/^ +/, " "); what = what $0 }
  $1 == "Found" { found = $3 }
  $1 == "Fixed" { fixed = $3 }
  $1 == "#1:" {
    if (fixed == "N/A") advice = "no version mends it"
    else if (fixed ~ /@go/) { sub(/.*@/, "", fixed); advice = "raise toolchain in go.mod to " fixed }
    else advice = "go get " fixed
    sub(/:$/, "", $2)
    print found ": " advice "; called at " $2 ". " id ":" what
  }
' <<<"$found"
exit 1
