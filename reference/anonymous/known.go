package anonymous

import (
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/bucket"
)

// known is the digests of keys that were lately seen good, with the instant each
// last was. There are two generations: a digest that is seen goes into the young
// one; when that has half of the room or is as old as a digest may be, it becomes
// the old one, and what was old is gone. So nothing is searched for a victim, and
// those who come and go as usual are not forgotten while others come.
type known struct {
	half  int            // most digests of one generation
	keep  bucket.Instant // how many microseconds a digest is good
	begun bucket.Instant
	young map[account.Digest]bucket.Instant
	old   map[account.Digest]bucket.Instant
}

func newKnown(most int, keep time.Duration) known {
	return known{
		half:  max(most/2, 1),
		keep:  bucket.Instant(keep / time.Microsecond),
		young: map[account.Digest]bucket.Instant{},
	}
}

// has reports whether d was seen less than the time to keep ago.
func (k *known) has(d account.Digest, now bucket.Instant) bool {
	seen, ok := k.young[d]
	if !ok {
		seen, ok = k.old[d]
	}
	return ok && k.fresh(seen, now)
}

// add notes that d was seen.
func (k *known) add(d account.Digest, now bucket.Instant) {
	_, young := k.young[d]
	if !k.fresh(k.begun, now) || !young && len(k.young) == k.half {
		k.old, k.young, k.begun = k.young, map[account.Digest]bucket.Instant{}, now
	}
	delete(k.old, d)
	k.young[d] = now
}

// touch notes that d was seen, if it was not dropped meanwhile.
func (k *known) touch(d account.Digest, now bucket.Instant) {
	if k.has(d, now) {
		k.add(d, now)
	}
}

func (k *known) drop(d account.Digest) {
	delete(k.young, d)
	delete(k.old, d)
}

func (k *known) size() int { return len(k.young) + len(k.old) }

func (k *known) fresh(seen, now bucket.Instant) bool {
	return now-seen < k.keep
}
