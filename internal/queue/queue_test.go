//go:build unix

package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/internal/pgtest"
	"github.com/assay-rag/assay/store/postgres"
)

// Variables that make the test binary a worker.
const (
	childDatabase = "ASSAY_QUEUE_TEST_DATABASE"
	childFolder   = "ASSAY_QUEUE_TEST_FOLDER"
)

func TestMain(m *testing.M) {
	if database := os.Getenv(childDatabase); database != "" {
		if err := work(database, os.Getenv(childFolder)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work is the main function of a worker.
func work(database, folder string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	host, closeHost, err := openHost(ctx, database, folder, nil)
	if err != nil {
		return err
	}
	q, err := Open(ctx, database, 16, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return errors.Join(err, closeHost())
	}
	return errors.Join(q.Work(ctx, host, Options{Documents: 2}), closeHost(), q.Close())
}

// openHost opens the store in a database.
func openHost(ctx context.Context, database, folder string, uploads engine.UploadQueue) (*engine.Host, func() error, error) {
	s, err := postgres.Open(ctx, database, postgres.WithFolder(folder))
	if err != nil {
		return nil, nil, err
	}
	host, err := engine.OpenHost(ctx, engine.HostConfig{
		Config: engine.Config{Store: s, NoBackground: true}, AllowLocal: true, Queue: uploads,
	})
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return host, func() error { return errors.Join(host.Close(), s.Close()) }, nil
}

// A world is a server with a queue, in a database of its own.
type world struct {
	*testing.T
	database, folder string
	queue            *Queue
	host             *engine.Host
	session          *engine.Session
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, database: pgtest.Database(t), folder: t.TempDir()}
	var err error
	if w.queue, err = Open(t.Context(), w.database, 4, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	host, closeHost, err := openHost(t.Context(), w.database, w.folder, w.queue)
	if err != nil {
		t.Fatal(err)
	}
	w.host = host
	t.Cleanup(func() {
		if err := errors.Join(closeHost(), w.queue.Close()); err != nil {
			t.Error(err)
		}
	})
	if w.session, err = host.Session(t.Context(), identity.Local("default")); err != nil {
		t.Fatal(err)
	}
	return w
}

// upload queues a document and returns its job.
func (w *world) upload(name, text string) string {
	w.Helper()
	u, err := w.session.Upload(w.Context(), engine.Upload{Name: name, Body: strings.NewReader(text)})
	if err != nil {
		w.Fatal(err)
	}
	if u.Outcome != "queued" || u.Job == "" {
		w.Fatalf("upload %s: %+v", name, u)
	}
	return u.Job
}

// start starts a worker process.
func (w *world) start() *exec.Cmd {
	w.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDatabase+"="+w.database, childFolder+"="+w.folder)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// run runs a worker in this process until the returned function is called.
func (w *world) run() (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	var working sync.WaitGroup
	working.Go(func() {
		if err := w.queue.Work(ctx, w.host, Options{Documents: 2}); err != nil {
			w.Error(err)
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		working.Wait()
	})
}

// await waits until a condition holds.
func (w *world) await(what string, holds func() bool) {
	w.Helper()
	for deadline := time.Now().Add(15 * time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("waited for a quarter of an hour until %s", what)
		}
	}
}

// waiting returns how many documents wait.
func (w *world) waiting() (n int) {
	w.Helper()
	err := w.queue.pool.QueryRow(w.Context(), `SELECT count(*) FROM assay_queue.upload`).Scan(&n)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// texts returns the stored documents by URI.
func (w *world) texts() map[string]string {
	w.Helper()
	texts := map[string]string{}
	for d, err := range w.session.Documents(w.Context()) {
		if err != nil {
			w.Fatal(err)
		}
		whole, err := w.session.Document(w.Context(), d.ID)
		if err != nil {
			w.Fatal(err)
		}
		if _, twice := texts[d.URI]; twice {
			w.Errorf("%s is stored twice", d.URI)
		}
		texts[d.URI] = whole.Text
	}
	return texts
}

// TestKilledWorkers kills workers at random moments. Every document is stored once, in its last version.
func TestKilledWorkers(t *testing.T) {
	documents, kills := 2000, 8
	if testing.Short() {
		documents, kills = 100, 2
	}
	if n, err := strconv.Atoi(os.Getenv("ASSAY_QUEUE_TEST_DOCUMENTS")); err == nil {
		documents = n
	}
	w := newWorld(t)
	seed := mathrand.Uint64()
	t.Logf("seed %d", seed)
	rng := mathrand.New(mathrand.NewPCG(seed, 1))
	workers := []*exec.Cmd{w.start(), w.start()}
	want := map[string]string{}
	began := time.Now()
	for i := range documents {
		versions := 1
		if i%50 == 0 {
			versions = 3
		}
		for v := range versions {
			text := fmt.Sprintf("Document %d says %d in its version %d.\n", i, i*7, v)
			w.upload(fmt.Sprintf("folder/%d.txt", i), text)
			want[fmt.Sprintf("upload:folder/%d.txt", i)] = text
		}
	}
	t.Logf("%d documents queued in %v", documents, time.Since(began))
	total := w.waiting()
	for range kills {
		i := rng.IntN(len(workers))
		goal := w.waiting() - rng.IntN(max(1, total/kills))
		w.await("the workers go on", func() bool { return w.waiting() <= max(goal, 0) })
		if err := workers[i].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = workers[i].Wait()
		workers[i] = w.start()
	}
	w.await("all documents are stored", func() bool { return w.waiting() == 0 })
	t.Logf("%d documents stored in %v, with %d kills", documents, time.Since(began), kills)
	for _, cmd := range workers {
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			t.Errorf("a worker that is to end: %v", err)
		}
	}
	w.check(want)
}

// check compares the stored documents with those that were uploaded, and verifies the audit log.
func (w *world) check(want map[string]string) {
	w.Helper()
	got := w.texts()
	for uri, text := range want {
		if strings.TrimSpace(got[uri]) != strings.TrimSpace(text) {
			w.Errorf("%s is %q, want %q", uri, got[uri], text)
		}
	}
	if len(got) != len(want) {
		w.Errorf("%d documents, want %d", len(got), len(want))
	}
	failed, err := w.queue.List(w.Context(), Filter{State: Failed})
	if err != nil || len(failed) > 0 {
		w.Errorf("failed jobs: %v, %v", failed, err)
	}
	for _, check := range engine.Doctor(w.Context(), engine.Config{Store: w.store()}) {
		if !check.OK {
			w.Errorf("%s: %s", check.Name, check.Detail)
		}
	}
}

// store opens the store again.
func (w *world) store() *postgres.Store {
	w.Helper()
	s, err := postgres.Open(w.Context(), w.database, postgres.WithFolder(w.folder))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = s.Close() })
	return s
}

// TestOrder checks that the versions of a document are stored in their order, that an equal one is not
// queued twice, and that an older one never replaces a newer one.
func TestOrder(t *testing.T) {
	w := newWorld(t)
	first := w.upload("a.txt", "The first version.")
	if again := w.upload("a.txt", "The first version."); again != first {
		t.Errorf("the same document again is job %s, want %s", again, first)
	}
	second := w.upload("a.txt", "The second version.")
	if third := w.upload("a.txt", "The first version."); third == first || third == second {
		t.Errorf("a version after another is job %s, as before", third)
	}
	last := w.upload("a.txt", "The last version.")
	// The last version is tried before the others.
	_, err := w.queue.pool.Exec(t.Context(), `UPDATE assay_queue.river_job SET scheduled_at = now() + interval '1 hour', state = 'scheduled' WHERE kind = 'document' AND id <> $1`, last)
	if err != nil {
		t.Fatal(err)
	}
	stop := w.run()
	defer stop()
	w.await("the last version is stored", func() bool { return w.texts()["upload:a.txt"] == "The last version." })
	jobs, err := w.queue.List(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		if j.Kind == KindDocument && j.State == Queued {
			if _, err := w.queue.Retry(t.Context(), j.ID); err != nil {
				t.Error(err)
			}
		}
	}
	w.await("the older versions are left out", func() bool { return w.waiting() == 0 })
	stop()
	w.check(map[string]string{"upload:a.txt": "The last version."})
}

// TestDeadLetter checks that a document that cannot be parsed fails at once, is listed, and can be
// dropped.
func TestDeadLetter(t *testing.T) {
	w := newWorld(t)
	id := w.upload("broken.pdf", "%PDF-1.7 this is no PDF")
	stop := w.run()
	defer stop()
	var failed []Job
	w.await("the document fails", func() bool {
		var err error
		if failed, err = w.queue.List(t.Context(), Filter{State: Failed}); err != nil {
			t.Fatal(err)
		}
		return len(failed) > 0
	})
	j := failed[0]
	if fmt.Sprint(j.ID) != id || j.Kind != KindDocument || j.Name != "upload:broken.pdf" || j.Error == "" || j.Tenant != "default" {
		t.Errorf("the failed job is %+v", j)
	}
	if err := w.queue.Drop(t.Context(), j.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.queue.Job(t.Context(), j.ID); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("a dropped job: %v", err)
	}
	if n := w.waiting(); n != 0 {
		t.Errorf("%d documents wait after the job was dropped", n)
	}
	if _, err := w.queue.Retry(t.Context(), 1<<40); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("retry an unknown job: %v", err)
	}
	if _, err := w.queue.List(t.Context(), Filter{State: "lost"}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("list an unknown state: %v", err)
	}
}

// TestOpenTogether opens an empty database by many at once.
func TestOpenTogether(t *testing.T) {
	database := pgtest.Database(t)
	var opening sync.WaitGroup
	for range 6 {
		opening.Go(func() {
			q, err := Open(t.Context(), database, 0, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := q.Counts(t.Context()); err != nil {
				t.Error(err)
			}
			_ = q.Close()
		})
	}
	opening.Wait()
}

// TestSecret checks that errors do not contain the password.
func TestSecret(t *testing.T) {
	for _, address := range []string{
		"postgres://assay:hunter2hunter2@127.0.0.1:1/none?connect_timeout=1", "postgres://assay:hunter2hunter2@%zz/", "host=x password=hunter2hunter2 port=none",
	} {
		_, err := Open(t.Context(), address, 0, slog.New(slog.DiscardHandler))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("open %s: %v", address, err)
		}
	}
}
