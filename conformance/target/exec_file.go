package target

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Command carries out one action in place of the control protocol: a program with
// its arguments, run without a shell in the folder of the target file. What
// varies in an action stands in arguments as {user}, {plan} and so on; the body
// that the control protocol would send comes on standard input. It prints what
// that protocol would answer, and exits with another code than 0 to refuse.
type Command struct {
	Exec        []string          `yaml:"exec"`
	Environment map[string]string `yaml:"environment,omitempty"` // all that it has, beside Pass
	Pass        []string          `yaml:"pass,omitempty"`        // variables of ours that it has as well
	Timeout     time.Duration     `yaml:"timeout,omitempty"`     // 0: not given, so 10 seconds
}

// Bounds of a command's time.
const (
	usualCommandTime = 10 * time.Second
	mostCommandTime  = 2 * time.Minute
)

func (c Command) timeout() time.Duration { return cmp.Or(c.Timeout, usualCommandTime) }

var placeholder = regexp.MustCompile(`\{[a-z-]+\}`)

// secretNames lists what must not be an argument, which every process can see.
func secretNames() []string { return []string{"key"} }

// checkCommands finds what is well-formed and makes no sense.
func (f File) checkCommands() *problem {
	for _, name := range slices.Sorted(maps.Keys(f.Can.Commands)) {
		key := "can.commands." + name
		r, known := routeOf(action(name))
		if !known {
			return &problem{key, "there is no such action", actionNames()}
		}
		if f.Can.SQL != nil && f.Can.SQL.can(r.action) {
			return &problem{key, "can.sql does this as well", "one of the two"}
		}
		if p := checkCommand(key, r, f.Can.Commands[name]); p != nil {
			return p
		}
	}
	return f.checkWhole()
}

func checkCommand(key string, r route, c Command) *problem {
	if len(c.Exec) == 0 || c.Exec[0] == "" {
		return &problem{key + ".exec", "empty", "a program and its arguments"}
	}
	var named []string
	for i, arg := range c.Exec {
		at := fmt.Sprintf("%s.exec[%d]", key, i)
		if strings.ContainsRune(arg, 0) {
			return &problem{at, "holds a zero byte", "text"}
		}
		for _, place := range placeholder.FindAllString(arg, -1) {
			name := strings.Trim(place, "{}")
			switch {
			case i == 0:
				return &problem{at, fmt.Sprintf("%s would choose the program", place), "a program that is always the same"}
			case slices.Contains(secretNames(), name):
				return &problem{at, fmt.Sprintf("%s would show in the list of processes", place), "the body on standard input, which holds it"}
			case !slices.Contains(r.names(), name):
				return &problem{at, fmt.Sprintf("there is no %s in %s", place, r.action), r.placeholders()}
			}
			named = append(named, name)
		}
	}
	for _, name := range r.names() {
		if slices.Contains(r.members, name) || slices.Contains(named, name) {
			continue // or else it is on standard input
		}
		return &problem{key + ".exec", fmt.Sprintf("nothing tells it the {%s}", name), r.placeholders()}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Environment)) {
		if !isVariable(name) || strings.ContainsRune(c.Environment[name], 0) {
			return &problem{key + ".environment", fmt.Sprintf("%q is no variable", name), "letters, digits and _"}
		}
	}
	for i, name := range c.Pass {
		at := fmt.Sprintf("%s.pass[%d]", key, i)
		if _, twice := c.Environment[name]; twice {
			return &problem{at, fmt.Sprintf("%s is in environment as well", name), "one of the two"}
		}
		if !isVariable(name) {
			return &problem{at, fmt.Sprintf("%q is no variable", name), "letters, digits and _"}
		}
	}
	if c.Timeout < 0 || c.Timeout > mostCommandTime {
		return &problem{key + ".timeout", c.Timeout.String(), "a duration up to " + mostCommandTime.String()}
	}
	return nil
}

// placeholders lists what may stand in the arguments of an action's command.
func (r route) placeholders() string {
	var all []string
	for _, name := range r.names() {
		if !slices.Contains(secretNames(), name) {
			all = append(all, "{"+name+"}")
		}
	}
	if len(all) == 0 {
		return "no placeholder"
	}
	return strings.Join(all, ", ")
}

func actionNames() string {
	var all []action
	for _, r := range routes() {
		all = append(all, r.action)
	}
	return joined(all)
}

// checkWhole finds a feature of which a file offers a part: no scenario could use
// it, and whoever wrote the file should know.
func (f File) checkWhole() *problem {
	if f.Can.Control != nil {
		return nil // which may do the rest
	}
	for _, missing := range routes() {
		if at := f.offers(missing.action); at != "" {
			continue
		}
		for _, other := range actionsOf(missing.feature) {
			at := f.offers(other)
			if at == "" || other == readPeriod || other == readOperations { // good for a second look
				continue
			}
			return &problem{at, fmt.Sprintf("%s is of no use without %s", other, missing.action),
				fmt.Sprintf("all of %s, or none", joined(actionsOf(missing.feature)))}
		}
	}
	return nil
}

// offers is the key by which a file offers an action; empty: it does not.
func (f File) offers(a action) string {
	if _, command := f.Can.Commands[string(a)]; command {
		return "can.commands." + string(a)
	}
	if f.Can.SQL != nil && f.Can.SQL.can(a) {
		return "can.sql"
	}
	return ""
}

func joined(actions []action) string {
	var all []string
	for _, a := range actions {
		all = append(all, string(a))
	}
	return strings.Join(all, ", ")
}
