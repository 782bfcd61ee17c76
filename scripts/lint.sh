#!/usr/bin/env bash
# lint.sh checks what needs no test: it runs every check, then fails if one did.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
export CGO_ENABLED=0 # nothing here needs a C compiler

failed=0
check() { # check NAME ADVICE COMMAND...
  local name=$1 advice=$2 out
  shift 2
  if out=$("$@" 2>&1); then
    echo "ok    $name"
    grep '^warning: ' <<<"$out"
    return
  fi
  echo "FAIL  $name: $advice"
  grep -v '^go: downloading' <<<"$out" | head -n 40
  failed=1
}

# silent COMMAND... fails when the command prints something.
silent() {
  local out
  out=$("$@" 2>&1) && [ -z "$out" ] && return
  echo "$out"
  return 1
}

long_files() { # docs/faults.md is made by a test, a line for each fault
  git ls-files --cached --others --exclude-standard -- \
    '*.go' '*.feature' '*.sh' '*.md' Makefile .ci/run ':!:**/testdata/**' ':!:docs/faults.md' |
    while read -r f; do
      [ ! -f "$f" ] || awk -v f="$f" 'END { if (NR > 400) print f ": " NR " lines" }' "$f"
    done
}

shell_scripts() {
  local f
  for f in .ci/run scripts/*.sh; do
    bash -n "$f"
    [ -x "$f" ] || echo "$f is not executable"
  done
}

check gofmt 'run "gofmt -w ."' silent gofmt -l .
check vet 'mend these' go vet ./...
check staticcheck 'mend these' go tool staticcheck ./...
check go.mod 'run "go mod tidy"' go mod tidy -diff
check 'go.mod of other limiters' 'run "go -C conformance/testdata/foreign mod tidy"' go -C conformance/testdata/foreign mod tidy -diff
check 'vet of other limiters' 'mend these' go -C conformance/testdata/foreign vet ./...
check 'go.mod of the manifests' 'run "go -C deploy/kubernetes/testdata/manifests mod tidy"' go -C deploy/kubernetes/testdata/manifests mod tidy -diff
check modules 'these are not what go.sum says: run "go clean -modcache"' go mod verify
check vulnerabilities 'raise these, or call something else' scripts/vuln.sh
check 'file length' 'split what has more than 400 lines' silent long_files
check 'shell scripts' 'mend these' silent shell_scripts
exit $failed
