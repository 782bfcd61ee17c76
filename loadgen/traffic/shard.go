package traffic

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/invoicespec/brimline/conformance/target"
)

// MaxShards bounds the parts that a run can be cut into.
const MaxShards = 1000

// Shard is one of the parts that a scenario's users are cut into, so that several
// machines send what one would. A user belongs to one shard, by name alone: all
// that is known of a user from the outside, bucket, Retry-After and requests in
// flight, is then known to one clock. The zero value is the whole.
type Shard struct{ Index, Of int }

// ParseShard reads "0/4", the first of four.
func ParseShard(text string) (Shard, error) {
	index, of, _ := strings.Cut(text, "/")
	i, err := strconv.Atoi(index)
	n, err2 := strconv.Atoi(of)
	if err != nil || err2 != nil || n < 1 || n > MaxShards || i < 0 || i >= n {
		return Shard{}, fmt.Errorf("%.16q is no shard; accepted: i/n such as 0/4, i from 0 to n-1, n up to %d", text, MaxShards)
	}
	return Shard{i, n}, nil
}

// Whole reports whether there is but this one.
func (s Shard) Whole() bool { return s.Of < 2 }

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// Has reports whether a user belongs to the shard. It never changes: shards of
// different versions would else send some users twice.
func (s Shard) Has(user string) bool {
	sum := sha256.Sum256([]byte(user))
	return s.Whole() || binary.BigEndian.Uint64(sum[:])%uint64(s.Of) == uint64(s.Index)
}

// Members are those of a cast that belong to the shard.
func (s Shard) Members(cast []Member) []Member {
	return slices.DeleteFunc(slices.Clone(cast), func(m Member) bool { return !s.Has(m.Name) })
}

// Empty is the first shard of as many that no member belongs to; false: each has
// some.
func (s Shard) Empty(cast []Member) (Shard, bool) {
	for i := range s.Of {
		if part := (Shard{i, s.Of}); len(part.Members(cast)) == 0 {
			return part, true
		}
	}
	return Shard{}, false
}

// Roster lends out users and knows how many it has; a [target.Target] does.
type Roster interface {
	Lender
	UsersOn(plan string) int // -1: they are made as needed
}

// Recruit gives every member of a cast that belongs to the shard a user of the
// target, and returns these members. Which user is whose does not depend on the
// shard: of a list of users everybody's is lent, in the cast's order, and those of
// other shards are left alone. Where the target makes users, only the shard's own
// are made.
func (s Shard) Recruit(ctx context.Context, from Roster, cast []Member) ([]Member, error) {
	if s.Whole() {
		return cast, Recruit(ctx, from, cast)
	}
	cast = slices.Clone(cast)
	if err := settle(from, cast); err != nil { // among all: nobody's address depends on the shard either
		return nil, err
	}
	lent := slices.DeleteFunc(cast, func(m Member) bool { return from.UsersOn(m.Plan) < 0 && !s.Has(m.Name) })
	err := lease(ctx, sharing{from}, lent)
	return s.Members(lent), err
}

// sharing lends to a shard that must not take what is another's.
type sharing struct{ Roster }

var errNotMade = errors.New("the target has users made, made none, and another shard might take the same of its keys file: offer no control, or no keys file")

func (s sharing) Lease(ctx context.Context, plan string, keys int) (*target.User, error) {
	u, err := s.Roster.Lease(ctx, plan, keys)
	if err == nil && s.UsersOn(plan) < 0 && u.Used() {
		return nil, errNotMade
	}
	return u, err
}

// Fingerprint names the traffic of a cast: what another machine plans under the
// same fingerprint is the same, request by request.
func Fingerprint(seed int64, cast []Member) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n", seed)
	for _, m := range cast {
		first := m.Process.Schedule(seed, m.Name).Next()
		fmt.Fprintf(h, "%q %q %d %v %d %d %v %v %v\n", m.Name, m.Plan, m.Population, m.Allowance, m.Planned, first, m.On429, m.Mix.weights(), m.Wants)
	}
	return hex.EncodeToString(h.Sum(nil))
}
