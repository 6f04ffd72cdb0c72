package main

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/ingest"
)

func TestVectorPlanLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		plan  engine.VectorPlan
		other int64
		want  string
	}{
		{"on this machine", engine.VectorPlan{Model: "m", Passages: 600, Tokens: 9, Rate: 50, Seconds: 12}, 0,
			"vectors of m for about 600 passages: about 12.0 s at 50 a second"},
		{"priced", engine.VectorPlan{Model: "o/m", Passages: 1, Tokens: 145, Remote: true, Priced: true, CostMicros: 1200}, 2_500_000,
			"vectors of o/m for about 1 passage (145 tokens): about " + money(1200) + " at the configured price; " +
				"without those of 2.5 MB whose text has another size, such as PDF and archives"},
		{"without a price", engine.VectorPlan{Model: "o/m", Passages: 2, Tokens: 290, Remote: true}, 0,
			"vectors of o/m for about 2 passages (290 tokens): unknown price"},
		{"not to be made", engine.VectorPlan{Model: "m", Passages: 2, Problem: "no such model"}, 0,
			"vectors of m for about 2 passages: none can be made: no such model"},
	}
	for _, tt := range tests {
		if got := vectorPlanLine(tt.plan, tt.other); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestProgressOfAnIngest checks that a line in a pipe has the rate, the time left and the number of
// files skipped.
func TestProgressOfAnIngest(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	now := time.Unix(0, 0)
	p := &progress{w: &b, width: 120, updated: now, now: func() time.Time { return now }}
	p.ingest(ingest.Progress{Found: 1, Current: "/a"})
	now = now.Add(time.Minute)
	p.ingest(ingest.Progress{Found: 300, Walked: true, Done: 120, Skipped: 3, FoundBytes: 4000, DoneBytes: 1000, Current: "/b.md"})
	if got, want := b.String(), "reading 120 of 300 files, 3 skipped, 2.0 files a second, about 3m0s left: /b.md\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
