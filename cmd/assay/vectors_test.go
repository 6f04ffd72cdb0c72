package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

// oneEncoder is a set of one encoder that needs no model file.
type oneEncoder struct {
	llm.Embedder
	err error // returned by Open
}

func (o oneEncoder) Default() string { return o.Model() }

func (o oneEncoder) Open(context.Context, string) (llm.Embedder, error) { return o.Embedder, o.err }

// A terminal runs commands in one folder with one encoder.
type terminal struct {
	t       *testing.T
	dir     string
	encoder oneEncoder
}

func newTerminal(t *testing.T, notes int) *terminal {
	t.Helper()
	x := &terminal{t: t, dir: t.TempDir(), encoder: oneEncoder{Embedder: new(llmtest.Hashing)}}
	for i := range notes {
		path := filepath.Join(x.dir, "notes", fmt.Sprintf("%03d.md", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("# Note %d\n\nThe lantern%d burns brightly in the harbour at night.\n", i, i)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// run runs a command line and returns its exit code and both outputs. It replaces NOTES with the
// folder of the documents.
func (x *terminal) run(line ...string) (code int, stdout, stderr string) {
	x.t.Helper()
	for i := range line {
		line[i] = strings.ReplaceAll(line[i], "NOTES", filepath.Join(x.dir, "notes"))
	}
	var out, complaint bytes.Buffer
	a := newApp()
	a.stdout, a.stderr, a.terminal = &output{w: &out}, &output{w: &complaint}, &complaint
	a.installed = x.encoder
	a.watched, a.escapes, a.color, a.piped = false, false, false, true
	a.configDir = func() (string, error) { return filepath.Join(x.dir, "config"), nil }
	a.cacheDir = func() (string, error) { return filepath.Join(x.dir, "cache"), nil }
	a.getenv = func(name string) string {
		if name == "ASSAY_DATA" {
			return filepath.Join(x.dir, "data")
		}
		return ""
	}
	code = a.run(x.t.Context(), line)
	return code, out.String(), complaint.String()
}

// want runs a command line, which must exit with code and print text that matches.
func (x *terminal) want(code int, match string, line ...string) string {
	x.t.Helper()
	got, stdout, stderr := x.run(line...)
	if got != code || !regexp.MustCompile("(?m)"+match).MatchString(stdout+stderr) {
		x.t.Errorf("assay %s = %d, want %d and %q:\n%s%s", strings.Join(line, " "), got, code, match, stdout, stderr)
	}
	return stdout
}

func TestIngestWait(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 90)
	x.want(0, `^0 of 90 passages with vectors of hashing/32; searches make the vectors they need; to make all now, run: assay ingest --wait$`, "ingest", "NOTES")
	x.want(0, `vectors? yet`, "ask", "--trace", "Where does lantern7 burn?")
	x.want(0, `^ok    vectors +hashing/32: [1-8]?[0-9] of 90 chunks$`, "doctor")
	x.want(0, `^[0-9]+ vectors made in .* \([0-9]+ a second\); 90 of 90 passages with vectors of hashing/32$`, "ingest", "--wait")
	x.want(0, `^0 vectors made in .*; 90 of 90 passages`, "ingest", "--wait", "NOTES")
	if out := x.want(0, `90 unchanged`, "ingest", "NOTES"); strings.Contains(out, "vectors") {
		t.Errorf("nothing is left to make, and it says:\n%s", out)
	}
	if out := x.want(0, `lantern7`, "ask", "--trace", "Where does lantern7 burn?"); strings.Contains(out, "vectors yet") {
		t.Errorf("all have vectors, and the answer says:\n%s", out)
	}
	x.want(0, `^ok    vectors +hashing/32: 90 of 90 chunks$`, "doctor")
	x.want(2, `no path`, "ingest")
}

// TestIngestFew checks that a small store has all vectors when its ingest ends.
func TestIngestFew(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, fewVectors)
	if out := x.want(0, `64 added`, "ingest", "NOTES"); strings.Contains(out, "vectors") {
		t.Errorf("all have vectors, and it says:\n%s", out)
	}
	x.want(0, `^ok    vectors +hashing/32: 64 of 64 chunks$`, "doctor")
}

// TestIngestWaitDocs checks that --docs has its own store and that ingest --wait makes its vectors.
func TestIngestWaitDocs(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 90)
	x.want(0, `vectors? yet`, "ask", "--trace", "--docs", "NOTES", "Where does lantern7 burn?")
	x.want(0, `90 of 90 passages with vectors`, "ingest", "--wait", "--docs", "NOTES")
	if out := x.want(0, `lantern7`, "ask", "--trace", "--docs", "NOTES", "Where does lantern7 burn?"); strings.Contains(out, "vectors yet") {
		t.Errorf("all have vectors, and the answer says:\n%s", out)
	}
}

// TestVectorsInJSON checks that JSON output always has the model of the vectors and the number of
// passages with vectors.
func TestVectorsInJSON(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 200)
	var report ingest.Report
	x.json(&report, 0, "ingest", "--json", "NOTES")
	if v := report.Vectors; v == nil || v.Model != "hashing/32" || v.Missing() != 200 || v.Failed == nil {
		t.Errorf("ingest: %+v", v)
	}
	var results assay.Results
	raw := x.json(&results, 0, "search", "--json", "lantern7")
	if results.Index.Model != "hashing/32" || results.Index.Coverage >= 1 || len(results.Notes) == 0 || !strings.Contains(raw, `"coverage": `) {
		t.Errorf("search: %+v, notes %q", results.Index, results.Notes)
	}
	var answer assay.Answer
	x.json(&answer, 0, "ask", "--json", "Where does lantern7 burn?")
	if len(answer.Notes) == 0 || answer.Index.Model != "hashing/32" || answer.Index.Coverage >= 1 {
		t.Errorf("ask: %+v, notes %q", answer.Index, answer.Notes)
	}
	x.json(&report, 0, "ingest", "--json", "--wait")
	if v := report.Vectors; v.Stored == 0 || v.Missing() != 0 {
		t.Errorf("ingest --wait: %+v", v)
	}
	results = assay.Results{}
	x.json(&results, 0, "search", "--json", "lantern7")
	if results.Index.Coverage != 1 || len(results.Notes) > 0 {
		t.Errorf("search: %+v, notes %q", results.Index, results.Notes)
	}
}

func (x *terminal) json(into any, code int, line ...string) string {
	x.t.Helper()
	got, stdout, stderr := x.run(line...)
	if got != code {
		x.t.Errorf("assay %s = %d, want %d: %s", strings.Join(line, " "), got, code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), into); err != nil {
		x.t.Fatalf("assay %s: %v in %q", strings.Join(line, " "), err, stdout)
	}
	return stdout
}

// TestBrokenEncoder checks that an encoder that cannot be opened is named, and that text search
// still works.
func TestBrokenEncoder(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 10)
	x.encoder.err = fmt.Errorf("/models/gte/model.safetensors: it ends after 17 bytes: %w", assay.ErrDamaged)
	x.want(0, `^no encoder, so searches use text alone: open encoder .*model.safetensors: it ends after 17 bytes`, "ingest", "NOTES")
	x.want(exitDamaged, `model.safetensors`, "ingest", "--wait", "NOTES")
	x.want(exitDamaged, `model.safetensors`, "ingest", "--wait")
	x.want(0, `^Note: searched by text alone: .*`, "ask", "Where does lantern7 burn?")
	x.want(exitDamaged, `^FAIL  vectors .*model.safetensors`, "doctor")
}

// TestIngestWaitNamesWhatFails checks that passages that cannot be embedded are named.
func TestIngestWaitNamesWhatFails(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, 10)
	x.encoder.Embedder = llmtest.Refusing(x.encoder.Embedder, "lantern3 ")
	x.want(0, `^no vector for .*003.md:3: the embedder is broken$`, "ingest", "--wait", "NOTES")
	x.want(0, `9 of 10 passages with vectors`, "ingest", "--wait")
}
