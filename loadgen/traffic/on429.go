package traffic

import (
	"fmt"
	"time"

	"github.com/invoicespec/brimline/loadgen/manners"
)

// On429 is what a user does who meets a 429: a word, or a mapping.
type On429 struct {
	Word        Reaction
	Backoff     *Backoff `yaml:"backoff,omitempty"`
	Then        Reaction `yaml:"then,omitempty"`          // until they give up; empty: ignore
	GiveUpAfter int64    `yaml:"give-up-after,omitempty"` // 429s in a row; 0: not given, so never
}

// Backoff is how long a user waits by themselves.
type Backoff struct {
	First time.Duration `yaml:"first"`
	Max   time.Duration `yaml:"max"`
}

// Reaction is a word for what a user does.
type Reaction string

// The words.
const (
	Ignore         Reaction = "ignore"           // asks on as if nothing had been
	Obey           Reaction = "obey-retry-after" // does not ask until the time that the answer names
	ObeyWithJitter Reaction = "obey-with-jitter" // the same, and up to half as long again
)

// UnmarshalText reads one.
func (r *Reaction) UnmarshalText(text []byte) error {
	if *r = Reaction(text); *r != Ignore && *r != Obey && *r != ObeyWithJitter {
		return fmt.Errorf("%.12q is not known; accepted: %s, %s, %s", text, Ignore, Obey, ObeyWithJitter)
	}
	return nil
}

// UnmarshalText reads a word.
func (o *On429) UnmarshalText(text []byte) error {
	if err := o.Word.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, or keys backoff, give-up-after", err)
	}
	return nil
}

// maxRefusals bounds give-up-after.
const maxRefusals = 1_000_000

func on429MakesSense(here at, p Population) error {
	o := p.On429
	switch b := o.Backoff; {
	case o.Word != "":
		return nil
	case b == nil && !here.has("on-429.give-up-after"):
		return here.refuse("on-429", "says neither how to back off nor when to give up", "backoff, give-up-after, or a word")
	case b != nil && o.Then != "":
		return here.refuse("on-429.then", "beside backoff", "one of the two")
	case b != nil && (b.First < time.Millisecond || b.First > MaxDuration):
		return here.refuse("on-429.backoff.first", b.First.String()+" is out of range", "1ms to 24h")
	case b != nil && (b.Max < b.First || b.Max > MaxDuration):
		return here.refuse("on-429.backoff.max", b.Max.String()+" is out of range", b.First.String()+" to 24h")
	case here.has("on-429.give-up-after") && (o.GiveUpAfter < 1 || o.GiveUpAfter > maxRefusals):
		return here.refuse("on-429.give-up-after", fmt.Sprintf("%d is out of range", o.GiveUpAfter), fmt.Sprintf("1 to %d 429s in a row", maxRefusals))
	}
	return nil
}

// Manners are what it comes to.
func (o On429) Manners() manners.Manners {
	if o.Backoff != nil {
		return manners.BackOff(o.Backoff.First, o.Backoff.Max).GivingUpAfter(o.GiveUpAfter)
	}
	m := manners.Ignore()
	switch {
	case o.Word == Obey || o.Then == Obey:
		m = manners.Obey()
	case o.Word == ObeyWithJitter || o.Then == ObeyWithJitter:
		m = manners.ObeyWithJitter()
	}
	return m.GivingUpAfter(o.GiveUpAfter)
}

func (o On429) String() string { return o.Manners().String() }
