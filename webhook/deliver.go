package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/store"
)

// Bounds of delivery.
const (
	// attemptTime bounds one attempt, including the name's resolution and the response.
	attemptTime = 15 * time.Second
	// mostResponse is how many bytes of a response are read, so that the connection can be reused.
	// They are not kept.
	mostResponse = 64 << 10
	// mostTargets is how many targets are sent to at a time. A target gets one message at a time.
	mostTargets = 8
	// dueBatch is how many messages are read at a time.
	dueBatch = 256
	// tryFor is how long after it was made a message is tried for.
	tryFor = 3 * 24 * time.Hour
	// keepDead is how long after it was made a message that was given up is kept for Retry.
	keepDead = 30 * 24 * time.Hour
	// mostMessages is how many messages of a target are kept. The oldest beyond it are removed.
	mostMessages = 100_000

	firstDelay = 5 * time.Second
	mostDelay  = 12 * time.Hour
	growth     = 4
)

// lockName is the tenant's lock of the deliverer.
const lockName = "webhooks"

// A Deliverer sends the messages of one tenant. Client and Credential are required. It is safe for
// concurrent use, and in any number of processes only one delivers at a time.
type Deliverer struct {
	Tenant store.Tenant

	// Client sends the requests. Redirects are not followed whatever its CheckRedirect.
	Client *http.Client

	// Credential reads the value that a reference names; Resolve returns one.
	Credential func(ctx context.Context, reference string) (string, error)

	// Now returns the current time, of the clock that the store has; nil: time.Now.
	Now func() time.Time

	// Random returns a number in [0, 1) that spreads repeated attempts; nil: a random one.
	Random func() float64

	// wait waits until the time is over or ctx ends; nil: by a timer. Tests replace it.
	wait func(context.Context, time.Duration) error
}

// A Report counts the messages of one delivery.
type Report struct {
	Made      int       `json:"made"`          // of new acts
	Delivered int       `json:"delivered"`     // accepted by their targets
	Failed    int       `json:"failed"`        // attempts that failed; the messages will be sent again
	Dead      int       `json:"given_up"`      // given up in this delivery
	Removed   int       `json:"removed"`       // that were too old or too many, and were not delivered
	Next      time.Time `json:"next,omitzero"` // when the next message is to be sent; zero: none waits
}

// Deliver makes the messages of new acts and sends all that are due. A receiver that fails is no
// error. The error is assay.ErrLocked while another process or Deliverer delivers.
func (d *Deliverer) Deliver(ctx context.Context) (report Report, err error) {
	targets, err := Targets(ctx, d.Tenant.Registry())
	if err != nil {
		return report, err
	}
	counts, err := d.Tenant.Outbox().Targets(ctx)
	if err != nil || len(targets)+len(counts) == 0 {
		return report, err
	}
	lock, err := d.Tenant.Lock(ctx, lockName)
	if err != nil {
		return report, fmt.Errorf("deliver webhooks: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if report.Made, err = d.make(ctx, targets); err != nil {
		return report, err
	}
	if report.Removed, err = d.Tenant.Outbox().Expire(ctx, d.now().Add(-keepDead), mostMessages); err != nil {
		return report, err
	}
	r := round{d: d, client: d.client(), targets: map[string]Target{}, failures: map[string]int{}}
	for _, t := range targets {
		r.targets[t.Name] = t.Target
	}
	if err := r.forgetOthers(ctx); err != nil {
		return report, err
	}
	for more := true; more && err == nil; {
		more, err = r.sendDue(ctx)
	}
	report.Delivered, report.Failed, report.Dead = r.delivered, r.failed, r.dead
	if err != nil {
		return report, err
	}
	report.Next, err = d.Tenant.Outbox().Next(ctx)
	return report, err
}

// make makes the messages of new acts for the active targets.
func (d *Deliverer) make(ctx context.Context, targets []Named) (int, error) {
	var active []Named
	skip := int64(-1)
	for _, t := range targets {
		if !t.Active {
			continue
		}
		active = append(active, t)
		if skip < 0 || t.Since < skip {
			skip = t.Since
		}
	}
	if len(active) == 0 {
		return 0, nil
	}
	content, err := d.Tenant.Content().Identity(ctx)
	if err != nil {
		return 0, err
	}
	return d.Tenant.Outbox().Make(ctx, skip, func(a store.LoggedAct) ([]store.Message, error) {
		var all []store.Message
		for _, t := range active {
			if a.Sequence <= t.Since || !t.wants(a.Kind) {
				continue
			}
			text, err := body(t.Target, a)
			if err != nil {
				return nil, err
			}
			all = append(all, store.Message{ID: messageID(content, t.Name, a.Sequence), Target: t.Name, Body: text})
		}
		return all, nil
	})
}

// Watch delivers until ctx ends, and looks for new acts as often as every says. While another
// process delivers, it waits for its turn. report is called after each delivery that did something or
// failed; it may be nil. The error is that of ctx.
func (d *Deliverer) Watch(ctx context.Context, every time.Duration, report func(Report, error)) error {
	wait := d.wait
	if wait == nil {
		wait = sleep
	}
	for {
		r, err := d.Deliver(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		idle := r.Made+r.Delivered+r.Failed+r.Dead+r.Removed == 0 && (err == nil || errors.Is(err, assay.ErrLocked))
		if report != nil && !idle {
			report(r, err)
		}
		next := every
		if left := r.Next.Sub(d.now()); !r.Next.IsZero() && left < next {
			next = max(left, 0)
		}
		if err := wait(ctx, next); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Test sends one message to a target now, whether it is active or not. The message is neither
// stored nor sent again. The error is assay.ErrUnavailable if the receiver does not accept it.
func (d *Deliverer) Test(ctx context.Context, name string) error {
	targets, err := Targets(ctx, d.Tenant.Registry())
	if err != nil {
		return err
	}
	for _, t := range targets {
		if t.Name != name {
			continue
		}
		now := d.now()
		text, err := body(t.Target, store.LoggedAct{Time: now, Act: store.Act{Kind: TestEvent, Subject: name}})
		if err != nil {
			return err
		}
		m := store.Message{ID: messageID("test", name, now.UnixNano()), Body: text}
		if out := d.send(ctx, d.client(), t.Target, m); !out.ok {
			return fmt.Errorf("webhook %s: %s: %w", name, out.why, assay.ErrUnavailable)
		}
		return nil
	}
	return fmt.Errorf("webhook %q: %w", name, assay.ErrNotFound)
}

func (d *Deliverer) now() time.Time {
	if d.Now == nil {
		return time.Now()
	}
	return d.Now()
}

// client returns the client without redirects.
func (d *Deliverer) client() *http.Client {
	c := *d.Client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// delay returns how long to wait after the given number of failed attempts: 5 seconds, four times
// as long after each, at most 12 hours, and up to a quarter more or less.
func (d *Deliverer) delay(attempts int) time.Duration {
	wait := firstDelay
	for i := 1; i < attempts && wait < mostDelay; i++ {
		wait *= growth
	}
	random := rand.Float64
	if d.Random != nil {
		random = d.Random
	}
	return time.Duration(float64(min(wait, mostDelay)) * (0.75 + random()/2))
}

// An outcome is the result of one attempt.
type outcome struct {
	ok   bool
	gone bool // the receiver wants no more messages
	down bool // the receiver does not work, so that other messages would fail too
	why  string
	wait time.Duration // that the receiver asks for; 0: none
}

// send makes one attempt.
func (d *Deliverer) send(ctx context.Context, client *http.Client, t Target, m store.Message) outcome {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	address := t.URL
	if isReference(address) {
		var err error
		if address, err = d.Credential(ctx, address); err == nil {
			err = checkAddress(address)
		}
		if err != nil {
			return outcome{down: true, why: err.Error()}
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(string(m.Body)))
	if err != nil {
		return outcome{down: true, why: "the address is not valid"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "assay")
	if err := d.sign(ctx, req.Header, t, m); err != nil {
		return outcome{down: true, why: err.Error()}
	}
	resp, err := client.Do(req)
	if err != nil {
		return outcome{down: true, why: reason(err, address)}
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, mostResponse) // lets the connection be used again
	return judge(resp, d.now())
}

// sign sets the headers of the standard form.
func (d *Deliverer) sign(ctx context.Context, h http.Header, t Target, m store.Message) error {
	if t.Form != Standard {
		return nil
	}
	timestamp := strconv.FormatInt(d.now().Unix(), 10)
	var signatures []string
	for _, reference := range t.Secrets {
		text, err := d.Credential(ctx, reference)
		if err != nil {
			return err
		}
		k, err := parseKey(text)
		if err != nil {
			return err
		}
		signatures = append(signatures, k.sign(m.ID, timestamp, m.Body))
	}
	h.Set(HeaderID, m.ID)
	h.Set(HeaderTimestamp, timestamp)
	h.Set(HeaderSignature, strings.Join(signatures, " "))
	return nil
}

// reason describes a failed request without its address, which may be a credential.
func reason(err error, address string) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		if u.Timeout() {
			return "no response within the time limit"
		}
		err = u.Err
	}
	return secret.Redact(err.Error(), secret.New(address))
}

// messageStatuses are the statuses of a receiver that works and rejects this one message. All others
// mean that other messages would fail too.
var messageStatuses = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity}

// judge returns the outcome of a response.
func judge(resp *http.Response, now time.Time) outcome {
	out := outcome{why: "HTTP status " + strconv.Itoa(resp.StatusCode)}
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		out.ok = true
	case code == http.StatusGone:
		out.gone = true
	case slices.Contains(messageStatuses, code):
	default:
		out.down = true
		out.wait = retryAfter(resp.Header.Get("Retry-After"), now)
	}
	return out
}

// retryAfter reads the header of that name, seconds or a date. It returns at most mostDelay.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(seconds, 0), int(mostDelay/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), mostDelay)
	}
	return 0
}

// A round is one delivery.
type round struct {
	d        *Deliverer
	client   *http.Client
	targets  map[string]Target
	failures map[string]int // of each target, before this delivery

	mu                      sync.Mutex
	delivered, failed, dead int
	err                     error
}

// forgetOthers forgets targets that were removed, and notes the failures of the rest.
func (r *round) forgetOthers(ctx context.Context) error {
	counts, err := r.d.Tenant.Outbox().Targets(ctx)
	if err != nil {
		return err
	}
	for _, c := range counts {
		r.failures[c.Target] = c.Failures
		if _, known := r.targets[c.Target]; known {
			continue
		}
		if err := r.d.Tenant.Outbox().Forget(ctx, c.Target); err != nil {
			return err
		}
	}
	return nil
}

// sendDue sends the messages that are due, those of several targets at a time. more means that
// there may be others.
func (r *round) sendDue(ctx context.Context) (more bool, err error) {
	due, err := r.d.Tenant.Outbox().Due(ctx, dueBatch)
	if err != nil || len(due) == 0 {
		return false, err
	}
	var order []string
	byTarget := map[string][]store.Message{}
	for _, m := range due {
		if byTarget[m.Target] == nil {
			order = append(order, m.Target)
		}
		byTarget[m.Target] = append(byTarget[m.Target], m)
	}
	slots := make(chan struct{}, mostTargets)
	var all sync.WaitGroup
	for _, name := range order {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			r.note(r.sendTo(ctx, name, byTarget[name]))
		})
	}
	all.Wait()
	return true, errors.Join(r.err, ctx.Err())
}

func (r *round) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
}

func (r *round) count(n *int, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*n += by
}

// sendTo sends messages to one target until one shows that the target does not work.
func (r *round) sendTo(ctx context.Context, name string, messages []store.Message) error {
	box := r.d.Tenant.Outbox()
	t, known := r.targets[name]
	if !known {
		return box.Forget(ctx, name)
	}
	if !t.Active {
		n, err := box.Drop(ctx, name, "the target is not active")
		r.count(&r.dead, n)
		return err
	}
	for _, m := range messages {
		out := r.d.send(ctx, r.client, t, m)
		if ctx.Err() != nil {
			return nil // the attempt does not count
		}
		switch {
		case out.ok:
			if err := box.Delivered(ctx, m.ID); err != nil {
				return err
			}
			r.count(&r.delivered, 1)
		case out.gone:
			return r.disable(ctx, name)
		default:
			if err := r.fail(ctx, m, out); err != nil || out.down {
				return err
			}
		}
	}
	return nil
}

// fail records a failed attempt.
func (r *round) fail(ctx context.Context, m store.Message, out outcome) error {
	now, attempts := r.d.now(), m.Attempts+1
	if out.down {
		attempts = max(attempts, r.failures[m.Target]+1)
	}
	wait := max(r.d.delay(attempts), out.wait)
	next, count := now.Add(wait), &r.failed
	if next.After(m.Made.Add(tryFor)) {
		next, count = time.Time{}, &r.dead
	}
	if !out.down {
		wait = 0
	}
	if err := r.d.Tenant.Outbox().Failed(ctx, m.ID, out.why, next, wait); err != nil {
		return err
	}
	r.count(count, 1)
	return nil
}

// disable makes a target inactive that answered 410 Gone, and gives up its messages.
func (r *round) disable(ctx context.Context, name string) error {
	item, err := r.d.Tenant.Registry().Item(ctx, Kind, name) // it may have changed since
	if errors.Is(err, assay.ErrNotFound) {
		return r.d.Tenant.Outbox().Forget(ctx, name)
	}
	if err != nil {
		return err
	}
	var t Target
	if err := json.Unmarshal(item.Value, &t); err != nil {
		return fmt.Errorf("webhook %q: %w: %w", name, assay.ErrDamaged, err)
	}
	t.Active = false
	if item, err = registryItem(name, t); err != nil {
		return err
	}
	act := store.Act{Kind: "webhook.disabled", Subject: name, Reason: "the receiver answered 410 Gone", Detail: t.detail()}
	if err := r.d.Tenant.Registry().Set(ctx, item, act); err != nil {
		return err
	}
	n, err := r.d.Tenant.Outbox().Drop(ctx, name, "the receiver answered 410 Gone")
	r.count(&r.dead, n)
	return err
}
