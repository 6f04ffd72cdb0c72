package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay/internal/ramdisk"
	"github.com/assay-rag/assay/store/sqlite"
)

// childVariable names the data directory of a child process, which delivers until it is killed.
const childVariable = "ASSAY_WEBHOOK_CHILD"

func TestMain(m *testing.M) {
	ramdisk.Use()
	if dir := os.Getenv(childVariable); dir != "" {
		fmt.Fprintln(os.Stderr, deliverForever(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func deliverForever(dir string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, dir)
	if err != nil {
		return err
	}
	tenant, err := s.Tenant(ctx, "default")
	if err != nil {
		return err
	}
	d := &Deliverer{Tenant: tenant, Client: &http.Client{}, Credential: Resolve(os.Getenv)}
	for {
		if _, err := d.Deliver(ctx); err != nil {
			return err
		}
	}
}

// A tally is a receiver that rejects some attempts and reports each one.
type tally struct {
	mu       sync.Mutex
	attempts int
	accepted map[string]int    // by ID
	bodies   map[string]string // the ID of each path and body
	bad      error
	arrived  chan struct{}
}

func (c *tally) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed
	}
	id, message := r.Header.Get(HeaderID), r.URL.Path+string(body)
	c.mu.Lock()
	c.attempts++
	if before, known := c.bodies[message]; known && before != id {
		c.bad = fmt.Errorf("one message has the IDs %s and %s", before, id)
	}
	c.bodies[message] = id
	reject := c.attempts%5 == 0
	if !reject {
		c.accepted[id]++
	}
	c.mu.Unlock()
	select {
	case c.arrived <- struct{}{}: // the test may kill the sender now
	default:
	}
	if reject {
		w.WriteHeader(http.StatusBadRequest)
	}
}

// TestKillDeliverer kills a delivering process at random points while acts are appended. No message
// is lost, and each keeps its ID.
func TestKillDeliverer(t *testing.T) {
	kills := 300
	if testing.Short() {
		kills = 10
	}
	dir := t.TempDir()
	clock := &clock{}
	b := &bench{tenant: openTenant(t, dir, sqlite.WithClock(func() time.Time { return time.Now().Add(clock.Now().Sub(time.Time{})) }))}
	receiver := &tally{accepted: map[string]int{}, bodies: map[string]string{}, arrived: make(chan struct{}, 1)}
	server := httptest.NewServer(receiver)
	defer server.Close()
	b.add(t, "one", server.URL)
	b.add(t, "two", server.URL+"/2")
	acts := 0
	for range kills {
		stop := startChild(t, dir)
		for range 1 + rand.IntN(4) {
			b.act(t, fmt.Sprintf("run%d", acts))
			acts++
			<-receiver.arrived
		}
		stop()
	}
	clock.advance(time.Hour) // for the rejected ones
	last := &Deliverer{Tenant: b.tenant, Client: &http.Client{}, Credential: Resolve(func(name string) string { return environment[name] })}
	for left := true; left; {
		r, err := last.Deliver(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		left = !r.Next.IsZero()
		clock.advance(time.Hour)
	}
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	if receiver.bad != nil || len(receiver.accepted) != 2*acts {
		t.Errorf("%d messages accepted, want %d; %v", len(receiver.accepted), 2*acts, receiver.bad)
	}
	counts, err := b.tenant.Outbox().Targets(t.Context())
	if err != nil || counts[0].Delivered+counts[1].Delivered != 2*acts || counts[0].Waiting+counts[0].Dead+counts[1].Waiting+counts[1].Dead != 0 {
		t.Errorf("counts %+v, %v; want %d delivered", counts, err, 2*acts)
	}
	t.Logf("%d kills, %d messages, %d attempts", kills, len(receiver.accepted), receiver.attempts)
}

// startChild starts a process that delivers, and returns a function that kills it.
func startChild(t *testing.T, dir string) (stop func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+dir, "HOOK="+secretA)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, exited := errors.AsType[*exec.ExitError](cmd.Wait()); !exited {
			t.Fatal("the child ended by itself")
		}
	}
}
