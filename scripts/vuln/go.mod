// The tools of scripts/vuln.sh, apart from the program's own modules.
module github.com/invoicespec/brimline/scripts/vuln

go 1.26.0

tool golang.org/x/vuln/cmd/govulncheck

// Data alone: what is known is in its folder data/osv. Nothing of it is built,
// so "go mod tidy" would drop it.
require golang.org/x/vulndb v0.0.0-20261105234957-e22db6528018

require (
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/telemetry v0.0.0-20261010193011-f71dc92da45e // indirect
	golang.org/x/tools v0.52.0 // indirect
	golang.org/x/vuln v1.9.0 // indirect
)
