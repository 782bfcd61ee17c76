#!/usr/bin/env bash
# vuln.sh [MODULE [DATABASE]] fails when the module in folder MODULE (this one)
# calls a version of another that is known to be vulnerable, and says which one
# mends it. Of the standard library it only warns: its version is that of the Go
# that happens to be installed, so nothing that is written here mends it.
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

# One line for each vulnerability of a module, one for all of the Go in use.
awk '
  /^Vulnerability #/ { id = $3; what = ""; titled = 0 }
  $1 == "More" { titled = 1 }
  id && !titled && !/^Vulnerability #/ { sub(/^ +/, " "); what = what $0 }
  $1 == "Found" { found = $3 }
  $1 == "Fixed" { fixed = $3 }
  $1 == "#1:" && found ~ /@go/ {
    sub(/.*@/, "", found); sub(/.*@go/, "", fixed)
    split(fixed, v, ".")
    n = (v[1] * 1000 + v[2]) * 1000 + v[3]
    if (n > newest) { newest = n; mends = "build with go" fixed }
    ids = ids " " id
    go = found
    next
  }
  $1 == "#1:" {
    sub(/:$/, "", $2)
    advice = fixed == "N/A" ? "no version mends it" : "go get " fixed
    print found ": " advice "; called at " $2 ". " id ":" what
    failed = 1
  }
  END {
    if (ids) print "warning: " go ": " (mends ? mends : "no version mends it") "; called here:" ids
    exit failed
  }
' <<<"$found"
