package fault

import "github.com/invoicespec/brimline/reference/httpapi"

func poolFaults() []Fault {
	return []Fault{
		{"per-key-bucket", "POOL-1", "each key has a bucket of its own", bucketsBy(keyOf)},
		{"per-path-bucket", "POOL-1", "each path has a bucket of its own",
			bucketsBy(func(x *httpapi.Exchange) string { return x.Account.User + x.Path })},
		{"per-method-bucket", "POOL-1", "each method has a bucket of its own",
			bucketsBy(func(x *httpapi.Exchange) string { return x.Account.User + " " + x.Method })},
		{"per-key-concurrency", "POOL-2", "each key has a cap of its own", capsBy(keyOf)},
		{"global-bucket", "POOL-3", "all users share one bucket", bucketsBy(everybody)},
		{"global-concurrency", "POOL-3", "all users share one cap", capsBy(everybody)},
		{"per-ip-bucket", "POOL-3", "users behind one address share a bucket",
			bucketsBy(func(x *httpapi.Exchange) string { return x.Client.String() })},
	}
}

func keyOf(x *httpapi.Exchange) string   { return x.Account.KeyID }
func everybody(*httpapi.Exchange) string { return "everybody" }

func bucketsBy(subject func(*httpapi.Exchange) string) alteration {
	return limiting(func(l *steps) { l.bucketOf = subject })
}

func capsBy(subject func(*httpapi.Exchange) string) alteration {
	return limiting(func(l *steps) { l.capOf = subject })
}
