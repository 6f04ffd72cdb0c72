package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

var testSalt = []byte("0123456789abcdef")

func testRecord() assay.Record {
	long := strings.Repeat("long text\n", 40)
	input, err := Canonical(map[string]any{
		"query": "a < b", "text": long, "again": []string{long, "short", long[1:]},
		"ref": map[string]any{"$value": long}, "escaped": map[string]any{"$$value": map[string]any{"$$$value": 1}},
		"two": map[string]any{"$value": 1, "b": 2}, "$value": "x",
	})
	if err != nil {
		panic(err)
	}
	return assay.Record{
		Sequence: 7, Run: "run-1", Ordinal: 3, Path: "sub[1]/search", Kind: assay.StepSearch, Model: "gte-small/384",
		Input: input, Output: json.RawMessage(`{"hits":[]}`),
		Usage:   assay.Usage{Calls: 1, InputTokens: 20, OutputTokens: 3, CostMicros: 4, Searches: 5},
		Started: time.Date(2026, 5, 4, 3, 2, 1, 1234567, time.UTC), Elapsed: 5 * time.Millisecond, Active: time.Second,
	}
}

// open opens s with its own values.
func open(s Sealed, salt []byte) (assay.Record, error) {
	return Open(s.Header, s.Payload, salt, s.Leaf, func(hash string) ([]byte, error) {
		for _, v := range s.Values {
			if v.Hash == hash {
				return v.Data, nil
			}
		}
		return nil, assay.ErrNotFound
	})
}

func mustSeal(t testing.TB, rec assay.Record) Sealed {
	t.Helper()
	s, err := Seal(rec, testSalt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSealIdentity(t *testing.T) {
	full := testRecord()
	failed := testRecord()
	failed.Output, failed.Error = nil, &assay.RecordedError{Kind: assay.ErrBudget.Error(), Message: strings.Repeat("x", 300)}
	null := testRecord()
	null.Input, null.Output = json.RawMessage(`null`), json.RawMessage(`null`)
	east := testRecord()
	deepest := testRecord()
	deepest.Output = json.RawMessage(strings.Repeat("[", maxDepth-1) + `"` + strings.Repeat("x", 300) + `"` + strings.Repeat("]", maxDepth-1))
	for name, rec := range map[string]assay.Record{
		"full": full, "failed": failed, "null": null, "zero": {}, "east": east, "deepest": deepest,
	} {
		s := mustSeal(t, rec)
		got, err := open(s, testSalt)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := rec
		want.Bytes, want.Leaf = s.Header, s.Leaf
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: Open(Seal(rec)) differs (-want +got):\n%s", name, diff)
		}
	}
}

func TestSealForm(t *testing.T) {
	rec := testRecord()
	rec.Input = json.RawMessage(`{"b": {"$value": 1}, "a": "` + strings.Repeat("é", 128) + `"}`)
	rec.Started = rec.Started.In(time.FixedZone("east", 3600))
	s := mustSeal(t, rec)
	wantPayload := `{"input":{"a":{"$value":"` + s.Values[0].Hash + `"},"b":{"$$value":1}},"output":{"hits":[]}}`
	if string(s.Payload) != wantPayload {
		t.Errorf("payload = %s, want %s", s.Payload, wantPayload)
	}
	if len(s.Values) != 1 || string(s.Values[0].Data) != strings.Repeat("é", 128) {
		t.Errorf("values = %q", s.Values)
	}
	wantHeader := `{"active":1000000000,"elapsed":5000000,"format":1,"kind":"search","model":"gte-small/384","ordinal":3,` +
		`"path":"sub[1]/search","payload":"` + payloadHash(testSalt, s.Payload) + `","run":"run-1","sequence":7,` +
		`"started":"2026-05-04T03:02:01.001234567Z","usage":{"calls":1,"cost_micros":4,"input_tokens":20,"output_tokens":3,"searches":5}}`
	if string(s.Header) != wantHeader {
		t.Errorf("header = %s, want %s", s.Header, wantHeader)
	}
}

// TestSealValues checks that long strings are stored outside the payload, each once.
func TestSealValues(t *testing.T) {
	rec := testRecord()
	rec.Output = json.RawMessage(`["` + strings.Repeat("y", longString-1) + `","` + strings.Repeat("y", longString) + `"]`)
	s := mustSeal(t, rec)
	var sizes []int
	for _, v := range s.Values {
		sizes = append(sizes, len(v.Data))
	}
	if diff := cmp.Diff([]int{400, 399, 256}, sizes); diff != "" {
		t.Errorf("sizes of the values (-want +got):\n%s", diff)
	}
	if len(s.Payload) > 1200 {
		t.Errorf("payload has %d bytes: %s", len(s.Payload), s.Payload)
	}
}

func TestSealInvalid(t *testing.T) {
	for name, change := range map[string]func(*assay.Record){
		"input":   func(r *assay.Record) { r.Input = json.RawMessage(`{`) },
		"output":  func(r *assay.Record) { r.Output = json.RawMessage(`1 2`) },
		"path":    func(r *assay.Record) { r.Path = "\xff" },
		"started": func(r *assay.Record) { r.Started = time.Date(math.MaxInt16, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		rec := testRecord()
		change(&rec)
		if _, err := Seal(rec, testSalt); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: error = %v, want ErrInvalid", name, err)
		}
	}
	if _, err := Seal(testRecord(), testSalt[1:]); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("short salt: error = %v, want ErrInvalid", err)
	}
}

// TestOpenDamaged checks that a flipped bit in any part is detected, and that the error names the
// part.
func TestOpenDamaged(t *testing.T) {
	s := mustSeal(t, testRecord())
	if len(s.Values) != 2 {
		t.Fatalf("%d values, want 2", len(s.Values))
	}
	salt := bytes.Clone(testSalt)
	leaf := s.Leaf[:]
	parts := []struct {
		data []byte
		want string
	}{
		{s.Header, "header"}, {leaf, "header"}, {s.Payload, `payload of step "sub[1]/search"`}, {salt, "payload"},
		{s.Values[0].Data, "value " + s.Values[0].Hash}, {s.Values[1].Data, "value " + s.Values[1].Hash},
	}
	for _, p := range parts {
		for i := range p.data {
			for bit := range 8 {
				p.data[i] ^= 1 << bit
				_, err := open(s, salt)
				if !errors.Is(err, assay.ErrDamaged) || !strings.Contains(err.Error(), p.want) {
					t.Fatalf("byte %d of %q flipped: error = %v, want ErrDamaged that names %s", i, p.data, err, p.want)
				}
				p.data[i] ^= 1 << bit
			}
		}
	}
	missing := s
	missing.Values = s.Values[:1]
	if _, err := open(missing, salt); !errors.Is(err, assay.ErrDamaged) || !strings.Contains(err.Error(), s.Values[1].Hash+" is missing") {
		t.Errorf("missing value: error = %v", err)
	}
	if _, err := open(s, append([]byte("x"), salt...)); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("long salt: error = %v", err)
	}
}

// TestOpenValueError checks that an error of the store's value function is returned.
func TestOpenValueError(t *testing.T) {
	s := mustSeal(t, testRecord())
	_, err := Open(s.Header, s.Payload, testSalt, s.Leaf, func(string) ([]byte, error) { return nil, context.Canceled })
	if !errors.Is(err, context.Canceled) || errors.Is(err, assay.ErrDamaged) {
		t.Errorf("error = %v, want context.Canceled alone", err)
	}
}

// TestOpenForged checks payloads that match their hashes but that Seal never writes.
func TestOpenForged(t *testing.T) {
	for _, payload := range []string{
		``, `[]`, `{`, `{"input":1,}`, `{"input":1`, `{"input":1}x`, `{"input":1,"input":2}`, `{"other":1}`, `{"input"}`,
		`{"input":{"$value":1}}`, `{"input":{"$value":"short"}}`, `{"input":{"$value":{"$value":"x"}}}`,
		`{"input":{"$value":"` + strings.Repeat("G", 64) + `"}}`, `{"input":{"$value":"` + strings.Repeat("AB", 32) + `"}}`,
		`{"error":[]}`, `{"error":{"kind":1}}`, "{}\x00",
	} {
		s := forge(t, []byte(payload))
		if rec, err := open(s, testSalt); !errors.Is(err, assay.ErrDamaged) {
			t.Errorf("payload %q: %+v, %v, want ErrDamaged", payload, rec, err)
		}
	}
	for header, want := range map[string]error{
		`{"format":2}`: assay.ErrNewer, `{"format":1,"extra":1}`: assay.ErrDamaged, `{"format":1}{}`: assay.ErrDamaged,
		``: assay.ErrDamaged, `[]`: assay.ErrDamaged, `{"format":1} x`: assay.ErrDamaged,
	} {
		if _, err := Open([]byte(header), nil, testSalt, leafHash([]byte(header)), nil); !errors.Is(err, want) {
			t.Errorf("header %q: error = %v, want %v", header, err, want)
		}
	}
}

// forge returns a sealed record with the given payload and matching hashes.
func forge(t testing.TB, payload []byte) Sealed {
	t.Helper()
	s := mustSeal(t, assay.Record{Path: "p"})
	old := payloadHash(testSalt, s.Payload)
	s.Payload = payload
	s.Header = bytes.Replace(s.Header, []byte(old), []byte(payloadHash(testSalt, payload)), 1)
	s.Leaf = leafHash(s.Header)
	return s
}

func FuzzSeal(f *testing.F) {
	f.Add([]byte(`{"a":{"$value":"x"},"b":"`+strings.Repeat("z", 300)+`"}`), "message", "path")
	f.Add([]byte(`{"$$value":["`+strings.Repeat(`\n`, 300)+`"]}`), strings.Repeat("m", 256), "a[0]/b")
	f.Fuzz(func(t *testing.T, data []byte, message, path string) {
		rec := assay.Record{Path: path, Input: data, Started: time.Unix(1, 2).UTC()}
		if message != "" {
			rec.Error = &assay.RecordedError{Message: message}
		} else {
			rec.Output = data
		}
		s, err := Seal(rec, testSalt)
		if err != nil {
			return
		}
		for _, v := range s.Values {
			if len(v.Data) < longString {
				t.Fatalf("value of %d bytes", len(v.Data))
			}
		}
		got, err := open(s, testSalt)
		if err != nil {
			t.Fatalf("Open(Seal(%q)): %v", data, err)
		}
		if len(data) > 0 {
			if want, err := Canonical(json.RawMessage(data)); err != nil || !bytes.Equal(want, got.Input) {
				t.Fatalf("input = %q, want %q (%v)", got.Input, want, err)
			}
		}
		if want := strings.ToValidUTF8(message, "\uFFFD"); message == want && message != "" && got.Error.Message != message {
			t.Fatalf("message = %q, want %q", got.Error.Message, message)
		}
		if again := mustSeal(t, got); !cmp.Equal(s, again) {
			t.Fatalf("sealing again differs: %s", cmp.Diff(s, again))
		}
	})
}

func FuzzOpen(f *testing.F) {
	s := mustSeal(f, testRecord())
	f.Add(s.Payload)
	f.Add([]byte(`{"input":{"$value":"` + strings.Repeat("0", 64) + `"}}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		forged := forge(t, payload)
		forged.Values = s.Values
		rec, err := open(forged, testSalt)
		if err != nil {
			if !errors.Is(err, assay.ErrDamaged) {
				t.Fatalf("error = %v, want ErrDamaged", err)
			}
			return
		}
		if _, err := Seal(rec, testSalt); err != nil {
			t.Fatalf("what Open(%q) returned cannot be sealed: %v", payload, err)
		}
	})
}

// hits returns an output like that of a search: n passages of size bytes.
func hits(n, size int) json.RawMessage {
	var list []assay.Hit
	for i := range n {
		text := strings.Repeat(fmt.Sprintf("Passage %d says \"this\" and\nthat. ", i), size/32+1)[:size]
		list = append(list, assay.Hit{Text: text, URI: "file:///doc.md", Title: "A title", Scores: assay.Scores{Relevance: 0.5}})
	}
	out, err := Canonical(assay.Results{Hits: list})
	if err != nil {
		panic(err)
	}
	return out
}

func BenchmarkCanonical(b *testing.B) {
	for _, n := range []int{1, 30} {
		var v any
		if err := json.Unmarshal(hits(n, 1000), &v); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%dKB", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Canonical(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSeal(b *testing.B) {
	for _, n := range []int{1, 30} {
		rec := testRecord()
		rec.Output = hits(n, 1000)
		b.Run(fmt.Sprintf("%dKB", n), func(b *testing.B) {
			b.SetBytes(int64(len(rec.Input) + len(rec.Output)))
			for b.Loop() {
				if _, err := Seal(rec, testSalt); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	rec := testRecord()
	rec.Output = hits(30, 1000)
	s := mustSeal(b, rec)
	for b.Loop() {
		if _, err := open(s, testSalt); err != nil {
			b.Fatal(err)
		}
	}
}
