package record

import (
	"errors"
	"fmt"
	"time"
)

// RunShard says that a run is one part of a larger one, cut by users. All of it
// but Index, Attempt and Clock is the same in every part.
type RunShard struct {
	Index   int64     `json:"index"` // from 0
	Of      int64     `json:"of"`
	Start   time.Time `json:"start"`   // that all were given; each began when its own clock showed it
	Traffic string    `json:"traffic"` // fingerprint of the whole run's users and requests
	Attempt time.Time `json:"attempt"` // when this try at the shard was made: a later one replaces it
	Clock   RunClock  `json:"clock"`
}

// RunClock is what a system says of its clock.
type RunClock struct {
	Known        bool  `json:"known"` // it says something
	Synchronised bool  `json:"synchronised"`
	MostOffUS    int64 `json:"most_off_us"` // its own bound; 0: none
}

// RunMerged says which parts a run was put together from. Its figures are those
// of the parts that are there.
type RunMerged struct {
	Of       int64         `json:"of"`
	Start    time.Time     `json:"start"`
	Traffic  string        `json:"traffic"`
	Parts    []RunPart     `json:"parts"`
	Missing  []int64       `json:"missing"`  // shards of which there is no part; nothing in the run stands for them
	Replaced []RunReplaced `json:"replaced"` // tries that a later one took the place of
}

// RunPart is one shard in a merged run.
type RunPart struct {
	Index       int64      `json:"index"`
	Attempt     time.Time  `json:"attempt"`
	Clock       RunClock   `json:"clock"`
	Users       int64      `json:"users"`
	ActualMS    int64      `json:"actual_ms"`
	Interrupted bool       `json:"interrupted"` // nothing of it is in the seconds after
	Generator   Generator  `json:"generator"`
	Limits      []string   `json:"limits"`
	Untold      []RunDoubt `json:"untold"`
}

// RunReplaced is a try at a shard whose figures are not in a merged run. What it
// sent came to the target all the same.
type RunReplaced struct {
	Index   int64     `json:"index"`
	Attempt time.Time `json:"attempt"`
	Sent    int64     `json:"sent"`
}

func (s RunShard) check(started time.Time) error {
	switch {
	case s.Of < 1 || s.Index < 0 || s.Index >= s.Of:
		return fmt.Errorf("shard %d of %d is none", s.Index, s.Of)
	case !started.Equal(s.Start):
		return errors.New("a shard's times do not count from the start of all shards")
	}
	return nil
}

// check holds the parts against what the run says as a whole.
func (m RunMerged) check(r Run) error {
	there := map[int64]bool{}
	users, results := int64(0), int64(0)
	for _, p := range m.Parts {
		there[p.Index] = true
		users += p.Users
		results += p.Generator.Results
	}
	for _, i := range m.Missing {
		there[i] = true
	}
	switch {
	case len(m.Parts) == 0 || int64(len(m.Parts)+len(m.Missing)) != m.Of || int64(len(there)) != m.Of:
		return fmt.Errorf("the merged and the missing shards are not %d", m.Of)
	case users != int64(len(r.Users)):
		return fmt.Errorf("users and those of the merged shards do not add up: %d and %d", len(r.Users), users)
	case results != r.Generator.Results:
		return fmt.Errorf("generator.results and those of the merged shards do not add up: %d and %d", r.Generator.Results, results)
	case !r.Started.Equal(m.Start):
		return errors.New("a merged run's times do not count from the start of its shards")
	}
	return nil
}

// checkParts holds a run against what it is a part of, and what it is made of.
func (r Run) checkParts() error {
	switch {
	case r.Shard != nil && r.Merged != nil:
		return errors.New("a shard is not merged")
	case r.Shard != nil:
		return r.Shard.check(r.Started)
	case r.Merged != nil:
		return r.Merged.check(r)
	}
	return nil
}
