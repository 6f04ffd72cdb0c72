package server

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-rag/assay/engine"
)

// TestRealDocuments uploads real documents of several formats and reads them back.
func TestRealDocuments(t *testing.T) {
	t.Parallel()
	root := os.Getenv("ASSAY_TESTDATA")
	if root == "" {
		t.Skip("ASSAY_TESTDATA is not set")
	}
	const most = 256 << 10
	w := newSite(t)
	stored := 0
	for _, format := range []string{"docx", "html", "md", "odf", "pdf", "pptx", "xlsx", "epub"} {
		files, err := filepath.Glob(filepath.Join(root, "data", "parsing", format, "sources", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil || len(data) > most {
				continue
			}
			name := filepath.Base(file)
			r := w.do("ann", "PUT", "/api/v1/collections/real/documents/"+url.PathEscape(name), string(data), header{"Content-Type", "application/octet-stream"})
			if r.StatusCode == http.StatusUnprocessableEntity {
				checkBody(t, name, r) // some are damaged by intention
				continue
			}
			if r.StatusCode != http.StatusCreated {
				t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
				continue
			}
			path := r.Header.Get("Location")
			view := want[engine.DocumentView](w, "rob", "GET", path, "", http.StatusOK)
			if text := w.do("rob", "GET", path+"/text", ""); text.body != view.Text || view.Text == "" {
				t.Errorf("%s: its text is %.80q, and its view has %.80q", name, text.body, view.Text)
			}
			stored++
			break // one of each format
		}
	}
	if stored < 4 {
		t.Errorf("%d documents are stored, want 4 or more", stored)
	}
}
