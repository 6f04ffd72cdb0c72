// Package sourcetest tests the contract of a source. Run checks an implementation against the
// comments of package source, on a fake of the service that the tests change. Package sourcetest
// also has Memory, a source in memory for tests of what uses sources.
package sourcetest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
)

// A World is an empty place where documents live, which the test can change. The fields that are
// nil are abilities that the kind of source does not have; their tests are skipped.
type World struct {
	Kind   source.Kind
	Config source.Config // Now and Sleep are replaced by a fake clock

	// Put adds or changes an item. A name has one to eight letters, and text is one line of words,
	// which is part of the content that Fetch returns.
	Put    func(name, text string)
	Delete func(name string)
	URI    func(name string) string // that the source gives the item

	// SetACL allows an item to one user alone. Its content does not change. The ACL is then
	// Principal(user), or user:USER if Principal is nil.
	SetACL    func(name, user string)
	Principal func(user string) string

	Throttle     func(requests int, after time.Duration) // the next requests are answered "too many requests"
	Vanish       func(name string)                       // the item stays listed, and its content is gone
	ExpireCursor func()                                  // cursors given before are no longer accepted
	Refuse       func()                                  // credentials are no longer accepted
}

// Run tests the source of a kind. open is called once for each test.
func Run(t *testing.T, open func(t *testing.T) World) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, h *harness)
	}{
		{"initial sync", testInitial},
		{"empty", testEmpty},
		{"changes", testChanges},
		{"deletes", testDeletes},
		{"sweep", testSweep},
		{"versions", testVersions},
		{"acl", testACL},
		{"cursor resumes", testResume},
		{"cursor expires", testExpired},
		{"throttled", testThrottled},
		{"throttled for ever", testThrottledForEver},
		{"vanished", testVanished},
		{"refused", testRefused},
		{"canceled", testCanceled},
		{"deterministic", testDeterministic},
		{"invalid target", testInvalid},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newHarness(t, open(t))) })
	}
}

// A harness is a world with its source and clock.
type harness struct {
	World
	source source.Source
	clock  *Clock
}

func newHarness(t *testing.T, w World) *harness {
	t.Helper()
	h := &harness{World: w, clock: NewClock()}
	h.Config.Now, h.Config.Sleep = h.clock.Now, h.clock.Sleep
	options, err := w.Kind.Complete(w.Config.Options)
	if err != nil {
		t.Fatal(err)
	}
	h.Config.Options = options
	h.source = h.open(t)
	return h
}

func (h *harness) open(t *testing.T) source.Source {
	t.Helper()
	s, err := h.Kind.Open(t.Context(), h.Config)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func (h *harness) put(names ...string) {
	for _, name := range names {
		h.Put(name, "words of "+name)
	}
}

// uris returns the URIs of the items, sorted.
func (h *harness) uris(names ...string) []string {
	var uris []string
	for _, name := range names {
		uris = append(uris, h.URI(name))
	}
	slices.Sort(uris)
	return uris
}

// A listing is the result of Changes.
type listing struct {
	items   map[string]source.Item // the last of each URI
	deleted map[string]bool
	cursors []string // that are not empty
	order   []string // URIs
}

func (l listing) uris() []string { return slices.Sorted(maps.Keys(l.items)) }

// changes reads all changes.
func (h *harness) changes(t *testing.T, cursor string) listing {
	t.Helper()
	l, err := h.tryChanges(t.Context(), cursor)
	if err != nil {
		t.Fatalf("Changes(%q): %v", cursor, err)
	}
	if len(l.cursors) == 0 || l.cursors[len(l.cursors)-1] == "" {
		t.Fatalf("the last change of Changes(%q) has no cursor", cursor)
	}
	return l
}

func (l listing) last() string { return l.cursors[len(l.cursors)-1] }

func (h *harness) tryChanges(ctx context.Context, cursor string) (listing, error) {
	l := listing{items: map[string]source.Item{}, deleted: map[string]bool{}}
	last := ""
	for c, err := range h.source.Changes(ctx, cursor) {
		if err != nil {
			return l, err
		}
		if last = c.Cursor; last != "" {
			l.cursors = append(l.cursors, last)
		}
		uri := c.Item.URI
		if uri == "" {
			continue
		}
		l.order = append(l.order, uri)
		if c.Deleted {
			delete(l.items, uri)
			l.deleted[uri] = true
			continue
		}
		delete(l.deleted, uri)
		l.items[uri] = c.Item
	}
	if last == "" {
		return l, errors.New("the last change has no cursor")
	}
	return l, nil
}

func (h *harness) sweep(t *testing.T) map[string]source.Item {
	t.Helper()
	items := map[string]source.Item{}
	for item, err := range h.source.Sweep(t.Context()) {
		if err != nil {
			t.Fatalf("Sweep: %v", err)
		}
		if _, twice := items[item.URI]; twice {
			t.Errorf("Sweep yields %s twice", item.URI)
		}
		items[item.URI] = item
	}
	return items
}

func wantURIs(t *testing.T, what string, got, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func testInitial(t *testing.T, h *harness) {
	h.put("apple", "banana", "cherry")
	l := h.changes(t, "")
	wantURIs(t, "the first Changes", l.uris(), h.uris("apple", "banana", "cherry"))
	for _, name := range []string{"apple", "banana", "cherry"} {
		item := l.items[h.URI(name)]
		if item.Name == "" {
			t.Errorf("%s has no name", item.URI)
		}
		h.wantContent(t, item, "words of "+name)
	}
}

func (h *harness) wantContent(t *testing.T, item source.Item, text string) {
	t.Helper()
	content, err := h.source.Fetch(t.Context(), item)
	if err != nil {
		t.Errorf("Fetch(%s): %v", item.URI, err)
	} else if !strings.Contains(string(content.Data), text) {
		t.Errorf("Fetch(%s) = %q, want it to contain %q", item.URI, content.Data, text)
	}
}

func testEmpty(t *testing.T, h *harness) {
	l := h.changes(t, "")
	wantURIs(t, "Changes of an empty source", l.uris(), nil)
	if n := len(h.sweep(t)); n != 0 {
		t.Errorf("Sweep yields %d items of an empty source", n)
	}
	h.put("apple")
	wantURIs(t, "Changes after the first item", h.changes(t, l.last()).uris(), h.uris("apple"))
}

func testChanges(t *testing.T, h *harness) {
	h.put("apple", "banana")
	cursor := h.changes(t, "").last()
	none := h.changes(t, cursor)
	if !h.Kind.SweepOnly {
		wantURIs(t, "Changes without a change", none.uris(), nil)
	}
	h.clock.Advance(time.Minute)
	h.Put("banana", "yellow fruit")
	h.Put("cherry", "red fruit")
	l := h.changes(t, none.last())
	want := h.uris("banana", "cherry")
	if h.Kind.SweepOnly {
		want = h.uris("apple", "banana", "cherry")
	}
	wantURIs(t, "Changes", l.uris(), want)
	h.wantContent(t, l.items[h.URI("banana")], "yellow fruit")
	h.wantContent(t, l.items[h.URI("cherry")], "red fruit")
}

func testDeletes(t *testing.T, h *harness) {
	h.put("apple", "banana")
	cursor := h.changes(t, "").last()
	h.Delete("apple")
	l := h.changes(t, cursor)
	if _, present := l.items[h.URI("apple")]; present {
		t.Errorf("Changes yields the deleted item as present")
	}
	if h.Kind.DeletesInChanges && !l.deleted[h.URI("apple")] {
		t.Errorf("Changes yields no deletion of %s", h.URI("apple"))
	}
	if !h.Kind.KeepsMissing {
		wantURIs(t, "Sweep", slices.Sorted(maps.Keys(h.sweep(t))), h.uris("banana"))
	}
	wantURIs(t, "a new sync", h.changes(t, "").uris(), h.uris("banana"))
}

func testSweep(t *testing.T, h *harness) {
	h.put("apple", "banana", "cherry")
	listed, swept := h.changes(t, "").items, h.sweep(t)
	wantURIs(t, "Sweep", slices.Sorted(maps.Keys(swept)), h.uris("apple", "banana", "cherry"))
	for uri, item := range swept {
		if diff := cmp.Diff(listed[uri].ACL, item.ACL); diff != "" {
			t.Errorf("%s: the ACLs of Changes and Sweep differ (-changes +sweep):\n%s", uri, diff)
		}
		if v := listed[uri].Version; v != item.Version {
			t.Errorf("%s has version %q in Changes and %q in Sweep", uri, v, item.Version)
		}
	}
	h.wantContent(t, swept[h.URI("apple")], "words of apple")
}

func testVersions(t *testing.T, h *harness) {
	h.put("apple", "banana")
	before := h.sweep(t)
	h.clock.Advance(time.Minute)
	h.Put("banana", "other words")
	after := h.sweep(t)
	a, b := h.URI("apple"), h.URI("banana")
	if before[a].Version != after[a].Version {
		t.Errorf("the version of an unchanged item changed from %q to %q", before[a].Version, after[a].Version)
	}
	if v := after[b].Version; v != "" && v == before[b].Version {
		t.Errorf("the version %q of a changed item is the same", v)
	}
}

func testACL(t *testing.T, h *harness) {
	if h.SetACL == nil {
		t.Skip("the source has no permissions")
	}
	h.put("apple", "banana")
	cursor := h.changes(t, "").last()
	before := h.sweep(t)
	h.SetACL("apple", "ann")
	uri := h.URI("apple")
	principal := "user:ann"
	if h.Principal != nil {
		principal = h.Principal("ann")
	}
	want, err := assay.RestrictTo(principal)
	if err != nil {
		t.Fatal(err)
	}
	swept := h.sweep(t)
	if diff := cmp.Diff(want, swept[uri].ACL); diff != "" {
		t.Errorf("the ACL of Sweep (-want +got):\n%s", diff)
	}
	if before[uri].Version != swept[uri].Version {
		t.Errorf("a change of ACL changed the version from %q to %q", before[uri].Version, swept[uri].Version)
	}
	if item, ok := h.changes(t, cursor).items[uri]; ok {
		if diff := cmp.Diff(want, item.ACL); diff != "" {
			t.Errorf("the ACL of Changes (-want +got):\n%s", diff)
		}
	}
}

func testResume(t *testing.T, h *harness) {
	h.put("apple", "banana", "cherry", "date", "elder")
	all := h.uris("apple", "banana", "cherry", "date", "elder")
	for stop := 1; stop <= len(all); stop++ {
		seen := map[string]bool{}
		cursor := ""
		for c, err := range h.source.Changes(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			seen[c.Item.URI] = true
			if cursor = c.Cursor; len(seen) >= stop && cursor != "" {
				break
			}
		}
		for _, uri := range h.changes(t, cursor).uris() {
			seen[uri] = true
		}
		delete(seen, "")
		wantURIs(t, "two iterations", slices.Sorted(maps.Keys(seen)), all)
	}
}

func testExpired(t *testing.T, h *harness) {
	if h.ExpireCursor == nil {
		t.Skip("cursors of the source do not expire")
	}
	h.put("apple")
	cursor := h.changes(t, "").last()
	h.ExpireCursor()
	if _, err := h.tryChanges(t.Context(), cursor); !errors.Is(err, source.ErrCursor) {
		t.Errorf("Changes with an expired cursor = %v, want source.ErrCursor", err)
	}
	wantURIs(t, "Changes from the beginning", h.changes(t, "").uris(), h.uris("apple"))
}

func testThrottled(t *testing.T, h *harness) {
	if h.Throttle == nil {
		t.Skip("the source is not throttled")
	}
	h.put("apple", "banana")
	const after = 7 * time.Second
	h.Throttle(2, after)
	l := h.changes(t, "")
	wantURIs(t, "Changes", l.uris(), h.uris("apple", "banana"))
	if h.clock.Slept() < 2*after {
		t.Errorf("slept for %v after two requests to wait for %v", h.clock.Slept(), after)
	}
	h.Throttle(1, after)
	h.wantContent(t, l.items[h.URI("apple")], "words of apple")
}

func testThrottledForEver(t *testing.T, h *harness) {
	if h.Throttle == nil {
		t.Skip("the source is not throttled")
	}
	h.put("apple")
	item := h.changes(t, "").items[h.URI("apple")]
	h.Throttle(1<<30, time.Second)
	_, err := h.tryChanges(t.Context(), "")
	if _, isSkip := source.AsSkip(err); err == nil || isSkip {
		t.Errorf("Changes of a service that always throttles = %v, want an error", err)
	}
	for _, err := range h.source.Sweep(t.Context()) {
		if _, isSkip := source.AsSkip(err); err == nil || isSkip {
			t.Errorf("Sweep of a service that always throttles yields %v, want an error", err)
		}
	}
	h.source.Fetch(t.Context(), item) // must end
	if h.clock.Slept() > 4*source.MaxWait {
		t.Errorf("slept for %v, want a bound", h.clock.Slept())
	}
}

func testVanished(t *testing.T, h *harness) {
	if h.Vanish == nil {
		t.Skip("listed items do not vanish")
	}
	h.put("apple", "banana")
	l := h.changes(t, "")
	h.Vanish("apple")
	_, err := h.source.Fetch(t.Context(), l.items[h.URI("apple")])
	if skip, ok := source.AsSkip(err); !ok || skip.Reason != source.Vanished || skip.URI != h.URI("apple") {
		t.Errorf("Fetch of an item that vanished = %v, want a Skip with the reason %q", err, source.Vanished)
	}
	h.wantContent(t, l.items[h.URI("banana")], "words of banana")
}

func testRefused(t *testing.T, h *harness) {
	if h.Refuse == nil {
		t.Skip("the source needs no credentials")
	}
	h.put("apple")
	h.Refuse()
	if _, err := h.tryChanges(t.Context(), ""); !errors.Is(err, source.ErrCredentials) {
		t.Errorf("Changes = %v, want source.ErrCredentials", err)
	}
}

func testCanceled(t *testing.T, h *harness) {
	h.put("apple", "banana", "cherry")
	item := h.changes(t, "").items[h.URI("apple")]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.tryChanges(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("Changes = %v, want context.Canceled", err)
	}
	var last error
	for _, err := range h.source.Sweep(ctx) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("Sweep = %v, want context.Canceled", last)
	}
	if _, err := h.source.Fetch(ctx, item); !errors.Is(err, context.Canceled) {
		t.Errorf("Fetch = %v, want context.Canceled", err)
	}
	for range h.source.Sweep(t.Context()) {
		break // must release its resources
	}
	for range h.source.Changes(t.Context(), "") {
		break
	}
}

func testDeterministic(t *testing.T, h *harness) {
	h.put("apple", "banana", "cherry")
	first := h.changes(t, "")
	h.source = h.open(t)
	second := h.changes(t, "")
	if diff := cmp.Diff(first.order, second.order); diff != "" {
		t.Errorf("the order of two listings differs:\n%s", diff)
	}
	if diff := cmp.Diff(first.items, second.items); diff != "" {
		t.Errorf("the items of two listings differ:\n%s", diff)
	}
}

func testInvalid(t *testing.T, h *harness) {
	c := h.Config
	c.Target = ""
	if s, err := h.Kind.Open(t.Context(), c); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("Open with an empty target = %v, want assay.ErrInvalid", err)
		if err == nil {
			s.Close()
		}
	}
}
