//go:build unix

package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/pdftest"
)

// TestDamagedFolder ingests a folder of good and damaged files. The good ones must be stored with
// all their words, and each damaged one must be stored or listed with a reason.
func TestDamagedFolder(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	formats := []struct{ ext, text string }{
		{"md", "# Title %d\n\nThe marmalade%d word is here.\n\n| a | b |\n| - | - |\n| 1 | 2 |\n"},
		{"html", "<html><body><h1>Title %d</h1><p>The marmalade%d word is here.</p><table><tr><td>1<td>2</table></body></html>"},
		{"csv", "name,value\ntitle,%d\nthe,marmalade%d\nlast,row\n"},
		{"json", `{"title": "Title %d", "text": "The marmalade%d word is here."}`},
		{"eml", "From: a@b.c\nTo: d@e.f\nSubject: Title %d\n\nThe marmalade%d word is here.\n"},
		{"txt", "Title %d\n\nThe marmalade%d word is here.\n"},
	}
	words := func(i int) string { return fmt.Sprintf("The marmalade%d word is here.", i) }
	binary := []struct {
		ext  string
		make func(text string) []byte
	}{
		{"pdf", pdfOf},
		{"docx", func(text string) []byte {
			return zipOf(t, "[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`, "_rels/.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`, "word/document.xml", `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>`+text+`</w:t></w:r></w:p></w:body></w:document>`)
		}},
		{"odt", func(text string) []byte {
			return zipOf(t, "mimetype", "application/vnd.oasis.opendocument.text", "content.xml", `<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:text><text:p>`+text+`</text:p></office:text></office:body></office:document-content>`)
		}},
		{"rtf", func(text string) []byte { return []byte(`{\rtf1\ansi\pard ` + text + `\par}`) }},
		{"zip", func(text string) []byte { return zipOf(t, "inner.txt", text) }},
	}
	random := rand.New(rand.NewPCG(1, 2))
	var good, damaged []string
	for i := range 12 {
		f := formats[i%len(formats)]
		name := fmt.Sprintf("mixed/good%d.%s", i, f.ext)
		s.write(name, fmt.Sprintf(f.text, i, i))
		good = append(good, name)
	}
	for i := range 60 {
		f := formats[i%len(formats)]
		name := fmt.Sprintf("mixed/bad%d.%s", i, f.ext)
		data := []byte(fmt.Sprintf(f.text, i, 1000+i))
		switch i / len(formats) % 4 {
		case 0:
			data = data[:random.IntN(len(data))]
		case 1:
			for range 10 {
				data[random.IntN(len(data))] = byte(random.IntN(256))
			}
		case 2:
			data = append([]byte("PK\x03\x04\x00\x00"), data...)
		case 3:
			data = []byte(strings.Repeat("[{<div>> - ", 20_000))
		}
		s.write(name, string(data))
		damaged = append(damaged, name)
	}
	for i, f := range binary {
		name := fmt.Sprintf("mixed/good%d.%s", len(good), f.ext)
		data := f.make(words(len(good)))
		s.write(name, string(data))
		good = append(good, name)
		for k := range 4 {
			bad := f.make(words(2000 + 10*i + k))
			if k%2 == 0 {
				bad = bad[:len(bad)*(k+1)/5]
			} else {
				for range 20 {
					bad[random.IntN(len(bad))] = byte(random.IntN(256))
				}
			}
			name := fmt.Sprintf("mixed/bad%d.%s", len(damaged), f.ext)
			s.write(name, string(bad))
			damaged = append(damaged, name)
		}
	}
	var report engine.IngestReport
	s.decode(&report, "ingest", "--json", "mixed")
	var listed []engine.DocumentSummary
	s.decode(&listed, "documents", "--json")
	has := func(name string) bool {
		for _, d := range listed {
			for _, uri := range append([]string{d.URI}, d.Aliases...) { // identical files are one document
				if path := filepath.ToSlash(uri); strings.HasSuffix(path, "/"+name) || strings.Contains(path, "/"+name+"!/") {
					return true
				}
			}
		}
		return false
	}
	for _, name := range good {
		if !has(name) {
			t.Errorf("%s is not stored", name)
			for _, k := range report.Skipped {
				if strings.Contains(k.URI, name) {
					t.Error(k)
				}
			}
		}
	}
	for _, name := range damaged {
		skipped := false
		for _, k := range report.Skipped {
			skipped = skipped || strings.Contains(k.URI, "/"+name) && k.Detail != ""
		}
		if !skipped && !has(name) {
			t.Errorf("%s has no outcome", name)
		}
	}
	for i, name := range good {
		if i < 12 && i%4 != 0 || i%2 == 1 {
			continue
		}
		out, err := s.command("search", fmt.Sprintf("marmalade%d", i), "--json").Output()
		if err != nil || !strings.Contains(string(out), filepath.Base(name)) {
			t.Errorf("the words of %s are not found: %v\n%s", name, err, out)
		}
	}
	t.Logf("%d documents, %d skipped", len(listed), len(report.Skipped))
}

func pdfOf(words string) []byte {
	var f pdftest.File
	f.Page(595, 842).Text(72, 72, 12, false, words)
	return f.Bytes()
}

// zipOf returns a ZIP archive of names and texts.
func zipOf(t *testing.T, members ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		method := zip.Deflate
		if members[i] == "mimetype" {
			method = zip.Store
		}
		out, err := w.CreateHeader(&zip.FileHeader{Name: members[i], Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(out, members[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// decode runs the binary and reads the JSON that it prints.
func (s *sandbox) decode(v any, args ...string) {
	s.t.Helper()
	out, err := s.command(args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		s.t.Fatalf("assay %s: %v\n%s", strings.Join(args, " "), err, exit.Stderr)
	}
	if err := errors.Join(err, json.Unmarshal(out, v)); err != nil {
		s.t.Fatalf("assay %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
