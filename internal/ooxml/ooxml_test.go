package ooxml

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf16"
)

// pack returns a package of parts.
func pack(t testing.TB, parts ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for i := 0; i < len(parts); i += 2 {
		w, err := z.Create(parts[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(parts[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

const testTypes = `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="XML" ContentType="a/xml"/><Override PartName="/Word/Document.xml" ContentType="a/doc"/></Types>`

func open(t testing.TB, parts ...string) *Package {
	t.Helper()
	p, err := Open(context.Background(), pack(t, append([]string{"[Content_Types].xml", testTypes}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPackage(t *testing.T) {
	p := open(t, `word\document.xml`, "<a/>", "word/_rels/document.xml.rels",
		`<Relationships><Relationship Id="r1" Type="http://x/styles" Target="../other.xml"/><Relationship Id="r2" Type="http://x/image" Target="http://host/" TargetMode="External"/><Relationship Id="r3" Type="http://x/styles" Target="/missing.xml"/></Relationships>`,
		"Other.xml", "<b/>")
	if !p.Has("/WORD/document.xml") || p.Type("word/document.xml") != "a/doc" || p.Type("other.xml") != "a/xml" || p.Size("other.xml") != 4 {
		t.Error("names, types or sizes are wrong")
	}
	rels, err := p.Relationships("word/document.xml")
	if err != nil || len(rels) != 3 {
		t.Fatalf("%v %v", rels, err)
	}
	if r, ok := p.ID(rels, "r1"); !ok || r.Target != "other.xml" || r.Type != "styles" {
		t.Errorf("%+v %v", r, ok)
	}
	for _, id := range []string{"r2", "r3", "r4"} {
		if _, ok := p.ID(rels, id); ok {
			t.Errorf("%s is found", id)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	tests := []struct {
		data []byte
		kind error
	}{
		{[]byte("PK\x03\x04 [Content_Types].xml"), ErrDamaged},
		{pack(t, "a.txt", "x"), ErrNotPackage},
		{pack(t, "[Content_Types].xml", "<Types/>", "a", "x", "A", "y"), ErrDamaged},
		{pack(t, "[Content_Types].xml", "<Types>"), ErrDamaged},
	}
	for i, tt := range tests {
		if _, err := Open(context.Background(), tt.data); !errors.Is(err, tt.kind) {
			t.Errorf("%d: %v, want %v", i, err, tt.kind)
		}
	}
}

func TestTree(t *testing.T) {
	text := `<?xml version="1.0"?><z:p xmlns:z="http://schemas.openxmlformats.org/wordprocessingml/2006/main" z:val="1" val="2"> <z:t> a<!-- b -->c </z:t> </z:p>`
	encoded := []byte("\xff\xfe")
	for _, u := range utf16.Encode([]rune(strings.Replace(text, `"1.0"`, `"1.0" encoding="UTF-16"`, 1))) {
		encoded = append(encoded, byte(u), byte(u>>8))
	}
	p := open(t, "a.xml", text, "b.xml", string(encoded))
	for _, name := range []string{"a.xml", "b.xml"} {
		n, err := p.Tree(name)
		if err != nil {
			t.Fatal(err)
		}
		if n.Name != "w:p" || n.Attr("w:val") != "1" || n.Attr("val") != "2" || n.Text != "" || n.Child("w:t").String() != " ac " {
			t.Errorf("%s: %+v", name, n)
		}
	}
}

func TestLimits(t *testing.T) {
	tests := []struct {
		name, text string
		kind       error
	}{
		{"depth", strings.Repeat("<a>", maxDepth+1), ErrLimit},
		{"tag", `<a b="` + strings.Repeat(">", maxTag+1) + `"/>`, ErrLimit},
		{"attributes", "<a " + strings.Repeat(`b="" `, maxAttrs+1) + "/>", ErrLimit},
		{"size", "<a>" + strings.Repeat("x", MaxPart) + "</a>", ErrLimit},
		{"entity", "<a>&b;</a>", ErrDamaged},
		{"declaration", `<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>`, ErrDamaged},
		{"truncated", "<a><b>", ErrDamaged},
		{"rest", "<a></a><b", ErrDamaged},
		{"empty", "", ErrDamaged},
		{"encoding", `<?xml version="1.0" encoding="none"?><a/>`, ErrDamaged},
	}
	for _, tt := range tests {
		if _, err := open(t, "a.xml", tt.text).Tree("a.xml"); !errors.Is(err, tt.kind) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.kind)
		}
	}
}

// TestRatio stops at a part that expands too much, though no single limit is reached.
func TestRatio(t *testing.T) {
	p := open(t, "a.xml", strings.Repeat("\x00", 256<<20))
	r, err := p.Open("a.xml", 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p, err := Open(ctx, pack(t, "[Content_Types].xml", testTypes, "a.xml", "<a/>"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := p.Tree("a.xml"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func FuzzTree(f *testing.F) {
	f.Add("<a b='c'>d<e/></a>")
	f.Add("\xff\xfe<\x00a\x00/\x00>\x00")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := open(t, "a.xml", text).Tree("a.xml")
		if err == nil && n.Name == "" {
			t.Error("a root without a name")
		}
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrLimit) {
			t.Errorf("error of no kind: %v", err)
		}
	})
}
