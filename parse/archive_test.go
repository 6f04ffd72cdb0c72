package parse

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A member is a file of an archive.
type member struct{ name, text string }

func zipOf(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range members {
		w, err := z.Create(m.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(m.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarOf(t testing.TB, headers []tar.Header, texts []string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i, h := range headers {
		h.Size, h.Mode = int64(len(texts[i])), 0o644
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(texts[i])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(t testing.TB, name string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Name = name
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// walked returns what Walk yields: "path: text" or "path! kind".
func walked(t testing.TB, in Input) []string {
	t.Helper()
	var got []string
	if err := Walk(t.Context(), in, func(p Parsed) error {
		if p.Err == nil {
			got = append(got, p.Path+": "+p.Document.Text)
			return nil
		}
		kind := "no kind"
		for _, k := range Kinds() {
			if errors.Is(p.Err, k) {
				kind = k.Error()
			}
		}
		got = append(got, p.Path+"! "+kind)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestArchives(t *testing.T) {
	inner := zipOf(t, member{"deep.txt", "deep text"})
	for _, tt := range []struct {
		name string
		data []byte
		want []string
	}{
		{"a.zip", zipOf(t, member{"b/one.txt", "first text"}, member{"two.md", "# T\n\nsecond"}, member{"b/", ""}, member{".hidden.txt", "x"}, member{"__MACOSX/x.txt", "x"}, member{"inner.zip", string(inner)}, member{"blank.txt", ""}),
			[]string{": ", "b/one.txt: first text", "two.md: T\n\nsecond", "inner.zip: ", "inner.zip!/deep.txt: deep text", "blank.txt! no text"}},
		{"escape.zip", zipOf(t, member{"../../etc/x.txt", "text one"}, member{"/abs.txt", "text two"}, member{"a\\b.txt", "text three"}, member{"c.txt", "text four"}, member{"./c.txt", "text five"}),
			[]string{": ", "etc/x.txt: text one", "abs.txt: text two", "a/b.txt: text three", "c.txt: text four", "c (2).txt: text five"}},
		{"empty.zip", zipOf(t), []string{"! no text"}},
		{"a.tar", tarOf(t, []tar.Header{{Name: "d/", Typeflag: tar.TypeDir}, {Name: "d/one.txt"}, {Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, {Name: "hard", Typeflag: tar.TypeLink, Linkname: "d/one.txt"}, {Name: "dev", Typeflag: tar.TypeChar}}, []string{"", "first text", "", "", ""}),
			[]string{": ", "d/one.txt: first text", "link! not a readable text", "hard! not a readable text", "dev! not a readable text"}},
		{"a.tgz", gzipOf(t, "", tarOf(t, []tar.Header{{Name: "one.txt"}, {Name: "two.txt"}}, []string{"first text", "second text"})), []string{": ", "one.txt: first text", "two.txt: second text"}},
		{"log.txt.gz", gzipOf(t, "", []byte("one text")), []string{": ", "log.txt: one text"}},
		{"x.gz", gzipOf(t, "name.md", []byte("# One")), []string{": ", "name.md: One"}},
		{"cut.tgz", gzipOf(t, "", tarOf(t, []tar.Header{{Name: "one.txt"}, {Name: "two.txt"}}, []string{"first text", "second text"}))[:100], []string{"! damaged"}},
		{"cut.tar", tarOf(t, []tar.Header{{Name: "one.txt"}, {Name: "two.txt"}}, []string{"first text", strings.Repeat("second text ", 500)})[:3000], []string{": ", "one.txt: first text", "two.txt! damaged", "rest of the archive! damaged"}},
		{"cut.zip", inner[:len(inner)-10], []string{"! damaged"}},
		{"docx.zip", zipOf(t, member{"[Content_Types].xml", "<Types/>"}), []string{"! not a readable text"}},
	} {
		if got := walked(t, Input{Name: tt.name, Data: tt.data}); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestBombs checks that small files that unpack to much data are over a limit.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("makes large files")
	}
	t.Parallel()
	zeros := strings.Repeat("0 ", 65<<19)
	got := walked(t, Input{Name: "a.zip", Data: zipOf(t, member{"bomb.txt", zeros}, member{"ok.txt", "some text"})})
	if want := []string{": ", "bomb.txt! over a limit", "ok.txt: some text"}; !slices.Equal(got, want) {
		t.Errorf("a large file: %q", got)
	}
	// Many files share the data of one, as in "A better zip bomb" (Fifield, 2019).
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	first, err := z.Create("a.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Write([]byte(zeros)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	one := b.Bytes()
	end := bytes.LastIndex(one, []byte("PK\x05\x06"))
	start := bytes.LastIndex(one, []byte("PK\x01\x02"))
	overlapping := slices.Concat(one[:start], bytes.Repeat(one[start:end], 100), one[end:])
	at := len(overlapping) - 22
	overlapping[at+8], overlapping[at+10] = 100, 100
	size := 100 * (end - start)
	overlapping[at+12], overlapping[at+13] = byte(size), byte(size>>8)
	if got := walked(t, Input{Name: "a.zip", Data: overlapping}); !slices.Equal(got, []string{"! over a limit"}) {
		t.Errorf("overlapping files: %.200q", got)
	}
	if got := walked(t, Input{Name: "a.gz", Data: gzipOf(t, "", []byte(strings.Repeat("0 ", 65<<20)))}); !slices.Equal(got, []string{"! over a limit"}) {
		t.Errorf("a large gzip file: %.200q", got)
	}
	nested := zipOf(t, member{"a.txt", "text"})
	for i := range 12 {
		nested = zipOf(t, member{fmt.Sprintf("%d.zip", i), string(nested)})
	}
	got = walked(t, Input{Name: "a.zip", Data: nested})
	if last := got[len(got)-1]; len(got) != maxDepth+2 || !strings.HasSuffix(last, "! over a limit") {
		t.Errorf("nested archives: %q", got)
	}
}

// Test7z reads archives that py7zr 1.0 has made, with the password "secret".
func Test7z(t *testing.T) {
	t.Parallel()
	files := []string{": ", "notes/one.md: One\n\nfirst text", "two.csv: name | value\nname: rent; value: 5"}
	for _, tt := range []struct {
		name      string
		passwords []string
		want      []string
	}{
		{"archive.7z", nil, files},
		{"encrypted.7z", nil, []string{"! password required"}},
		{"encrypted.7z", []string{"wrong"}, []string{"! password required"}},
		{"encrypted.7z", []string{"wrong", "secret"}, files},
		{"encrypted-names.7z", nil, []string{"! password required"}},
		{"encrypted-names.7z", []string{"wrong", "secret"}, files},
	} {
		data, err := os.ReadFile(filepath.Join("testdata", tt.name))
		if err != nil {
			t.Fatal(err)
		}
		if got := walked(t, Input{Name: tt.name, Data: data, Passwords: tt.passwords}); !slices.Equal(got, tt.want) {
			t.Errorf("%s with %q: %q, want %q", tt.name, tt.passwords, got, tt.want)
		}
	}
}

func FuzzArchive(f *testing.F) {
	f.Add(zipOf(f, member{"a.txt", "text"}, member{"b/c.md", "# T"}))
	f.Add(tarOf(f, []tar.Header{{Name: "one.txt"}, {Name: "two.txt"}}, []string{"first text", "second text"}))
	f.Add(gzipOf(f, "a.txt", []byte("text")))
	f.Add([]byte("7z\xbc\xaf\x27\x1c\x00\x04"))
	f.Add([]byte("BZh91AY&SY"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, line := range walked(t, Input{Name: "a", Data: data}) {
			if strings.HasSuffix(line, "! no kind") || strings.HasSuffix(line, "! "+ErrCrash.Error()) {
				t.Error(line)
			}
		}
	})
}
