package sqlite

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// crashRounds returns how often the crash tests kill a child. ASSAY_LONG=1 raises it.
func crashRounds() int {
	switch {
	case os.Getenv("ASSAY_LONG") != "":
		return 200
	case testing.Short():
		return 3
	}
	return 25
}

// openCrash opens the tenant that the children write to.
func openCrash(t *testing.T, dir string, opts ...Option) *Tenant {
	t.Helper()
	s, err := Open(t.Context(), dir, opts...)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := created(s, t.Context(), "crash")
	if err != nil {
		t.Fatal(err)
	}
	return tenant
}

// TestKillWriter kills a writing process at random moments. Acknowledged changes are stored
// completely and once. The interrupted transaction, of documents or of vectors, is stored
// completely or not at all.
func TestKillWriter(t *testing.T) {
	c := newCrasher(t, 5)
	next, acknowledged := 1, 0
	for round := range crashRounds() {
		cmd, lines := c.start("put", strconv.Itoa(next))
		if last, ok := c.kill(cmd, lines); ok {
			next, acknowledged = last+2, last+1
		}
		if next = checkDocuments(t, c.dir, next); t.Failed() {
			t.Fatalf("in round %d", round)
		}
		if embedded := embeddedDocuments(t, c.dir, next); embedded < max(acknowledged, next-3) {
			t.Fatalf("in round %d: %d documents up to number %d are embedded, %d were acknowledged", round, embedded, next-1, acknowledged)
		}
	}
	t.Logf("%d documents were written in all", next-1)
}

// checkDocuments checks that documents 1 up to next are stored, and at most one transaction more.
// It returns the number of the next document.
func checkDocuments(t *testing.T, dir string, next int) int {
	t.Helper()
	tenant := openCrash(t, dir)
	defer tenant.Close()
	ctx := t.Context()
	count, generation := 0, 0
	seen := make(map[string]bool)
	for change, err := range tenant.Content().Changes(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if change.Deleted || seen[change.ID] {
			t.Fatalf("document %s is deleted or there twice", change.ID)
		}
		seen[change.ID] = true
		var number int
		if _, err := fmt.Sscanf(change.Document.Text, "document %d, generation %d\n", &number, &generation); err != nil {
			t.Fatalf("text %q", change.Document.Text)
		}
		want := crashEntry(number, generation)
		if diff := cmp.Diff(want.Document, *change.Document) + cmp.Diff(want.Chunks, change.Chunks); diff != "" {
			t.Fatalf("document %d differs (-want +got):\n%s", number, diff)
		}
		if number > 0 {
			count = max(count, number)
		}
	}
	if count+1 != next && count+1 != next+2 || len(seen) != count+1 && count > 0 {
		t.Fatalf("%d documents up to number %d are there, %d were acknowledged", len(seen), count, next-1)
	}
	transactions := (count + embeddedDocuments(t, dir, count+1)) / 2
	current, err := tenant.Content().Sequence(ctx)
	if err != nil || current != int64(transactions) {
		t.Fatalf("Sequence = %d, %v after %d transactions", current, err, transactions)
	}
	checkIntegrity(t, tenant)
	return count + 1
}

// embeddedDocuments checks that, for each transaction up to next, either all documents or none have
// their vectors, and that document 0 has those of the last. It returns how many documents have
// vectors, not counting document 0.
func embeddedDocuments(t *testing.T, dir string, next int) int {
	t.Helper()
	tenant := openCrash(t, dir)
	defer tenant.Close()
	values := make(map[string][]float32)
	for v, err := range tenant.Content().Vectors(t.Context(), "m", 0) {
		if err != nil {
			t.Fatal(err)
		}
		values[v.Chunk] = slices.Clone(v.Values)
	}
	chunks, embedded := 0, 0
	for n := 1; n < next; n += 2 {
		entries := []store.Entry{crashEntry(n, 0), crashEntry(n+1, 0)}
		if n+2 == next {
			entries = append(entries, crashEntry(0, n))
		}
		missing, i := 0, 0
		vectors := crashVectors(entries...)
		for _, e := range entries {
			for _, c := range e.Chunks[1:] { // the first is a section
				got, ok := values[c.ID]
				if !ok {
					missing++
				} else if diff := cmp.Diff(vectors[i].Values, got); diff != "" {
					t.Fatalf("the vector of a chunk of document %d differs (-want +got):\n%s", n, diff)
				}
				i++
			}
		}
		if missing != 0 && missing != i {
			t.Fatalf("%d of the %d chunks of documents %d, %d have no vector", missing, i, n, n+1)
		}
		if missing == 0 {
			embedded += 2
			chunks += i
		}
	}
	if len(values) != chunks {
		t.Fatalf("%d chunks have a vector, want %d", len(values), chunks)
	}
	return embedded
}

// checkIntegrity runs SQLite's integrity checks on both databases.
func checkIntegrity(t *testing.T, tenant *Tenant) {
	t.Helper()
	for _, d := range []*database{tenant.content, tenant.runs} {
		var integrity string
		if err := d.Row(t.Context(), "PRAGMA integrity_check", nil, &integrity); err != nil || integrity != "ok" {
			t.Errorf("%s: %s, %v", d.path, integrity, err)
		}
		var violations int
		if err := d.Row(t.Context(), "SELECT count(*) FROM pragma_foreign_key_check", nil, &violations); err != nil || violations != 0 {
			t.Errorf("%s: %d foreign keys lead nowhere, %v", d.path, violations, err)
		}
	}
	if all := findings(t, tenant.Audit()); len(all) > 0 {
		t.Errorf("compared with the audit log: %v", all)
	}
}

// TestKillRun kills a process that drives a run at random moments. The run's lease is free
// immediately, acknowledged records are stored, and the journal has no gap.
func TestKillRun(t *testing.T) {
	c := newCrasher(t, 7)
	next := 0
	for round := range crashRounds() {
		cmd, lines := c.start("append", "run", strconv.Itoa(next))
		if last, ok := c.kill(cmd, lines); ok {
			next = last + 1
		}
		if next = checkJournal(t, c.dir, next); t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d records were written in all", next)
}

// checkJournal checks that the run has its first next records, and at most one more. It returns
// their number.
func checkJournal(t *testing.T, dir string, next int) int {
	t.Helper()
	tenant := openCrash(t, dir)
	defer tenant.Close()
	run, err := tenant.Runs().Run(t.Context(), "run")
	if err != nil && next == 0 {
		return 0 // killed before it was created
	}
	if err != nil || run.Live {
		t.Fatalf("Run: live %t, %v", run.Live, err)
	}
	records, err := tenant.Runs().Records(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	for i, rec := range records {
		want := crashRecord(i)
		if rec.Path != want.Path || string(rec.Input) != string(want.Input) || string(rec.Output) != string(want.Output) {
			t.Fatalf("record %d is %s %s", i, rec.Path, rec.Input)
		}
	}
	if n := len(records); n != next && n != next+1 || run.Steps != n {
		t.Fatalf("%d records, %d steps, %d were acknowledged", n, run.Steps, next)
	}
	checkIntegrity(t, tenant)
	return len(records)
}

// TestDeadProcess checks what a killed process leaves behind. Its leases on this machine and its
// writer lock are free immediately; leases from another machine are free when they expire.
func TestDeadProcess(t *testing.T) {
	for _, machine := range []string{"", "elsewhere"} {
		t.Run("machine="+machine, func(t *testing.T) {
			c := newCrasher(t, 9)
			cmd, lines := c.start("create", machine)
			lines.Scan()
			pid := lines.Text()

			now := &clock{now: time.Now()}
			tenant := openCrash(t, c.dir, WithClock(now.Now), WithLeaseTime(time.Minute))
			defer tenant.Close()
			_, err := tenant.Runs().Acquire(t.Context(), "run")
			wantKind(t, "Acquire of a run of a live process", err, assay.ErrLeased, "process "+pid)
			now.Advance(time.Hour)
			_, err = tenant.Runs().Acquire(t.Context(), "run")
			wantKind(t, "Acquire an hour later", err, assay.ErrLeased, "process "+pid)
			now.Advance(-time.Hour)
			_, err = tenant.Writer(t.Context())
			wantKind(t, "Writer beside a live one", err, assay.ErrLocked, "writer.lock is held by process "+pid)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // "signal: killed"

			if machine != "" {
				_, err := tenant.Runs().Acquire(t.Context(), "run")
				wantKind(t, "Acquire of a run of another machine", err, assay.ErrLeased, machine)
				wantKind(t, "Delete of a run of another machine", tenant.Runs().Delete(t.Context(), "run", store.Act{Kind: "run.deleted"}), assay.ErrLeased, machine)
				now.Advance(time.Hour) // the process may have renewed its lease at any time before it was killed
			}
			if run, err := tenant.Runs().Run(t.Context(), "run"); err != nil || run.Live || run.State != assay.RunActive {
				t.Errorf("the run is %s, live %t, %v", run.State, run.Live, err)
			}
			l, err := tenant.Runs().Acquire(t.Context(), "run")
			if err != nil {
				t.Fatal(err)
			}
			if rec, err := l.Append(t.Context(), crashRecord(1)); err != nil || rec.Ordinal != 1 {
				t.Errorf("Append: ordinal %d, %v", rec.Ordinal, err)
			}
			w, err := tenant.Writer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
