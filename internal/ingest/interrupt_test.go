package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
)

func TestStoreFails(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("%03d.md", i)] = fmt.Sprintf("# %d\n\ntext %d", i, i)
	}
	for fail := 1; fail <= 4; fail++ {
		x := newWorld(t, files)
		m := x.w.(*memory)
		m.failPut, m.failure = fail, fmt.Errorf("put: %w", assay.ErrFull)
		var committed int
		x.opts.Progress = func(p Progress) { committed += len(p.Committed) }
		r, err := x.run()
		if !errors.Is(err, assay.ErrFull) || r.Interrupted {
			t.Fatalf("Put %d fails: %v, interrupted %v; want ErrFull", fail, err, r.Interrupted)
		}
		if n := len(x.docs()); r.Added != n || committed != n || n >= 300 {
			t.Errorf("Put %d fails: %d reported, %d acknowledged, %d stored", fail, r.Added, committed, n)
		}
		m.failPut = 0
		kept := r.Added
		x.check("continued", fmt.Sprintf("+%d ~0 =%d -0", 300-kept, kept))
	}
}

func TestInterrupted(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("%03d.md", i)] = fmt.Sprintf("# %d\n\ntext %d", i, i)
	}
	x := newWorld(t, files)
	ctx, cancel := context.WithCancel(context.Background())
	x.opts.Progress = func(p Progress) {
		if len(p.Committed) > 0 {
			cancel()
		}
	}
	r, err := Run(ctx, x.w, x.opts)
	if !errors.Is(err, context.Canceled) || !r.Interrupted {
		t.Fatalf("Run = %+v, %v; want it interrupted", r, err)
	}
	n := len(x.docs())
	if n == 0 || n == 300 || r.Added != n || r.Removed != 0 {
		t.Errorf("%d stored, report %+v", n, r)
	}
	x.opts.Progress = nil
	x.check("continued", fmt.Sprintf("+%d ~0 =%d -0", 300-n, n))

	ctx, cancel = context.WithCancel(context.Background())
	cancel()
	if r, err := Run(ctx, x.w, x.opts); !errors.Is(err, context.Canceled) || !r.Interrupted || r.Removed != 0 {
		t.Errorf("cancelled before it began: %+v, %v", r, err)
	}
}

func TestProgress(t *testing.T) {
	x := newWorld(t, map[string]string{"a.md": "# A\n\nalpha", "b.md": "", "c/c.md": "# C\n\ngamma", "d.md.metadata.json": "{}"})
	var last Progress
	var committed []string
	x.opts.Progress = func(p Progress) {
		if p.Found < last.Found || p.Done < last.Done || last.Walked && !p.Walked || p.Bytes < last.Bytes {
			t.Errorf("progress goes back: %+v after %+v", p, last)
		}
		committed = append(committed, p.Committed...)
		last = p
	}
	x.check("first", "+2 ~0 =0 -0; empty b.md; sidecar_without_document d.md.metadata.json")
	if !last.Walked || last.Found != 4 || last.Done != 4 || last.Skipped != 2 || last.Bytes != 20 || len(committed) != 2 {
		t.Errorf("last progress %+v, committed %v", last, committed)
	}
}

func TestReportJSON(t *testing.T) {
	x := newWorld(t, map[string]string{"a.md": "# A\n\nalpha", "b.md": ""})
	at := time.Unix(1000, 0)
	x.opts.Now = func() time.Time { at = at.Add(time.Second); return at }
	r, err := x.run()
	if err != nil {
		t.Fatal(err)
	}
	r.Skipped[0].URI = "b.md"
	r.Skipped[0].Detail = "…"
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"added":1,"updated":0,"unchanged":0,"removed":0,"duplicates":0,"skipped":[{"uri":"b.md","reason":"empty","detail":"…"}],` +
		`"bytes":10,"elapsed_ms":1000,"sequence":1,"interrupted":false}`
	if string(got) != want {
		t.Errorf("report\n%s, want\n%s", got, want)
	}
}

func TestBatches(t *testing.T) {
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("%03d.md", i)] = fmt.Sprintf("# %d\n\ntext %d", i, i)
	}
	x := newWorld(t, files)
	x.check("first", "+200 ~0 =0 -0")
	for _, n := range x.w.(*memory).sizes {
		if n < 1 || n > batchDocuments {
			t.Errorf("a transaction of %d documents", n)
		}
	}
	large := map[string]string{}
	for i := range 6 {
		large[fmt.Sprintf("%d.txt", i)] = strings.Repeat(fmt.Sprintf("words %d and more of them\n", i), 1<<20/16)
	}
	x = newWorld(t, large)
	x.opts.MaxBytesInFlight = 1 << 20 // smaller than any of the files
	x.check("large", "+6 ~0 =0 -0")
	if n := len(x.w.(*memory).sizes); n < 2 {
		t.Errorf("%d transactions for 9 MB", n)
	}
}
