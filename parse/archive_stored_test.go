package parse_test

import (
	"archive/zip"
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/assay-rag/assay/parse"
)

// TestStoredOfficeInZIP checks that an archive is one although the bytes or the names of its files
// look like those of an Office document.
func TestStoredOfficeInZIP(t *testing.T) {
	inner := zipStored(t, map[string]string{"word/document.xml": "<w:document>The report.</w:document>", "note.md": "# Note\n\nThe key is behind the boiler.\n"})
	data := zipStored(t, map[string]string{"inner.zip": string(inner), "xl/top.md": "# Top\n\nThe telescope is on the roof.\n"})
	var texts []string
	err := parse.Walk(context.Background(), parse.Input{Name: "outer.zip", Data: data}, func(p parse.Parsed) error {
		if p.Err == nil && p.Document.Text != "" {
			texts = append(texts, p.Path)
		}
		return nil
	})
	want := []string{"inner.zip!/note.md", "inner.zip!/word/document.xml", "xl/top.md"}
	if slices.Sort(texts); err != nil || !slices.Equal(texts, want) {
		t.Errorf("documents %q, %v; want %q", texts, err, want)
	}
}

// zipStored returns an archive of files that are not compressed.
func zipStored(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = w.Write([]byte(files[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
