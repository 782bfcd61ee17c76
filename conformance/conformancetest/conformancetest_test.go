package conformancetest_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/conformancetest"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reports/record"
)

// variant names what is wrong with the service in TestService, where a test runs
// it once more in a process of its own.
const variant = "CONFORMANCETEST_VARIANT"

// TestService is how a team tests its own service.
func TestService(t *testing.T) {
	s := newService()
	c := s.config()
	c.Options.Clauses = []string{"SCOPE-1", "HDR-4", "CONC-1", "LOG-1"}
	switch os.Getenv(variant) {
	case "mistake":
		s.wait = roundedDown
	case "nothing":
		c.Options.Clauses = []string{"LOG-1"}
	case "unknown":
		c.Options.Clauses = []string{"LOG-99"}
	case "half":
		c.Hooks.RevokeKey = nil
	}
	conformancetest.Run(t, s, c)
}

func TestWhatATestOfAServiceSays(t *testing.T) {
	for name, c := range map[string]struct {
		fails bool
		says  []string
	}{
		"right":   {false, []string{"--- PASS: TestService/CONC-1", "--- SKIP: TestService/LOG-1", "not run: needs audit"}},
		"mistake": {true, []string{"--- FAIL: TestService/HDR-4", "--- PASS: TestService/CONC-1", "RateLimit-Reset: expected 1", "curl "}},
		"nothing": {true, []string{"nothing to run", "needs audit"}},
		"unknown": {true, []string{`there is no clause "LOG-99"`}},
		"half":    {true, []string{"hooks: NewUser and AddKey without RevokeKey; accepted: both or neither"}},
	} {
		t.Run(name, func(t *testing.T) {
			again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestService$", "-test.v")
			again.Env = append(os.Environ(), variant+"="+name)
			out, err := again.CombinedOutput()
			var ended *exec.ExitError
			require.Equal(t, c.fails, errors.As(err, &ended), "%s", out)
			for _, line := range c.says {
				require.Contains(t, string(out), line)
			}
			require.NotContains(t, string(out), "SCOPE-2", "nobody asked for it")
		})
	}
}

func TestAServiceOverHTTP2(t *testing.T) {
	s := newService()
	c := s.config()
	c.Target.Can.HTTP2 = true
	c.Options.Clauses = []string{"PERMIT-7"}
	got := conformancetest.Run(t, s, c)
	for _, cl := range got.Clauses {
		if cl.ID == "PERMIT-7" {
			require.Equal(t, record.Pass, cl.Verdict)
			require.NotContains(t, cl.Reason, "http2")
		}
	}
}

func TestJudgeRefusesWhatIsNoTarget(t *testing.T) {
	s := newService()
	c := s.config()
	c.Target.Allowances = nil
	_, err := conformancetest.Judge(t.Context(), s, c)
	require.ErrorContains(t, err, "allowances")

	c = s.config()
	c.Hooks = conformancetest.Hooks{}
	_, err = conformancetest.Judge(t.Context(), s, c)
	require.ErrorContains(t, err, "there is no user to ask as")
	_, err = conformancetest.Judge(t.Context(), s, conformancetest.Config{Target: target.File{}, Options: conformance.Options{}})
	require.Error(t, err)
}
