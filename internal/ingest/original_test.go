package ingest

import (
	"archive/zip"
	"bytes"
	"errors"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pdftest"
	"github.com/assay-rag/assay/store"
)

// TestOriginals checks that PDF files are stored with their documents, also those in archives, and that
// other files are not.
func TestOriginals(t *testing.T) { eachStore(t, testOriginals) }

func testOriginals(t *testing.T, w store.Writer) {
	var f pdftest.File
	f.Page(200, 100).Text(20, 50, 12, false, "one page")
	file := string(f.Bytes())
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, text := range map[string]string{"in.pdf": file, "in.md": "# In\n\nan archive"} {
		part, err := z.Create(name)
		if err == nil {
			_, err = part.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	x := newWorldIn(t, w, map[string]string{"a.pdf": file, "b.md": "# B\n\ntext", "c.zip": archive.String()})
	want := func(step string) {
		t.Helper()
		for name, original := range map[string]string{"a.pdf": file, "b.md": "", "c.zip!/in.pdf": file, "c.zip!/in.md": ""} {
			d := x.document(name)
			o, err := w.Original(t.Context(), d.ID, d.Version)
			if original == "" && !errors.Is(err, assay.ErrNotFound) || original != "" && (err != nil || string(o.Data) != original || o.Media != "application/pdf") {
				t.Errorf("%s: %s: %d bytes of %q, %v", step, name, len(o.Data), o.Media, err)
			}
		}
	}
	x.check("first", "+4 ~0 =0 -0")
	want("first")
	x.write(map[string]string{"a.pdf.metadata.json": `{"acl":["group:legal"]}`})
	x.check("closed", "+0 ~1 =3 -0")
	want("closed")
	x.opts.Verify = true
	x.check("verified", "+0 ~0 =4 -0")
	want("verified")
}
