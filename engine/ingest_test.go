package engine

import (
	"testing"
	"time"

	"github.com/assay-rag/assay/internal/ingest"
)

// TestIngestTellsOfTheIndex checks that writing the index, which can take as long as reading the
// documents, is reported as progress and included in the elapsed time.
func TestIngestTellsOfTheIndex(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	e, err := Open(t.Context(), Config{Dir: t.TempDir(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var last ingest.Progress
	report, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{"testdata/handbook"}, Progress: func(p ingest.Progress) {
		if p.Indexing {
			now = now.Add(time.Minute)
		}
		last = p
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !last.Indexing || last.Done != report.Added || len(last.Committed) > 0 {
		t.Errorf("last progress = %+v, want that of the index, after %d documents", last, report.Added)
	}
	if want := time.Minute.Milliseconds(); report.ElapsedMS != want {
		t.Errorf("elapsed %d ms, want %d", report.ElapsedMS, want)
	}
}
