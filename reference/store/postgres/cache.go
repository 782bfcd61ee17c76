package postgres

import (
	"context"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/invoicespec/brimline/reference/account"
)

// cache keeps what lookups have found, each until the first instant at which it
// changes by itself, and never longer than a time to live.
type cache struct {
	size int
	ttl  time.Duration
	fill singleflight.Group

	mu      sync.Mutex
	entries map[account.Digest]cached
	ofUser  map[string]map[account.Digest]bool
	// epoch counts the flushes. A lookup that began in an earlier one may have
	// seen what was there before, so it is not kept, and nobody who comes after
	// the flush waits for it.
	epoch uint64
}

type cached struct {
	record      account.Record
	from, until time.Time
}

func newCache(size int, ttl time.Duration) *cache {
	c := &cache{size: size, ttl: ttl}
	c.flush()
	return c
}

// lookup returns what is kept, or what find finds. Many who miss one key at once
// are one query; those who leave meanwhile leave the others theirs.
func (c *cache) lookup(ctx context.Context, d account.Digest, now func() time.Time, find func() (account.Record, error)) (account.Record, error) {
	rec, epoch, ok := c.get(d, now())
	if ok {
		return rec, nil
	}
	found := c.fill.DoChan(strconv.FormatUint(epoch, 36)+string(d[:]), func() (any, error) {
		from := now()
		rec, err := find()
		if err == nil {
			c.put(d, epoch, cached{record: rec, from: from, until: validUntil(rec, from.Add(c.ttl))})
		}
		return rec, err
	})
	select {
	case r := <-found:
		return r.Val.(account.Record), r.Err
	case <-ctx.Done():
		return account.Record{}, ctx.Err()
	}
}

// validUntil is the first instant at which a record is to be looked up anew.
func validUntil(rec account.Record, latest time.Time) time.Time {
	if b := rec.Subscription.Boundary; !b.IsZero() && b.Before(latest) {
		latest = b
	}
	for _, o := range rec.Overrides {
		if !o.Expires.IsZero() && o.Expires.Before(latest) {
			latest = o.Expires
		}
	}
	return latest
}

// get also says which epoch it is. What is kept is not used before it was looked
// up, as a clock that was set back would have it.
func (c *cache) get(d account.Digest, now time.Time) (account.Record, uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[d]
	return e.record, c.epoch, ok && !now.Before(e.from) && now.Before(e.until)
}

func (c *cache) put(d account.Digest, epoch uint64, e cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch != c.epoch {
		return
	}
	if _, there := c.entries[d]; !there && len(c.entries) >= c.size {
		for any := range c.entries {
			c.drop(any)
			break
		}
	}
	c.entries[d] = e
	user := e.record.User
	if c.ofUser[user] == nil {
		c.ofUser[user] = map[account.Digest]bool{}
	}
	c.ofUser[user][d] = true
}

// drop requires that c.mu is held.
func (c *cache) drop(d account.Digest) {
	user := c.entries[d].record.User
	delete(c.entries, d)
	delete(c.ofUser[user], d)
	if len(c.ofUser[user]) == 0 {
		delete(c.ofUser, user)
	}
}

// flushUser forgets one user.
func (c *cache) flushUser(user string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	for d := range c.ofUser[user] {
		c.drop(d)
	}
}

// flush forgets everything.
func (c *cache) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.entries = map[account.Digest]cached{}
	c.ofUser = map[string]map[account.Digest]bool{}
}
