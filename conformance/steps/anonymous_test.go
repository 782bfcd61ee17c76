package steps

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWordsThatTellOfAUser(t *testing.T) {
	for text, want := range map[string]string{
		`{"message":"too many requests"}`:                    "",
		`{"requestId":"req_SLSPROKHFREEI4HBLDYPUSERVKPLAN"}`: "",
		`{"message":"the Pro plan has more"}`:                "Pro",
		`{"message":"see other plans"}`:                      "plans",
		`{"userPlan":"?"}`:                                   "user",
		`{"plan_name":"?"}`:                                  "plan",
		`{"message":"u.7 waits"}`:                            "u.7",
		`{"message":"ux7 is no name of ours, nor is u.77"}`:  "",
		`your quota is used up`:                              "quota",
		`process`:                                            "",
	} {
		require.Equal(t, want, tells(text, []string{"free", "pro", "u.7"}), text)
	}
}
