package audit_test

import (
	"context"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/audit"
	"github.com/assay-rag/assay/store"
)

// BenchmarkLog appends 100,000 leaves in transactions of 1,000, proves and checks each, verifies the
// whole log, and signs a checkpoint after 1,000 more. It reports the time of one leaf or proof.
func BenchmarkLog(b *testing.B) {
	const leaves = 100_000
	for b.Loop() {
		b.StopTimer()
		tenant := openTenant(b, b.TempDir())
		ctx, log := b.Context(), tenant.Audit()
		acts := make([]store.Act, 1000)
		for i := range acts {
			acts[i] = store.Act{Kind: "test.done", Subject: "s", Actor: assay.Local()}
		}
		each := func(name string, n int, fn func()) {
			b.StartTimer()
			start := b.Elapsed()
			fn()
			b.ReportMetric(float64((b.Elapsed()-start).Microseconds())/float64(n), name)
			b.StopTimer()
		}
		fail := func(err error) {
			if err != nil {
				b.Fatal(err)
			}
		}
		each("µs/append", leaves, func() {
			for range leaves / len(acts) {
				fail(log.Append(ctx, acts...))
			}
		})
		c := audit.Checkpoint{Origin: origin(b, log), Size: leaves}
		var err error
		c.Root, err = audit.RootAt(ctx, log, leaves)
		fail(err)
		each("µs/proof", leaves, func() { proveAll(b, ctx, log, c) })
		k := newKey(b)
		var signed audit.Signed
		each("µs/first_checkpoint_leaf", leaves, func() { signed = checkpoint(b, authority(tenant, k)) })
		fail(log.Append(ctx, acts...))
		each("µs/checkpoint_leaf", len(acts), func() { signed = checkpoint(b, authority(tenant, k)) })
		each("µs/verify_leaf", leaves, func() {
			if r := verify(b, log, [][]byte{signed.Note}, k.Public(c.Origin)); len(r.Findings) > 0 {
				b.Fatal(r.Findings)
			}
		})
		b.StartTimer()
	}
}

func proveAll(b *testing.B, ctx context.Context, log store.Audit, c audit.Checkpoint) {
	for e, err := range log.Entries(ctx, 0, c.Size) {
		if err != nil {
			b.Fatal(err)
		}
		var p tlog.RecordProof
		if p, err = audit.Inclusion(ctx, log, e.Sequence, c.Size); err == nil {
			err = audit.CheckInclusion(p, c, e.Sequence, e.Leaf)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
