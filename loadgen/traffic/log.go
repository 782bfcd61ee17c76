package traffic

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/dice"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/timeline"
)

// maxLog bounds a log to replay, in bytes as it is on disk.
const maxLog = 2 << 30

// replayed are the processes of users who ask when the clients of a log did: the
// first user when the client did who comes first in it, and so on. The log's
// first request is the start of the run.
func (s Scenario) replayed(here at, p Population, names []string) ([]arrival.Process, error) {
	log, err := s.log(p.Arrival.Replay)
	if err != nil {
		return nil, here.refuse("arrival.replay", err.Error(), "an access log, plain or gzip")
	}
	defer log.Close()
	attempts, err := all(log)
	if err != nil {
		return nil, err
	}
	users := map[uint32]int{} // by the log's clients, in order of their first requests
	for _, a := range attempts {
		if _, ok := users[a.Pool]; !ok {
			users[a.Pool] = len(users)
		}
	}
	if len(users) < len(names) {
		return nil, here.refuse("users", fmt.Sprintf("%d, and %s has %d clients", len(names), p.Arrival.Replay, len(users)), fmt.Sprintf("1 to %d", len(users)))
	}
	times := make([][]time.Duration, len(names))
	spread := seconds{coarse: log.Quality.ResolutionMicros >= 1e6}
	first := attempts[0].At
	for _, a := range attempts {
		at := time.Duration(float64(a.At-first) * 1000 / p.Arrival.speed())
		if at >= s.Duration {
			break
		}
		if user := users[a.Pool]; user < len(names) {
			times[user] = append(times[user], at)
		}
	}
	processes := make([]arrival.Process, len(names))
	for i, list := range times {
		spread.over(list, time.Duration(float64(time.Second)/p.Arrival.speed()), dice.New(s.Seed, "replay", names[i]))
		processes[i] = arrival.Times(list)
	}
	return processes, nil
}

// all are the attempts of a log, whose size is bounded.
func all(log *accesslog.Log) (list []timeline.Attempt, err error) {
	for batch, err := range log.Attempts.Batches(context.Background()) {
		if err != nil {
			return nil, err
		}
		list = append(list, batch...)
	}
	return list, nil
}

// seconds spreads what a log says of whole seconds alone.
type seconds struct{ coarse bool }

// over puts the requests of one user that the log has in one second at even
// distances within it: the log does not say that they came together.
func (s seconds) over(list []time.Duration, second time.Duration, d dice.Dice) {
	for i := 0; s.coarse && i < len(list); {
		n := 1
		for i+n < len(list) && list[i+n] == list[i] {
			n++
		}
		phase, step := d.At(int64(i)), float64(second)/float64(n)
		for k := range n {
			list[i+k] += time.Duration((float64(k) + phase) * step)
		}
		i += n
	}
}

// log reads a log that the scenario names.
func (s Scenario) log(name string) (*accesslog.Log, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.folder, path)
	}
	switch info, err := os.Stat(path); {
	case err != nil:
		pe := (*fs.PathError)(nil)
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: a folder, a pipe or a device", path)
	case info.Size() > maxLog:
		return nil, fmt.Errorf("%s: more than %d bytes", path, maxLog)
	}
	log, err := accesslog.Read(context.Background(), []accesslog.Source{accesslog.File(path)}, accesslog.Options{})
	if err != nil {
		return nil, err
	}
	if log.Attempts.Len() == 0 {
		return nil, fmt.Errorf("%s: no request in it is a user's", path)
	}
	return log, nil
}
