package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
)

// ErrDidNotStart: a server that should have started did not.
var ErrDidNotStart = errors.New("the server did not start")

// Settings are what a server is started with, by the contract's keys below
// [contract.SettingsPrefix]. What is not in it is left to the server.
type Settings map[string]string

// Start is how it went when a server was started.
type Start struct {
	Listened bool   // something took connections on its port, if only for a moment
	Ready    bool   // it answered as a server does that is ready
	Exited   bool   // by itself
	Code     int    // its exit code, if it exited; -1: a signal ended it
	Output   string // what it printed, cut short, keys masked
}

// TryStart starts a server with settings, waits until it is ready, has exited or
// has had its time, and stops it.
func (t *Target) TryStart(ctx context.Context, s Settings) (Start, error) {
	p, err := t.newProcess(s)
	if err != nil {
		return Start{}, err
	}
	defer p.remove()
	start, err := p.begin(ctx)
	if err == nil {
		err = t.trial.of(ctx, t, start)
	}
	return start, err
}

// StartServer starts a server with settings and opens it as a target with the
// same users, whose buckets nobody has touched yet. Close stops it. One that does
// not get ready gives an error that wraps [ErrDidNotStart].
func (t *Target) StartServer(ctx context.Context, s Settings) (*Target, error) {
	p, err := t.newProcess(s)
	if err != nil {
		return nil, err
	}
	own, err := p.open(ctx, p.begin)
	if err != nil {
		err = errors.Join(err, p.remove())
		if errors.Is(err, ErrDidNotStart) {
			err = cmp.Or(t.trial.of(ctx, t, Start{}), err)
		}
		return nil, err
	}
	return own, t.trial.of(ctx, t, Start{Ready: true})
}

// StartAnew stops the server that this target is of, and starts another in its
// place: same command, same settings, same users, new process. It works on a
// target of [Target.StartServer] alone.
func (t *Target) StartAnew(ctx context.Context) error {
	if t.process == nil {
		return fmt.Errorf("%w: a server of its own", ErrUnsupported)
	}
	t.behind.close()
	if err := t.process.stop(); err != nil {
		return err
	}
	own, err := t.process.open(ctx, t.process.start)
	if err != nil {
		return err
	}
	t.behind = own.behind
	for _, u := range t.users {
		*u.Bucket = *own.userNamed(u.ID).Bucket
	}
	return nil
}

// KillServer ends the server that this target is of, which has no time to do
// anything about it. [Target.StartAnew] starts another in its place.
func (t *Target) KillServer() error {
	if t.process == nil {
		return fmt.Errorf("%w: a server of its own", ErrUnsupported)
	}
	t.process.kill()
	return nil
}

func (t *Target) userNamed(id string) *User {
	return t.users[slices.IndexFunc(t.users, func(u *User) bool { return u.ID == id })]
}

// Alone reports whether nobody but the scenario under way asks this target
// anything: what it counts is what that scenario did.
func (t *Target) Alone() bool { return t.process != nil || t.Movable() }

// serverProcess is a server that was started, or is to be.
type serverProcess struct {
	from     *Target // whose server it is one more of
	settings Settings
	folder   string            // of its own, removed with it
	named    map[string]string // what placeholders stand for
	held     []io.Closer       // what keeps others from its ports

	cmd    *exec.Cmd // nil: not running
	output *output
	ended  chan struct{} // closed when cmd has ended
}

// newProcess prepares a server: it does not run yet.
func (t *Target) newProcess(s Settings) (*serverProcess, error) {
	if t.file.Can.Process == nil {
		return nil, fmt.Errorf("%w: a server that can be started", ErrUnsupported)
	}
	p := &serverProcess{from: t, settings: s, named: map[string]string{}}
	for key := range s {
		if _, known := contract.FindSetting(key); !known {
			return nil, fmt.Errorf("there is no setting %q", key)
		}
	}
	var err error
	if p.folder, err = os.MkdirTemp("", "brimline-server-"); err != nil {
		return nil, err
	}
	p.named[folderPlace] = p.folder
	if err = p.takePorts(); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	if p.named[keysFilePlace], err = p.keysFile(); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

// keysFile is a file with the keys of the users: the target's own, or else one
// that is written for the process.
func (p *serverProcess) keysFile() (string, error) {
	if f := p.from.file; f.KeysFile != "" && len(p.from.options.Keys) == 0 {
		return filepath.Abs(f.in(f.KeysFile))
	}
	path := filepath.Join(p.folder, "keys.csv")
	return path, os.WriteFile(path, encodeKeys(p.from.options.Keys), 0o600)
}

// filled is a text with its placeholders replaced.
func (p *serverProcess) filled(text string) string {
	for name, value := range p.named {
		text = strings.ReplaceAll(text, name, value)
	}
	return text
}

func (p *serverProcess) file() Process { return *p.from.file.Can.Process }

func (p *serverProcess) baseURL() string {
	if own := p.file().BaseURL; own != "" {
		return p.filled(own)
	}
	return p.filled("http://127.0.0.1:" + portPlace)
}

// environment is a little of ours, what the target file adds, and the settings.
func (p *serverProcess) environment() []string {
	env := []string{"TMPDIR=" + p.folder}
	for _, name := range []string{"PATH", "HOME", "TZ", "LANG", "LC_ALL"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range p.file().Environment {
		env = append(env, name+"="+p.filled(value))
	}
	for key, value := range p.settings {
		env = append(env, p.from.SettingName(key)+"="+value)
	}
	return env
}

// SettingName is the variable that a server reads a setting from.
func (t *Target) SettingName(key string) string {
	if p := t.file.Can.Process; p != nil {
		if name, ok := p.SettingNames[contract.SettingsPrefix+key]; ok {
			return name
		}
	}
	s, _ := contract.FindSetting(key)
	return s.Variable()
}

// CommandLine is what starts a server with settings, for people to repeat.
func (t *Target) CommandLine(s Settings) string {
	var words []string
	for _, key := range slices.Sorted(maps.Keys(s)) {
		words = append(words, t.SettingName(key)+"="+quoteWord(s[key], quote))
	}
	if p := t.file.Can.Process; p != nil {
		for _, a := range p.Command {
			words = append(words, quoteWord(a, quote))
		}
	}
	return t.Mask(strings.Join(words, " "))
}

// start runs the process until it is ready, has exited or has had its time.
func (p *serverProcess) start(ctx context.Context) (Start, error) {
	base, err := url.Parse(p.baseURL())
	if err != nil {
		return Start{}, err
	}
	var args []string
	for _, a := range p.file().Command {
		args = append(args, p.filled(a))
	}
	p.cmd, p.output, p.ended = exec.Command(args[0], args[1:]...), &output{most: maxOutput}, make(chan struct{})
	p.cmd.Dir, p.cmd.Env = p.from.file.folder, p.environment()
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.WaitDelay = 5 * time.Second // what a child left open does not keep us
	ownGroup(p.cmd)
	if err := p.cmd.Start(); err != nil {
		p.cmd = nil
		return Start{}, fmt.Errorf("can.process.command: %w", err)
	}
	go func(cmd *exec.Cmd, ended chan struct{}) {
		cmd.Wait() // how it ended is in its ProcessState
		close(ended)
	}(p.cmd, p.ended)
	return p.watch(ctx, base)
}

// watch looks at a process that was just started.
func (p *serverProcess) watch(ctx context.Context, base *url.URL) (Start, error) {
	var s Start
	until := time.Now().Add(p.file().readyWithin())
	for pauses := time.Millisecond; ; pauses = min(2*pauses, 50*time.Millisecond) {
		listened, ready := p.look(ctx, base, until)
		s.Listened, s.Ready = s.Listened || listened, ready
		select {
		case <-p.ended: // after the look: what answered may have been another's
			s.Exited, s.Ready, s.Code = true, false, p.cmd.ProcessState.ExitCode()
		default:
		}
		if s.Ready || s.Exited || !time.Now().Before(until) {
			s.Output = p.said()
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-p.ended:
		case <-time.After(pauses):
		}
	}
}

// look asks the process once whether it is ready.
func (p *serverProcess) look(ctx context.Context, base *url.URL, until time.Time) (listened, ready bool) {
	within, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	c, err := dial(within, base, p.from.trust, netip.Addr{}, p.from.patience, p.protocol())
	if err != nil {
		return errors.Is(err, errNotSpoken), false
	}
	defer c.Close()
	if outside := p.from.file.OutsideQuotas; len(outside) > 0 {
		err = p.from.greet(c, base, outside[0], p.protocol())
	}
	return true, err == nil
}

// protocol is what the process is asked in: that of its deployment, unless it
// alone has no TLS to agree on it by.
func (p *serverProcess) protocol() Protocol {
	if strings.HasPrefix(p.baseURL(), "http:") && p.from.bases[0].Scheme == "https" {
		return HTTP1
	}
	return p.from.protocol
}

// open starts the process and opens it as a target.
func (p *serverProcess) open(ctx context.Context, start func(context.Context) (Start, error)) (*Target, error) {
	if c := p.file().Control; c != nil {
		os.Remove(p.filled(c.TokenFile)) // of the server before
	}
	s, err := start(ctx)
	if err != nil {
		return nil, err
	}
	if !s.Ready {
		return nil, fmt.Errorf("%w: %s", ErrDidNotStart, s)
	}
	f := p.from.file
	f.doc, f.BaseURLs, f.Protocol, f.Can = nil, []string{p.baseURL()}, p.protocol(), Can{}
	if !strings.HasPrefix(f.BaseURLs[0], "https:") {
		f.TLS = nil // nobody has to be trusted
	}
	if url := p.file().MetricsURL; url != "" {
		f.Can.Metrics = &MetricsAddress{URL: p.filled(url)}
	}
	o := Options{Keys: p.from.options.Keys, Vouched: p.from.options.Vouched, Run: p.from.run, secrets: p.from.secrets}
	if c := p.file().Control; c != nil {
		f.Can.Control = &ControlAddress{URL: p.filled(c.URL), TokenFile: p.filled(c.TokenFile)}
		if o.ControlToken, err = p.token(ctx, f.in(f.Can.Control.TokenFile)); err != nil {
			return nil, err
		}
	}
	own, err := Open(ctx, f, o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDidNotStart, err)
	}
	own.process, own.budget = p, p.from.budget
	own.nobodyHasAsked()
	return own, nil
}

// token waits for the token that the process leaves.
func (p *serverProcess) token(ctx context.Context, path string) (token Secret, err error) {
	err = p.from.poll(ctx, func() (bool, error) {
		token, err = readToken(path)
		return err == nil, nil
	})
	return token, err
}

// String says how a start went, for people.
func (s Start) String() string {
	var said string
	switch {
	case s.Exited:
		said = fmt.Sprintf("it exited with code %d", s.Code)
	case s.Ready:
		said = "it started"
	case s.Listened:
		said = "it listened and did not get ready in time"
	default:
		said = "it ran and did not listen in time"
	}
	if out := strings.TrimSpace(s.Output); out != "" {
		return said + " and said: " + out
	}
	return said + " and said nothing"
}

// said is what the process has printed. Its token may be in it.
func (p *serverProcess) said() string {
	if c := p.file().Control; c != nil {
		if token, err := readToken(p.from.file.in(p.filled(c.TokenFile))); err == nil {
			p.from.secrets.add(token)
		}
	}
	return p.from.Mask(p.output.String())
}

// stop ends the process and its children, politely at first.
func (p *serverProcess) stop() error {
	if p.cmd == nil {
		return nil
	}
	terminate(p.cmd)
	var err error
	select {
	case <-p.ended:
	case <-time.After(p.file().stopWithin()):
		err = fmt.Errorf("the server did not stop within %s", p.file().stopWithin())
	}
	p.kill() // and whoever it has left behind
	return err
}

// kill ends the process and its children.
func (p *serverProcess) kill() {
	if p.cmd == nil {
		return
	}
	kill(p.cmd)
	<-p.ended
	p.cmd = nil
}

// remove stops the process and leaves nothing of it.
func (p *serverProcess) remove() error {
	defer closeAll(p.held)
	return errors.Join(p.stop(), os.RemoveAll(p.folder))
}
