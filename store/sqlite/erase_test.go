package sqlite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/store"
)

// storeRun stores a done run whose texts contain the word, short and long ones.
func storeRun(t *testing.T, tenant store.Tenant, id, word string, rng *rand.Rand) {
	t.Helper()
	lease, err := tenant.Runs().Create(t.Context(), assay.Run{
		ID: id, Principal: assay.Principal{User: "ann", Groups: []string{"group-" + word}}, Question: "What about " + word + "?",
		Request: json.RawMessage(`{"collections":["hr"],"question":"` + word + `"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 + rng.IntN(4) {
		text := strings.Repeat(word+" ", 1+rng.IntN(20)*rng.IntN(200))
		in, _ := json.Marshal(map[string]string{"text": text, "short": word, "shared": strings.Repeat("shared text of all runs ", 50)})
		if _, err := lease.Append(t.Context(), assay.Record{Path: fmt.Sprint("step", i), Kind: assay.StepSearch, Input: in, Output: in}); err != nil {
			t.Fatal(err)
		}
	}
	answer := &assay.Answer{Run: id, Status: assay.Answered, Text: "It is " + word}
	if err := errors.Join(lease.Finish(t.Context(), assay.RunDone, answer, ""), tenant.Runs().Offer(t.Context(), id, "key-"+word), lease.Close()); err != nil {
		t.Fatal(err)
	}
}

// filesWith returns the files of the tenant that contain the text.
func filesWith(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	for _, name := range []string{runsName, runsName + "-wal", contentName, contentName + "-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil && bytes.Contains(data, []byte(text)) {
			found = append(found, name)
		}
	}
	return found
}

// checkLog recomputes the tree from the leaves and compares it with the stored one.
func checkLog(t *testing.T, tenant store.Tenant) int64 {
	t.Helper()
	a := tenant.Audit()
	size, err := a.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var own []tlog.Hash
	read := tlog.HashReaderFunc(func(at []int64) ([]tlog.Hash, error) {
		hashes := make([]tlog.Hash, len(at))
		for i, p := range at {
			hashes[i] = own[p]
		}
		return hashes, nil
	})
	for e, err := range a.Entries(t.Context(), 0, size) {
		if err != nil {
			t.Fatal(err)
		}
		if got := tlog.RecordHash(e.Header); got != tlog.Hash(e.Leaf) {
			t.Fatalf("entry %d does not match its leaf", e.Sequence)
		}
		hashes, err := tlog.StoredHashesForRecordHash(e.Sequence-1, tlog.Hash(e.Leaf), read)
		if err != nil {
			t.Fatal(err)
		}
		own = append(own, hashes...)
	}
	for i, want := range own {
		got, err := a.Hashes(t.Context(), []int64{int64(i)})
		if err != nil || got[0] != want {
			t.Fatalf("hash %d of the tree differs, %v", i, err)
		}
	}
	return size
}

// TestErase erases some of many runs. Their leaves, times and kinds stay, and after Scrub no file has
// a byte of their text. Other runs stay whole.
func TestErase(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	dir := filepath.Join(s.dir, tenantsName, "default")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	const runs = 60
	for i := range runs {
		storeRun(t, tenant, fmt.Sprint("run", i), fmt.Sprintf("canary%02dx", i), rng)
	}
	size := checkLog(t, tenant)
	erased := 0
	for i := range runs {
		if i%3 != 0 {
			continue
		}
		erased++
		id := fmt.Sprint("run", i)
		before, err := tenant.Runs().Records(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		why := store.Act{Kind: "run.erased", Actor: assay.Local(), Reason: "request 7"}
		if err := errors.Join(tenant.Runs().Erase(t.Context(), id, why), tenant.Runs().Erase(t.Context(), id, why)); err != nil {
			t.Fatal(err)
		}
		wantErased(t, tenant, id, before)
	}
	if err := tenant.Runs().Delete(t.Context(), "run1", store.Act{Kind: store.KindRunDeleted}); err != nil {
		t.Error(err)
	}
	erased++
	wantSound(t, tenant)
	if got := checkLog(t, tenant); got != size+int64(erased) {
		t.Errorf("the log has %d entries, want %d and %d", got, size, erased)
	}
	if err := tenant.Scrub(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		found := filesWith(t, dir, fmt.Sprintf("canary%02dx", i))
		if erased := i%3 == 0 || i == 1; erased != (len(found) == 0) {
			t.Errorf("run %d, erased %v: its text is in %v", i, erased, found)
		}
	}
	for i := range runs {
		if _, err := tenant.Runs().Records(t.Context(), fmt.Sprint("run", i)); i != 1 && err != nil {
			t.Error(err)
		}
	}
	wantSound(t, tenant)
	if err := tenant.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// wantSound checks that what is stored is what the log says.
func wantSound(t *testing.T, tenant store.Tenant) {
	t.Helper()
	err := tenant.Audit().Check(t.Context(), func(f store.Finding) error {
		t.Error(f)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// wantErased checks what is left of an erased run.
func wantErased(t *testing.T, tenant store.Tenant, id string, before []assay.Record) {
	t.Helper()
	r, err := tenant.Runs().Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	gone := r.Question == "" && r.Request == nil && r.Answer == nil && r.Error == "" && r.Principal.Groups == nil
	if !gone || r.State != assay.RunErased || r.Principal.User != "ann" || r.Steps != len(before) {
		t.Errorf("left of the run: %+v", r)
	}
	after, err := tenant.Runs().Records(t.Context(), id)
	if err != nil || len(after) != len(before) {
		t.Fatalf("%d records, want %d, %v", len(after), len(before), err)
	}
	for i, rec := range after {
		if rec.Input != nil || rec.Output != nil || rec.Leaf != before[i].Leaf || rec.Path != before[i].Path || !rec.Started.Equal(before[i].Started) {
			t.Errorf("left of record %d: %+v", i, rec)
		}
	}
	if _, err := tenant.Runs().Acquire(t.Context(), id); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("acquired: %v", err)
	}
	for e, err := range tenant.Audit().Entries(t.Context(), 0, before[0].Sequence-1) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Header), `"subject":"`+id+`"`) && e.Payload != nil {
			t.Errorf("the act %s has its payload", e.Header)
		}
	}
	size, err := tenant.Audit().Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range tenant.Audit().Entries(t.Context(), size-1, size) {
		if err != nil || !strings.Contains(string(e.Payload), `"reason":"request 7"`) || !strings.Contains(string(e.Header), `"act":"run.erased"`) {
			t.Errorf("the last act is %s %s, %v", e.Header, e.Payload, err)
		}
	}
}

// TestHolds checks that nothing removes what a hold covers, and that an ended hold does not count.
func TestHolds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s, err := Open(t.Context(), t.TempDir(), WithClock(func() time.Time { return now }))
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	defer tenant.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	storeRun(t, tenant, "run", "word", rng)
	if err := tenant.Audit().Append(t.Context(), store.Act{Kind: "note.made", Subject: "hr", Actor: assay.Principal{User: "ann"}}); err != nil {
		t.Fatal(err)
	}
	note, err := tenant.Audit().Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	aboutRun := func(hold string) bool { return strings.HasPrefix(hold, `{"run":"run"`) }
	for _, test := range []struct {
		value  string
		covers bool
	}{
		{`{"run":"run","reason":"x"}`, true},
		{`{"run":"other","reason":"x"}`, false},
		{`{"user":"ann","reason":"x"}`, true},
		{`{"user":"bob","reason":"x"}`, false},
		{`{"collection":"hr","reason":"x"}`, true},
		{`{"collection":"it","reason":"x"}`, false},
		{`{"all":true,"reason":"x"}`, true},
		{`{"all":true,"reason":"x","until":"2026-01-01T00:00:01Z"}`, true},
		{`{"all":true,"reason":"x","until":"2026-01-01T00:00:00Z"}`, false},
		{`{"unknown":true}`, true}, // cannot be read
		{`{"all":true,"run":"other","reason":"x"}`, true},
		{`{"run":"other","reason":""}`, true},
		{`[]`, true},
	} {
		item := store.RegistryItem{Kind: store.HoldKind, Name: "case", Value: json.RawMessage(test.value)}
		if err := tenant.Registry().Set(t.Context(), item, store.Act{Kind: "hold.added", Subject: "case"}); err != nil {
			t.Fatal(err)
		}
		for _, do := range []func(context.Context) error{
			func(ctx context.Context) error {
				return tenant.Runs().Delete(ctx, "run", store.Act{Kind: "run.deleted"})
			},
			func(ctx context.Context) error {
				return tenant.Runs().Erase(ctx, "run", store.Act{Kind: "run.erased"})
			},
		} {
			if !test.covers {
				continue
			}
			err := do(t.Context())
			if !errors.Is(err, assay.ErrForbidden) || !strings.Contains(fmt.Sprint(err), `hold "case"`) {
				t.Errorf("%s: %v", test.value, err)
			}
		}
		n, err := tenant.Audit().EraseActs(t.Context(), store.ActFilter{Before: now.Add(time.Hour), Kinds: []string{"note."}, Dry: true}, store.Act{})
		if err != nil || (n == 0) != (test.covers && !aboutRun(test.value)) {
			t.Errorf("%s: %d acts would be erased, %v", test.value, n, err)
		}
		if !test.covers || aboutRun(test.value) { // it would be erased, and the other rows need it
			continue
		}
		if err := tenant.Audit().Erase(t.Context(), note, store.Act{}); !errors.Is(err, assay.ErrForbidden) {
			t.Errorf("%s: the act was erased: %v", test.value, err)
		}
	}
}
