package contract

// userGroups is what a client with a key can see: scope, pools, rate, headers,
// errors, concurrency.
func userGroups() []Group {
	return []Group{
		{Name: "scope", Clauses: []Clause{
			{ID: "SCOPE-1", Level: Must, Needs: []Need{NeedHTTP}, Sentence: "/v1/invoice and everything below it is limited."},
			{ID: "SCOPE-2", Level: Must, Needs: []Need{NeedHTTP, NeedOutside, NeedInternal, NeedHold}, Sentence: "Health, readiness, OpenAPI and internal routes are never limited, not even while the caller's pools are empty, and carry no RateLimit header."},
			{ID: "SCOPE-3", Level: Decided, Needs: []Need{NeedHTTP}, Sentence: "An unknown path or a wrong method below /v1/invoice/ is in scope: 404 or 405 in the error shape, one token spent, RateLimit headers present."},
			{ID: "SCOPE-4", Level: Decided, Needs: []Need{NeedHTTP}, Sentence: "No spelling of a path and no method reaches the engine unlimited."},
			{ID: "AUTH-1", Level: Decided, Needs: []Need{NeedHTTP, NeedPolicy}, Sentence: "A request without exactly one good key in an Authorization: Bearer header gets 401 UNAUTHENTICATED in the error shape without RateLimit headers, spends no user's token, and never learns which of these it was."},
			{ID: "AUTH-2", Level: Must, Needs: []Need{NeedReference}, Sentence: "Key, subscription, entitlements and overrides come from one store round trip a request, or from a cache filled by it."},
		}},
		{Name: "pools", Clauses: []Clause{
			{ID: "POOL-1", Level: Must, Needs: []Need{NeedKeys}, Sentence: "All keys of a user draw on one bucket."},
			{ID: "POOL-2", Level: Must, Needs: []Need{NeedKeys, NeedHold}, Sentence: "All keys of a user share one concurrency cap."},
			{ID: "POOL-3", Level: Must, Needs: []Need{NeedPlans}, Sentence: "Two users never share a bucket or a cap."},
		}},
		{Name: "request rate", Clauses: []Clause{
			{ID: "RATE-1", Level: Must, Needs: []Need{NeedHTTP, NeedPlans}, Sentence: "A full bucket admits exactly its burst at one instant, and the next request is rejected, whatever the plan."},
			{ID: "RATE-2", Level: Must, Needs: []Need{NeedHTTP, NeedPlans}, Sentence: "Over any time no more than the burst plus the rate times that time is admitted, and a client that waits gets its rate, whatever the plan."},
			{ID: "RATE-3", Level: Must, Needs: []Need{NeedHTTP}, Sentence: "Idle time never stores more than the burst."},
			{ID: "RATE-4", Level: Must, Needs: []Need{NeedHTTP, NeedInvalid, NeedFail, NeedEngine, NeedHold, NeedPolicy}, Sentence: "Every authenticated request whose policy resolves spends exactly one token, however it ends."},
			{ID: "RATE-5", Level: Must, Needs: []Need{NeedInvalid}, Sentence: "The token goes before validation: at an empty bucket an invalid request gets 429, not its validation error."},
			{ID: "RATE-6", Level: Must, Needs: []Need{NeedHold}, Sentence: "The rate is checked before the cap, and a rate rejection takes no permit: an empty bucket and a full cap give RATE_LIMIT_EXCEEDED."},
			{ID: "RATE-7", Level: Must, Needs: []Need{NeedAudit}, Sentence: "A rate rejection does no engine work and charges nothing."},
			{ID: "RATE-8", Level: Decided, Needs: []Need{NeedHTTP}, Sentence: "A rejected request spends nothing and never delays the next token."},
			{ID: "RATE-9", Level: Must, Needs: []Need{NeedHTTP}, Sentence: "Of many simultaneous requests at a full bucket exactly the burst, and what came back meanwhile, get past the rate limit; those of them above the cap get CONCURRENCY_LIMIT_EXCEEDED."},
			{ID: "RATE-10", Level: Decided, Needs: []Need{NeedHTTP}, Sentence: "Refill is continuous: an empty bucket gives one token every 60 / requests-per-minute seconds, not earlier and not later."},
		}},
		{Name: "headers", Clauses: []Clause{
			{ID: "HDR-1", Level: Must, Needs: []Need{NeedHTTP, NeedInvalid, NeedFail, NeedEngine, NeedHold}, Sentence: "Every authenticated invoice answer whose policy resolved carries RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset."},
			{ID: "HDR-2", Level: Must, Needs: []Need{NeedHTTP, NeedPlans}, Sentence: "RateLimit-Limit is the burst, not the rate."},
			{ID: "HDR-3", Level: Must, Needs: []Need{NeedHTTP}, Sentence: "RateLimit-Remaining is the whole tokens left after this request, rounded down, and 0 at a rate rejection."},
			{ID: "HDR-4", Level: Must, Needs: []Need{NeedHTTP}, Sentence: "RateLimit-Reset is the seconds until the bucket is full, rounded up."},
			{ID: "HDR-5", Level: Must, Needs: []Need{NeedHTTP}, Sentence: "A rate 429 carries Retry-After: the seconds until one token, rounded up, at least 1."},
			{ID: "HDR-6", Level: Must, Needs: []Need{NeedHTTP}, Sentence: "Waiting Retry-After seconds is enough: the next request is admitted."},
			{ID: "HDR-7", Level: Must, Needs: []Need{NeedHTTP}, Sentence: "Waiting RateLimit-Reset seconds is enough: the full burst is there."},
			{ID: "HDR-8", Level: Decided, Needs: []Need{NeedHTTP}, Sentence: "Each of these headers comes once, as a plain non-negative decimal integer, and Remaining is never above Limit."},
			{ID: "HDR-9", Level: Must, Needs: []Need{NeedHold}, Sentence: "The RateLimit headers say nothing about concurrency: with every permit taken they still describe the bucket."},
		}},
		{Name: "errors", Clauses: []Clause{
			{ID: "ERR-1", Level: Must, Needs: []Need{NeedHTTP}, Sentence: "An error body is a JSON object, sent as application/json, whose requestId, errorCode and message are non-empty strings."},
			{ID: "ERR-2", Level: Must, Needs: []Need{NeedHTTP}, Sentence: "X-Request-Id is on every answer in scope and equals the body's requestId, and no two requests share one."},
			{ID: "ERR-3", Level: Must, Needs: []Need{NeedHTTP}, Sentence: "An empty bucket answers 429 RATE_LIMIT_EXCEEDED."},
			{ID: "ERR-4", Level: Decided, Needs: []Need{NeedHTTP}, Sentence: "A 429 says Cache-Control: no-store."},
			{ID: "ERR-5", Level: Decided, Needs: []Need{NeedHTTP, NeedProxy}, Sentence: "The server mints every request id; one sent by a trusted proxy is a correlation id in the log, one sent by anybody else is ignored."},
		}},
		{Name: "concurrency", Clauses: []Clause{
			{ID: "CONC-1", Level: Must, Needs: []Need{NeedHold}, Sentence: "With the cap in flight the next request gets 429 CONCURRENCY_LIMIT_EXCEEDED in the error shape."},
			{ID: "CONC-2", Level: Must, Needs: []Need{NeedHold}, Sentence: "A concurrency 429 carries Retry-After: 1 and the three RateLimit headers of the bucket."},
			{ID: "CONC-3", Level: Must, Needs: []Need{NeedHold}, Sentence: "A concurrency rejection does not give its token back."},
			{ID: "CONC-4", Level: Must, Needs: []Need{NeedHold, NeedInvalid}, Sentence: "The cap comes before validation: at a full cap an invalid request gets 429."},
			{ID: "CONC-5", Level: Must, Needs: []Need{NeedHold, NeedAudit}, Sentence: "A concurrency rejection does no validation, no capacity operation and no engine work, and charges nothing."},
			{ID: "CONC-6", Level: Must, Needs: []Need{NeedHold}, Sentence: "Simultaneous requests never exceed the cap and are never rejected below it."},
		}},
		{Name: "permits", Clauses: []Clause{
			{ID: "PERMIT-1", Level: Must, Needs: []Need{NeedHold, NeedGates}, Sentence: "A permit is held until the response is written: responses that still stream count."},
			{ID: "PERMIT-2", Level: Must, Needs: []Need{NeedHold}, Sentence: "The permit comes back after success."},
			{ID: "PERMIT-3", Level: Must, Needs: []Need{NeedHold, NeedInvalid}, Sentence: "The permit comes back after a validation failure."},
			{ID: "PERMIT-4", Level: Must, Needs: []Need{NeedHold, NeedOperations}, Sentence: "The permit comes back after a capacity rejection."},
			{ID: "PERMIT-5", Level: Must, Needs: []Need{NeedHold, NeedFail, NeedEngine}, Sentence: "The permit comes back after an engine failure, a panic included."},
			{ID: "PERMIT-6", Level: Must, Needs: []Need{NeedHold, NeedEngine, NeedGates}, Sentence: "The permit comes back after a timeout, once the timed-out work has really ended."},
			{ID: "PERMIT-7", Level: Must, Needs: []Need{NeedHold, NeedUpload, NeedGates}, Sentence: "The permit comes back after the client disconnects, be it in the upload, before the response or during it."},
			{ID: "PERMIT-8", Level: Must, Needs: []Need{NeedHold}, Sentence: "A permit comes back exactly once: after any mix of endings the cap is neither smaller nor larger."},
		}},
	}
}
