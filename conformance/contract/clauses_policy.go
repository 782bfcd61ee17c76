package contract

// policyGroups is what can be seen once log entries can be read and plans,
// overrides and entitlements be changed.
func policyGroups() []Group {
	return []Group{
		{Name: "audit", Clauses: []Clause{
			{ID: "LOG-1", Level: Must, Needs: []Need{NeedAudit, NeedHold}, Sentence: "A 429 of either kind is one log entry, marked rejected, with its error code."},
			{ID: "LOG-2", Level: Must, Needs: []Need{NeedAudit}, Sentence: "An anonymous rejection is one log entry without credentials or request content."},
			{ID: "LOG-3", Level: Must, Needs: []Need{NeedAudit}, Sentence: "Every other request in scope is one log entry as well, and no entry ever holds a key or a body."},
			{ID: "LOG-4", Level: Must, Needs: []Need{NeedAudit}, Sentence: "A successful operation is charged once; nothing else is charged."},
			{ID: "LOG-5", Level: Decided, Needs: []Need{NeedProcess, NeedKeptLog}, Sentence: "The entry of an answered request survives a stop, a kill and an outage of the database while the spool has room; a spool error never fails a request."},
			{ID: "LOG-6", Level: Decided, Needs: []Need{NeedProcess, NeedKeptLog}, Sentence: "Delivering an entry twice stores it once."},
			{ID: "LOG-7", Level: Decided, Needs: []Need{NeedAudit, NeedFail, NeedEngine, NeedOperations, NeedGates}, Sentence: "The capacity check reserves one operation; success charges it, failure and timeout give it back, and a dead process's reservation lapses after the request timeout."},
			{ID: "LOG-8", Level: Decided, Needs: []Need{NeedHTTP, NeedAudit}, Sentence: "What the HTTP parser refuses before any handler is out of scope: no request id, no entry."},
		}},
		{Name: "plans", Clauses: []Clause{
			{ID: "PLAN-1", Level: Must, Needs: []Need{NeedPlans}, Sentence: "The allowance of each plan is what its entitlements say, and no plan is unlimited."},
			{ID: "PLAN-2", Level: Must, Needs: []Need{NeedPolicy, NeedSchedule, NeedClock}, Sentence: "A scheduled plan has no effect before the billing-period boundary and its full effect at it, without a restart."},
			{ID: "PLAN-3", Level: Must, Needs: []Need{NeedPolicy, NeedOperations, NeedHold}, Sentence: "Using up, buying or changing operations never changes rate, burst or concurrency, nor the reverse."},
		}},
		{Name: "overrides", Clauses: []Clause{
			{ID: "OVR-1", Level: Must, Needs: []Need{NeedPolicy, NeedHold}, Sentence: "An active override replaces its one dimension for its one user; the others keep the plan's values."},
			{ID: "OVR-2", Level: Must, Needs: []Need{NeedPolicy, NeedHold}, Sentence: "An override may raise or lower."},
			{ID: "OVR-3", Level: Must, Needs: []Need{NeedPolicy}, Sentence: "An override that is no positive integer in range is refused where it is written and changes nothing."},
			{ID: "OVR-4", Level: Must, Needs: []Need{NeedPolicy, NeedClock, NeedHold}, Sentence: "At an override's expiry the plan's value is back by itself."},
			{ID: "OVR-5", Level: Must, Needs: []Need{NeedPolicy, NeedClock}, Sentence: "Adding, changing or expiring an override keeps the used share of the bucket."},
			{ID: "OVR-6", Level: Must, Needs: []Need{NeedPolicy, NeedInternal, NeedHistory}, Sentence: "A user's key can never write an override."},
			{ID: "OVR-7", Level: Decided, Needs: []Need{NeedPolicy, NeedHistory, NeedClock}, Sentence: "At most one override a user and dimension is active; a new one replaces it, and the replaced one stays in the audit trail."},
			{ID: "OVR-8", Level: Decided, Needs: []Need{NeedPolicy}, Sentence: "An override can be set for a user of any plan and stays with the user over plan changes until it ends."},
		}},
		{Name: "plan changes", Clauses: []Clause{
			{ID: "CHG-1", Level: Must, Needs: []Need{NeedPolicy}, Sentence: "An upgrade keeps the used share of the bucket: half of the old burst used means half of the new one is there, now."},
			{ID: "CHG-2", Level: Must, Needs: []Need{NeedPolicy}, Sentence: "A downgrade keeps the share as well and never leaves more than the new burst."},
			{ID: "CHG-3", Level: Decided, Needs: []Need{NeedPolicy}, Sentence: "A change reaches the bucket with the next request: time before it is paid at the old rate, then the tokens are scaled and rounded down, and changing back and forth never mints any."},
			{ID: "CHG-4", Level: Decided, Needs: []Need{NeedPolicy, NeedHold, NeedUpload}, Sentence: "A lower cap lets running requests finish and admits none until the count is below it; a higher one is there at once."},
		}},
		{Name: "configuration failures", Clauses: []Clause{
			{ID: "CFG-1", Level: Must, Needs: []Need{NeedEntitlements}, Sentence: "A missing, malformed, non-positive or out-of-range entitlement gives 503 RATE_LIMIT_CONFIGURATION_UNAVAILABLE in the error shape, with X-Request-Id."},
			{ID: "CFG-2", Level: Must, Needs: []Need{NeedEntitlements, NeedHold}, Sentence: "A broken entitlement never means unlimited and never Free's limits."},
			{ID: "CFG-3", Level: Must, Needs: []Need{NeedEntitlements, NeedAudit}, Sentence: "A configuration failure does no engine work, charges nothing and is one log entry."},
			{ID: "CFG-4", Level: Decided, Needs: []Need{NeedEntitlements}, Sentence: "A configuration failure carries no RateLimit headers and spends no token; the old bucket serves again once the entitlement is mended."},
			{ID: "CFG-5", Level: Decided, Needs: []Need{NeedEntitlements, NeedPolicy, NeedClock}, Sentence: "An active override that is itself malformed makes the policy unresolvable too."},
		}},
	}
}
