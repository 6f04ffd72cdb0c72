package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

var runTests = []contractTest{
	{"the runs that cite a document", testCiting},
	{"every field comes back", testRunRoundTrip},
	{"what is wrong is refused", testRunInvalid},
	{"list", testRunList},
	{"records come back", testRecords},
	{"a run begins with copies", testCopiedRecords},
	{"a path is there once", testPathOnce},
	{"sequences grow across runs", testRecordSequence},
	{"finish", testFinish},
	{"delete", testRunDelete},
	{"offers", testOffers},
	{"promises", testPromises},
	{"cancel", testCancel},
}

// mustCreate creates a run.
func mustCreate(t *testing.T, tenant store.Tenant, id string) store.Lease {
	t.Helper()
	l, err := tenant.Runs().Create(t.Context(), assay.Run{ID: id, Principal: assay.Local(), Question: "Why?"})
	if err != nil {
		t.Fatalf("Create(%s): %v", id, err)
	}
	return l
}

// mustAppend appends a small record.
func mustAppend(t *testing.T, l store.Lease, path string) assay.Record {
	t.Helper()
	rec, err := l.Append(t.Context(), smallRecord(path))
	if err != nil {
		t.Fatalf("Append(%s): %v", path, err)
	}
	return rec
}

func smallRecord(path string) assay.Record {
	return assay.Record{Path: path, Kind: assay.StepSearch, Input: json.RawMessage(`{"q":1}`), Output: json.RawMessage(`[]`)}
}

func closeLease(t *testing.T, l store.Lease) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Errorf("Lease.Close: %v", err)
	}
}

// mustRun reads a run.
func mustRun(t *testing.T, tenant store.Tenant, id string) assay.Run {
	t.Helper()
	r, err := tenant.Runs().Run(t.Context(), id)
	if err != nil {
		t.Fatalf("Run(%s): %v", id, err)
	}
	return r
}

func mustRecords(t *testing.T, tenant store.Tenant, id string) []assay.Record {
	t.Helper()
	records, err := tenant.Runs().Records(t.Context(), id)
	if err != nil {
		t.Fatalf("Records(%s): %v", id, err)
	}
	return records
}

func testRunRoundTrip(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	want := assay.Run{
		ID: "run/1?ü", Principal: assay.Principal{User: "ann", Groups: []string{"a", "b"}}, Question: "Why \"ü\"?\n",
		Request: json.RawMessage(`{"limit":5,"strategy":"auto"}`), Created: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		State: assay.RunDone, Error: "ignored", Answer: &assay.Answer{}, Steps: 7, // Create ignores these
	}
	l, err := tenant.Runs().Create(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	defer closeLease(t, l)
	got := mustRun(t, openTenant(t, h, "acme"), want.ID)
	if got.Updated.IsZero() {
		t.Error("Updated is zero")
	}
	want.State, want.Error, want.Answer, want.Steps, want.Live, want.Updated = assay.RunActive, "", nil, 0, true, got.Updated
	wantSame(t, "Run", got, want)
	if records := mustRecords(t, tenant, want.ID); len(records) != 0 {
		t.Errorf("Records = %v, want none", records)
	}
	l2 := mustCreate(t, tenant, "no time given")
	defer closeLease(t, l2)
	if r := mustRun(t, tenant, "no time given"); r.Created.IsZero() || r.Request != nil {
		t.Errorf("Created = %v, Request = %q", r.Created, r.Request)
	}
}

func testRunInvalid(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	closeLease(t, mustCreate(t, tenant, "a"))
	for name, r := range map[string]assay.Run{
		"without an ID":             {},
		"with an ID that is taken":  {ID: "a"},
		"whose request is not JSON": {ID: "b", Request: json.RawMessage(`{`)},
		"whose ID is not UTF-8":     {ID: "\xff"},
	} {
		_, err := tenant.Runs().Create(t.Context(), r)
		wantErr(t, "Create of a run "+name, err, assay.ErrInvalid)
	}
	_, err := tenant.Runs().Run(t.Context(), "b")
	wantErr(t, "Run", err, assay.ErrNotFound)
	_, err = tenant.Runs().Records(t.Context(), "b")
	wantErr(t, "Records", err, assay.ErrNotFound)
	_, err = tenant.Runs().Acquire(t.Context(), "b")
	wantErr(t, "Acquire", err, assay.ErrNotFound)
	wantErr(t, "Delete", tenant.Runs().Delete(t.Context(), "b", store.Act{Kind: "run.deleted"}), assay.ErrNotFound)
}

func testRunList(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	for i, id := range []string{"b", "c", "a"} {
		l, err := tenant.Runs().Create(t.Context(), assay.Run{ID: id, Question: "?", Created: time.Unix(int64(100+i), 0)})
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, "one")
		if id != "c" {
			closeLease(t, l)
		} else {
			defer closeLease(t, l)
		}
	}
	for _, test := range []struct {
		limit int
		want  []string
	}{{0, []string{"a", "c", "b"}}, {1, []string{"a"}}, {2, []string{"a", "c"}}, {9, []string{"a", "c", "b"}}} {
		list, err := tenant.Runs().List(t.Context(), test.limit)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range list {
			ids = append(ids, r.ID)
			wantSame(t, "a run in List", r, mustRun(t, tenant, r.ID))
			if r.Steps != 1 || r.Live != (r.ID == "c") {
				t.Errorf("run %s: %d steps, live %t", r.ID, r.Steps, r.Live)
			}
		}
		wantSame(t, fmt.Sprintf("List(%d)", test.limit), ids, test.want)
	}
}

// records contains one record of every kind that a journal holds.
func records() []assay.Record {
	long := strings.Repeat("a long text, ü, \"quoted\" ", 400)
	withText := func(s string) json.RawMessage {
		b, err := json.Marshal(map[string]any{"text": s, "texts": []string{s, s + "2"}})
		if err != nil {
			panic(err)
		}
		return b
	}
	started := time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
	return []assay.Record{
		{Path: "plan", Kind: assay.StepPlan, Input: json.RawMessage(`{"question":"Why?"}`), Output: json.RawMessage(`["a","b"]`), Started: started},
		{
			Path: "sub[0]/round[0]/search", Kind: assay.StepSearch, Model: "m/1", Input: withText("q"), Output: withText(long),
			Usage:   assay.Usage{Calls: 1, InputTokens: 2, OutputTokens: 3, CostMicros: 4, Searches: 5},
			Started: started, Elapsed: 12345, Active: 99 * time.Second,
		},
		{Path: "sub[0]/round[1]/search", Kind: assay.StepSearch, Input: withText(long), Error: &assay.RecordedError{Kind: "budget exhausted", Message: "no \"more\""}},
		{Path: "end", Kind: assay.StepClock, Output: json.RawMessage(`null`)},
	}
}

func testRecords(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	l := mustCreate(t, tenant, "run")
	defer closeLease(t, l)
	var stored []assay.Record
	for i, rec := range records() {
		got, err := l.Append(t.Context(), rec)
		if err != nil {
			t.Fatalf("Append(%s): %v", rec.Path, err)
		}
		if got.Ordinal != i || got.Run != "run" || got.Sequence < 1 || len(got.Bytes) == 0 || got.Leaf == [32]byte{} {
			t.Errorf("Append(%s) = sequence %d, run %q, ordinal %d, %d bytes", rec.Path, got.Sequence, got.Run, got.Ordinal, len(got.Bytes))
		}
		if r := mustRun(t, tenant, "run"); r.Steps != i+1 {
			t.Errorf("Steps = %d after %d records", r.Steps, i+1)
		}
		stored = append(stored, got)
	}
	for _, reader := range []store.Tenant{tenant, openTenant(t, h, "acme")} {
		got := mustRecords(t, reader, "run")
		if len(got) != len(stored) {
			t.Fatalf("%d records, want %d", len(got), len(stored))
		}
		for i := range got {
			for _, side := range []*assay.Record{&got[i], &stored[i]} { // compare JSON by value
				side.Input, side.Output = normal(t, side.Input), normal(t, side.Output)
			}
		}
		wantSame(t, "Records", got, stored)
	}
}

// normal writes JSON without spaces and with sorted keys; nil stays nil.
func normal(t *testing.T, b json.RawMessage) json.RawMessage {
	t.Helper()
	if b == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("stored JSON %q: %v", b, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func testCopiedRecords(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	l := mustCreate(t, tenant, "first")
	for _, rec := range records() {
		if _, err := l.Append(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	closeLease(t, l)
	originals := mustRecords(t, tenant, "first")
	copied, err := tenant.Runs().Create(t.Context(), assay.Run{ID: "second", Question: "?"}, originals...)
	if err != nil {
		t.Fatal(err)
	}
	defer closeLease(t, copied)
	_, err = tenant.Runs().Create(t.Context(), assay.Run{ID: "twice", Question: "?"}, originals[0], originals[0])
	wantErr(t, "Create with a path twice", err, assay.ErrInvalid)
	_, err = tenant.Runs().Run(t.Context(), "twice")
	wantErr(t, "Run after a refused Create", err, assay.ErrNotFound)
	if err := tenant.Runs().Delete(t.Context(), "first", store.Act{Kind: "run.deleted"}); err != nil {
		t.Fatal(err)
	}
	got := mustRecords(t, tenant, "second")
	last := originals[len(originals)-1].Sequence
	for i, rec := range got {
		if rec.Run != "second" || rec.Ordinal != i || rec.Sequence <= last || rec.Leaf == originals[i].Leaf {
			t.Errorf("copy %d: run %s, ordinal %d, sequence %d", i, rec.Run, rec.Ordinal, rec.Sequence)
		}
		rec.Run, rec.Sequence, rec.Bytes, rec.Leaf = "first", originals[i].Sequence, originals[i].Bytes, originals[i].Leaf
		wantSame(t, "a copied record", rec, originals[i])
	}
	if next := mustAppend(t, copied, "next"); next.Ordinal != len(originals) {
		t.Errorf("the record after the copies has the ordinal %d", next.Ordinal)
	}
}

func testPathOnce(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	l := mustCreate(t, tenant, "run")
	defer closeLease(t, l)
	mustAppend(t, l, "a")
	for name, rec := range map[string]assay.Record{
		"a path that is there":   smallRecord("a"),
		"no path":                smallRecord(""),
		"another run":            {Path: "b", Run: "other"},
		"input that is not JSON": {Path: "b", Input: json.RawMessage(`{`)},
	} {
		_, err := l.Append(t.Context(), rec)
		wantErr(t, "Append with "+name, err, assay.ErrInvalid)
	}
	if rec := mustAppend(t, l, "b"); rec.Ordinal != 1 {
		t.Errorf("the ordinal after refused records is %d, want 1", rec.Ordinal)
	}
	l2 := mustCreate(t, tenant, "other")
	defer closeLease(t, l2)
	mustAppend(t, l2, "a") // of another run
	if got := mustRecords(t, tenant, "run"); len(got) != 2 {
		t.Errorf("%d records, want 2", len(got))
	}
}

func testRecordSequence(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	a, b := mustCreate(t, tenant, "a"), mustCreate(t, tenant, "b")
	defer closeLease(t, a)
	last := int64(0)
	step := func(l store.Lease, path string) {
		t.Helper()
		rec := mustAppend(t, l, path)
		if rec.Sequence <= last {
			t.Errorf("sequence %d comes after %d", rec.Sequence, last)
		}
		last = rec.Sequence
	}
	step(a, "1")
	step(b, "1")
	step(a, "2")
	step(b, "2")
	closeLease(t, b)
	if err := tenant.Runs().Delete(t.Context(), "b", store.Act{Kind: "run.deleted"}); err != nil {
		t.Fatal(err)
	}
	step(a, "3")
	if got := mustRecords(t, tenant, "a"); len(got) != 3 {
		t.Errorf("%d records, want 3", len(got))
	}
}

func testFinish(t *testing.T, h Harness) {
	tenant, ctx := openTenant(t, h, "acme"), t.Context()
	l := mustCreate(t, tenant, "run")
	before := mustRun(t, tenant, "run")
	wantErr(t, "Finish as active", l.Finish(ctx, assay.RunActive, nil, ""), assay.ErrInvalid)
	wantErr(t, "Finish as nonsense", l.Finish(ctx, "nonsense", nil, ""), assay.ErrInvalid)
	wantErr(t, "Finish as done without an answer", l.Finish(ctx, assay.RunDone, nil, ""), assay.ErrInvalid)
	wantSame(t, "the run after that", mustRun(t, tenant, "run"), before)

	draft := &assay.Answer{Status: assay.PendingReview, Text: "draft"}
	if err := l.Finish(ctx, assay.RunSuspended, draft, ""); err != nil {
		t.Fatal(err)
	}
	closeLease(t, l)
	if r := mustRun(t, tenant, "run"); r.State != assay.RunSuspended || r.Live || r.Answer == nil || r.Answer.Text != "draft" {
		t.Errorf("suspended: %+v", r)
	}
	l, err := tenant.Runs().Acquire(ctx, "run")
	if err != nil {
		t.Fatal(err)
	}
	if r := mustRun(t, tenant, "run"); r.State != assay.RunSuspended || !r.Live {
		t.Errorf("acquired again, state %s, live %t; want it suspended until it goes on", r.State, r.Live)
	}
	mustAppend(t, l, "human")
	if r := mustRun(t, tenant, "run"); r.State != assay.RunActive {
		t.Errorf("after a step, state %s, want active", r.State)
	}
	if err := l.Finish(ctx, assay.RunFailed, nil, "the model is gone"); err != nil {
		t.Fatal(err)
	}
	if r := mustRun(t, tenant, "run"); r.State != assay.RunFailed || r.Error != "the model is gone" {
		t.Errorf("failed: %+v", r)
	}
	h.Advance(time.Minute)
	answer := fullAnswer()
	if err := l.Finish(ctx, assay.RunDone, answer, ""); err != nil {
		t.Fatal(err)
	}
	done := mustRun(t, tenant, "run")
	if done.State != assay.RunDone || done.Error != "" || !done.Updated.After(before.Updated) {
		t.Errorf("done: state %s, error %q, updated %v", done.State, done.Error, done.Updated)
	}
	wantSame(t, "the answer", done.Answer, answer)
	wantErr(t, "Finish again", l.Finish(ctx, assay.RunFailed, nil, "x"), assay.ErrInvalid)
	_, err = l.Append(ctx, smallRecord("late"))
	wantErr(t, "Append when done", err, assay.ErrInvalid)
	closeLease(t, l)
	done.Live = false
	wantSame(t, "the run that is done", mustRun(t, tenant, "run"), done)
	_, err = tenant.Runs().Acquire(ctx, "run")
	wantErr(t, "Acquire when done", err, assay.ErrInvalid)
	if n := len(mustRecords(t, tenant, "run")); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

func fullAnswer() *assay.Answer {
	return &assay.Answer{
		Status: assay.Answered, Stop: assay.StopSufficient, Question: "Why?", Text: "Because. [1]", Strategy: "static",
		Claims:    []assay.Claim{{Start: 0, End: 8, Verdict: assay.Supported, Score: 0.1 + 0.2, Citations: []int{1}}},
		Citations: []assay.Citation{{Number: 1, Document: "d", Version: "v", URI: "/a", Heading: []string{"H"}, Line: 3, End: 7, Quote: "because"}},
		Missing:   []assay.Gap{}, Searched: []assay.Searched{{Query: "why", Hits: 3, TopRelevance: 1.0 / 3, Grade: assay.Sufficient}},
		Iterations: 1, Justification: "so", Run: "run", Usage: assay.Usage{Searches: 1}, ElapsedMS: 12,
	}
}

func testRunDelete(t *testing.T, h Harness) {
	tenant, ctx := openTenant(t, h, "acme"), t.Context()
	var leases []store.Lease
	for _, id := range []string{"a", "b"} { // both contain the same long texts
		l := mustCreate(t, tenant, id)
		for _, rec := range records() {
			if _, err := l.Append(ctx, rec); err != nil {
				t.Fatal(err)
			}
		}
		leases = append(leases, l)
	}
	wantErr(t, "Delete of a live run", tenant.Runs().Delete(ctx, "a", store.Act{Kind: "run.deleted"}), assay.ErrLeased)
	for _, l := range leases {
		closeLease(t, l)
	}
	if err := tenant.Runs().Delete(ctx, "a", store.Act{Kind: "run.deleted"}); err != nil {
		t.Fatal(err)
	}
	_, err := tenant.Runs().Run(ctx, "a")
	wantErr(t, "Run", err, assay.ErrNotFound)
	_, err = tenant.Runs().Records(ctx, "a")
	wantErr(t, "Records", err, assay.ErrNotFound)
	if n := len(mustRecords(t, tenant, "b")); n != len(records()) {
		t.Errorf("the other run has %d records, want %d", n, len(records()))
	}
	if err := tenant.Runs().Delete(ctx, "b", store.Act{Kind: "run.deleted"}); err != nil {
		t.Fatal(err)
	}
	l := mustCreate(t, tenant, "a") // the ID can be reused
	defer closeLease(t, l)
	if rec := mustAppend(t, l, "plan"); rec.Ordinal != 0 {
		t.Errorf("a new run's first ordinal is %d", rec.Ordinal)
	}
}

var leaseTests = []contractTest{
	{"a run has one", testLeaseOnce},
	{"a closed one writes nothing", testLeaseClosed},
	{"it outlives its context", testLeaseContext},
	{"it is renewed", testLeaseRenewed},
}

func testLeaseOnce(t *testing.T, h Harness) {
	a, b := openTenant(t, h, "acme"), openTenant(t, h, "acme")
	l := mustCreate(t, a, "run")
	mustAppend(t, l, "1")
	for name, tenant := range map[string]store.Tenant{"the same handle": a, "another handle": b} {
		_, err := tenant.Runs().Acquire(t.Context(), "run")
		wantErr(t, "Acquire by "+name, err, assay.ErrLeased)
		wantErr(t, "Delete by "+name, tenant.Runs().Delete(t.Context(), "run", store.Act{Kind: "run.deleted"}), assay.ErrLeased)
		if !mustRun(t, tenant, "run").Live {
			t.Errorf("%s: the run is not live", name)
		}
	}
	closeLease(t, l)
	if mustRun(t, a, "run").Live || mustRun(t, b, "run").Live {
		t.Error("the run is live after its lease was closed")
	}
	l2, err := b.Runs().Acquire(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	defer closeLease(t, l2)
	if rec := mustAppend(t, l2, "2"); rec.Ordinal != 1 {
		t.Errorf("ordinal %d, want the journal to go on at 1", rec.Ordinal)
	}
	_, err = a.Runs().Acquire(t.Context(), "run")
	wantErr(t, "Acquire of what another handle holds", err, assay.ErrLeased)
}

func testLeaseClosed(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	old := mustCreate(t, tenant, "run")
	mustAppend(t, old, "1")
	for range 2 {
		closeLease(t, old)
	}
	l, err := tenant.Runs().Acquire(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	defer closeLease(t, l)
	_, err = old.Append(t.Context(), smallRecord("2"))
	wantErr(t, "Append over a closed lease", err, assay.ErrLeased)
	wantErr(t, "Finish over a closed lease", old.Finish(t.Context(), assay.RunDone, fullAnswer(), ""), assay.ErrLeased)
	closeLease(t, old)
	if r := mustRun(t, tenant, "run"); r.State != assay.RunActive || !r.Live || r.Steps != 1 {
		t.Errorf("after writes over a closed lease: %+v", r)
	}
	mustAppend(t, l, "2")
}

func testLeaseContext(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	ctx, cancel := context.WithCancel(t.Context())
	l, err := tenant.Runs().Create(ctx, assay.Run{ID: "run", Question: "?"})
	if err != nil {
		t.Fatal(err)
	}
	defer closeLease(t, l)
	cancel()
	_, err = l.Append(ctx, smallRecord("1"))
	wantErr(t, "Append", err, context.Canceled)
	wantErr(t, "Finish", l.Finish(ctx, assay.RunFailed, nil, ""), context.Canceled)
	if rec := mustAppend(t, l, "1"); rec.Ordinal != 0 {
		t.Errorf("ordinal %d, want 0", rec.Ordinal)
	}
}

func testLeaseRenewed(t *testing.T, h Harness) {
	tenant := openTenant(t, h, "acme")
	l := mustCreate(t, tenant, "run")
	defer closeLease(t, l)
	h.Advance(day)
	_, err := openTenant(t, h, "acme").Runs().Acquire(t.Context(), "run")
	wantErr(t, "Acquire of a run whose process lives", err, assay.ErrLeased)
	mustAppend(t, l, "1")
}

var tamperTests = []contractTest{
	{"any edit is damage", testTamper},
}

func testTamper(t *testing.T, h Harness) {
	tamperer, ok := h.(Tamperer)
	if !ok {
		t.Skip("this harness cannot alter what is stored")
	}
	tenant := openTenant(t, h, "acme")
	for i, with := range []Tampering{
		TamperHeader, TamperPayload, TamperSalt, TamperLeaf, TamperValue, TamperNoValue,
		TamperOrdinal, TamperPath, TamperSequence, TamperDelete,
	} {
		for _, ordinal := range []int{1, 3} { // in the middle and at the end
			id := fmt.Sprintf("run-%d-%d", i, ordinal)
			l := mustCreate(t, tenant, id)
			for j := range 4 {
				text := fmt.Sprintf("%q", strings.Repeat("long ", 100)+id+fmt.Sprint(j))
				if _, err := l.Append(t.Context(), assay.Record{Path: fmt.Sprintf("step[%d]", j), Kind: assay.StepPlan, Output: json.RawMessage(text)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Finish(t.Context(), assay.RunDone, fullAnswer(), ""); err != nil {
				t.Fatal(err)
			}
			closeLease(t, l)
			before := mustRecords(t, tenant, id)
			if err := tamperer.Tamper("acme", id, ordinal, with); err != nil {
				t.Fatalf("Tamper(%s): %v", with, err)
			}
			_, err := tenant.Runs().Records(t.Context(), id)
			wantErr(t, fmt.Sprintf("Records with record %d's %s altered", ordinal, with), err, assay.ErrDamaged)
			if err == nil {
				continue
			}
			named := []string{id, fmt.Sprintf("record %d", ordinal)}
			if with != TamperDelete && with != TamperOrdinal && with != TamperPath {
				named = append(named, string(before[ordinal].Path))
			}
			for _, want := range named {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s of record %d altered: error %q does not name %s", with, ordinal, err, want)
				}
			}
			if bytes.Contains([]byte(err.Error()), []byte("long long")) {
				t.Errorf("the error holds the payload: %q", err)
			}
		}
	}
}

func testCiting(t *testing.T, h Harness) {
	a, b := openTenant(t, h, "a"), openTenant(t, h, "b")
	d := Entry("c", "/a", "one").Document
	for _, r := range []struct{ id, user, cites string }{
		{"first", "ann", d.ID}, {"of bob", "bob", d.ID}, {"other document", "ann", "other"}, {"second", "ann", d.ID},
	} {
		h.Advance(time.Second)
		l, err := a.Runs().Create(t.Context(), assay.Run{ID: r.id, Principal: assay.Principal{User: r.user}, Question: "q"})
		if err != nil {
			t.Fatal(err)
		}
		answer := &assay.Answer{Status: assay.Answered, Citations: []assay.Citation{{Number: 1, Document: r.cites, Version: d.Version, End: 3, Quote: "one"}}}
		if err := l.Finish(t.Context(), assay.RunDone, answer, ""); err != nil {
			t.Fatal(err)
		}
		closeLease(t, l)
	}
	citing := func(tenant store.Tenant, user string, limit int) []string {
		t.Helper()
		all, err := tenant.Runs().Citing(t.Context(), d.ID, user, limit)
		if err != nil {
			t.Fatal(err)
		}
		ids := []string{}
		for _, r := range all {
			ids = append(ids, r.ID)
		}
		return ids
	}
	wantSame(t, "Citing", citing(a, "ann", 0), []string{"second", "first"})
	wantSame(t, "Citing with a limit", citing(a, "ann", 1), []string{"second"})
	wantSame(t, "Citing of bob", citing(a, "bob", 0), []string{"of bob"})
	wantSame(t, "Citing of another tenant", citing(b, "ann", 0), []string{})
	if err := a.Runs().Delete(t.Context(), "second", store.Act{Kind: "run.deleted"}); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "Citing after a run was deleted", citing(a, "ann", 0), []string{"first"})
}
