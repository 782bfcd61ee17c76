//go:build unix

package target

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeptFromOthers(t *testing.T) {
	const root, we = 0, 65532
	for name, c := range map[string]struct {
		mode        fs.FileMode
		owner, self int
		want        bool
	}{
		"its owner's alone":               {0o600, we, we, true},
		"a group may read ours":           {0o640, we, we, false},
		"root's, as Kubernetes mounts it": {0o440, root, we, true},
		"root's, and a group may write":   {0o460, root, we, false},
		"root's, and all may read":        {0o444, root, we, false},
		"root is who runs":                {0o640, root, root, false},
		"somebody else's":                 {0o440, 1000, we, false},
		"not known whose":                 {0o440, -1, we, false},
	} {
		require.Equal(t, c.want, keptBy(c.mode, c.owner, c.self), name)
	}
}
