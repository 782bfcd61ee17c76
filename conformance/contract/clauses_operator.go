package contract

// operatorGroups is what concerns callers without a key and those who run the
// service.
func operatorGroups() []Group {
	return []Group{
		{Name: "before authentication", Clauses: []Clause{
			{ID: "ANON-1", Level: Must, Needs: []Need{NeedHTTP}, Sentence: "Attempts that do not authenticate are held to 30 per minute, burst 10, per client address, missing and wrong credentials alike."},
			{ID: "ANON-2", Level: Must, Needs: []Need{NeedAddresses}, Sentence: "Addresses have separate pools, an IPv6 /64 being one address."},
			{ID: "ANON-3", Level: Must, Needs: []Need{NeedHoldAuth}, Sentence: "At most 5 attempts are in flight per address; the sixth gets 429 CONCURRENCY_LIMIT_EXCEEDED."},
			{ID: "ANON-4", Level: Must, Needs: []Need{NeedHTTP}, Sentence: "An anonymous rejection is generic: error shape, Retry-After of at least 1, X-Request-Id, no RateLimit header, no word of a user, plan or quota, no work and no charge."},
			{ID: "ANON-5", Level: Must, Needs: []Need{NeedHTTP, NeedHold}, Sentence: "Attempts never touch a user's bucket or cap, and users never touch an address's."},
			{ID: "ANON-6", Level: Must, Needs: []Need{NeedHoldAuth, NeedAudit}, Sentence: "An anonymous rejection comes before any store lookup or slow hash."},
			{ID: "ANON-7", Level: Decided, Needs: []Need{NeedHTTP}, Sentence: "A client that authenticates is held to its plan alone, and nobody who guesses keys behind the same address can lock it out."},
			{ID: "ANON-8", Level: Must, Needs: []Need{NeedProcess}, Sentence: "The anonymous rate, burst and cap and the trusted proxies are configuration."},
		}},
		{Name: "client address", Clauses: []Clause{
			{ID: "PROXY-1", Level: Must, Needs: []Need{NeedHTTP}, Sentence: "Forwarding headers of a sender that is no trusted proxy are ignored, and rotating them gains nothing."},
			{ID: "PROXY-2", Level: Must, Needs: []Need{NeedProxy}, Sentence: "From a trusted proxy the X-Forwarded-For chain is walked right to left, and the first valid address that is not trusted is the client."},
			{ID: "PROXY-3", Level: Must, Needs: []Need{NeedProxy}, Sentence: "A forged leftmost entry changes nothing."},
			{ID: "PROXY-4", Level: Decided, Needs: []Need{NeedProxy}, Sentence: "Several header lines are one list, every spelling of an address is that address, and at most 32 entries are walked."},
			{ID: "PROXY-5", Level: Decided, Needs: []Need{NeedProxy}, Sentence: "Exactly one configured header is honoured; without a valid untrusted entry in it the peer is the client."},
		}},
		{Name: "start and restart", Clauses: []Clause{
			{ID: "GUARD-1", Level: Must, Needs: []Need{NeedProcess}, Sentence: "With local storage and more than one replica the process refuses to start, says why, and never listens."},
			{ID: "GUARD-2", Level: Must, Needs: []Need{NeedProcess}, Sentence: "replicas is 1 and storage local by default, and a value that makes no sense is refused at start, by name."},
			{ID: "RESTART-1", Level: Must, Needs: []Need{NeedProcess, NeedMetrics}, Sentence: "After a restart on local storage each bucket is full, and startup counts one a process."},
			{ID: "RESTART-2", Level: Must, Needs: []Need{NeedRestart, NeedPolicy, NeedOperations, NeedAudit}, Sentence: "Plans, overrides, operations and log entries survive a restart."},
		}},
		{Name: "cache", Clauses: []Clause{
			{ID: "CACHE-1", Level: Must, Needs: []Need{NeedReference}, Sentence: "Local state is bounded: 100000 users at most, 15 minutes idle at most, both configurable."},
			{ID: "CACHE-2", Level: Decided, Needs: []Need{NeedReference}, Sentence: "A permit is never dropped, and a bucket only when it is full, unless the maximum size forces it, which is counted."},
		}},
		{Name: "metrics", Clauses: []Clause{
			{ID: "METRIC-1", Level: Must, Needs: []Need{NeedMetrics}, Sentence: "The limiter's meters are there under their names: startup, decisions and their duration, configuration failures, cache pressure, evictions and size."},
			{ID: "METRIC-2", Level: Must, Needs: []Need{NeedMetrics}, Sentence: "The limiter's labels are outcome, requests_per_minute, limiter, reason and cache alone: no user, address, key or path."},
		}},
		{Name: "billing page", Clauses: []Clause{
			{ID: "BILL-1", Level: Must, Needs: []Need{NeedPage, NeedPolicy}, Sentence: "The billing page shows the effective rate, burst and concurrency, tells a negotiated value from a plan's, and never shows reason or author."},
		}},
		{Name: "replicas", Clauses: []Clause{
			{ID: "DIST-1", Level: Must, Needs: []Need{NeedReplicas}, Sentence: "On shared storage any number of replicas keep every clause together, whichever of them answers."},
			{ID: "DIST-2", Level: Decided, Needs: []Need{NeedReplicas, NeedProcess}, Sentence: "A replica that dies gives its permits back within the lease, not earlier than its requests could still run."},
			{ID: "DIST-3", Level: Decided, Needs: []Need{NeedReplicas, NeedProcess}, Sentence: "With the store out of reach the answer is 503 RATE_LIMIT_CONFIGURATION_UNAVAILABLE, never unlimited, and service returns by itself."},
		}},
	}
}
