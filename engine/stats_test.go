package engine

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/stats"
)

// TestObservations checks the observations of the principal's runs. Runs of other principals and
// older runs are excluded.
func TestObservations(t *testing.T) {
	t.Parallel()
	e := open(t)
	answered := ask(t, e, someQuestion)
	ask(t, e, "What is the boiling point of tungsten?")
	again := ask(t, e, someQuestion)
	if _, err := e.Answer(t.Context(), assay.Principal{User: "ann"}, Request{Question: someQuestion}); err != nil {
		t.Fatal(err)
	}
	all, err := e.Observations(t.Context(), assay.Local(), time.Time{}, nil)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d observations, %v", len(all), err)
	}
	for _, o := range all {
		found := o.Run == answered.Run || o.Run == again.Run
		if !o.Ended() || o.Fault != "" || (o.Status == assay.Answered) != found || o.Cached != (o.Run == again.Run) {
			t.Errorf("%+v", o)
		}
		if !o.Cached && (o.Graded != true || o.FirstTry != found || o.Claims < 1 == found || o.Stages[assay.StepSearch].Elapsed <= 0) {
			t.Errorf("%+v", o)
		}
	}
	later, err := e.Observations(t.Context(), assay.Local(), time.Now(), nil)
	if err != nil || len(later) != 0 {
		t.Errorf("%d observations from now on, %v", len(later), err)
	}
}

// TestObservationsOfDamage checks that a journal that was altered or lacks a step is observed as
// an incomplete trace, and that the other runs are observed as usual.
func TestObservationsOfDamage(t *testing.T) {
	t.Parallel()
	e := open(t)
	altered, torn := ask(t, e, someQuestion), ask(t, e, "How many days of leave may be carried over?")
	ask(t, e, "How much may a hotel cost?")
	db, err := sql.Open("sqlite", filepath.Join(e.config.Dir, "tenants", DefaultTenant, "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, change := range []struct{ query, run string }{
		{`UPDATE records SET payload = replace(payload, 'travel', 'gravel') WHERE ordinal = 1 AND run = (SELECT rowid FROM runs WHERE id = ?1)`, altered.Run},
		{`DELETE FROM records WHERE sequence = (SELECT max(sequence) FROM records WHERE run = (SELECT rowid FROM runs WHERE id = ?1))`, torn.Run},
	} {
		result, err := db.ExecContext(t.Context(), change.query, change.run)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := result.RowsAffected(); err != nil || n != 1 {
			t.Fatalf("%d records changed, %v", n, err)
		}
	}
	all, err := e.Observations(t.Context(), assay.Local(), time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := stats.Of(all, stats.Options{Now: time.Now()})
	if r.All.Complete.Count != 1 || r.All.Complete.Of != 3 || len(r.Faults) != 2 || r.Objectives[2].Met {
		t.Errorf("complete traces: %+v, %+v, %+v", r.All.Complete, r.Faults, r.Objectives)
	}
}
