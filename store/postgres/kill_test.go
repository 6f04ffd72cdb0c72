package postgres

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pgtest"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/storetest"
)

// childVariable is the environment variable that names the role of this binary when a test starts it as
// a child process.
const childVariable = "ASSAY_POSTGRES_CHILD"

func TestMain(m *testing.M) {
	role := os.Getenv(childVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := runChild(context.Background(), role, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runChild writes to the tenant "crash" of the database in args[0], with the folder args[1], from the number
// args[2] on. It prints each number once it is acknowledged.
func runChild(ctx context.Context, role string, args []string) error {
	s, err := Open(ctx, args[0], WithFolder(args[1]))
	if err != nil {
		return err
	}
	t, err := s.Tenant(ctx, "crash")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	if role == "put" {
		return childPut(ctx, t, n)
	}
	return childAppend(ctx, t, n)
}

// childPut puts pairs of documents in one transaction each.
func childPut(ctx context.Context, t store.Tenant, n int) error {
	w, err := waitForWriter(ctx, t)
	if err != nil {
		return err
	}
	for ; ; n++ {
		if _, err := w.Put(ctx, crashEntry(n, "a"), crashEntry(n, "b")); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// waitForWriter waits until the server has noticed the end of the last writer.
func waitForWriter(ctx context.Context, t store.Tenant) (store.Writer, error) {
	for {
		w, err := t.Writer(ctx)
		if !errors.Is(err, assay.ErrLocked) {
			return w, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func crashEntry(n int, half string) store.Entry {
	return storetest.Entry("crash", fmt.Sprintf("/%06d%s", n, half), fmt.Sprintf("document %d\nits half %s\n", n, half))
}

// childAppend acquires or creates a run and appends to it.
func childAppend(ctx context.Context, t store.Tenant, n int) error {
	l, err := t.Runs().Acquire(ctx, "run")
	if errors.Is(err, assay.ErrNotFound) {
		l, err = t.Runs().Create(ctx, assay.Run{ID: "run", Question: "?"})
	}
	if err != nil {
		return err
	}
	for ; ; n++ {
		rec, err := l.Append(ctx, crashRecord(n))
		if err != nil {
			return err
		}
		if rec.Ordinal != n {
			return fmt.Errorf("ordinal %d, want %d", rec.Ordinal, n)
		}
		fmt.Println(n)
	}
}

func crashRecord(n int) assay.Record {
	return assay.Record{
		Path: fmt.Sprintf("step[%d]", n), Kind: assay.StepSearch,
		Input: json.RawMessage(strconv.Itoa(n)), Output: json.RawMessage(`"result"`),
	}
}

// killRounds returns how often a child is killed.
func killRounds() int {
	switch {
	case os.Getenv("ASSAY_LONG") != "":
		return 60
	case testing.Short():
		return 2
	}
	return 8
}

// TestKill kills processes that put documents and drive a run at random moments. What was acknowledged is
// stored completely and once, the interrupted transaction completely or not at all. The locks and the
// lease of a dead process are free.
func TestKill(t *testing.T) {
	address, folder := pgtest.Database(t), t.TempDir()
	s := mustOpen(t, address, WithFolder(folder))
	if err := s.CreateTenant(t.Context(), "crash", store.Act{}); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	documents, records := 0, 0
	for range killRounds() {
		last := killChild(t, rng, "put", address, folder, documents)
		documents = checkPairs(t, s, last+1)
		last = killChild(t, rng, "append", address, folder, records)
		records = checkRecords(t, s, last+1)
	}
	t.Logf("%d pairs of documents and %d records were written", documents, records)
}

// killChild starts a child, waits until it has acknowledged some numbers, kills it, and returns the last
// one.
func killChild(t *testing.T, rng *rand.Rand, role, address, folder string, first int) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], address, folder, strconv.Itoa(first))
	cmd.Env, cmd.Stderr = append(os.Environ(), childVariable+"="+role), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	last, lines := first-1, bufio.NewScanner(out)
	for range rng.IntN(12) {
		if lines.Scan() {
			last++
		}
	}
	time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		last++
	}
	_ = cmd.Wait() // "signal: killed"
	return last
}

// checkPairs checks that the pairs of documents up to next, and at most one more, are stored. It returns the
// number of the next pair.
func checkPairs(t *testing.T, s *Store, next int) int {
	t.Helper()
	tenant, err := s.Tenant(t.Context(), "crash")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	w, err := waitForWriter(t.Context(), tenant) // the interrupted transaction has ended
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for change, err := range w.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := found[change.Document.URI]; twice {
			t.Errorf("%s is there twice", change.Document.URI)
		}
		found[change.Document.URI] = change.Document.Text
	}
	if len(found) != 2*next && len(found) != 2*(next+1) {
		t.Errorf("%d documents are stored, %d were acknowledged", len(found), 2*next)
	}
	for i := range len(found) / 2 {
		for _, half := range []string{"a", "b"} {
			if want := crashEntry(i, half).Document; found[want.URI] != want.Text {
				t.Errorf("%s is %q", want.URI, found[want.URI])
			}
		}
	}
	if all := findings(t, tenant.Audit()); len(all) > 0 {
		t.Errorf("compared with the audit log: %v", all)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	return len(found) / 2
}

// checkRecords checks that the journal has the records up to next, and at most one more. It returns their
// number.
func checkRecords(t *testing.T, s *Store, next int) int {
	t.Helper()
	tenant, err := s.Tenant(t.Context(), "crash")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	if err := tenant.Audit().Append(t.Context(), store.Act{Kind: "test.waited"}); err != nil { // the interrupted transaction has ended
		t.Fatal(err)
	}
	run, err := tenant.Runs().Run(t.Context(), "run")
	if errors.Is(err, assay.ErrNotFound) && next == 0 {
		return 0
	}
	if err != nil || run.Live {
		t.Fatalf("the run of a dead process: live %t, %v", run.Live, err)
	}
	records, err := tenant.Runs().Records(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	for i, rec := range records {
		if want := crashRecord(i); rec.Path != want.Path || string(rec.Input) != string(want.Input) {
			t.Errorf("record %d is %s %s", i, rec.Path, rec.Input)
		}
	}
	if n := len(records); n != next && n != next+1 {
		t.Errorf("%d records are stored, %d were acknowledged", n, next)
	}
	return len(records)
}

// TestTwoProcesses lets a second process compete for the writer's lock, and checks that the writer whose
// connection is lost goes on only if no other one has written meanwhile.
func TestTwoProcesses(t *testing.T) {
	server := pgtest.Server(t)
	address := pgtest.DatabaseOn(t, server)
	a, b := mustOpen(t, address, WithFolder(t.TempDir())), mustOpen(t, address, WithFolder(t.TempDir()))
	ctx := t.Context()
	if err := a.CreateTenant(ctx, "acme", store.Act{}); err != nil {
		t.Fatal(err)
	}
	writer := func(s *Store) (*Tenant, store.Writer, error) {
		tenant, err := s.open(ctx, "acme", false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tenant.Close() })
		w, err := tenant.Writer(ctx)
		return tenant, w, err
	}
	_, wa, err := writer(a)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := writer(b); !errors.Is(err, assay.ErrLocked) {
		t.Errorf("a second writer: %v", err)
	}
	put := func(w store.Writer, uri string) error {
		_, err := w.Put(ctx, storetest.Entry("c", uri, "words\n"))
		return err
	}
	endConnections(t, address)
	if err := put(wa, "/1"); err != nil {
		t.Errorf("a writer whose connection was lost, alone: %v", err)
	}
	endConnections(t, address)
	tenant, wb, err := writer(b)
	if err != nil {
		t.Fatalf("a writer after the connection of the first one was lost: %v", err)
	}
	if err := put(wa, "/2"); !errors.Is(err, assay.ErrLocked) {
		t.Errorf("the first writer beside the second one: %v", err)
	}
	if err := errors.Join(put(wb, "/3"), wb.Close()); err != nil {
		t.Error(err)
	}
	if err := put(wa, "/4"); !errors.Is(err, assay.ErrLocked) {
		t.Errorf("the first writer after the second one: %v", err)
	}
	if err := wa.Close(); err != nil {
		t.Errorf("closing the first writer: %v", err)
	}
	var all []string
	for d, err := range tenant.Content().Documents(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d.URI)
	}
	if fmt.Sprint(all) != "[/1 /3]" {
		t.Errorf("documents %v, want those of whoever had the right", all)
	}
}

// endConnections ends all connections to a database as a server that fails does, and waits until they are
// gone.
func endConnections(t *testing.T, address string) {
	t.Helper()
	admin(t, address, `
DO $$ DECLARE ended int[]; BEGIN
	SELECT array_agg(pid) INTO ended FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend';
	PERFORM pg_terminate_backend(pid) FROM unnest(ended) pid;
	WHILE EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = ANY (ended)) LOOP
		PERFORM pg_sleep(0.01); PERFORM pg_stat_clear_snapshot();
	END LOOP;
END $$`)
}
