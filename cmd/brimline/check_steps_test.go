package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/steps"
)

func TestCheckListsItsSentences(t *testing.T) {
	code, stdout, stderr := runCheck(t, "--steps")
	require.Equal(t, exitHolds, code, stderr)
	for _, line := range []string{
		"overrides\n",
		"  When  their <rate|burst|cap> is <set|raised|lowered> by an override\n",
		"  Given a user with the whole cap in flight\n        as many requests as the cap, each seen to be in flight  [needs hold]\n",
		"        a table of names and numbers follows\n",
		"  hold         a request that stays in flight until it is let go, or for a known time\n",
	} {
		require.Contains(t, stdout, line)
	}

	code, stdout, stderr = runCheck(t, "--steps", "--json")
	require.Equal(t, exitHolds, code, stderr)
	var all []steps.Sentence
	require.NoError(t, json.Unmarshal([]byte(stdout), &all))
	require.Len(t, all, len(steps.NewDictionary().Sentences()))

	for _, other := range []string{"--target=x", "--clauses=RATE-1", "--out=x", "--list", "--plan"} {
		code, _, stderr := runCheck(t, "--steps", other)
		require.Equal(t, exitUsage, code, other)
		require.Contains(t, stderr, "--steps")
	}
}
