package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/chunk"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// A world is a folder, a store and a count of the parsed files.
type world struct {
	t      *testing.T
	dir    string
	w      store.Writer
	opts   Options
	parsed atomic.Int64
}

func newWorld(t *testing.T, files map[string]string) *world {
	return newWorldIn(t, newMemory(), files)
}

func newWorldIn(t *testing.T, w store.Writer, files map[string]string) *world {
	x := &world{t: t, dir: t.TempDir(), w: w}
	x.write(files)
	x.opts = Options{Roots: []string{x.dir}, Walk: func(ctx context.Context, in parse.Input, yield func(parse.Parsed) error) error {
		x.parsed.Add(1)
		return parse.Walk(ctx, in, yield)
	}}
	return x
}

// write writes files with a modification time two minutes ago, so that none is racy unless a test
// makes it so. The content "-" removes a file.
func (x *world) write(files map[string]string) {
	x.t.Helper()
	for name, content := range files {
		path := filepath.Join(x.dir, name)
		if content == "-" {
			if err := os.RemoveAll(path); err != nil {
				x.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			x.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			x.t.Fatal(err)
		}
		x.touch(name, -2*time.Minute)
	}
}

func (x *world) touch(name string, age time.Duration) {
	x.t.Helper()
	at := time.Now().Add(age)
	if err := os.Chtimes(filepath.Join(x.dir, name), at, at); err != nil {
		x.t.Fatal(err)
	}
}

func (x *world) run() (Report, error) {
	x.t.Helper()
	x.parsed.Store(0)
	return Run(context.Background(), x.w, x.opts)
}

// check runs an ingest and compares its report in the short form "+added ~updated =unchanged
// -removed; reason path ...".
func (x *world) check(step, want string) {
	x.t.Helper()
	r, err := x.run()
	var root *source.RootError
	if err != nil && !errors.As(err, &root) {
		x.t.Fatalf("%s: %v", step, err)
	}
	if got := x.short(r); got != want {
		x.t.Errorf("%s: report %q, want %q", step, got, want)
	}
}

func (x *world) short(r Report) string {
	s := fmt.Sprintf("+%d ~%d =%d -%d", r.Added, r.Updated, r.Unchanged, r.Removed)
	if r.Duplicates > 0 {
		s += fmt.Sprintf(" dup %d", r.Duplicates)
	}
	for _, k := range r.Skipped {
		s += fmt.Sprintf("; %s %s", k.Reason, strings.TrimPrefix(strings.TrimPrefix(k.URI, source.URI(x.dir)), "/"))
		if k.Removed {
			s += " removed"
		}
		if k.Kept > 0 {
			s += fmt.Sprintf(" kept %d", k.Kept)
		}
	}
	return s
}

// docs returns the stored documents in the form "path acl".
func (x *world) docs() []string {
	x.t.Helper()
	got := []string{}
	for d, err := range x.w.Documents(context.Background()) {
		if err != nil {
			x.t.Fatal(err)
		}
		s := strings.TrimPrefix(d.URI, source.URI(x.dir)+"/")
		if d.ACL.Restricted {
			s += " " + strings.Join(d.ACL.Allow, ",")
		}
		got = append(got, s)
	}
	return got
}

func (x *world) document(rel string) assay.Document {
	x.t.Helper()
	d, err := x.w.Document(context.Background(), assay.DocumentID(DefaultCollection, source.URI(x.dir)+"/"+rel))
	if err != nil {
		x.t.Fatalf("document %s: %v", rel, err)
	}
	return d
}

func (x *world) wantDocs(want ...string) {
	x.t.Helper()
	if d := cmp.Diff(append([]string{}, want...), x.docs()); d != "" {
		x.t.Errorf("documents (-want +got):\n%s", d)
	}
}

func (x *world) sequence() int64 {
	x.t.Helper()
	n, err := x.w.Sequence(context.Background())
	if err != nil {
		x.t.Fatal(err)
	}
	return n
}

func (x *world) wantParsed(want int64) {
	x.t.Helper()
	if got := x.parsed.Load(); got != want {
		x.t.Errorf("%d parsed, want %d", got, want)
	}
}

func TestIncremental(t *testing.T) { eachStore(t, testIncremental) }

func testIncremental(t *testing.T, w store.Writer) {
	x := newWorldIn(t, w, map[string]string{"a.md": "# A\n\nalpha", "b/b.md": "# B\n\nbeta", "c.md": "# C\n\ngamma"})
	x.check("first", "+3 ~0 =0 -0")
	x.wantParsed(3)
	sequence := x.sequence()

	x.check("again", "+0 ~0 =3 -0")
	x.wantParsed(0)
	if got := x.sequence(); got != sequence {
		t.Errorf("an unchanged folder moved the store from %d to %d", sequence, got)
	}

	before := x.document("a.md")
	x.touch("a.md", -time.Minute)
	x.check("touched", "+0 ~0 =3 -0")
	x.wantParsed(0)
	after := x.document("a.md")
	if after.Version != before.Version || after.Source.Modified.Equal(before.Source.Modified) {
		t.Errorf("touching a.md: version %s → %s, source %v → %v; want the same version and a new time", before.Version, after.Version, before.Source, after.Source)
	}

	x.write(map[string]string{"c.md": "# C\n\nother", "b": "-", "d.md": "# D\n\ndelta"})
	x.check("changed, removed, added", "+1 ~1 =1 -1")
	x.wantParsed(2)
	x.wantDocs("a.md", "c.md", "d.md")

	x.opts.Source.Exclude = []string{"d.md"}
	x.check("excluded now", "+0 ~0 =2 -1")
	x.wantDocs("a.md", "c.md")
}

func TestSameSizeAndTime(t *testing.T) {
	x := newWorld(t, map[string]string{"a.md": "# A\n\nalpha"})
	x.touch("a.md", time.Hour) // so that it is still young when it is read, however late that is
	x.check("young file", "+1 ~0 =0 -0")
	young := x.document("a.md").Source.Modified

	// Changed within the same clock tick: only the bytes differ.
	x.write(map[string]string{"a.md": "# A\n\nomega"})
	path := filepath.Join(x.dir, "a.md")
	if err := os.Chtimes(path, young, young); err != nil {
		t.Fatal(err)
	}
	x.check("same size and time", "+0 ~1 =0 -0")
	if got := x.document("a.md").Text; !strings.Contains(got, "omega") {
		t.Errorf("text is %q, want the new one", got)
	}

	// Size and time of an old file are trusted unless Verify is set.
	x.touch("a.md", -time.Hour)
	x.check("old file", "+0 ~0 =1 -0")
	old := x.document("a.md").Source.Modified
	x.write(map[string]string{"a.md": "# A\n\nsigma"})
	os.Chtimes(path, old, old)
	x.check("believed", "+0 ~0 =1 -0")
	x.opts.Verify = true
	x.check("verified", "+0 ~1 =0 -0")
}

func TestSidecars(t *testing.T) { eachStore(t, testSidecars) }

func testSidecars(t *testing.T, w store.Writer) {
	x := newWorldIn(t, w, map[string]string{"a.md": "# A\n\nalpha", "a.md.metadata.json": `{"team":"x","acl":["group:legal"]}`, "b.md": "# B\n\nbeta"})
	x.check("first", "+2 ~0 =0 -0")
	x.wantDocs("a.md group:legal", "b.md")
	version := x.document("a.md").Version

	x.write(map[string]string{"a.md.metadata.json": `{ "acl": ["user:u"], "team": "x" }`})
	x.check("acl only", "+0 ~1 =1 -0")
	x.wantParsed(0)
	x.wantDocs("a.md user:u", "b.md")
	if got := x.document("a.md").Version; got != version {
		t.Errorf("a change of ACL made version %s of %s", got, version)
	}

	x.write(map[string]string{"a.md.metadata.json": `{"team":"y","acl":["user:u"]}`})
	x.check("metadata", "+0 ~1 =1 -0")
	if got := x.document("a.md").Metadata["team"]; !got.Equal(assay.StringValue("y")) {
		t.Errorf("team is %v", got)
	}

	x.write(map[string]string{"a.md.metadata.json": `{"team":"y","acl":["user:`, "b.md.metadata.json": `{"acl":"*"}`})
	x.check("broken", "+0 ~0 =0 -2; bad_sidecar a.md removed; bad_sidecar b.md removed")
	x.wantDocs()
	x.check("still broken", "+0 ~0 =0 -0; bad_sidecar a.md; bad_sidecar b.md")

	x.write(map[string]string{"a.md.metadata.json": "-", "b.md.metadata.json": `{"acl":[]}`})
	x.check("repaired", "+2 ~0 =0 -0")
	x.wantDocs("a.md", "b.md ")

	x.write(map[string]string{"b.md": "-"})
	x.check("sidecar alone", "+0 ~0 =1 -1; sidecar_without_document b.md.metadata.json")
}

func TestRequireACL(t *testing.T) { eachStore(t, testRequireACL) }

func testRequireACL(t *testing.T, w store.Writer) {
	x := newWorldIn(t, w, map[string]string{"a.md": "# A\n\nalpha", "a.md.metadata.json": `{"acl":["*"]}`, "b.md": "# B\n\nbeta"})
	if err := x.w.SetCollection(context.Background(), store.Collection{Name: "closed", RequireACL: true}); err != nil {
		t.Fatal(err)
	}
	x.opts.Collection = "closed"
	x.check("first", "+1 ~0 =0 -0; no_acl b.md")
	x.write(map[string]string{"a.md.metadata.json": "-"})
	x.check("acl gone", "+0 ~0 =0 -1; no_acl a.md removed; no_acl b.md")
	x.wantDocs()
}

func TestBadAmongGood(t *testing.T) {
	x := newWorld(t, map[string]string{
		"bin.dat": "a\x00\x01\x02\x00", "empty.md": "", "good.md": "# G\n\ngood", "large.md": strings.Repeat("word ", 100),
		"utf8.md": "caf\xe9 \xff\xfe\xfd \xc3\x28", "fm.md": "---\nacl: group:x\n---\n\ntext here",
	})
	x.opts.Source.MaxFileBytes = 400
	r, err := x.run()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]source.Reason{}
	for _, s := range r.Skipped {
		got[strings.TrimPrefix(s.URI, source.URI(x.dir)+"/")] = s.Reason
	}
	want := map[string]source.Reason{"bin.dat": Binary, "empty.md": NoText, "large.md": source.TooLarge, "fm.md": ACLInText}
	delete(got, "utf8.md") // parse decides whether these bytes are text in some encoding
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("skipped (-want +got):\n%s", d)
	}

	// A document that can no longer be ingested is removed.
	x.write(map[string]string{"good.md": strings.Repeat("good ", 100)})
	r, err = x.run()
	if err != nil || r.Removed != 1 || len(x.docs()) != r.Unchanged {
		t.Errorf("good.md became too large: removed %d, %v; want 1", r.Removed, err)
	}
	x.write(map[string]string{"good.md": "# G\n\ngood"})
	if r, err = x.run(); err != nil || r.Added != 1 {
		t.Errorf("good.md is good again: added %d, %v; want 1", r.Added, err)
	}
	x.write(map[string]string{"good.md": "\x00\x00\x00"})
	r, err = x.run()
	if err != nil || r.Removed != 1 {
		t.Errorf("good.md became binary: removed %d, %v; want 1", r.Removed, err)
	}
}

func TestParserPanics(t *testing.T) {
	x := newWorld(t, map[string]string{"a.md": "# A\n\nalpha", "b.md": "# B\n\nbeta"})
	x.check("first", "+2 ~0 =0 -0")
	x.opts.Walk = func(_ context.Context, in parse.Input, _ func(parse.Parsed) error) error {
		var blocks []int
		_ = blocks[len(in.Data)] // panics, like a parser with a bug
		return nil
	}
	x.write(map[string]string{"b.md": "# B\n\nother", "c.md": "# C\n\nnew"})
	r, err := x.run()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := x.short(r), "+0 ~0 =1 -1; parser_failed b.md removed; parser_failed c.md"; got != want {
		t.Errorf("report %q, want %q", got, want)
	}
	if !strings.Contains(r.Skipped[0].Detail, "index out of range") {
		t.Errorf("detail %q does not say what happened", r.Skipped[0].Detail)
	}

	// The stored text of an unchanged source is still correct.
	x.opts.Chunk = other(x.opts.Chunk)
	r, err = x.run()
	if got, want := x.short(r), "+0 ~0 =0 -0; parser_failed a.md kept 1; parser_failed b.md; parser_failed c.md"; got != want || err != nil {
		t.Errorf("with another pipeline: report %q, %v; want %q", got, err, want)
	}
	x.wantDocs("a.md")
}

func TestPipelineChange(t *testing.T) {
	x := newWorld(t, map[string]string{"a.md": "# A\n\nalpha"})
	x.check("first", "+1 ~0 =0 -0")
	x.opts.Chunk = other(x.opts.Chunk)
	x.check("other pipeline", "+0 ~1 =0 -0")
	x.wantParsed(1)
}

func TestRoots(t *testing.T) { eachStore(t, testRoots) }

func testRoots(t *testing.T, w store.Writer) {
	x := newWorldIn(t, w, map[string]string{"a/1.md": "# 1\n\none", "a/s/2.md": "# 2\n\ntwo", "b/3.md": "# 3\n\nthree"})
	at := func(names ...string) {
		x.opts.Roots = nil
		for _, n := range names {
			x.opts.Roots = append(x.opts.Roots, filepath.Join(x.dir, n))
		}
	}
	at("a", "b", "a/s", "a/1.md")
	x.check("overlapping", "+3 ~0 =0 -0")
	at("a")
	x.check("one of them", "+0 ~0 =2 -0")
	x.wantDocs("a/1.md", "a/s/2.md", "b/3.md")

	x.write(map[string]string{"b": "-"})
	at("a", "b")
	x.check("a root is gone", "+0 ~0 =2 -0; root b kept 1")
	x.wantDocs("a/1.md", "a/s/2.md", "b/3.md")
	x.write(map[string]string{"b/x/y.md": "-"})
	if err := os.Mkdir(filepath.Join(x.dir, "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	x.check("a root is empty", "+0 ~0 =2 -0; root b kept 1")
	at("")
	x.check("above it", "+0 ~0 =2 -1")

	// Documents ingested by another root stay while their files exist.
	x.write(map[string]string{"a/.hid/4.md": "# 4\n\nfour", "a/.5.md": "# 5\n\nfive"})
	at("a/.hid", "a/.5.md")
	x.check("roots of their own", "+2 ~0 =0 -0")
	at("a")
	x.check("the folder above, which leaves them out", "+0 ~0 =2 -0")
	x.wantDocs("a/.5.md", "a/.hid/4.md", "a/1.md", "a/s/2.md")
	x.write(map[string]string{"a/.hid/4.md": "-", "a/s": "-"})
	x.check("gone", "+0 ~0 =1 -2")
	x.wantDocs("a/.5.md", "a/1.md")

	at("gone1", "gone2")
	r, err := x.run()
	if !errors.Is(err, assay.ErrInvalid) || !errors.Is(err, fs.ErrNotExist) || r.Interrupted {
		t.Errorf("no root there: %+v, %v", r, err)
	}
	x.opts.Roots = nil
	if _, err := x.run(); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("no root named: %v", err)
	}
}

func TestCollectionsApart(t *testing.T) { eachStore(t, testCollectionsApart) }

func testCollectionsApart(t *testing.T, w store.Writer) {
	x := newWorldIn(t, w, map[string]string{"a.md": "# A\n\nalpha"})
	x.check("default", "+1 ~0 =0 -0")
	x.opts.Collection = "other"
	x.check("other", "+1 ~0 =0 -0")
	x.write(map[string]string{"a.md": "-", "b.md": "# B\n\nbeta"})
	x.check("other changes", "+1 ~0 =0 -1")
	x.wantDocs("a.md", "b.md")
}

func TestStdin(t *testing.T) {
	x := newWorld(t, nil)
	x.opts.Roots = []string{"-"}
	x.opts.Source.StdinName = "notes.md"
	in := func(s string) { x.opts.Source.Stdin = strings.NewReader(s) }
	in("# Notes\n\none")
	x.check("first", "+1 ~0 =0 -0")
	in("# Notes\n\none")
	x.check("again", "+0 ~0 =1 -0")
	in("# Notes\n\ntwo")
	x.check("changed", "+0 ~1 =0 -0")
	x.wantDocs("stdin:notes.md")
	x.write(map[string]string{"a.md": "# A\n\nalpha"})
	x.opts.Roots = []string{x.dir}
	x.check("a folder", "+1 ~0 =0 -0")
	x.wantDocs("a.md", "stdin:notes.md")

	// Standard input without a name has the title "standard input".
	x.opts.Roots, x.opts.Source.StdinName = []string{"-"}, ""
	in("nothing but a line")
	x.check("without a name", "+1 ~0 =0 -0")
	d, err := x.w.Document(t.Context(), assay.DocumentID(DefaultCollection, "stdin:-"))
	if err != nil || d.Title != "standard input" {
		t.Errorf("title %q, %v, want standard input", d.Title, err)
	}
}

func TestMetadata(t *testing.T) {
	x := newWorld(t, map[string]string{
		"d/plain.txt": "no heading here",
		"d/head.md":   "# The Heading\n\ntext",
		"d/front.md":  "---\ntitle: From Front\nauthor: Ann\ncreated: 2024-05-01\nmodified: long ago\nteam: x\n---\n\n# Heading\n\ntext",
		"d/side.md":   "---\ntitle: From Front\nteam: x\n---\n\ntext", "d/side.md.metadata.json": `{"title":"From Side","year":2023}`,
	})
	x.check("first", "+4 ~0 =0 -0")
	get := func(rel, key string) string {
		v := x.document(rel).Metadata[key]
		return string(v.Kind) + " " + v.Text()
	}
	for _, tt := range []struct{ rel, key, want string }{
		{"d/plain.txt", "title", "string plain.txt"},
		{"d/plain.txt", "path", "list d, plain.txt"},
		{"d/plain.txt", "source", "string file"},
		{"d/head.md", "title", "string The Heading"},
		{"d/front.md", "title", "string From Front"},
		{"d/front.md", "author", "string Ann"},
		{"d/front.md", "created", "time 2024-05-01T00:00:00Z"},
		{"d/front.md", "team", "string x"},
		{"d/front.md", "modified", "time " + x.document("d/front.md").Source.Modified.UTC().Format(time.RFC3339Nano)},
		{"d/side.md", "title", "string From Side"},
		{"d/side.md", "team", "string x"},
		{"d/side.md", "year", "number 2023"},
	} {
		if got := get(tt.rel, tt.key); got != tt.want {
			t.Errorf("%s %s = %q, want %q", tt.rel, tt.key, got, tt.want)
		}
	}
	d := x.document("d/side.md")
	if d.Title != "From Side" || d.Version != assay.DocumentVersion(d.Text, d.Metadata, pipelineVersion(x.opts.Chunk, parse.Version)) {
		t.Errorf("title %q, version %q", d.Title, d.Version)
	}
}

// other returns options that give another pipeline version.
func other(o chunk.Options) chunk.Options {
	o.TargetTokens = 77
	return o
}

// TestTimesOutOfRange checks that times without a written form, which file systems and documents
// can contain, do not corrupt the store.
func TestTimesOutOfRange(t *testing.T) {
	x := newWorld(t, map[string]string{
		"far.md":   "# Far\n\nalpha",
		"front.md": "---\ncreated: 9999-12-31T23:59:59-23:59\ndue: 0001-01-01T00:00:00+14:00\n---\n\n# Front\n\nbeta",
		"side.md":  "# Side\n\ngamma", "side.md.metadata.json": `{"created": "9999-12-31T23:59:59-23:59"}`,
	})
	far := time.Date(11476, 8, 15, 5, 20, 0, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(x.dir, "far.md"), far, far); err != nil {
		t.Skip("the file system does not hold that time:", err)
	}
	x.check("first", "+2 ~0 =0 -0; bad_sidecar side.md")
	x.wantDocs("far.md", "front.md")
	x.check("again", "+0 ~0 =2 -0; bad_sidecar side.md")
}

// TestRetryOnlyKeeps checks that a retry of failed files leaves files alone that it would not ingest.
func TestRetryOnlyKeeps(t *testing.T) {
	x := newWorld(t, map[string]string{"bad.bin": "\x00\x01", "large.md": "# Large\n\n" + strings.Repeat("word ", 300), "mixed.md": "# Mixed\n\ntext"})
	x.check("first", "+2 ~0 =0 -0; binary bad.bin")
	x.write(map[string]string{"mixed.md.metadata.json": `{"acl":`})
	x.opts.RetryOnly = true
	x.opts.Source.MaxFileBytes = 100
	x.check("a smaller limit", "+0 ~0 =0 -0; binary bad.bin")
	x.wantDocs("large.md", "mixed.md")

	x.opts.Source.MaxFileBytes = 1
	x.check("smaller than the failed one", "+0 ~0 =0 -0; too_large bad.bin")
	x.wantDocs("large.md", "mixed.md")
}
