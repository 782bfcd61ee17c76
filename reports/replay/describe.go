package replay

import (
	"fmt"
	"time"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
)

// describe says what was read, what is taken for granted and what is missing.
func describe(log *accesslog.Log, seen Survey, q Question) record.Replay {
	r := record.Replay{
		Schema: record.ReplaySchema, Log: log.Quality, Scope: log.Scope,
		Entries: log.Quality.Entries, Attempts: log.Attempts.Len(), NotAttempts: log.NotAttempts, LeftOut: seen.LeftOut,
		Assumed: []string{}, Missing: []string{}, Warnings: []string{},
	}
	for _, p := range seen.Plans {
		r.AlreadyRefused += p.Refused
		r.Users += p.Users
	}
	if log.Quality.Format == record.FormatAPI {
		r.Pool = record.PoolUser
		describeOurs(&r, log, q)
	} else {
		r.Pool = record.PoolClient
		describeAccess(&r, q.Roster)
	}
	if q.Roster != nil {
		r.Pool = record.PoolUser
		r.Assumed = append(r.Assumed, "who is on which plan, and since when, is as the plan map has it; an override holds in place of the plan, and its attempts are in no plan's figures")
		if n := len(q.Roster.Restarts); n > 0 {
			r.Assumed = append(r.Assumed, fmt.Sprintf("every bucket is full again after each of %d restarts", n))
		}
	}
	return r
}

func describeAccess(r *record.Replay, known *roster.Roster) {
	l, every := r.Log, "every entry"
	if r.Scope != "" {
		every += " in scope"
	}
	pool, owner := "one pool per client address, since the log names no users", "client"
	if known != nil {
		pool, owner = "one pool per user, whose clients the plan map names", "user"
	}
	r.Assumed = append(r.Assumed,
		stampMeans(l),
		pool+"; "+every+" is an attempt, whatever its status",
		"every bucket is full when its "+owner+" is first seen",
		"entries of one second are decided in the order of the log",
	)
	if why := withoutDurations(l); why != "" {
		r.Missing = append(r.Missing, why)
	} else {
		r.Assumed = append(r.Assumed, "a request is in flight from its arrival for as long as the log says that it took")
	}
	if n := len(l.Zones); n > 1 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("stamps are of %d zones; all times here are UTC", n))
	}
	if l.Lists > 0 {
		r.Assumed = append(r.Assumed, fmt.Sprintf(
			"of the %d entries that begin with a list of addresses, the client is the last address that is no trusted proxy", l.Lists))
	}
	if l.Named > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"%d entries name a user; the pool is the client address all the same", l.Named))
	}
	if l.Clients <= 10 && l.Entries >= 100*int64(l.Clients) {
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"%d clients made %d entries: these may be proxies, each of which merges many users into one pool", l.Clients, l.Entries))
	}
}

func describeOurs(r *record.Replay, log *accesslog.Log, q Question) {
	if len(q.Rates) == 0 {
		r.Assumed = append(r.Assumed, "each decision is taken again with the allowance and the requests in flight recorded for it")
		return
	}
	r.Assumed = append(r.Assumed, "every bucket is full when its user is first seen")
	if runs := log.Decided[len(log.Decided)-1].Run + 1; runs > 1 {
		r.Assumed = append(r.Assumed, fmt.Sprintf("%d server processes one after another; no restart refills a bucket", runs))
	}
	if len(q.Concurrency) == 0 {
		return
	}
	r.Assumed = append(r.Assumed, "a request is in flight from its decision for as long as it took to answer")
	if r.AlreadyRefused > 0 {
		r.Missing = append(r.Missing, "how long requests that were refused would have taken: concurrency rejections are counted too low")
	}
}

// What a log must have before a constant minute says that its times were rewritten.
const (
	minuteEntries = 100
	minuteSpan    = 2 * time.Hour
	minuteShare   = 0.99
)

// refusal says why q cannot be answered from this log, or nothing.
func refusal(log *accesslog.Log, q Question) string {
	l := log.Quality
	span := l.Last.Sub(l.First)
	if l.Format != record.FormatAPI && l.ConstantMinute >= minuteShare && l.Entries >= minuteEntries && span >= minuteSpan {
		return fmt.Sprintf("%.1f %% of the entries carry one and the same minute of the hour over %.0f h: the times are not those of the requests, so nothing can be said on rates",
			100*l.ConstantMinute, span.Hours())
	}
	if len(q.Concurrency) > 0 && !log.Durations {
		return "the log has " + withoutDurations(l)
	}
	return ""
}

// stampMeans says what the time of an attempt is.
func stampMeans(l record.LogQuality) string {
	switch l.Stamp {
	case record.StampReceived:
		return "a stamp is when the request was received"
	case record.StampFinished:
		return "a stamp is when the request had been answered, and stands for its arrival: how long it took is not known"
	case record.StampArrival:
		return "a stamp is when the request had been answered; it arrived so much earlier as the log says that it took"
	}
	return "a stamp is the time of arrival; whether requests were received or finished at it is unknown"
}

// withoutDurations says why nothing is known of what was in flight, or nothing.
func withoutDurations(l record.LogQuality) string {
	switch {
	case l.Durations == 0:
		return "no durations, so nothing can be said on concurrency"
	case l.ResolutionMicros > 1e3:
		return "stamps of whole seconds, so nothing can be said on concurrency: what shares a second did not need to be in flight together"
	case l.Durations < 0.99:
		return fmt.Sprintf("no duration for %.1f %% of its entries, so nothing can be said on concurrency", 100*(1-l.Durations))
	}
	return ""
}
