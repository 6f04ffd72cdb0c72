package ingest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
)

// TestRealFolders ingests real folders. Every file is either stored, with chunks that match its
// text, or reported, and a second run changes nothing.
func TestRealFolders(t *testing.T) {
	goroot := goRoot(t)
	folders := map[string]string{
		"Go's net/http":      filepath.Join(goroot, "src", "net", "http"),
		"Go's documentation": filepath.Join(goroot, "doc"),
	}
	if data := os.Getenv("ASSAY_TESTDATA"); data != "" {
		folders["documents of many formats"] = filepath.Join(data, "data", "parsing")
	}
	for name, folder := range folders {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name == "Go's net/http" {
				t.Skip("the largest of them")
			}
			if _, err := os.Stat(folder); err != nil {
				t.Skipf("%s is not there: %v", folder, err)
			}
			w, err := openTenant(t, t.TempDir()).Writer(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			opts := Options{Roots: []string{folder}}
			r, err := Run(context.Background(), w, opts)
			if err != nil {
				t.Fatal(err)
			}
			files := filesOf(t, folder)
			if r.Added+len(r.Skipped)+r.Duplicates < files || r.Added == 0 {
				t.Errorf("%d files: %d documents added, %d skipped, %d duplicates", files, r.Added, len(r.Skipped), r.Duplicates)
			}
			reasons := map[source.Reason]int{}
			for _, s := range r.Skipped {
				reasons[s.Reason]++
				if s.Reason == ParserFailed {
					t.Errorf("%s: %s", s.URI, s.Detail)
				}
			}
			languages := map[string]int{}
			for d, err := range w.Documents(context.Background()) {
				if err != nil {
					t.Fatal(err)
				}
				languages[d.Metadata[assay.MetaLanguage].String]++
				if d.Title == "" || d.Metadata[assay.MetaType].String == "" {
					t.Errorf("%s: title %q, type %q", d.URI, d.Title, d.Metadata[assay.MetaType].String)
				}
			}
			t.Logf("%d added, skipped %v, languages %v, %d bytes in %d ms", r.Added, reasons, languages, r.Bytes, r.ElapsedMS)

			again, err := Run(context.Background(), w, opts)
			for i := range again.Skipped {
				again.Skipped[i].Earlier = false
			}
			if err != nil || again.Unchanged != r.Added || again.Sequence != r.Sequence || !slices.Equal(again.Skipped, r.Skipped) {
				t.Errorf("the second run: %d unchanged, %d skipped, sequence %d, %v", again.Unchanged, len(again.Skipped), again.Sequence, err)
			}
		})
	}
}

// goRoot returns this machine's GOROOT, whose documents are available wherever the tests are built.
func goRoot(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("go env GOROOT:", err)
	}
	return strings.TrimSpace(string(out))
}

// BenchmarkIngest reads, parses, chunks and stores Go's net/http. MB/s are of source.
func BenchmarkIngest(b *testing.B) {
	folder := filepath.Join(goRoot(b), "src", "net", "http")
	for b.Loop() {
		tenant := openTenant(b, b.TempDir())
		w, err := tenant.Writer(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		r, err := Run(b.Context(), w, Options{Roots: []string{folder}})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(r.Bytes)
		w.Close()
		tenant.Close()
	}
}

// BenchmarkUnchanged measures a second run over the same folder.
func BenchmarkUnchanged(b *testing.B) {
	folder := filepath.Join(goRoot(b), "src", "net", "http")
	w, err := openTenant(b, b.TempDir()).Writer(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	var r Report
	for range 2 { // files as new as a fresh installation's are read a second time
		if r, err = Run(b.Context(), w, Options{Roots: []string{folder}}); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(r.Bytes)
	for b.Loop() {
		if _, err := Run(b.Context(), w, Options{Roots: []string{folder}}); err != nil {
			b.Fatal(err)
		}
	}
}

// filesOf counts the files that are not hidden.
func filesOf(t *testing.T, folder string) int {
	t.Helper()
	n := 0
	for _, err := range source.Walk(context.Background(), []string{folder}, source.Options{MaxFileBytes: 1 << 40}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
