package main

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay/internal/ingest"
)

// TestProgressOfTheIndex checks that the last phase of an ingest is shown, even directly after
// another line.
func TestProgressOfTheIndex(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	p := &progress{w: &b, watched: true, escapes: true, width: 80}
	p.ingest(ingest.Progress{Found: 3, Done: 2, Walked: true, Current: "file:///a"})
	p.ingest(ingest.Progress{Found: 3, Done: 3, Walked: true, Current: "file:///a", Indexing: true})
	if want := "writing the index …"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("%q, want %q at its end", b.String(), want)
	}
}

// TestProgressOfSeveral checks that concurrent updates remove each live line before the next one.
// The race detector checks that shared fields are guarded.
func TestProgressOfSeveral(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	p := &progress{w: &b, watched: true, escapes: true, width: 80}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 50 {
				p.update("%d of %d", n, i)
				p.note("noted")
			}
		})
	}
	all.Wait()
	p.end()
	if n := strings.Count(b.String(), "noted\n"); n != 400 {
		t.Errorf("%d of 400 lines that stay", n)
	}
	if live, gone := strings.Count(b.String(), " of "), strings.Count(b.String(), "\r\x1b[K"); live != gone {
		t.Errorf("%d live lines, %d taken away", live, gone)
	}
}

// TestProgressInAPipe checks that a line a minute is printed where no line can be replaced.
func TestProgressInAPipe(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	now := time.Unix(0, 0)
	p := &progress{w: &b, width: 80, updated: now, now: func() time.Time { return now }}
	for i := range 7 {
		p.update("step %d", i)
		p.note("a note")
		p.embed(ingest.EmbedProgress{Stored: i, Left: 7 - i, Rate: 1})
		now = now.Add(25 * time.Second)
	}
	p.clear()
	p.end()
	if want := "step 3\nstep 6\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
