package target_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
)

// asServer makes this test binary a server that can be started and stopped.
const asServer = "BRIMLINE_TEST_AS_SERVER"

// beServer is that server. Its first argument is its port, its second where it
// leaves the number of a child that would run for ever.
func beServer(args []string) {
	keys, _ := os.ReadFile(os.Getenv("KEYS"))
	fmt.Println("the keys are", string(keys))
	fmt.Println(strings.Repeat("noise ", 10_000))
	if n := os.Getenv("N"); n != "" && n != "1" {
		os.Exit(7)
	}
	if out := os.Getenv("CROWDED"); out != "" { // as often as there are lines to be said
		said, rest, _ := strings.Cut(read(out), "\n")
		if err := os.WriteFile(out, []byte(rest), 0o600); err != nil {
			panic(err)
		}
		if said != "" {
			fmt.Println(said, args[0])
			os.Exit(1)
		}
	}
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		panic(err)
	}
	if err := os.WriteFile(args[1], []byte(strconv.Itoa(child.Process.Pid)), 0o600); err != nil {
		panic(err)
	}
	if os.Getenv("LATE") != "" {
		select {} // it never listens
	}
	http.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# TYPE starts_total counter\nstarts_total{pid=\"%d\"} 1\n", os.Getpid())
	})
	panic(http.ListenAndServe("127.0.0.1:"+args[0], nil))
}

func read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// startable is a target of a server that can be started, and where that leaves
// the number of its child.
func startable(t *testing.T, within time.Duration, more map[string]string) (*target.Target, string) {
	t.Helper()
	child := filepath.Join(t.TempDir(), "child")
	f := fileFor(answering(t, 200))
	f.OutsideQuotas = []string{"/health"}
	env := map[string]string{asServer: "1", "KEYS": "{keys-file}"}
	for name, value := range more {
		env[name] = value
	}
	f.Can.Process = &target.Process{
		Command: []string{os.Args[0], "{port}", child}, Environment: env,
		SettingNames: map[string]string{contract.SettingsPrefix + contract.SettingReplicas: "N"},
		MetricsURL:   "http://127.0.0.1:{port}/metrics", ReadyWithin: within,
	}
	tgt, err := target.Open(t.Context(), f, target.Options{Keys: []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret(theKey)}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tgt.Close()) })
	return tgt, child
}

// requireGone waits until a process that was killed is there no more.
func requireGone(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return syscall.Kill(pid, 0) != nil || err == nil && strings.Contains(string(stat), ") Z ")
	}, 10*time.Second, 5*time.Millisecond, "the server's child outlives it")
}

func TestTryStart(t *testing.T) {
	tgt, child := startable(t, time.Minute, nil)
	require.True(t, tgt.Has(contract.NeedProcess))
	s, err := tgt.TryStart(t.Context(), target.Settings{contract.SettingReplicas: "1"})
	require.NoError(t, err)
	require.True(t, s.Listened && s.Ready && !s.Exited, "%s", s)
	require.Contains(t, s.Output, "the keys are user,plan,key\nu,free,")
	require.NotContains(t, s.Output, theKey)
	require.LessOrEqual(t, len(s.Output), 16<<10)
	requireGone(t, child)

	s, err = tgt.TryStart(t.Context(), target.Settings{contract.SettingReplicas: "2"})
	require.NoError(t, err)
	require.Equal(t, 7, s.Code)
	require.True(t, s.Exited && !s.Listened && !s.Ready, "%s", s)
	require.Contains(t, s.String(), "it exited with code 7 and said: the keys are")

	_, err = tgt.TryStart(t.Context(), target.Settings{"replicaz": "2"})
	require.ErrorContains(t, err, `there is no setting "replicaz"`)
}

// Whose port somebody else has taken is started again with others; what ends for
// a reason of its own is not.
func TestAServerThatIsCrowdedOut(t *testing.T) {
	const taken = "listen tcp 127.0.0.1: bind: Address already in use\n"
	for name, c := range map[string]struct {
		says  string
		ready bool
		left  string // of what it would say
		err   error
	}{
		"once":                 {taken, true, "", nil},
		"several times":        {strings.Repeat(taken, 4), true, "", nil},
		"always":               {strings.Repeat(taken, 6), false, taken, target.ErrDidNotStart},
		"for its own reasons":  {"I will not\n" + taken, false, taken, nil},
		"and then for its own": {taken + "I will not\n" + taken, false, taken, nil},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "says")
			tgt, _ := startable(t, time.Minute, map[string]string{"CROWDED": out})
			require.NoError(t, os.WriteFile(out, nil, 0o600))
			_, err := tgt.TryStart(t.Context(), nil)
			require.NoError(t, err, "it starts if nobody is in its way")

			require.NoError(t, os.WriteFile(out, []byte(c.says), 0o600))
			s, err := tgt.TryStart(t.Context(), nil)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.ready, s.Ready, "%s", s)
			require.Equal(t, c.left, read(out))
		})
	}
}

func TestAServerThatNeverGetsReady(t *testing.T) {
	tgt, child := startable(t, 2*time.Second, map[string]string{"LATE": "1"})
	s, err := tgt.TryStart(t.Context(), nil)
	require.ErrorIs(t, err, target.ErrUntrue)
	require.ErrorContains(t, err, "can.process: with nothing set, it ran and did not listen in time and said: the keys are")
	require.True(t, !s.Exited && !s.Listened && !s.Ready, "%s", s)
	_, err = tgt.StartServer(t.Context(), nil)
	require.ErrorIs(t, err, target.ErrUntrue)
	requireGone(t, child)
}

func TestAServerOfAScenariosOwn(t *testing.T) {
	tgt, child := startable(t, time.Minute, nil)
	own, err := tgt.StartServer(t.Context(), nil)
	require.NoError(t, err)
	defer own.Close()
	require.True(t, own.Alone())
	require.False(t, tgt.Alone(), "others may ask it")
	u, err := own.Lease(t.Context(), "free", 1)
	require.NoError(t, err)
	require.False(t, u.Used())
	require.Zero(t, u.Bucket.Width(), "nobody has touched it")

	before, err := own.Meters(t.Context())
	require.NoError(t, err)
	require.NoError(t, own.StartAnew(t.Context()))
	after, err := own.Meters(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, before[0].Labels["pid"], after[0].Labels["pid"])

	require.NoError(t, own.KillServer())
	requireGone(t, child)
	_, err = own.Meters(t.Context())
	require.Error(t, err)
	require.NoError(t, own.KillServer(), "it is gone already")
	require.NoError(t, own.StartAnew(t.Context()))
	killed, err := own.Meters(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, after[0].Labels["pid"], killed[0].Labels["pid"])
	require.NoError(t, own.Close())
	requireGone(t, child)
	require.ErrorIs(t, tgt.StartAnew(t.Context()), target.ErrUnsupported)
	require.ErrorIs(t, tgt.KillServer(), target.ErrUnsupported)
}

// A run that is interrupted leaves no server behind.
func TestAStartThatIsInterrupted(t *testing.T) {
	tgt, child := startable(t, time.Minute, map[string]string{"LATE": "1"})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if text, err := os.ReadFile(child); err == nil && len(text) > 0 {
				cancel()
			}
		}
	}()
	_, err := tgt.TryStart(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
	requireGone(t, child)
}

func TestAProcessThatMakesNoSense(t *testing.T) {
	for name, c := range map[string]struct{ process, says string }{
		"no program":        {`{ command: [] }`, `can.process.command: empty`},
		"no port":           {`{ command: [./run] }`, `can.process.command: nothing tells the server its port`},
		"no such setting":   {`{ command: [./run, "{port}"], setting-names: { replicas: N } }`, `can.process.setting-names: there is no setting "replicas"; accepted: invoicespec.rate-limit.replicas, `},
		"no variable":       {`{ command: [./run, "{port}"], setting-names: { invoicespec.rate-limit.replicas: A-B } }`, `"A-B" is no variable`},
		"no variable again": {`{ command: [./run, "{port}"], environment: { A-B: x } }`, `"A-B" is no variable`},
		"somewhere else":    {`{ command: [./run, "{port}"], base-url: "http://example.org:{port}" }`, `can.process.base-url: "http://example.org:1" is not on loopback`},
		"metrics elsewhere": {`{ command: [./run, "{port}"], metrics-url: "http://example.org/metrics" }`, `can.process.metrics-url: "http://example.org/metrics" is not on loopback`},
		"metrics nowhere":   {`{ command: [./run, "{port}"], metrics-url: "http://127.0.0.1:{metrics-port}" }`, `is no page's URL`},
		"too patient":       {`{ command: [./run, "{port}"], ready-within: 1h }`, `can.process.ready-within: 1h0m0s; accepted: a duration up to 10m0s`},
		"a stale token":     {`{ command: [./run, "{port}"], control: { url: "http://127.0.0.1:1", token-file: x } }`, `"x" would outlive the server; accepted: a file that it writes in {folder}`},
		"control elsewhere": {`{ command: [./run, "{port}"], control: { url: "https://example.org", token-file: "{folder}/x" } }`, `can.process.control.url: "https://example.org" is not on loopback`},
		"its control":       {`{ command: [./run, "{port}"] }`, `can.process.control: missing beside can.control`},
		"nobody to ask":     {`{ command: [./run, "{port}"], kept-log: true }`, `can.process.control: missing beside kept-log`},
		"its metrics":       {"{ command: [./run, \"{port}\"] }\n  metrics: { url: \"http://127.0.0.1:9/metrics\" }", `can.process.metrics-url: missing beside can.metrics`},
		"a page with keys":  {"{ command: [./run, \"{port}\"] }\n  metrics: { url: \"http://127.0.0.1:9/metrics?key=1\" }", `can.metrics.url: "http://127.0.0.1:9/metrics?key=1" is no page's URL`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"t.yaml": strings.Replace(goodFile, "limits:", "  process: "+c.process+"\nlimits:", 1), "ok.json": `{"a":1}`})
			_, err := target.ReadFile(filepath.Join(dir, "t.yaml"))
			require.ErrorContains(t, err, "t.yaml:1")
			require.ErrorContains(t, err, c.says)
		})
	}
}
