package recorded_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/llm/recorded"
)

func asking(text string) llm.Request {
	return llm.Request{System: "be brief", Messages: []llm.Message{{Speaker: llm.User, Text: text}}, MaxTokens: 10, Attempts: 1}
}

// echo returns a model that replies with its input, and refuses "no".
func echo(name string) *llmtest.Scripted {
	return &llmtest.Scripted{Name: name, Known: llm.Facts{Window: 1000}, Reply: func(req llm.Request) (llm.Response, error) {
		switch text := req.Messages[0].Text; text {
		case "no":
			return llm.Response{}, &llm.Error{Model: name, Kind: llm.BadRequest, Status: 400, Message: "no schemas", Usage: assay.Usage{Calls: 1}}
		case "busy":
			return llm.Response{}, &llm.Error{Model: name, Kind: llm.RateLimited, Status: 429}
		default:
			return llm.Response{Text: "you said " + text, Calls: []llm.ToolCall{{ID: "1", Name: "search", Arguments: "{}", Opaque: "sig"}}}, nil
		}
	}}
}

func record(t *testing.T, path string, model *llmtest.Scripted, texts ...string) *recorded.Recorder {
	t.Helper()
	r, err := recorded.Record(path, map[string]llm.Model{"planner": model})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		_, err := r.Roles()["planner"].Generate(t.Context(), asking(text), nil)
		if want := text == "no" || text == "busy"; (err != nil) != want {
			t.Fatalf("%q: error %v", text, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return r
}

func open(t *testing.T, path string) *recorded.Recording {
	t.Helper()
	r, err := recorded.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPlaysBackWhatWasRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape.jsonl")
	model := echo("acme/one")
	record(t, path, model, "hello", "no", "busy", "hello")
	tape := open(t, path)
	if tape.Len() != 2 || tape.Repeated() != 0 || tape.Torn() {
		t.Errorf("%d completions, %d repeated, torn %v; want the reply and the refusal", tape.Len(), tape.Repeated(), tape.Torn())
	}
	played := tape.Roles()["planner"]
	if played.Model() != "acme/one" || llm.FactsOf(played).Window != 1000 {
		t.Errorf("the model is %s, %+v", played.Model(), llm.FactsOf(played))
	}
	want, _ := model.Generate(t.Context(), asking("hello"), nil)
	var streamed strings.Builder
	again := asking("hello")
	again.Attempts = 4 // not part of the key
	got, err := played.Generate(t.Context(), again, func(d llm.Delta) { streamed.WriteString(d.Text) })
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("(-recorded +played) %v\n%s", err, diff)
	}
	if streamed.String() != want.Text {
		t.Errorf("streamed %q", streamed.String())
	}
	_, err = played.Generate(t.Context(), asking("no"), nil)
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.BadRequest || e.Status != 400 || e.Message != "no schemas" || e.Usage.Calls != 1 {
		t.Errorf("the refusal is played back as %#v", err)
	}
	for i, text := range []string{"busy", "something else"} { // temporary failures are not recorded
		_, err = played.Generate(t.Context(), asking(text), nil)
		if !errors.Is(err, assay.ErrUnavailable) || !strings.Contains(err.Error(), "nobody has recorded this request") || tape.Unknown() != i+1 {
			t.Errorf("%q: %v, %d unknown", text, err, tape.Unknown())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := played.Generate(ctx, asking("hello"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

func TestKeyOf(t *testing.T) {
	base, _ := recorded.KeyOf("m", asking("a"))
	for name, other := range map[string]func() (string, error){
		"model": func() (string, error) { return recorded.KeyOf("n", asking("a")) },
		"text":  func() (string, error) { return recorded.KeyOf("m", asking("b")) },
		"schema": func() (string, error) {
			r := asking("a")
			r.Schema = &llm.Schema{Name: "s", Schema: json.RawMessage(`{}`)}
			return recorded.KeyOf("m", r)
		},
		"length": func() (string, error) { r := asking("a"); r.MaxTokens++; return recorded.KeyOf("m", r) },
	} {
		if key, err := other(); err != nil || key == base || len(key) != 64 {
			t.Errorf("another %s has key %s (%v), as %s", name, key, err, base)
		}
	}
	r := asking("a")
	r.Schema = &llm.Schema{Name: "s", Schema: json.RawMessage(`{`)}
	if _, err := recorded.KeyOf("m", r); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a schema that is no JSON: %v", err)
	}
}

// TestRecordGoesOn checks that recorded requests are not made again, and that new ones are
// appended.
func TestRecordGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape.jsonl")
	model := echo("acme/one")
	record(t, path, model, "a", "b")
	whole, _ := os.ReadFile(path)
	for name, start := range map[string][]byte{
		"whole":             whole,
		"torn":              whole[:len(whole)-20],
		"without its end":   whole[:len(whole)-1],
		"torn at the start": whole[:bytes.LastIndexByte(whole[:len(whole)-1], '\n')+3],
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, start, 0o600); err != nil {
				t.Fatal(err)
			}
			before := len(model.Requests())
			r := record(t, path, model, "a", "b", "c")
			asked := len(model.Requests()) - before
			if want := map[bool]int{true: 2, false: 1}[strings.Contains(name, "torn")]; asked != want || r.Asked() != want {
				t.Errorf("%d requests were made (Asked says %d), want %d", asked, r.Asked(), want)
			}
			if tape := open(t, path); tape.Len() != 3 || tape.Torn() || tape.Repeated() != 0 {
				t.Errorf("%d completions, torn %v, %d repeated", tape.Len(), tape.Torn(), tape.Repeated())
			}
		})
	}
}

func TestRecordRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape.jsonl")
	record(t, path, echo("acme/one"), "a")
	roles := func(name string) map[string]llm.Model { return map[string]llm.Model{"planner": echo(name)} }
	if _, err := recorded.Record(path, roles("acme/two")); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("of another model: %v", err)
	}
	r, err := recorded.Record(path, roles("acme/one"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recorded.Record(path, roles("acme/one")); !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("while it is written: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(path)
	packed := path + ".gz"
	if err := os.WriteFile(packed, compress(t, data), 0o600); err != nil {
		t.Fatal(err)
	}
	if tape := open(t, packed); tape.Len() != 1 {
		t.Errorf("compressed: %d completions", tape.Len())
	}
	if _, err := recorded.Record(packed, roles("acme/one")); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a compressed one is written to: %v", err)
	}
}

func compress(t testing.TB, data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRecordSideBySide(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape.jsonl")
	r, err := recorded.Record(path, map[string]llm.Model{"planner": echo("acme/one"), "grader": echo("acme/two")})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			for _, role := range []string{"planner", "grader"} {
				if _, err := r.Roles()[role].Generate(t.Context(), asking(fmt.Sprint(i%10)), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if tape := open(t, path); tape.Len() != 20 || tape.Repeated() != 0 {
		t.Errorf("%d completions and %d repeated, want 20 and none", tape.Len(), tape.Repeated())
	}
}

const (
	headLine = `{"format":"assay completions","version":1,"roles":{"planner":"m"},"models":{}}` + "\n"
	keyA     = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	lineA    = `{"key":"` + keyA + `","model":"m","response":{"text":"a","finish":"stop","usage":{}}}` + "\n"
)

func TestRead(t *testing.T) {
	tests := []struct {
		name, text string
		want       int
		torn       bool
		err        error
	}{
		{"whole", headLine + lineA, 1, false, nil},
		{"blank lines", headLine + "\n" + lineA + "\n\n", 1, false, nil},
		{"a key twice: the first counts", headLine + lineA + strings.Replace(lineA, `"a"`, `"b"`, 1), 1, false, nil},
		{"torn", headLine + lineA + lineA[:40], 1, true, nil},
		{"torn before anything", headLine + `{"ke`, 0, true, nil},
		{"damaged in the middle", headLine + lineA[:40] + "\n" + lineA, 0, false, assay.ErrDamaged},
		{"no key", headLine + `{"key":"9f","response":{}}` + "\n", 0, false, assay.ErrDamaged},
		{"neither reply nor error", headLine + `{"key":"` + keyA + `"}` + "\n", 0, false, assay.ErrDamaged},
		{"empty", "", 0, false, assay.ErrInvalid},
		{"something else", "{\"_id\":1}\n", 0, false, assay.ErrInvalid},
		{"torn head", headLine[:30], 0, false, assay.ErrInvalid},
		{"later version", strings.Replace(headLine, `"version":1`, `"version":2`, 1), 0, false, assay.ErrInvalid},
		{"torn compression", string(compress(t, []byte(headLine+lineA))[:40]), 0, false, assay.ErrDamaged},
		{"a role without a model", `{"format":"assay completions","version":1,"roles":{"planner":""}}` + "\n", 0, false, assay.ErrDamaged},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tape, err := recorded.Read(strings.NewReader(tt.text))
			if !errors.Is(err, tt.err) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if err == nil && (tape.Len() != tt.want || tape.Torn() != tt.torn) {
				t.Errorf("%d completions, torn %v", tape.Len(), tape.Torn())
			}
		})
	}
	if _, err := recorded.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// FuzzRead checks that reading arbitrary bytes never panics, and that a recording that was read
// replays.
func FuzzRead(f *testing.F) {
	f.Add([]byte(headLine + lineA))
	f.Add([]byte(headLine + lineA + lineA[:30]))
	f.Add([]byte(headLine + `{"key":"` + keyA + `","model":"m","error":{"kind":"refused request"}}`))
	f.Add(compress(f, []byte(headLine+lineA)))
	f.Fuzz(func(t *testing.T, data []byte) {
		tape, err := recorded.Read(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, assay.ErrInvalid) && !errors.Is(err, assay.ErrDamaged) {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		for _, model := range tape.Roles() {
			if model.Model() == "" {
				t.Error("a model without a name")
			}
			if _, err := model.Generate(t.Context(), asking("a"), nil); err == nil {
				t.Error("a request has a reply that nobody recorded")
			}
		}
	})
}
