package traffic

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/invoicespec/brimline/loadgen/arrival"
)

// Arrival is how a user's requests follow each other: a word, or one of several
// shapes, told apart by their keys.
type Arrival struct {
	Word string // constant or poisson; empty: a shape

	Bursts int64         `yaml:"bursts,omitempty"` // requests at one instant,
	Every  time.Duration `yaml:"every,omitempty"`  // again and again

	On  time.Duration `yaml:"on,omitempty"` // the population's rate for a while,
	Off time.Duration `yaml:"off,omitempty"`

	Ramp   *Ramp  `yaml:"ramp,omitempty"`
	Steps  []Step `yaml:"steps,omitempty"`
	Sine   *Sine  `yaml:"sine,omitempty"`
	Replay string `yaml:"replay,omitempty"` // an access log
	Speed  Number `yaml:"speed,omitempty"`  // of the replay; not given: 1

	Process Word `yaml:"process,omitempty"` // along a curve; empty: constant
}

// Ramp is a rate that changes evenly over the run.
type Ramp struct {
	From Level `yaml:"from"`
	To   Level `yaml:"to"`
}

// Step is a rate for a while.
type Step struct {
	For  time.Duration `yaml:"for"`
	Rate Level         `yaml:"rate"`
}

// Sine is a rate that swings about a mean.
type Sine struct {
	Mean      Rate          `yaml:"mean"`
	Amplitude Level         `yaml:"amplitude"`
	Period    time.Duration `yaml:"period"`
}

// Word names a process.
type Word string

// The words.
const (
	Constant Word = "constant"
	Poisson  Word = "poisson"
)

// UnmarshalText reads one.
func (w *Word) UnmarshalText(text []byte) error {
	if *w = Word(text); *w != Constant && *w != Poisson {
		return fmt.Errorf("%.12q is no process; accepted: %s, %s", text, Constant, Poisson)
	}
	return nil
}

// UnmarshalText reads a word.
func (a *Arrival) UnmarshalText(text []byte) error {
	if a.Word = string(text); a.Word != string(Constant) && a.Word != string(Poisson) {
		return fmt.Errorf("%.12q is no arrival; accepted: %s, %s, or keys %s", a.Word, Constant, Poisson, strings.Join(shapes, ", "))
	}
	return nil
}

// shapes are the keys that tell what a mapping is.
var shapes = []string{"bursts", "on", "ramp", "steps", "sine", "replay"}

// String is the arrival in words.
func (a Arrival) String() string {
	text := ""
	switch {
	case a.Word != "":
		return a.Word
	case a.Bursts > 0:
		return fmt.Sprintf("bursts of %d every %v", a.Bursts, a.Every)
	case a.On > 0:
		text = fmt.Sprintf("%v on, %v off", a.On, a.Off)
	case a.Ramp != nil:
		text = fmt.Sprintf("ramp from %s to %s", a.Ramp.From, a.Ramp.To)
	case a.Sine != nil:
		text = fmt.Sprintf("sine of %s about %s every %v", a.Sine.Amplitude, a.Sine.Mean, a.Sine.Period)
	case a.Replay != "":
		return fmt.Sprintf("replay of %s at %vx", a.Replay, a.speed())
	default:
		var steps []string
		for _, s := range a.Steps {
			steps = append(steps, fmt.Sprintf("%s for %v", s.Rate, s.For))
		}
		text = "steps of " + strings.Join(steps, ", ")
	}
	if a.Process == Poisson {
		text += ", at random"
	}
	return text
}

// rated reports whether the arrival takes the population's rate.
func (a Arrival) rated() bool { return a.Word != "" || a.On > 0 }

func (a Arrival) speed() float64 {
	if a.Speed.text == "" {
		return 1
	}
	return a.Speed.value()
}

// arrivalMakesSense checks a population's arrival and its rate.
func arrivalMakesSense(here at, p Population) error {
	a := p.Arrival
	if a.Word == "" {
		if err := a.oneShape(here); err != nil {
			return err
		}
		if err := a.inRange(here); err != nil {
			return err
		}
	}
	switch {
	case a.rated() && p.Rate == (Rate{}):
		return here.refuse("rate", "missing", "requests per minute such as 90, or a share of the allowance such as 1.2x")
	case !a.rated() && p.Rate != (Rate{}):
		return here.refuse("rate", "this arrival carries its own rate", "no rate, or another arrival")
	}
	return nil
}

// beside is which keys go with which shape; those of time may not be left out.
var beside = map[string][]string{
	"bursts": {"every"}, "on": {"off", "process"}, "ramp": {"process"}, "steps": {"process"}, "sine": {"process"}, "replay": {"speed"},
}

// oneShape checks that the keys given make one shape.
func (a Arrival) oneShape(here at) error {
	shape := ""
	for _, name := range shapes {
		switch {
		case !here.has("arrival." + name):
		case shape != "":
			return here.refuse("arrival."+name, "beside "+shape, "one of "+list(shapes))
		default:
			shape = name
		}
	}
	if shape == "" {
		return here.refuse("arrival", "says nothing of when", fmt.Sprintf("%s, %s, or a mapping of %s", Constant, Poisson, list(shapes)))
	}
	for _, name := range []string{"every", "off", "process", "speed"} {
		goes := slices.Contains(beside[shape], name)
		optional := name == "process" || name == "speed"
		switch given := here.has("arrival." + name); {
		case given && !goes:
			return here.refuse("arrival."+name, "does not go with "+shape, "beside "+shape+": "+list(beside[shape]))
		case !given && goes && !optional:
			return here.refuse("arrival."+name, "missing", "a duration such as 10s")
		}
	}
	return nil
}

// inRange checks the figures of a shape.
func (a Arrival) inRange(here at) error {
	span := func(key string, d, least time.Duration) error {
		if d < least || d > MaxDuration {
			return here.refuse("arrival."+key, d.String()+" is out of range", least.String()+" to 24h")
		}
		return nil
	}
	switch {
	case here.has("arrival.bursts"):
		if a.Bursts < 1 || a.Bursts > maxTogether {
			return here.refuse("arrival.bursts", fmt.Sprintf("%d is out of range", a.Bursts), fmt.Sprintf("1 to %d requests", maxTogether))
		}
		return span("every", a.Every, 10*time.Millisecond)
	case here.has("arrival.on"):
		if err := span("on", a.On, 10*time.Millisecond); err != nil {
			return err
		}
		return span("off", a.Off, 10*time.Millisecond)
	case a.Ramp != nil && a.Ramp.From.number+a.Ramp.To.number == 0:
		return here.refuse("arrival.ramp", "from 0 to 0 is no load", "a rate above 0 at one end")
	case here.has("arrival.steps"):
		return a.stepsMakeSense(here)
	case a.Sine != nil:
		return span("sine.period", a.Sine.Period, time.Second)
	case here.has("arrival.speed") && (a.Speed.number < 1 || a.Speed.number > 1000*thousandth):
		return here.refuse("arrival.speed", a.Speed.text+" is out of range", "0.001 to 1000")
	case here.has("arrival.replay") && a.Replay == "":
		return here.refuse("arrival.replay", "empty", "the path of an access log")
	case strings.ContainsFunc(a.Replay, func(r rune) bool { return !unicode.IsPrint(r) }):
		return here.refuse("arrival.replay", "what cannot be printed", "the path of an access log")
	}
	return nil
}

// maxSteps bounds what every request walks along.
const maxSteps = 1000

func (a Arrival) stepsMakeSense(here at) error {
	if len(a.Steps) == 0 || len(a.Steps) > maxSteps {
		return here.refuse("arrival.steps", fmt.Sprintf("%d steps", len(a.Steps)), fmt.Sprintf("1 to %d", maxSteps))
	}
	sum, some := time.Duration(0), false
	for i, s := range a.Steps {
		if s.For < 10*time.Millisecond || s.For > MaxDuration {
			return here.refuse(fmt.Sprintf("arrival.steps[%d].for", i), s.For.String()+" is out of range", "10ms to 24h")
		}
		sum, some = sum+s.For, some || s.Rate.number > 0
	}
	switch d := here.scenario.Duration; {
	case sum != d:
		return here.refuse("arrival.steps", fmt.Sprintf("they take %v, the run %v", sum, d), "steps that take as long as the run")
	case !some:
		return here.refuse("arrival.steps", "all are 0", "at least one rate above 0")
	}
	return nil
}

// curve is the shape along which the rate changes, for an allowance of so many
// requests per minute; nil: the rate stays.
func (p Population) curve(perMinute int64, d time.Duration) (*arrival.Curve, error) {
	a := p.Arrival
	var err error
	rate := func(l Level) arrival.Rate {
		r, e := l.of(perMinute)
		if err == nil {
			err = e
		}
		return r
	}
	var c *arrival.Curve
	var bad error
	switch {
	case a.On > 0:
		c, bad = arrival.OnOff(rate(Level(p.Rate)), a.On, a.Off)
	case a.Ramp != nil:
		c, bad = arrival.Ramp(rate(a.Ramp.From), rate(a.Ramp.To), d)
	case a.Sine != nil:
		c, bad = arrival.Sine(rate(Level(a.Sine.Mean)), rate(a.Sine.Amplitude), a.Sine.Period)
	case len(a.Steps) > 0:
		var pieces []arrival.Piece
		for _, s := range a.Steps {
			pieces = append(pieces, arrival.Piece{For: s.For, Rate: rate(s.Rate)})
		}
		c, bad = arrival.Steps(pieces)
	}
	if err != nil {
		return nil, err
	}
	return c, bad
}
