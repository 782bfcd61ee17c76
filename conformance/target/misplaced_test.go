package target

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestASecretInTheWrongPlaceIsNotQuoted: whoever puts one there learns where.
func TestASecretInTheWrongPlaceIsNotQuoted(t *testing.T) {
	f := File{folder: t.TempDir(), Users: []UserOf{{ID: "a", Plan: "free", Keys: []KeySource{{File: known}}}}}
	_, err := f.usersKeys(nil)
	require.ErrorContains(t, err, "users[0].keys[0]: isk_free_…: no such file; accepted: the path of a file")

	f = File{BaseURLs: []string{"http://host.example"}, Credential: Credential{Header: "Authorization", Template: "Bearer " + known}}
	require.Equal(t, `credential.template: "Bearer isk_free_…" does not hold {key} once; accepted: a text such as "Bearer {key}"`, f.check().Error())

	require.Equal(t, `base-urls[0]: "http://…@host.example" is no base URL; accepted: http or https, host and port, such as https://staging.example`,
		checkURL("base-urls[0]", "http://user:pw@host.example").Error())
}
