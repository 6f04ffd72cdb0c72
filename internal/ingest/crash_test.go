package ingest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/chunk"
	"github.com/assay-rag/assay/internal/index"
	"github.com/assay-rag/assay/internal/ramdisk"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
	"github.com/assay-rag/assay/store/sqlite"
)

// childFolder and childData are the environment variables that make this test binary act as the
// ingesting process to be killed.
const (
	childFolder = "ASSAY_INGEST_CHILD_FOLDER"
	childData   = "ASSAY_INGEST_CHILD_DATA"
)

func TestMain(m *testing.M) {
	ramdisk.Use()
	if folder := os.Getenv(childFolder); folder != "" {
		if err := ingestAsChild(folder, os.Getenv(childData)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if data := os.Getenv(childEmbed); data != "" {
		if err := embedAsChild(data); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if folder := os.Getenv(childSync); folder != "" {
		if err := syncAsChild(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// openChildStore opens a store for writing.
func openChildStore(ctx context.Context, dir string) (store.Writer, func(), error) {
	s, err := sqlite.Open(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	tenant, err := s.Tenant(ctx, "default")
	if err != nil {
		return nil, nil, err
	}
	w, err := tenant.Writer(ctx)
	return w, func() { w.Close(); tenant.Close() }, err
}

// ingestAsChild writes a line to standard output for each acknowledged document, and flushes the
// index now and then.
func ingestAsChild(folder, data string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, data)
	if err != nil {
		return err
	}
	tenant, err := s.Tenant(ctx, "default")
	if err != nil {
		return err
	}
	defer tenant.Close()
	w, err := tenant.Writer(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	idx, err := index.Open(ctx, tenant.IndexDir(), w)
	if err != nil {
		return err
	}
	defer idx.Close()
	commits := 0
	var flushErr error
	_, err = Run(ctx, w, Options{Roots: []string{folder}, Walk: boxWalk, Progress: func(p Progress) {
		if len(p.Committed) == 0 {
			return
		}
		os.Stdout.WriteString(strings.Join(p.Committed, "\n") + "\n")
		if commits++; commits%2 == 0 {
			if _, err := idx.Search(ctx, assay.Local().Access(), assay.Query{Text: "word", Limit: 1}); err != nil {
				flushErr = errors.Join(flushErr, err)
			}
			flushErr = errors.Join(flushErr, idx.Flush(ctx))
		}
	}})
	return errors.Join(err, flushErr)
}

// A crashWorld is a folder that changes from round to round, and a store whose writer is killed.
type crashWorld struct {
	t       *testing.T
	rng     *rand.Rand
	folder  string
	data    string
	now     map[string]string          // URI → content
	ever    map[string]map[string]bool // URI → all contents it has had
	names   int
	vocab   []string
	pending map[string]bool // URIs acknowledged since the folder last changed

	parsed map[string]map[string]parse.Document // URI and content of a file → its documents, by URI
}

// TestKillDuringIngest kills the ingesting process at random moments. After each kill, acknowledged
// documents are stored completely and once, any other stored document is complete, and the index
// answers like a newly built one.
func TestKillDuringIngest(t *testing.T) {
	rounds := 12 // kills between the first and the last document that a process stores
	if testing.Short() {
		rounds = 2
	}
	if os.Getenv("ASSAY_LONG") != "" {
		rounds = 200
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	x := &crashWorld{t: t, rng: rand.New(rand.NewPCG(seed, 1)), folder: t.TempDir(), data: t.TempDir(),
		now: map[string]string{}, ever: map[string]map[string]bool{}, pending: map[string]bool{}, parsed: map[string]map[string]parse.Document{}}
	x.vocab = strings.Fields("server shutdown request timeout header cookie index ledger claim orbit quartz maple river copper")
	x.change(240)
	killed, midway := 0, 0
	longest := 300 * time.Millisecond
	const most = 200 // of kills, because each round checks everything left by the earlier ones
	for midway < rounds && killed < most {
		began, before := time.Now(), len(x.pending)
		ended := x.ingestAndKill(time.Duration(x.rng.Int64N(int64(longest))))
		took := time.Since(began)
		x.check()
		if ended {
			longest = took
			x.checkComplete()
			x.change(100)
			continue
		}
		killed++
		if len(x.pending) > before {
			midway++
		} else { // perhaps the process takes that long to start
			longest += longest / 8
		}
	}
	t.Logf("%d killed, %d of them after the first and before the last document", killed, midway)
	x.ingestAndKill(time.Hour)
	x.check()
	x.checkComplete()
}

// change writes, rewrites and removes n files.
func (x *crashWorld) change(n int) {
	x.t.Helper()
	x.pending = map[string]bool{}
	for range n {
		i := x.names
		x.names++
		if x.names > 280 { // mostly reuse an existing name
			i = x.rng.IntN(280)
		}
		name := fmt.Sprintf("%d/%04d.md", i%7, i)
		if i%70 == 0 {
			name = fmt.Sprintf("%d/%04d.box", i%7, i)
		}
		path := filepath.Join(x.folder, name)
		uri := source.URI(path)
		if _, ok := x.now[uri]; ok && x.rng.IntN(4) == 0 {
			delete(x.now, uri)
			if err := os.Remove(path); err != nil {
				x.t.Fatal(err)
			}
			continue
		}
		content := x.text(name)
		if strings.HasSuffix(name, ".box") {
			content = x.box(name)
		}
		x.write(path, uri, content)
	}
}

func (x *crashWorld) write(path, uri, content string) {
	x.t.Helper()
	x.now[uri] = content
	if x.ever[uri] == nil {
		x.ever[uri] = map[string]bool{}
	}
	x.ever[uri][content] = true
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		x.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		x.t.Fatal(err)
	}
}

func (x *crashWorld) text(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Document %s\n", name)
	for section := range 1 + x.rng.IntN(8) {
		fmt.Fprintf(&b, "\n## Section %d\n\n", section)
		for range 20 + x.rng.IntN(150) {
			b.WriteString(x.vocab[x.rng.IntN(len(x.vocab))] + " ")
		}
		b.WriteString("word.\n")
	}
	return b.String()
}

// box returns a container, often of more documents than a transaction holds.
func (x *crashWorld) box(name string) string {
	var parts []string
	for i := range 1 + x.rng.IntN(2*batchDocuments) {
		word := x.vocab[x.rng.IntN(len(x.vocab))]
		parts = append(parts, fmt.Sprintf("%03d.md", i), fmt.Sprintf("# %s, part %d\n\nA %s word.\n", name, i, word))
	}
	return box(parts...)
}

// documents returns the documents of a file with the given content, by URI.
func (x *crashWorld) documents(uri, content string) map[string]parse.Document {
	x.t.Helper()
	docs := x.parsed[uri+content]
	if docs != nil {
		return docs
	}
	docs = map[string]parse.Document{}
	err := boxWalk(x.t.Context(), parse.Input{Name: filepath.Base(uri), Data: []byte(content)}, func(p parse.Parsed) error {
		switch {
		case p.Path != "":
			docs[uri+assay.PartSeparator+p.Path] = p.Document
		case p.Document.Text != "":
			docs[uri] = p.Document
		}
		return p.Err
	})
	if err != nil {
		x.t.Fatal(err)
	}
	x.parsed[uri+content] = docs
	return docs
}

// current returns the documents that the folder has now, by URI.
func (x *crashWorld) current() map[string]bool {
	all := map[string]bool{}
	for uri, content := range x.now {
		for doc := range x.documents(uri, content) {
			all[doc] = true
		}
	}
	return all
}

// ingestAndKill runs the child for at most after and collects the URIs that it acknowledges. It
// reports whether the child exited by itself.
func (x *crashWorld) ingestAndKill(after time.Duration) (ended bool) {
	x.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childFolder+"="+x.folder, childData+"="+x.data)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		x.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if err != io.EOF {
				x.t.Fatal(err)
			}
			break // a line without an end was cut off
		}
		x.pending[strings.TrimSuffix(line, "\n")] = true
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() < 0 {
		return false
	}
	if err != nil {
		x.t.Fatalf("child: %v\n%s", err, stderr.String())
	}
	return true
}

// check checks the contents of the store and the index.
func (x *crashWorld) check() {
	x.t.Helper()
	tenant := x.open()
	defer tenant.Close()
	content := tenant.Content()
	there := map[string]bool{}
	for c, err := range content.Changes(x.t.Context(), 0) {
		if err != nil {
			x.t.Fatal(err)
		}
		if c.Deleted {
			continue
		}
		if uri := c.Document.URI; there[uri] {
			x.t.Errorf("%s is there twice", uri)
		}
		there[c.Document.URI] = true
		x.checkWhole(c)
	}
	current := x.current()
	for uri := range x.pending {
		if want := current[uri]; there[uri] != want {
			x.t.Errorf("%s was acknowledged; there: %v, want %v", uri, there[uri], want)
		}
	}
	x.checkIndex(tenant)
}

func (x *crashWorld) open() store.Tenant {
	x.t.Helper()
	s, err := sqlite.Open(context.Background(), x.data)
	if err != nil {
		x.t.Fatal(err)
	}
	tenant, err := s.Tenant(context.Background(), "default")
	if err != nil {
		x.t.Fatal(err)
	}
	return tenant
}

// checkWhole compares a stored document with the result of parsing its source.
func (x *crashWorld) checkWhole(c assay.Change) {
	x.t.Helper()
	d := *c.Document
	file := d.SourceURI()
	for content := range x.ever[file] {
		if x.pending[d.URI] && content != x.now[file] {
			continue
		}
		parsed, ok := x.documents(file, content)[d.URI]
		if !ok || parsed.Text != d.Text {
			continue
		}
		if want := assay.DocumentVersion(d.Text, d.Metadata, pipelineVersion(chunk.Options{}, parse.Version)); d.Version != want {
			x.t.Errorf("%s: version %s, want %s", d.URI, d.Version, want)
		}
		chunks, err := chunk.Split(x.t.Context(), parsed, d.ID, d.Version, chunk.Options{})
		if err != nil {
			x.t.Fatal(err)
		}
		if diff := cmp.Diff(chunks, c.Chunks); diff != "" {
			x.t.Errorf("%s: chunks (-want +got):\n%s", d.URI, diff)
		}
		return
	}
	x.t.Errorf("%s (acknowledged: %v) has a text that it should not have", d.URI, x.pending[d.URI])
}

// checkIndex compares the existing index with a newly built one.
func (x *crashWorld) checkIndex(tenant store.Tenant) {
	x.t.Helper()
	ctx := x.t.Context()
	there, err := index.Open(ctx, tenant.IndexDir(), tenant.Content())
	if err != nil {
		x.t.Fatal(err)
	}
	defer there.Close()
	fresh, err := index.Open(ctx, filepath.Join(x.t.TempDir(), "index"), tenant.Content())
	if err != nil {
		x.t.Fatal(err)
	}
	defer fresh.Close()
	for i := range x.vocab {
		q := assay.Query{Text: x.vocab[i] + " " + x.vocab[(i+3)%len(x.vocab)], Limit: 20}
		got, err := there.Search(ctx, assay.Local().Access(), q)
		if err != nil {
			x.t.Fatal(err)
		}
		want, err := fresh.Search(ctx, assay.Local().Access(), q)
		if err != nil {
			x.t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			x.t.Errorf("%q (index lost: %v) (-fresh +there):\n%s", q.Text, there.Lost(), diff)
			return
		}
	}
}

// checkComplete compares the store with the folder after an ingest that was not killed.
func (x *crashWorld) checkComplete() {
	x.t.Helper()
	tenant := x.open()
	defer tenant.Close()
	w, err := tenant.Writer(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	defer w.Close()
	got := map[string]bool{}
	for d, err := range w.Documents(x.t.Context()) {
		if err != nil {
			x.t.Fatal(err)
		}
		got[d.URI] = true
	}
	want := x.current()
	if diff := cmp.Diff(want, got); diff != "" {
		x.t.Errorf("documents after a whole run (-want +got):\n%s", diff)
	}
	r, err := Run(x.t.Context(), w, Options{Roots: []string{x.folder}, Walk: boxWalk})
	if err != nil || r.Unchanged != len(want) || r.Added+r.Updated+r.Removed+len(r.Skipped) != 0 {
		x.t.Errorf("another run after a whole one: %+v, %v", r, err)
	}
}

var _ store.Writer = (*memory)(nil)
