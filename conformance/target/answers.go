package target

import (
	"time"

	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/internal/strictjson"
)

// shape is what an answer has to look like that nobody but its deployment has
// looked at before.
type shape = strictjson.Value

// Bounds of what an answer holds.
const (
	maxWord    = 256     // an id, a plan, a date
	maxText    = 4 << 10 // a key, a reason
	maxRaw     = 1 << 20 // a log entry
	maxEntries = 10_000
	maxCount   = 1 << 53
)

// lookupsUnknown is the number of lookups where nobody counts them.
const lookupsUnknown = -1

type members = map[string]strictjson.Value

// word is text that is not empty.
func word(dst *string, most int) shape {
	return func(r *strictjson.Reader, place string) error {
		if err := strictjson.Text(dst, most)(r, place); err != nil {
			return err
		}
		if *dst == "" {
			return strictjson.Fail(place, "empty")
		}
		return nil
	}
}

// date is an instant; optional: or an empty text.
func date(dst *string, optional bool) shape {
	return func(r *strictjson.Reader, place string) error {
		if err := strictjson.Text(dst, maxWord)(r, place); err != nil {
			return err
		}
		if _, err := time.Parse(time.RFC3339Nano, *dst); err != nil && (!optional || *dst != "") {
			return strictjson.Fail(place, "want an instant as in RFC 3339")
		}
		return nil
	}
}

func count(dst *int64) shape { return strictjson.Int(dst, 0, maxCount) }

func userShape(answer any) shape {
	a := answer.(*control.User)
	return strictjson.Object(members{
		"id": word(&a.ID, maxWord), "plan": word(&a.Plan, maxWord),
		"keys": strictjson.Array(16, func(i int) strictjson.Value {
			a.Keys = append(a.Keys, "")
			return word(&a.Keys[i], maxText)
		}),
	})
}

func keyShape(answer any) shape {
	return strictjson.Object(members{"key": word(&answer.(*control.Key).Key, maxText)})
}

func periodShape(answer any) shape {
	a := answer.(*control.Period)
	return strictjson.Object(members{
		"start": date(&a.Start, false), "end": date(&a.End, false), "plan": word(&a.Plan, maxWord),
		"scheduled": strictjson.Text(&a.Scheduled, maxWord),
	}, "scheduled")
}

func historyShape(answer any) shape {
	a := answer.(*control.History)
	return strictjson.Object(members{"entries": strictjson.List(maxEntries, func(i int) strictjson.Value {
		a.Entries = append(a.Entries, control.PastOverride{})
		e := &a.Entries[i]
		return strictjson.Object(members{
			"dimension": word(&e.Dimension, maxWord), "value": strictjson.Text(&e.Value, maxText), "set": date(&e.Set, false),
			"expires": date(&e.Expires, true), "ended": date(&e.Ended, true),
			"reason": strictjson.Text(&e.Reason, maxText), "author": strictjson.Text(&e.Author, maxText),
		}, "expires", "ended", "reason", "author")
	})})
}

func usageShape(answer any) shape {
	a := answer.(*control.Usage)
	return strictjson.Object(members{"left": strictjson.Int(&a.Left, -maxCount, maxCount), "used": count(&a.Used)})
}

func clockShape(answer any) shape {
	a := answer.(*control.Clock)
	return strictjson.Object(members{
		"now": date(&a.Now, false),
		"mode": func(r *strictjson.Reader, place string) error {
			if err := strictjson.Text((*string)(&a.Mode), maxWord)(r, place); err != nil {
				return err
			}
			if a.Mode != control.ClockShifted && a.Mode != control.ClockFrozen {
				return strictjson.Fail(place, "want shifted or frozen")
			}
			return nil
		},
	})
}

func gateShape(answer any) shape {
	a := answer.(*control.Gate)
	var waiting int64
	return strictjson.Object(members{
		"closed": strictjson.Bool(&a.Closed),
		"waiting": func(r *strictjson.Reader, place string) error {
			err := strictjson.Int(&waiting, 0, 1_000_000)(r, place)
			a.Waiting = int(waiting)
			return err
		},
	})
}

func auditShape(answer any) shape {
	a := answer.(*control.Audit)
	a.KeyLookups = lookupsUnknown
	return strictjson.Object(members{
		"entries": strictjson.List(maxEntries, func(i int) strictjson.Value {
			a.Entries = append(a.Entries, control.Entry{})
			return entryShape(&a.Entries[i])
		}),
		"engine_calls": count(&a.EngineCalls), "charges": count(&a.Charges), "key_lookups": count(&a.KeyLookups),
	}, "key_lookups")
}

func entryShape(e *control.Entry) shape {
	return strictjson.Object(members{
		"request_id": word(&e.RequestID, maxWord), "user": strictjson.Text(&e.User, maxWord),
		"status": func(r *strictjson.Reader, place string) error {
			var n int64
			err := strictjson.Int(&n, 100, 999)(r, place)
			e.Status = int(n)
			return err
		},
		"rejected": strictjson.Bool(&e.Rejected), "error_code": strictjson.Text(&e.ErrorCode, maxWord), "raw": word(&e.Raw, maxRaw),
	}, "user", "error_code")
}
