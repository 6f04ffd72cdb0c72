package ingest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/sourcetest"
	"github.com/assay-rag/assay/store"
)

// A syncWorld is a service in memory and a store that it is synced into.
type syncWorld struct {
	*sourcetest.Memory
	t     *testing.T
	w     store.Writer
	clock *sourcetest.Clock
	opts  SyncOptions
	kind  source.Kind
}

func newSyncWorld(t *testing.T) *syncWorld {
	t.Helper()
	w, err := openTenant(t, t.TempDir()).Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	x := &syncWorld{Memory: new(sourcetest.Memory), t: t, w: w, clock: sourcetest.NewClock()}
	x.kind = x.Memory.Kind()
	x.addSource(t)
	return x
}

func (x *syncWorld) addSource(t *testing.T) {
	t.Helper()
	if err := x.w.SetSyncSource(t.Context(), store.SyncSource{Name: "wiki", Kind: "memory", Target: "memory://test", Collection: "c"}); err != nil {
		t.Fatal(err)
	}
}

// try syncs with the given options.
func (x *syncWorld) try(ctx context.Context, opts SyncOptions) (SyncReport, error) {
	x.t.Helper()
	s, err := x.kind.Open(ctx, source.Config{Target: "memory://test", Now: x.clock.Now, Sleep: x.clock.Sleep})
	if err != nil {
		x.t.Fatal(err)
	}
	defer s.Close()
	opts.Name, opts.Kind, opts.Source, opts.Now = "wiki", x.kind, s, x.clock.Now
	return Sync(ctx, x.w, opts)
}

// sync syncs and checks the counts.
func (x *syncWorld) sync(want string) SyncReport {
	x.t.Helper()
	r, err := x.try(x.t.Context(), x.opts)
	if err != nil {
		x.t.Errorf("Sync: %v", err)
	}
	if got := counts(r); got != want {
		x.t.Errorf("Sync: %s, want %s; skipped: %v", got, want, r.Skipped)
	}
	return r
}

func counts(r SyncReport) string {
	return fmt.Sprintf("+%d ~%d =%d -%d skipped %d retry %d", r.Added, r.Updated, r.Unchanged, r.Removed, len(r.Skipped), r.Retry)
}

// want checks the stored documents: name and text, and the user if it is restricted.
func (x *syncWorld) want(want ...string) {
	x.t.Helper()
	var got []string
	for d, err := range x.w.Documents(x.t.Context(), "c") {
		if err != nil {
			x.t.Fatal(err)
		}
		full, err := x.w.Document(x.t.Context(), d.ID)
		if err != nil {
			x.t.Fatal(err)
		}
		line := strings.TrimPrefix(d.URI, "memory://test/") + ": " + strings.TrimSpace(full.Text)
		if d.ACL.Restricted {
			line += " " + strings.Join(d.ACL.Allow, " ")
		}
		got = append(got, line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		x.t.Errorf("documents (-want +got):\n%s", diff)
	}
}

func (x *syncWorld) wantFetched(names ...string) {
	x.t.Helper()
	if diff := cmp.Diff(names, x.Fetched()); diff != "" {
		x.t.Errorf("fetched (-want +got):\n%s", diff)
	}
}

func (x *syncWorld) state() store.SyncSource {
	x.t.Helper()
	all, err := x.w.SyncSources(x.t.Context())
	if err != nil || len(all) != 1 {
		x.t.Fatalf("Sources = %v, %v", all, err)
	}
	return all[0]
}

func TestSync(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	x.Put("a", "apples")
	x.Put("b", "bananas")
	x.sync("+2 ~0 =2 -0 skipped 0 retry 0") // the sweep finds them unchanged
	x.want("a: apples", "b: bananas")
	x.wantFetched("a", "b")
	d, err := x.w.Document(t.Context(), assay.DocumentID("c", x.URI("a")))
	if err != nil || d.Metadata[assay.MetaSource].String != "wiki" || d.Metadata[assay.MetaAuthor].String != "memory" {
		t.Errorf("Document = %v, %v", d.Metadata, err)
	}

	x.sync("+0 ~0 =2 -0 skipped 0 retry 0")
	x.wantFetched()

	x.Put("b", "berries")
	x.Delete("a")
	x.Put("c", "cherries")
	r := x.sync("+1 ~1 =2 -1 skipped 0 retry 0")
	x.want("b: berries", "c: cherries")
	x.wantFetched("b", "c")
	if !r.Swept || r.Documents != 2 || x.state().LastError != "" || x.state().LastSync.IsZero() {
		t.Errorf("report %+v, state %+v", r, x.state())
	}
}

func TestSyncDeletesInChanges(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	x.Deletes = true
	x.kind = x.Memory.Kind()
	x.Put("a", "apples")
	x.Put("b", "bananas")
	x.sync("+2 ~0 =0 -0 skipped 0 retry 0")
	x.Delete("a")
	if r := x.sync("+0 ~0 =0 -1 skipped 0 retry 0"); r.Swept {
		t.Error("swept, although the source reports deletions")
	}
	x.want("b: bananas")
	for range sweepEvery - 3 {
		if r := x.sync("+0 ~0 =0 -0 skipped 0 retry 0"); r.Swept {
			t.Error("swept too early")
		}
	}
	if r := x.sync("+0 ~0 =1 -0 skipped 0 retry 0"); !r.Swept {
		t.Errorf("not swept after %d syncs", sweepEvery)
	}
	x.ExpireCursor()
	x.Put("c", "cherries")
	if r := x.sync("+1 ~0 =3 -0 skipped 0 retry 0"); !r.Swept {
		t.Error("not swept after the cursor expired")
	}
	x.want("b: bananas", "c: cherries")
}

func TestSyncACL(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	x.Put("a", "apples")
	x.sync("+1 ~0 =1 -0 skipped 0 retry 0")
	x.Fetched()
	x.SetACL("a", "ann")
	x.sync("+0 ~1 =0 -0 skipped 0 retry 0")
	x.want("a: apples user:ann")
	x.wantFetched()

	x.Skip("a", source.UnknownACL)
	r := x.sync("+0 ~0 =0 -1 skipped 1 retry 0")
	if !r.Skipped[0].Removed {
		t.Errorf("skipped %+v, want it removed", r.Skipped[0])
	}
	x.want()
	x.Skip("a", "")
	x.sync("+1 ~0 =1 -0 skipped 0 retry 0")
	x.want("a: apples user:ann")
}

func TestSyncRequiresACL(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	if err := x.w.SetCollection(t.Context(), store.Collection{Name: "c", RequireACL: true}); err != nil {
		t.Fatal(err)
	}
	x.Put("a", "apples")
	x.sync("+0 ~0 =0 -0 skipped 1 retry 0")
	x.wantFetched()
	x.SetACL("a", "ann")
	x.sync("+1 ~0 =0 -0 skipped 0 retry 0")
	x.want("a: apples user:ann")
}

func TestSyncRetries(t *testing.T) {
	t.Parallel()
	for _, deletes := range []bool{false, true} {
		x := newSyncWorld(t)
		x.Deletes = deletes
		x.kind = x.Memory.Kind()
		x.Put("a", "apples")
		x.Put("b", "bananas")
		broken := true
		x.BeforeFetch = func(name string) error {
			if name == "a" && broken {
				return fmt.Errorf("status 500: %w", assay.ErrUnavailable)
			}
			return nil
		}
		r, err := x.try(t.Context(), SyncOptions{})
		if err != nil || r.Retry != 1 || len(r.Skipped) != 1 || r.Skipped[0].Reason != source.Unreadable {
			t.Errorf("Sync = %+v, %v, want one item to be retried", r, err)
		}
		x.want("b: bananas")
		broken = false
		if r, err := x.try(t.Context(), SyncOptions{}); err != nil || r.Retry != 0 || r.Added != 1 {
			t.Errorf("Sync = %+v, %v, want the item added", r, err)
		}
		x.want("a: apples", "b: bananas")

		broken = true
		x.Put("a", "apricots")
		if r, err := x.try(t.Context(), SyncOptions{}); err != nil || r.Retry != 1 || r.Skipped[0].Kept != 1 {
			t.Errorf("Sync = %+v, %v, want the old version kept", r, err)
		}
		x.want("a: apples", "b: bananas")
	}
}

// TestSyncVanished checks that an item whose content is gone twice is removed, although it is still
// listed.
func TestSyncVanished(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	x.Deletes = true
	x.kind = x.Memory.Kind()
	x.Put("a", "apples")
	x.sync("+1 ~0 =0 -0 skipped 0 retry 0")
	x.Put("a", "apricots")
	x.Vanish("a")
	x.sync("+0 ~0 =0 -0 skipped 1 retry 1")
	x.want("a: apples")
	x.sync("+0 ~0 =0 -1 skipped 0 retry 0")
	x.want()
}

// TestSyncSkippedInListing checks that a listing that cannot describe an item now leads to a sweep.
func TestSyncSkippedInListing(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	x.Deletes = true
	x.kind = x.Memory.Kind()
	x.Put("a", "apples")
	x.Put("b", "bananas")
	x.sync("+2 ~0 =0 -0 skipped 0 retry 0")
	x.Put("a", "apricots")
	x.Skip("a", source.Unreadable)
	if r := x.sync("+0 ~0 =1 -0 skipped 1 retry 0"); !r.Swept || !x.state().SweepDue {
		t.Errorf("report %+v, state %+v, want another sweep due", r, x.state())
	}
	x.want("a: apples", "b: bananas")
	x.Memory.Skip("a", "")
	if r := x.sync("+0 ~1 =2 -0 skipped 0 retry 0"); !r.Swept || x.state().SweepDue {
		t.Errorf("report %+v, state %+v, want no other sweep due", r, x.state())
	}
	x.want("a: apricots", "b: bananas")
}

func TestSyncGuardsSweep(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("n%02d", i))
		x.Put(names[i], "words")
	}
	x.sync("+60 ~0 =60 -0 skipped 0 retry 0")
	for _, name := range names[:6] {
		x.Delete(name)
	}
	x.sync("+0 ~0 =54 -6 skipped 0 retry 0") // a tenth
	for _, name := range names[6:12] {
		x.Delete(name)
	}
	x.Put("new", "words")
	for range 2 {
		r, err := x.try(t.Context(), SyncOptions{})
		if !errors.Is(err, ErrManyDeletes) || assay.ExitCode(err) != assay.ExitReview || r.Missing != 6 || r.Removed != 0 {
			t.Errorf("Sync = %+v, %v, want ErrManyDeletes", r, err)
		}
		if r.Documents != 55 || x.state().LastError == "" || !x.state().SweepDue {
			t.Errorf("%d documents, state %+v", r.Documents, x.state())
		}
	}
	if r, err := x.try(t.Context(), SyncOptions{DryRun: true}); err != nil || r.Missing != 6 {
		t.Errorf("dry run = %+v, %v", r, err)
	}
	x.opts.Yes = true
	x.sync("+0 ~0 =49 -6 skipped 0 retry 0")
}

func TestSyncPartialSweep(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		x.Put(name, "words")
	}
	x.sync("+3 ~0 =3 -0 skipped 0 retry 0")
	x.Delete("b")
	x.BreakSweep(true)
	if r, err := x.try(t.Context(), SyncOptions{}); !errors.Is(err, assay.ErrUnavailable) || r.Removed != 0 || r.Swept {
		t.Errorf("Sync = %+v, %v, want the sweep's error and nothing deleted", r, err)
	}
	x.want("a: words", "b: words", "c: words")
	x.BreakSweep(false)
	x.sync("+0 ~0 =2 -1 skipped 0 retry 0")
}

func TestSyncThrottled(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	x.Put("a", "apples")
	x.Throttle(3, time.Minute)
	x.sync("+1 ~0 =1 -0 skipped 0 retry 0")
	if x.clock.Slept() != 3*time.Minute {
		t.Errorf("slept for %v, want three minutes", x.clock.Slept())
	}
	x.Throttle(1<<30, time.Minute)
	if _, err := x.try(t.Context(), SyncOptions{}); !errors.Is(err, assay.ErrUnavailable) {
		t.Errorf("Sync of a service that always throttles = %v", err)
	}
}

func TestSyncCredentials(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	x.Put("a", "apples")
	x.sync("+1 ~0 =1 -0 skipped 0 retry 0")
	x.Refuse()
	if _, err := x.try(t.Context(), SyncOptions{}); !errors.Is(err, source.ErrCredentials) {
		t.Errorf("Sync = %v", err)
	}
	x.want("a: apples")
	if s := x.state(); s.LastError == "" || s.LastSync.IsZero() {
		t.Errorf("state %+v", s)
	}
}

// TestSyncFailsOften checks that a service that serves no content ends the sync.
func TestSyncFailsOften(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	for i := range 50 {
		x.Put(fmt.Sprintf("n%02d", i), "words")
	}
	x.BeforeFetch = func(string) error { return fmt.Errorf("down: %w", assay.ErrUnavailable) }
	r, err := x.try(t.Context(), SyncOptions{})
	if !errors.Is(err, assay.ErrUnavailable) || len(r.Skipped) != maxFailures {
		t.Errorf("Sync = %d skipped, %v, want %d", len(r.Skipped), err, maxFailures)
	}
	x.BeforeFetch = nil
	if r, err := x.try(t.Context(), SyncOptions{}); err != nil || r.Documents != 50 || r.Retry != 0 {
		t.Errorf("Sync = %+v, %v", r, err)
	}
}

func TestSyncParser(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	x.Put("a", "apples")
	x.Put("z", "\x00\x01")
	x.sync("+1 ~0 =1 -0 skipped 1 retry 0")
	x.Fetched()
	x.sync("+0 ~0 =1 -0 skipped 1 retry 0") // the sweep reports it, without fetching it
	x.wantFetched()
	x.opts.Full = true
	x.sync("+0 ~0 =2 -0 skipped 1 retry 0")
	x.wantFetched("a", "z")
	x.opts.Full = false
	x.Put("a", "\x00")
	x.sync("+0 ~0 =0 -1 skipped 2 retry 0")
	x.want()
	x.Put("z", "zebras")
	x.opts.Parsing.Walk = func(_ context.Context, in parse.Input, _ func(parse.Parsed) error) error {
		if in.Name != "z.txt" {
			t.Errorf("parsed %q", in.Name)
		}
		panic("hostile")
	}
	x.sync("+0 ~0 =0 -0 skipped 2 retry 0")
}

// TestSyncParts checks that the documents inside an item follow the item, and that one of them that
// cannot be parsed costs only itself.
func TestSyncParts(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	x.Put("a", "apples")
	inside := []parse.Parsed{
		{Document: parse.Document{Type: "zip"}},
		{Path: "one.txt", Data: []byte("1"), Document: parse.Document{Type: "text", Text: "one"}},
		{Path: "two.txt", Err: fmt.Errorf("parse two.txt: %w", parse.ErrDamaged)},
	}
	x.opts.Parsing.Walk = func(_ context.Context, _ parse.Input, yield func(parse.Parsed) error) error {
		for _, p := range inside {
			if err := yield(p); err != nil {
				return err
			}
		}
		return nil
	}
	r := x.sync("+1 ~0 =1 -0 skipped 1 retry 0")
	if want := x.URI("a") + "!/two.txt"; r.Skipped[0].URI != want || r.Skipped[0].Reason != Damaged {
		t.Errorf("skipped %+v, want %s", r.Skipped, want)
	}
	inside = inside[2:]
	inside[0] = parse.Parsed{Document: parse.Document{Type: "text", Text: "all"}}
	x.Put("a", "pears")
	x.sync("+0 ~1 =1 -1 skipped 0 retry 0")
	x.Delete("a")
	x.sync("+0 ~0 =0 -1 skipped 0 retry 0")
}

// TestSyncFailedParts checks that the failure of a document inside an item is kept with the record of
// the item, with its ACL, and is reported by every sync.
func TestSyncFailedParts(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	x.Put("a", "apples")
	failing := error(parse.ErrDamaged)
	x.opts.Parsing.Walk = func(_ context.Context, _ parse.Input, yield func(parse.Parsed) error) error {
		two := parse.Parsed{Path: "two.txt", Data: []byte("2"), Document: parse.Document{Type: "text", Text: "two"}}
		if failing != nil {
			two = parse.Parsed{Path: "two.txt", Err: fmt.Errorf("parse two.txt: %w", failing)}
		}
		for _, p := range []parse.Parsed{
			{Document: parse.Document{Type: "zip"}},
			{Path: "one.txt", Data: []byte("1"), Document: parse.Document{Type: "text", Text: "one"}},
			two,
		} {
			if err := yield(p); err != nil {
				return err
			}
		}
		return nil
	}
	part := x.URI("a") + "!/two.txt"
	wantFailure := func(reason source.Reason, readers ...string) {
		t.Helper()
		for item, err := range x.w.SyncItems(t.Context(), "wiki") {
			if err != nil {
				t.Fatal(err)
			}
			if item.URI != x.URI("a") {
				continue
			}
			failed := len(item.Failures) == 1 && item.Failures[0].URI == part && item.Failures[0].Reason == string(reason)
			if failed != (reason != "") || fmt.Sprint(item.ACL.Allow) != fmt.Sprint(readers) {
				t.Errorf("the record is %+v, want a failure %q for %v", item, reason, readers)
			}
		}
	}
	x.sync("+1 ~0 =1 -0 skipped 1 retry 0")
	wantFailure(Damaged)
	x.Fetched()
	x.sync("+0 ~0 =1 -0 skipped 1 retry 0")
	x.wantFetched()
	x.SetACL("a", "ann")
	x.sync("+0 ~1 =0 -0 skipped 1 retry 0")
	x.wantFetched()
	wantFailure(Damaged, "user:ann")

	failing = parse.ErrNeedsProgram
	x.Put("a", "other apples")
	x.sync("+0 ~0 =2 -0 skipped 1 retry 0")
	wantFailure(NeedsProgram, "user:ann")
	x.Fetched()
	failing = nil
	x.opts.Full = true
	x.sync("+0 ~1 =1 -0 skipped 0 retry 0")
	wantFailure("")
	failing = parse.ErrLimit // the stored document of the same bytes stays
	x.sync("+0 ~0 =2 -0 skipped 1 retry 0")
	x.SetACL("a", "bob")
	x.sync("+0 ~1 =1 -0 skipped 1 retry 0")
	wantFailure(OverLimit, "user:bob")
	x.want("a!/one.txt: one user:bob", "a!/two.txt: two user:bob")
}

// TestSyncACLInText checks that a document whose text has an ACL is read as soon as its source
// states one.
func TestSyncACLInText(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	x.Put("a", "apples")
	x.opts.Parsing.Walk = func(_ context.Context, _ parse.Input, yield func(parse.Parsed) error) error {
		return yield(parse.Parsed{Document: parse.Document{Type: "text", Text: "apples", Metadata: assay.Metadata{aclKey: assay.StringValue("x")}}})
	}
	x.sync("+0 ~0 =0 -0 skipped 1 retry 0")
	x.SetACL("a", "ann")
	x.sync("+1 ~0 =0 -0 skipped 0 retry 0")
}

func TestSyncTaken(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	text := "mine"
	d := assay.Document{ID: assay.DocumentID("c", x.URI("a")), Collection: "c", URI: x.URI("a"), Text: text, Version: "1",
		Anchors: []assay.Anchor{{}}, Metadata: assay.Metadata{assay.MetaSource: assay.StringValue("other")}}
	if _, err := x.w.Put(t.Context(), store.Entry{Document: d}); err != nil {
		t.Fatal(err)
	}
	x.Put("a", "apples")
	if r := x.sync("+0 ~0 =0 -0 skipped 1 retry 0"); r.Skipped[0].Reason != Taken {
		t.Errorf("skipped %+v", r.Skipped)
	}
	x.Delete("a")
	x.sync("+0 ~0 =0 -0 skipped 0 retry 0")
	x.want("a: mine")
}

func TestSyncDryRun(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	x.Put("a", "apples")
	x.Put("b", "bananas")
	x.sync("+2 ~0 =2 -0 skipped 0 retry 0")
	x.Fetched()
	before := x.state()
	x.Delete("a")
	x.Put("c", "cherries")
	r, err := x.try(t.Context(), SyncOptions{DryRun: true})
	if err != nil || r.Added != 2 || r.Removed != 1 { // listed by changes and by the sweep
		t.Errorf("dry run = %s, %v", counts(r), err)
	}
	x.want("a: apples", "b: bananas")
	x.wantFetched()
	if diff := cmp.Diff(before, x.state()); diff != "" {
		t.Errorf("a dry run changed the state:\n%s", diff)
	}
}

func TestSyncUnknown(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	if err := x.w.RemoveSyncSource(t.Context(), "wiki"); err != nil {
		t.Fatal(err)
	}
	if _, err := x.try(t.Context(), SyncOptions{}); !errors.Is(err, assay.ErrNotFound) {
		t.Errorf("Sync = %v, want assay.ErrNotFound", err)
	}
}

// TestSyncAgain checks that documents that were kept when their source was removed are taken over
// when it is added again, and deleted if they are gone by then.
func TestSyncAgain(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	x.Deletes = true
	x.kind = x.Memory.Kind()
	x.Put("a", "apples")
	x.Put("b", "bananas")
	x.sync("+2 ~0 =0 -0 skipped 0 retry 0")
	if err := x.w.RemoveSyncSource(t.Context(), "wiki"); err != nil {
		t.Fatal(err)
	}
	x.Memory.Delete("a")
	x.addSource(t)
	x.sync("+0 ~0 =2 -1 skipped 0 retry 0")
	x.want("b: bananas")
}

func TestSyncCanceled(t *testing.T) {
	t.Parallel()
	x := newSyncWorld(t)
	for i := range 300 {
		x.Put(fmt.Sprintf("n%03d", i), "words")
	}
	ctx, cancel := context.WithCancel(t.Context())
	fetched := make(chan struct{}, 1000)
	x.BeforeFetch = func(string) error {
		if fetched <- struct{}{}; len(fetched) >= 150 { // several fetches run at a time
			cancel()
		}
		return nil
	}
	r, err := x.try(ctx, SyncOptions{})
	if !errors.Is(err, context.Canceled) || !r.Interrupted || r.Added < 64 {
		t.Errorf("Sync = %s, interrupted %v, %v", counts(r), r.Interrupted, err)
	}
	x.BeforeFetch = nil
	r2, err := x.try(t.Context(), SyncOptions{})
	if err != nil || r.Added+r2.Added != 300 || r2.Documents != 300 {
		t.Errorf("the next Sync = %s, %v, want the rest of 300 after %d", counts(r2), err, r.Added)
	}
}

// childSync is the environment variable that makes this test binary sync, to be killed.
const childSync = "ASSAY_SYNC_CHILD"

// syncAsChild syncs the service whose history is in the file feed of a folder into the store of
// that folder.
func syncAsChild(folder string) error {
	ctx := context.Background()
	m, err := replay(filepath.Join(folder, "feed"))
	if err != nil {
		return err
	}
	w, closeStore, err := openChildStore(ctx, filepath.Join(folder, "data"))
	if err != nil {
		return err
	}
	defer closeStore()
	s, err := m.Kind().Open(ctx, source.Config{Target: "memory://test"})
	if err != nil {
		return err
	}
	_, err = Sync(ctx, w, SyncOptions{Name: "wiki", Kind: m.Kind(), Source: s, Yes: true})
	return err
}

// replay builds a service by its history: lines of a name and a text, which is empty for a delete.
func replay(feed string) (*sourcetest.Memory, error) {
	f, err := os.Open(feed)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m := &sourcetest.Memory{Deletes: true}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, text, _ := strings.Cut(lines.Text(), " "); text == "" {
			m.Delete(name)
		} else {
			m.Put(name, text)
		}
	}
	return m, nil
}

// TestKillDuringSync kills the syncing process at random moments while the service changes. The
// sync that ends at last has stored each document once, and none that was deleted.
func TestKillDuringSync(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	folder := t.TempDir()
	w, closeStore, err := openChildStore(t.Context(), filepath.Join(folder, "data"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SetSyncSource(t.Context(), store.SyncSource{Name: "wiki", Kind: "memory", Target: "memory://test", Collection: "c"}); err != nil {
		t.Fatal(err)
	}
	closeStore()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	feed, err := os.OpenFile(filepath.Join(folder, "feed"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	want := map[string]string{}
	killed := 0
	for round := range rounds {
		for i := range 1000 {
			name, text := fmt.Sprintf("n%04d", rng.IntN(1500)), fmt.Sprintf("words %d of round %d", i, round)
			if want["memory://test/"+name] = text; rng.IntN(3) == 0 {
				delete(want, "memory://test/"+name)
				text = ""
			}
			fmt.Fprintln(feed, name, text)
		}
		for pause := 15 * time.Millisecond; ; pause += pause/8 + time.Duration(rng.IntN(40))*time.Millisecond {
			ctx, cancel := context.WithTimeout(t.Context(), pause)
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(os.Environ(), childSync+"="+folder)
			out, err := cmd.CombinedOutput()
			cancel()
			if err == nil {
				break
			}
			if len(out) > 0 {
				t.Fatalf("the child failed: %s", out)
			}
			killed++
		}
	}
	t.Logf("killed %d times", killed)
	w, closeStore, err = openChildStore(t.Context(), filepath.Join(folder, "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore()
	got := map[string]string{}
	for d, err := range w.Documents(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		full, err := w.Document(t.Context(), d.ID)
		if err != nil {
			t.Fatal(err)
		}
		got[d.URI] = strings.TrimSpace(full.Text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
}
