package target

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
)

// Process says how to start one more server of the deployment's kind, on
// loopback, for a scenario of its own. No shell is involved. The placeholders
// {port}, {metrics-port}, {control-port}, {keys-file} and {folder} stand, in
// every text, for three free ports, for a file with the keys of this target's
// users, and for a new folder that is removed once the server is stopped.
type Process struct {
	Command      []string          `yaml:"command"`                 // program and arguments; where there is no {port} the server must know its port from the environment below
	Environment  map[string]string `yaml:"environment,omitempty"`   // beside PATH, HOME, TZ, LANG, LC_ALL and TMPDIR
	SettingNames map[string]string `yaml:"setting-names,omitempty"` // variables that settings are read from, by the contract's key, where they are not called as the contract does
	BaseURL      string            `yaml:"base-url,omitempty"`      // empty: http://127.0.0.1:{port}
	MetricsURL   string            `yaml:"metrics-url,omitempty"`   // needed where can.metrics is given
	Control      *ControlAddress   `yaml:"control,omitempty"`       // needed where can.control is given; the token file is written by the server
	KeptLog      bool              `yaml:"kept-log,omitempty"`      // its control server tells of the log entries of whoever ran in its place before
	ReadyWithin  time.Duration     `yaml:"ready-within,omitempty"`  // 0: not given, so 20 seconds
	StopWithin   time.Duration     `yaml:"stop-within,omitempty"`   // 0: not given, so 20 seconds
}

const (
	portPlace     = "{port}"
	keysFilePlace = "{keys-file}"
	folderPlace   = "{folder}"
)

// ports lists the placeholders of ports.
func ports() []string { return []string{portPlace, "{metrics-port}", "{control-port}"} }

// Bounds of the two times.
const (
	usualTime = 20 * time.Second
	longest   = 10 * time.Minute
)

func (p Process) readyWithin() time.Duration { return cmp.Or(p.ReadyWithin, usualTime) }
func (p Process) stopWithin() time.Duration  { return cmp.Or(p.StopWithin, usualTime) }

// checkProcess finds what is well-formed and makes no sense.
func (f File) checkProcess(p Process) *problem {
	const key = "can.process"
	texts := slices.Concat(p.Command, slices.Collect(maps.Values(p.Environment)), []string{p.BaseURL})
	switch {
	case len(p.Command) == 0 || p.Command[0] == "":
		return &problem{key + ".command", "empty", "a program and its arguments"}
	case !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, portPlace) }):
		return &problem{key + ".command", "nothing tells the server its port", portPlace + " in an argument, or in environment"}
	case p.KeptLog && p.Control == nil:
		return &problem{key + ".control", "missing beside kept-log", "where the server that is started speaks it"}
	case f.Can.Metrics != nil && p.MetricsURL == "":
		return &problem{key + ".metrics-url", "missing beside can.metrics", "a URL such as http://127.0.0.1:{metrics-port}/metrics"}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Environment)) {
		if !isVariable(name) || strings.ContainsRune(p.Environment[name], 0) {
			return &problem{key + ".environment", fmt.Sprintf("%q is no variable", name), "letters, digits and _"}
		}
	}
	for _, setting := range slices.Sorted(maps.Keys(p.SettingNames)) {
		at := key + ".setting-names"
		if _, known := contract.FindSetting(strings.TrimPrefix(setting, contract.SettingsPrefix)); !known || !strings.HasPrefix(setting, contract.SettingsPrefix) {
			return &problem{at, fmt.Sprintf("there is no setting %q", setting), settingKeys()}
		}
		if !isVariable(p.SettingNames[setting]) {
			return &problem{at, fmt.Sprintf("%q is no variable", p.SettingNames[setting]), "letters, digits and _"}
		}
	}
	for name, text := range map[string]string{"base-url": p.BaseURL, "metrics-url": p.MetricsURL} {
		if text != "" {
			if problem := checkLoopback(key+"."+name, text, name == "base-url"); problem != nil {
				return problem
			}
		}
	}
	if c := p.Control; c != nil {
		if !strings.HasPrefix(c.TokenFile, folderPlace+"/") {
			return &problem{key + ".control.token-file", fmt.Sprintf("%q would outlive the server", c.TokenFile), "a file that it writes in " + folderPlace}
		}
		if problem := checkLoopback(key+".control.url", c.URL, true); problem != nil {
			return problem
		}
	}
	for name, d := range map[string]time.Duration{"ready-within": p.ReadyWithin, "stop-within": p.StopWithin} {
		if d < 0 || d > longest {
			return &problem{key + "." + name, d.String(), "a duration up to " + longest.String()}
		}
	}
	if f.Can.Control != nil && p.Control == nil {
		return &problem{key + ".control", "missing beside can.control", "where the server that is started speaks it"}
	}
	return nil
}

// checkLoopback refuses a URL that is not on this machine: a server that is
// started here is started for nobody else.
func checkLoopback(key, text string, base bool) *problem {
	for _, place := range ports() {
		text = strings.ReplaceAll(text, place, "1")
	}
	check := checkPage
	if base {
		check = checkURL
	}
	if p := check(key, text); p != nil {
		return p
	}
	if u, _ := url.Parse(text); !isLoopback(u.Hostname()) {
		return &problem{key, fmt.Sprintf("%q is not on loopback", text), "a host such as 127.0.0.1"}
	}
	return nil
}

func settingKeys() string {
	var all []string
	for _, s := range contract.Settings() {
		all = append(all, contract.SettingsPrefix+s.Key)
	}
	return strings.Join(all, ", ")
}

// isVariable reports whether s can be the name of a variable.
func isVariable(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_')
	})
}
