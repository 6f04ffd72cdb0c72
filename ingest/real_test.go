package ingest

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
)

// TestRealFolders ingests what people really have: every file is either stored,
// with chunks that are of its text, or reported, and a second run changes
// nothing.
func TestRealFolders(t *testing.T) {
	goroot := runtime.GOROOT()
	folders := map[string]string{
		"Go's net/http":      filepath.Join(goroot, "src", "net", "http"),
		"Go's documentation": filepath.Join(goroot, "doc"),
	}
	if data := os.Getenv("ASSAY_TESTDATA"); data != "" {
		folders["documents of many formats"] = filepath.Join(data, "data", "parsing")
	}
	for name, folder := range folders {
		t.Run(name, func(t *testing.T) {
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
			if r.Added+len(r.Skipped) != files || r.Added == 0 {
				t.Errorf("%d files: %d added, %d skipped", files, r.Added, len(r.Skipped))
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
			if err != nil || again.Unchanged != r.Added || again.Sequence != r.Sequence || !slices.Equal(again.Skipped, r.Skipped) {
				t.Errorf("the second run: %+v, %v", again, err)
			}
		})
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
