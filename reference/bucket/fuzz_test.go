package bucket_test

import (
	"encoding/binary"
	"testing"

	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/bucket/buckettest"
)

// FuzzTake reads any bytes as a history of one bucket and compares it with the
// model: 16 bytes are an allowance and an instant.
func FuzzTake(f *testing.F) {
	step := func(rpm, burst uint32, at int64) []byte {
		b := binary.BigEndian.AppendUint32(nil, rpm-1)
		b = binary.BigEndian.AppendUint32(b, burst-1)
		return binary.BigEndian.AppendUint64(b, uint64(at))
	}
	f.Add(append(step(10, 10, 0), step(10, 10, 6_000_000)...))
	f.Add(append(step(7, 1, 8_571_428), step(7, 1, 8_571_429)...))
	f.Add(append(step(1, 1_000_000, -1<<63), step(1_000_000, 1, 1<<63-1)...))
	f.Fuzz(func(t *testing.T, history []byte) {
		const size, most = 16, 64
		var state bucket.State
		var model buckettest.Model
		for n := 0; len(history) >= size && n < most; n++ {
			p := plan{
				rpm:   int64(binary.BigEndian.Uint32(history)%1_000_000) + 1,
				burst: int64(binary.BigEndian.Uint32(history[4:])%1_000_000) + 1,
			}
			sameTake(t, &state, &model, p, bucket.Instant(binary.BigEndian.Uint64(history[8:])))
			history = history[size:]
		}
	})
}
