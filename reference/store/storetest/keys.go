package storetest

import (
	"strings"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

func keyCases() []testCase {
	return []testCase{
		{"POOL-1 every key of a user finds that user", everyKeyFindsItsUser},
		{"AUTH-1 an unknown key and a revoked one look alike", unknownAndRevokedLookAlike},
		{"AUTH-1 a key is its user's to revoke", keysAreTheirUsers},
		{"a store knows of a key what its owner needs, and not the key", keysAreListed},
		{"a key is revoked by its id or its prefix", keysAreRevokedByName},
		{"a user has so many good keys and no more", keysAreBounded},
		{"a user is known from its creation on", usersAreKnown},
		{"nothing is done for a user that does not exist", nobody},
	}
}

func everyKeyFindsItsUser(s *session) {
	alice, keys, err := s.CreateUser(s.ctx, "free", 2)
	s.NoError(err)
	s.Len(keys, 2)
	third, err := s.AddKey(s.ctx, alice)
	s.NoError(err)
	bob, bobs := s.user("pro")
	s.NotEqual(alice, bob)
	ids := map[string]bool{}
	for _, k := range append(keys, third) {
		rec := s.lookup(k)
		s.Equal(alice, rec.User)
		s.Equal("free", rec.PlanAt(s.clock.Now()))
		ids[rec.KeyID] = true
	}
	s.Len(ids, 3, "each key has an id of its own")
	s.NotContains(ids, s.lookup(bobs).KeyID)
	s.Equal(bob, s.lookup(bobs).User)
}

func unknownAndRevokedLookAlike(s *session) {
	alice, keys, err := s.CreateUser(s.ctx, "free", 2)
	s.NoError(err)
	never, err := account.NewKey("free")
	s.NoError(err)
	s.lookup(keys[0])
	s.NoError(s.RevokeKey(s.ctx, alice, keys[0]))
	none, unknown := s.Lookup(s.ctx, s.Digest(never))
	gone, revoked := s.Lookup(s.ctx, s.Digest(keys[0]))
	s.ErrorIs(revoked, account.ErrUnknownKey, "the very next request")
	s.Equal(unknown, revoked)
	s.Equal(none, gone)
	s.Equal(account.Record{}, gone)
	s.Equal(alice, s.lookup(keys[1]).User, "the other key is still good")
	s.ErrorIs(s.RevokeKey(s.ctx, alice, keys[0]), account.ErrUnknownKey)
}

func keysAreTheirUsers(s *session) {
	alice, _ := s.user("free")
	_, bobs := s.user("free")
	s.ErrorIs(s.RevokeKey(s.ctx, alice, bobs), account.ErrUnknownKey)
	s.ErrorIs(s.RevokeKeyNamed(s.ctx, alice, bobs.Prefix()), account.ErrUnknownKey)
	s.ErrorIs(s.RevokeKeyNamed(s.ctx, alice, s.lookup(bobs).KeyID), account.ErrUnknownKey)
	s.lookup(bobs)
}

func keysAreListed(s *session) {
	alice, first := s.user("free")
	created := s.now()
	s.clock.Advance(just)
	second, err := s.AddKey(s.ctx, alice)
	s.NoError(err)
	added := s.now()
	s.clock.Advance(just)
	s.NoError(s.RevokeKey(s.ctx, alice, first))
	infos, err := s.Keys(s.ctx, alice)
	s.NoError(err)
	s.Len(infos, 2)
	s.Equal(s.lookup(second).KeyID, infos[1].ID)
	s.NotEqual(infos[0].ID, infos[1].ID)
	infos[0].ID, infos[1].ID = "", ""
	s.Equal([]account.KeyInfo{
		{Prefix: first.Prefix(), Created: created, Revoked: s.now()},
		{Prefix: second.Prefix(), Created: added},
	}, infos)
	s.Less(len(infos[1].Prefix), len(second.Reveal())-16)
}

func keysAreRevokedByName(s *session) {
	alice, keys, err := s.CreateUser(s.ctx, "free", 3)
	s.NoError(err)
	s.NoError(s.RevokeKeyNamed(s.ctx, alice, s.lookup(keys[0]).KeyID))
	s.NoError(s.RevokeKeyNamed(s.ctx, alice, keys[1].Prefix()))
	for _, k := range keys[:2] {
		_, err := s.Lookup(s.ctx, s.Digest(k))
		s.ErrorIs(err, account.ErrUnknownKey)
		s.ErrorIs(s.RevokeKeyNamed(s.ctx, alice, k.Prefix()), account.ErrUnknownKey)
	}
	s.lookup(keys[2])
	err = s.RevokeKeyNamed(s.ctx, alice, keys[0].Reveal())
	s.ErrorIs(err, account.ErrUnknownKey)
	s.NotContains(err.Error(), keys[0].Reveal())
}

func keysAreBounded(s *session) {
	_, _, err := s.CreateUser(s.ctx, "free", account.MaxKeys+1)
	s.ErrorIs(err, account.ErrFull)
	alice, keys, err := s.CreateUser(s.ctx, "free", account.MaxKeys)
	s.NoError(err)
	_, err = s.AddKey(s.ctx, alice)
	s.ErrorIs(err, account.ErrFull)
	s.NoError(s.RevokeKey(s.ctx, alice, keys[0]))
	k, err := s.AddKey(s.ctx, alice)
	s.NoError(err, "a revoked key leaves its place")
	s.lookup(k)
}

func usersAreKnown(s *session) {
	alice, _ := s.user("free")
	for id, want := range map[string]bool{
		alice: true, alice + "0": false, "nobody": false, "": false, "user-": false, "user-0": false, "user-01": false,
		"user-99999999999999999999": false, strings.ToUpper(alice): false, alice + "\x00": false, "\xff": false,
	} {
		known, err := s.Known(s.ctx, id)
		s.NoError(err)
		s.Equal(want, known, "%q", id)
	}
	_, _, err := s.CreateUser(s.ctx, "gold", 1)
	s.ErrorIs(err, account.ErrUnknownPlan)
	s.ErrorContains(err, `"gold"`)
}

func nobody(s *session) {
	const id = "nobody"
	_, add := s.AddKey(s.ctx, id)
	_, keys := s.Keys(s.ctx, id)
	_, schedule := s.SchedulePlan(s.ctx, id, "free")
	_, end := s.EndPeriod(s.ctx, id)
	_, billing := s.Billing(s.ctx, id)
	_, overrides := s.Overrides(s.ctx, id)
	for name, err := range map[string]error{
		"add":         add,
		"keys":        keys,
		"schedule":    schedule,
		"end period":  end,
		"billing":     billing,
		"overrides":   overrides,
		"revoke":      s.RevokeKey(s.ctx, id, account.Key{}),
		"by name":     s.RevokeKeyNamed(s.ctx, id, "x"),
		"cancel":      s.CancelPlan(s.ctx, id),
		"plan":        s.SetPlan(s.ctx, id, "free"),
		"operations":  s.SetOperations(s.ctx, id, 1),
		"override":    s.SetOverride(s.ctx, id, override(policy.Burst, "1"), note("x")),
		"end":         s.EndOverride(s.ctx, id, policy.Burst, note("x")),
		"entitlement": s.StoreEntitlement(s.ctx, id, policy.Burst, "x"),
		"remove":      s.RemoveEntitlement(s.ctx, id, policy.Burst),
		"mend":        s.MendEntitlements(s.ctx, id),
		"stored":      s.StoreOverride(s.ctx, id, override(policy.Burst, "x")),
		"reserve":     s.Reserve(s.ctx, id, "r"),
	} {
		s.ErrorIs(err, account.ErrUnknownUser, name)
		s.ErrorContains(err, `"nobody"`, name)
	}
}
