package contract

// decisions is what the reference does where the contract leaves a clause open,
// and why, by the clause's id. A deployment that settles it otherwise is told.
func decisions() map[string]string {
	return map[string]string{
		"SCOPE-3": "The reference treats an unknown path or method below the limited root like any other request: it spends a token and says so in its headers. Otherwise a scan of paths would cost nothing.",
		"SCOPE-4": "The reference decides on the decoded path, before anything redirects: doubled slashes, dots, escapes, trailing slashes, upper case, absolute targets, HEAD and OPTIONS are all limited or unknown, never served free. A second spelling would be a way around the limit.",
		"AUTH-1":  "The reference takes exactly one key, in Authorization: Bearer, and answers every other attempt alike. Whoever guesses keys must not learn how close a guess came, and a limit's headers would tell whose it is.",
		"RATE-8":  "The reference leaves the bucket alone when it rejects. If rejections cost time, a client that retries too early would lock itself out for good.",
		"RATE-10": "The reference counts in units so small that every microsecond adds a whole number of them, so a token is there at the very instant it is due. Refill in steps would reject clients who waited as long as they were told to.",
		"HDR-8":   "The reference sends each header once, as plain decimal seconds or counts. Lists, dates, signs and fractions are read differently by every client.",
		"ERR-4":   "The reference says no-store on every 429. A cached rejection would be given to users who are within their limits.",
		"ERR-5":   "The reference makes every request id itself and takes one from a trusted proxy only as a note in the log. An id that clients choose can be repeated, and then it names two requests.",
		"LOG-5":   "The reference writes the entry to a spool on disk before the answer ends and delivers it from there. An answer that somebody has seen can always be accounted for, and a full disk must not become an outage.",
		"LOG-6":   "The reference stores entries under their request id, so that a delivery may be repeated until it is known to have arrived.",
		"LOG-7":   "The reference reserves one operation before the engine works and charges it on success, also if the client has gone by then; a failure gives it back. Counting only afterwards would let simultaneous requests overdraw.",
		"LOG-8":   "The reference leaves alone what its HTTP parser refuses: there is no request yet that could be somebody's.",
		"OVR-7":   "The reference lets a new override replace the old one and keeps the old one in the audit trail. With two at once nobody could say which value holds.",
		"OVR-8":   "The reference ties an override to the user, not to the plan: what was negotiated with a customer stays when they change plans, until it ends.",
		"CHG-3":   "The reference settles the time before a change at the old rate, then scales what is left to the new burst, rounding down. Rounding any other way would mint tokens for whoever changes back and forth.",
		"CHG-4":   "The reference ends nothing that runs when a cap is lowered, and admits nothing new until enough has ended. Work that was admitted was promised.",
		"CFG-4":   "The reference sends no RateLimit headers where it cannot resolve a policy, and touches no bucket: there is none to describe, and an operator's mistake must not cost the user tokens.",
		"CFG-5":   "The reference takes a malformed active override for a policy that cannot be resolved. To pass over it would give the user limits that nobody agreed on.",
		"ANON-7":  "The reference reserves a token of the address's pool before it looks a key up and gives it back if the key is good; a key lately seen good needs none. Someone who guesses keys behind a shared gateway cannot lock the others out.",
		"PROXY-4": "The reference joins header lines in their order, strips ports, brackets, zones, quotes and blanks, takes IPv4-mapped IPv6 for IPv4, and walks 32 entries at most. One client must not become many by spelling its address in another way.",
		"PROXY-5": "The reference honours one header, which its configuration names, and else the peer. Common proxies pass on the client's own copy of the others untouched, so that reading several lets a client choose who it is.",
		"CACHE-2": "The reference never drops a permit, and a bucket only when it is full, which says nothing; where the maximum size forces more, it counts that. Forgetting a drained bucket would give its user a full one.",
		"DIST-2":  "The reference ties permits to a lease that is renewed while their request runs. Those of a dead replica return when it has run out, not before the work behind them can have ended.",
		"DIST-3":  "The reference answers 503 while the shared store is away. Serving without limits would turn an outage of the store into one of the engine.",
	}
}
