package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// A clock is a time that tests move. The store and the deliverer share it.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A bench is a tenant with a deliverer.
type bench struct {
	*Deliverer
	clock  *clock
	tenant store.Tenant
}

var environment = map[string]string{"HOOK": secretA, "OLD": secretB}

func newBench(t *testing.T) *bench {
	t.Helper()
	c := &clock{now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)}
	tenant := openTenant(t, t.TempDir(), sqlite.WithClock(c.Now))
	return &bench{clock: c, tenant: tenant, Deliverer: &Deliverer{
		Tenant: tenant, Client: &http.Client{}, Now: c.Now, Random: func() float64 { return 0.5 },
		Credential: Resolve(func(name string) string { return environment[name] }),
	}}
}

func openTenant(t *testing.T, dir string, opts ...sqlite.Option) store.Tenant {
	t.Helper()
	s, err := sqlite.Open(t.Context(), dir, opts...)
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(tenant.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return tenant
}

// add adds a target that is told about reviews.
func (b *bench) add(t *testing.T, name, address string, secrets ...string) {
	t.Helper()
	if len(secrets) == 0 {
		secrets = []string{"env:HOOK"}
	}
	target := Target{URL: address, Events: []string{"review.*"}, Form: Standard, Secrets: secrets}
	if err := Add(t.Context(), b.tenant, name, target, assay.Local(), ""); err != nil {
		t.Fatal(err)
	}
}

// act appends acts on a review.
func (b *bench) act(t *testing.T, runs ...string) {
	t.Helper()
	for _, run := range runs {
		if err := b.tenant.Audit().Append(t.Context(), store.Act{Kind: "review.needed", Subject: run}); err != nil {
			t.Fatal(err)
		}
	}
}

// deliver delivers once and checks the counts: made, delivered, failed, dead.
func (b *bench) deliver(t *testing.T, want ...int) Report {
	t.Helper()
	r, err := b.Deliver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := []int{r.Made, r.Delivered, r.Failed, r.Dead}; !slices.Equal(got, want) {
		t.Fatalf("Deliver: made, delivered, failed, dead = %v, want %v", got, want)
	}
	return r
}

// A receiver is a program that verifies messages and drops repeated ones, as the documentation
// tells receivers to.
type receiver struct {
	*httptest.Server
	now func() time.Time

	mu       sync.Mutex
	statuses []int // of the next responses; empty: 204
	header   http.Header
	attempts int
	seen     map[string]int // accepted attempts by ID
	bodies   map[string]string
	bad      []error
}

func newReceiver(t *testing.T, now func() time.Time, statuses ...int) *receiver {
	r := &receiver{now: now, statuses: statuses, seen: map[string]int{}, bodies: map[string]string{}, header: http.Header{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.Close()
		for _, err := range r.bad {
			t.Error(err)
		}
	})
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts++
	if err = errors.Join(err, Verify(req.Header, body, r.now(), secretA)); err != nil {
		r.bad = append(r.bad, err)
	}
	status := http.StatusNoContent
	if len(r.statuses) > 0 {
		status, r.statuses = r.statuses[0], r.statuses[1:]
	}
	id := req.Header.Get(HeaderID)
	if before, again := r.bodies[id]; again && before != string(body) {
		r.bad = append(r.bad, fmt.Errorf("the body of %s changed", id))
	}
	r.bodies[id] = string(body)
	if status < 300 {
		r.seen[id]++
	}
	for name := range r.header {
		w.Header().Set(name, r.header.Get(name))
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.Repeat("x", 100)) // no receiver's text reaches the store
}

func TestDeliver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := newReceiver(t, b.clock.Now)
	b.act(t, "before")
	b.add(t, "one", r.URL)
	b.deliver(t, 0, 0, 0, 0)
	b.act(t, "r1", "r2")
	if err := b.tenant.Audit().Append(t.Context(), store.Act{Kind: "key.created", Subject: "k"}); err != nil {
		t.Fatal(err)
	}
	b.deliver(t, 2, 2, 0, 0)
	b.deliver(t, 0, 0, 0, 0)
	if len(r.seen) != 2 || r.attempts != 2 {
		t.Errorf("%d messages in %d attempts", len(r.seen), r.attempts)
	}
	if err := b.Test(t.Context(), "one"); err != nil || r.attempts != 3 {
		t.Errorf("Test = %v, after %d attempts", err, r.attempts)
	}
	if err := b.Test(t.Context(), "none"); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("Test of no target = %v", err)
	}
	if err := Remove(t.Context(), b.tenant, "one", assay.Local(), ""); err != nil {
		t.Fatal(err)
	}
	b.act(t, "r3")
	b.deliver(t, 0, 0, 0, 0)
}

// TestRotation signs with two secrets while one replaces the other.
func TestRotation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := newReceiver(t, b.clock.Now) // knows one of them
	b.add(t, "one", r.URL, "env:OLD", "env:HOOK")
	b.act(t, "r1")
	b.deliver(t, 1, 1, 0, 0)
}

// TestRetry follows the attempts at a receiver that fails until it works.
func TestRetry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := newReceiver(t, b.clock.Now, 500, 503, 302)
	b.add(t, "one", r.URL)
	b.act(t, "r1", "r2")
	for i, wait := range []time.Duration{5 * time.Second, 20 * time.Second, 80 * time.Second} {
		made := 0
		if i == 0 {
			made = 2
		}
		report := b.deliver(t, made, 0, 1, 0)
		if got := report.Next.Sub(b.clock.Now()); got > wait {
			t.Errorf("attempt %d: next after %s, want at most %s", i+1, got, wait)
		}
		b.deliver(t, 0, 0, 0, 0) // nothing is due, and the other message waits too
		b.clock.advance(wait)
	}
	b.deliver(t, 0, 2, 0, 0)
	if r.attempts != 5 {
		t.Errorf("%d attempts, want 5", r.attempts)
	}
}

// TestRejectedMessage shows that a message that is rejected for itself does not hold up others.
func TestRejectedMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := newReceiver(t, b.clock.Now, 400)
	b.add(t, "one", r.URL)
	b.act(t, "r1", "r2")
	b.deliver(t, 2, 1, 1, 0)
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := newReceiver(t, b.clock.Now, 429)
	r.header.Set("Retry-After", "3600")
	b.add(t, "one", r.URL)
	b.act(t, "r1")
	if report := b.deliver(t, 1, 0, 1, 0); report.Next.Sub(b.clock.Now()) != time.Hour {
		t.Errorf("next at %s, want in an hour", report.Next)
	}
	now := b.clock.Now()
	for text, want := range map[string]time.Duration{
		"": 0, "-3": 0, "x": 0, "99999999": mostDelay, now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("retryAfter(%q) = %s, want %s", text, got, want)
		}
	}
}

// TestThreeDays gives a message up after three days and retries it by hand.
func TestThreeDays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := newReceiver(t, b.clock.Now)
	r.statuses = slices.Repeat([]int{500}, 100)
	b.add(t, "one", r.URL)
	b.act(t, "r1")
	start := b.clock.Now()
	report := b.deliver(t, 1, 0, 1, 0)
	for !report.Next.IsZero() {
		b.clock.advance(report.Next.Sub(b.clock.Now()))
		var err error
		if report, err = b.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if tried := b.clock.Now().Sub(start); tried < 2*24*time.Hour || tried > tryFor || r.attempts < 8 || r.attempts > 20 {
		t.Errorf("given up after %s and %d attempts", tried, r.attempts)
	}
	dead, err := b.tenant.Outbox().Dead(t.Context())
	if err != nil || len(dead) != 1 || dead[0].Error != "HTTP status 500" {
		t.Fatalf("Dead = %+v, %v", dead, err)
	}
	r.mu.Lock()
	r.statuses = nil
	r.mu.Unlock()
	if n, err := b.tenant.Outbox().Retry(t.Context()); err != nil || n != 1 {
		t.Fatalf("Retry = %d, %v", n, err)
	}
	b.deliver(t, 0, 1, 0, 0)
	if r.seen[dead[0].ID] != 1 {
		t.Error("the message has another ID after Retry")
	}
}

// TestGone disables a target whose receiver answers 410.
func TestGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := newReceiver(t, b.clock.Now, 410)
	b.add(t, "one", r.URL)
	b.act(t, "r1", "r2")
	b.deliver(t, 2, 0, 0, 2)
	targets, err := Targets(t.Context(), b.tenant.Registry())
	if err != nil || targets[0].Active {
		t.Errorf("Targets = %+v, %v; want it disabled", targets, err)
	}
	b.act(t, "r3")
	b.deliver(t, 0, 0, 0, 0)
	b.add(t, "one", r.URL) // active again, for later acts
	b.act(t, "r4")
	b.deliver(t, 1, 1, 0, 0)
}

// TestFaultyReceivers sends to receivers that lose connections, hang, redirect and answer endlessly.
// One that works is not affected.
func TestFaultyReceivers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	release := make(chan struct{})
	elsewhere := newReceiver(t, b.clock.Now)
	slow := hasty{"unresolved.invalid": true}
	b.Client.Transport = slow
	handlers := map[string]http.HandlerFunc{
		"closes": func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
		"hangs": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		},
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"endless": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		},
	}
	for name, h := range handlers {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		b.add(t, name, s.URL)
		if name == "hangs" {
			slow[strings.TrimPrefix(s.URL, "http://")] = true
		}
	}
	t.Cleanup(func() { close(release) })
	good := newReceiver(t, b.clock.Now)
	b.add(t, "works", good.URL)
	b.add(t, "unresolved", "https://unresolved.invalid/path-with-a-token")
	b.add(t, "secretless", good.URL, "env:NOT_SET")
	b.act(t, "r1")
	b.deliver(t, 7, 1, 6, 0)
	if len(elsewhere.bodies) > 0 {
		t.Error("a redirect was followed")
	}
	b.clock.advance(4 * 24 * time.Hour)
	b.deliver(t, 0, 0, 0, 6)
	dead, err := b.tenant.Outbox().Dead(t.Context())
	if err != nil || len(dead) != 6 {
		t.Fatalf("Dead = %d messages, %v", len(dead), err)
	}
	for _, m := range dead {
		if m.Error == "" || strings.Contains(m.Error, "token") || strings.Contains(m.Error, "127.0.0.1:") && strings.Contains(m.Error, "http://") {
			t.Errorf("error to %s: %q", m.Target, m.Error)
		}
	}
}

// A hasty transport gives the receivers that it names little time. The others have as long as they need,
// since a busy machine makes them slow.
type hasty map[string]bool

func (h hasty) RoundTrip(r *http.Request) (*http.Response, error) {
	if !h[r.URL.Host] {
		return http.DefaultTransport.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), 200*time.Millisecond)
	defer cancel() // these receivers send no response
	return http.DefaultTransport.RoundTrip(r.WithContext(ctx))
}

// TestDoubled sends a message twice because its delivery could not be recorded. The receiver sees
// one ID.
func TestDoubled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	r := newReceiver(t, b.clock.Now)
	b.add(t, "one", r.URL)
	b.act(t, "r1")
	lost := errors.New("lost")
	b.Tenant = forgetful{b.tenant, lost}
	if _, err := b.Deliver(t.Context()); !errors.Is(err, lost) {
		t.Fatalf("Deliver = %v", err)
	}
	b.Tenant = b.tenant
	b.deliver(t, 0, 1, 0, 0)
	if len(r.seen) != 1 || r.attempts != 2 {
		t.Errorf("%d IDs in %d attempts, want 1 in 2", len(r.seen), r.attempts)
	}
}

// A forgetful tenant does not record deliveries.
type forgetful struct {
	store.Tenant
	err error
}

func (f forgetful) Outbox() store.Outbox { return forgetfulOutbox{f.Tenant.Outbox(), f.err} }

type forgetfulOutbox struct {
	store.Outbox
	err error
}

func (f forgetfulOutbox) Delivered(context.Context, string) error { return f.err }

// TestOneDeliverer checks that a second deliverer has to wait.
func TestOneDeliverer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lock, err := b.tenant.Lock(t.Context(), lockName)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := b.Deliver(t.Context()); err != nil || r != (Report{}) { // there is nothing to lock
		t.Errorf("Deliver without a target = %+v, %v", r, err)
	}
	r := newReceiver(t, b.clock.Now)
	b.add(t, "one", r.URL)
	b.act(t, "r1")
	if _, err := b.Deliver(t.Context()); !errors.Is(err, assay.ErrLocked) {
		t.Errorf("Deliver = %v, want ErrLocked", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	waits := 0
	b.wait = func(context.Context, time.Duration) error {
		if waits++; waits == 1 {
			return lock.Close() // the other deliverer ends
		}
		stop()
		return ctx.Err()
	}
	reports := 0
	err = b.Watch(ctx, time.Minute, func(r Report, err error) {
		if reports++; err != nil || r.Delivered != 1 {
			t.Errorf("report %+v, %v", r, err)
		}
	})
	if !errors.Is(err, context.Canceled) || reports != 1 || r.attempts != 1 {
		t.Errorf("Watch = %v after %d reports and %d attempts", err, reports, r.attempts)
	}
}

func TestSlack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		got = string(data)
		if r.Header.Get(HeaderSignature) != "" {
			t.Error("a message to Slack is signed")
		}
	}))
	defer s.Close()
	b.Credential = Resolve(func(string) string { return s.URL })
	target := Target{URL: "env:SLACK", Events: []string{"review.*"}, Form: Slack}
	if err := Add(t.Context(), b.tenant, "slack", target, assay.Local(), ""); err != nil {
		t.Fatal(err)
	}
	b.act(t, "r1")
	b.deliver(t, 1, 1, 0, 0)
	if !strings.Contains(got, "`assay review show r1`") {
		t.Errorf("message: %s", got)
	}
}

// TestAuditHasNoSecret checks the acts that changes of targets leave.
func TestAuditHasNoSecret(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.add(t, "one", "https://example.com/hook?token=hush-hush")
	size, err := b.tenant.Audit().Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range b.tenant.Audit().Entries(t.Context(), 0, size) {
		if err != nil || strings.Contains(string(e.Payload), "hush") || !strings.Contains(string(e.Payload), "env:HOOK") {
			t.Errorf("entry %s, %v", e.Payload, err)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	read := Resolve(func(name string) string { return environment[name] })
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secretA+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := file + ".large"
	if err := os.WriteFile(large, make([]byte, mostCredential+1), 0o600); err != nil {
		t.Fatal(err)
	}
	good := []string{"env:HOOK", "file:" + file}
	if runtime.GOOS != "windows" {
		good = append(good, "command:cat "+file)
	}
	for _, reference := range good {
		if got, err := read(t.Context(), reference); err != nil || got != secretA {
			t.Errorf("%s: %v", reference, err)
		}
	}
	for _, reference := range []string{"env:NONE", "file:" + file + ".none", "file:" + large, "command:no-such-program", "command:false", secretA} {
		if _, err := read(t.Context(), reference); err == nil || strings.Contains(err.Error(), secretA) {
			t.Errorf("%s: %v", reference, err)
		}
	}
}

// TestResolveEnds checks that a command whose children keep its output open ends with the context.
func TestResolveEnds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no sh")
	}
	started := filepath.Join(t.TempDir(), "started")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(started); err == nil {
				cancel()
			}
		}
	}()
	_, err := Resolve(os.Getenv)(ctx, `command:sh -c 'sleep 1000 & touch `+started+`; sleep 1000'`)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

// TestExpired checks that messages that were given up do not stay, and neither do those of a target
// that was removed while another process delivered.
func TestExpired(t *testing.T) {
	b := newBench(t)
	r := newReceiver(t, b.clock.Now, 500, 500, 500)
	b.add(t, "ops", r.URL)
	b.act(t, "r1")
	b.deliver(t, 1, 0, 1, 0)
	b.clock.advance(tryFor)
	b.deliver(t, 0, 0, 0, 1)
	b.clock.advance(keepDead - tryFor)
	if report := b.deliver(t, 0, 0, 0, 0); report.Removed != 0 {
		t.Errorf("%d removed at %s", report.Removed, keepDead)
	}
	b.clock.advance(time.Second)
	if report := b.deliver(t, 0, 0, 0, 0); report.Removed != 1 {
		t.Errorf("%d removed after %s, want 1", report.Removed, keepDead)
	}
	b.act(t, "r2")
	b.deliver(t, 1, 0, 1, 0)
	if err := b.tenant.Registry().Delete(t.Context(), Kind, "ops", store.Act{Kind: "webhook.removed", Subject: "ops"}); err != nil {
		t.Fatal(err)
	}
	b.deliver(t, 0, 0, 0, 0)
	if counts, err := b.tenant.Outbox().Targets(t.Context()); err != nil || len(counts) > 0 {
		t.Errorf("left of a removed target: %+v, %v", counts, err)
	}
}

// TestErased checks that the messages of an erased run are not sent, except that it was erased.
func TestErased(t *testing.T) {
	b := newBench(t)
	r := newReceiver(t, b.clock.Now, 500, 500)
	target := Target{URL: r.URL, Events: []string{"*"}, Form: Standard, Secrets: []string{"env:HOOK"}}
	if err := Add(t.Context(), b.tenant, "ops", target, assay.Local(), ""); err != nil {
		t.Fatal(err)
	}
	lease, err := b.tenant.Runs().Create(t.Context(), assay.Run{ID: "r1", Question: "q", Request: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lease.Finish(t.Context(), assay.RunFailed, nil, "broken"), lease.Close()); err != nil {
		t.Fatal(err)
	}
	b.deliver(t, 3, 0, 1, 0) // webhook.set, run.begun, run.ended
	if err := b.tenant.Runs().Erase(t.Context(), "r1", store.Act{Reason: "asked for"}); err != nil {
		t.Fatal(err)
	}
	b.clock.advance(time.Hour)
	b.deliver(t, 1, 0, 1, 0)
	counts, err := b.tenant.Outbox().Targets(t.Context())
	if err != nil || counts[0].Waiting != 2 || counts[0].Removed != 2 {
		t.Errorf("%+v, %v; want 2 waiting and 2 removed", counts, err)
	}
}
