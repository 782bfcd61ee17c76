package server

import (
	"fmt"

	"github.com/invoicespec/brimline/reference/wiring"
)

// StorageLocal keeps buckets and permits in the memory of one process.
const StorageLocal = "local"

// guards are the conditions on how buckets and permits are kept.
func guards(storage string, replicas int64) []wiring.Guard {
	return []wiring.Guard{
		{Name: "storage", Check: func() error { return storageIsKnown(storage) }},
		{Name: "replicas", Check: func() error { return replicasFit(replicas) }},
	}
}

// storageIsKnown refuses a storage that there is no adapter for (GUARD-2).
func storageIsKnown(storage string) error {
	if storage != "" && storage != StorageLocal {
		return fmt.Errorf("invoicespec.rate-limit.storage is %q: there is no adapter for it; accepted: %s", storage, StorageLocal)
	}
	return nil
}

// replicasFit refuses what would give every user as many buckets as there are
// processes (GUARD-1).
func replicasFit(replicas int64) error {
	switch {
	case replicas < 0:
		return fmt.Errorf("invoicespec.rate-limit.replicas is %d; accepted: 1 or more", replicas)
	case replicas > 1:
		return fmt.Errorf("invoicespec.rate-limit.replicas is %d and storage is %s: each process would keep limits of its own, "+
			"so that a user gets %[1]d times the allowance; run one process, or use a storage that they share", replicas, StorageLocal)
	}
	return nil
}
