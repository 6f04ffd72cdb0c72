package ingest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

func (x *world) wantSources(want ...string) {
	x.t.Helper()
	if d := cmp.Diff(append([]string(nil), want...), x.sources()); d != "" {
		x.t.Errorf("sources (-want +got):\n%s", d)
	}
}

func TestDuplicates(t *testing.T) { eachStore(t, testDuplicates) }

func testDuplicates(t *testing.T, w store.Writer) {
	text := "# Same\n\nthe same text"
	x := newWorldIn(t, w, map[string]string{"b/x.md": text, "c/y.md": text, "d.md": "# D\n\nother", "e.txt": text})
	x.check("first", "+3 ~0 =0 -0 dup 1")
	x.wantDocs("b/x.md", "d.md", "e.txt")
	x.wantSources("b/x.md", "c/y.md = b/x.md", "d.md", "e.txt")
	x.check("again", "+0 ~0 =3 -0 dup 1")
	x.wantParsed(0)
	version := x.document("b/x.md").Version

	// An earlier name becomes the document's.
	x.write(map[string]string{"a.md": text})
	x.check("an earlier one", "+0 ~0 =3 -0 dup 2")
	x.wantParsed(0)
	x.wantDocs("a.md", "d.md", "e.txt")
	x.wantSources("a.md", "b/x.md = a.md", "c/y.md = a.md", "d.md", "e.txt")

	// The document lives on under the next name, with the metadata that it would have by itself.
	x.write(map[string]string{"a.md": "-"})
	x.check("gone", "+0 ~0 =3 -0 dup 1")
	x.wantParsed(0)
	x.wantDocs("b/x.md", "d.md", "e.txt")
	if d := x.document("b/x.md"); d.Version != version || d.Metadata[assay.MetaPath].Text() != "b, x.md" {
		t.Errorf("the document came back as version %s, want %s, path %s", d.Version, version, d.Metadata[assay.MetaPath].Text())
	}
	x.write(map[string]string{"b/x.md": "# Changed\n\nnow"})
	x.check("changed", "+0 ~1 =3 -0")
	x.wantDocs("b/x.md", "c/y.md", "d.md", "e.txt")

	// Other access, other documents.
	x.write(map[string]string{"b/x.md": text})
	x.check("the same again", "+0 ~0 =3 -0 dup 1")
	x.write(map[string]string{"b/x.md.metadata.json": `{"acl":["user:u"]}`})
	x.check("closed", "+0 ~1 =3 -0")
	x.wantParsed(0)
	x.wantDocs("b/x.md user:u", "c/y.md", "d.md", "e.txt")
	x.write(map[string]string{"c/y.md.metadata.json": `{"acl":["user:u"]}`})
	x.check("both", "+0 ~1 =3 -0 dup 1")
	x.wantDocs("b/x.md user:u", "d.md", "e.txt")
	x.write(map[string]string{"b/x.md.metadata.json": `{"acl":`})
	x.check("a broken sidecar", "+0 ~0 =3 -0; bad_sidecar b/x.md")
	x.wantDocs("c/y.md user:u", "d.md", "e.txt")
	x.write(map[string]string{"c": "-", "b": "-"})
	x.check("all gone", "+0 ~0 =2 -1")
}

// TestDuplicateContainers checks that files with documents inside share those too.
func TestDuplicateContainers(t *testing.T) {
	mail := "mail text\n" + box("p.md", "# P\n\npart", "bad", "\x00\x00")
	x := newBoxes(t, newMemory(), map[string]string{"b.mail": mail, "c.mail": mail})
	x.check("first", "+2 ~0 =0 -0 dup 1; binary b.mail!/bad")
	x.wantDocs("b.mail", "b.mail!/p.md")
	x.wantParsed(1)
	x.write(map[string]string{"b.mail": "-"})
	x.check("gone", "+0 ~0 =2 -0; binary c.mail!/bad")
	x.wantDocs("c.mail", "c.mail!/p.md")
	if d := x.document("c.mail!/p.md"); d.Container != source.URI(x.dir)+"/c.mail" || d.Metadata[assay.MetaContainer].String != d.Container {
		t.Errorf("the part is in %q, %q", d.Container, d.Metadata[assay.MetaContainer].String)
	}
}

// TestDuplicateOfFailure checks that each of two files that cannot be parsed is reported.
func TestDuplicateOfFailure(t *testing.T) {
	x := newWorld(t, map[string]string{"a.dat": "\x00\x01\x00", "b.dat": "\x00\x01\x00", "c.md": "# C\n\nsea"})
	x.check("first", "+1 ~0 =0 -0; binary a.dat; binary b.dat")
	x.check("again", "+0 ~0 =1 -0; binary a.dat; binary b.dat")
	x.wantParsed(0)
}

// TestDuplicatesRandomly changes, moves and copies files at random, and fails some transactions, as
// if the process were killed between two. After each step the store is the same as one that ingested
// the folder at once.
func TestDuplicatesRandomly(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	x := newBoxes(t, newMemory(), map[string]string{"keep.md": "# Keep\n\nkept"})
	for step := range 150 {
		files := map[string]string{}
		for range 1 + rng.IntN(4) {
			name := fmt.Sprintf("%c.%s", 'a'+rune(rng.IntN(6)), []string{"md", "mail"}[rng.IntN(2)])
			k := rng.IntN(4)
			switch content := fmt.Sprintf("words of kind %d\n", k) + box("p.md", fmt.Sprint("part ", k)); {
			case rng.IntN(4) == 0:
				files[name], files[name+".metadata.json"] = "-", "-"
			case rng.IntN(3) == 0 && strings.HasSuffix(name, ".md"):
				files[name], files[name+".metadata.json"] = content, fmt.Sprintf(`{"acl":["user:%d"]}`, rng.IntN(2))
			default:
				files[name] = content
			}
		}
		for name := range files {
			if doc, ok := strings.CutSuffix(name, ".metadata.json"); ok && files[name] != "-" {
				if _, there := files[doc]; !there {
					delete(files, name)
				}
			}
		}
		x.write(files)
		m := x.w.(*memory)
		if rng.IntN(3) == 0 { // killed in the middle
			m.failPut, m.failure = m.puts+1+rng.IntN(2), errors.New("killed")
		}
		_, err := x.run()
		if m.failPut = 0; err != nil {
			if _, err := x.run(); err != nil {
				t.Fatal(err)
			}
		}
		fresh := &world{t: t, dir: x.dir, w: newMemory(), opts: x.opts}
		if _, err := fresh.run(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(fresh.state(), x.state()); d != "" {
			t.Fatalf("step %d: (-fresh +got):\n%s", step, d)
		}
	}
}

// state returns the documents with their access and text, and the sources.
func (x *world) state() []string {
	var all []string
	for d, err := range x.w.Documents(context.Background()) {
		if err != nil {
			x.t.Fatal(err)
		}
		whole, err := x.w.Document(context.Background(), d.ID)
		if err != nil {
			x.t.Fatal(err)
		}
		all = append(all, strings.Join([]string{d.URI, strings.Join(d.ACL.Allow, ","), whole.Text, d.Title, d.Metadata[assay.MetaPath].Text()}, "|"))
	}
	return slices.Concat(all, x.sources())
}

// TestDuplicatesRecognised checks that files that share their documents are parsed once more, and
// together, when text can be recognised in their pages.
func TestDuplicatesRecognised(t *testing.T) {
	x := newWorld(t, map[string]string{"a.md": "# Scan\n\nscanned", "b.md": "# Scan\n\nscanned", "c.md": "# Scan\n\nscanned"})
	x.opts.Walk = func(ctx context.Context, in parse.Input, yield func(parse.Parsed) error) error {
		x.parsed.Add(1)
		page := assay.Page{Number: 1, Outcome: assay.PageNoText}
		if in.OCR != nil {
			page.Outcome = assay.PageRecognized
			in.Data = append(in.Data[:len(in.Data):len(in.Data)], " text"...)
		}
		return parse.Walk(ctx, in, func(p parse.Parsed) error {
			p.Document.Pages = []assay.Page{page}
			return yield(p)
		})
	}
	x.opts.Workers = 1 // the report depends on the file that is parsed
	x.check("without", "+1 ~0 =0 -0 dup 2")
	x.opts.OCR = &parse.OCR{Program: "tesseract", Version: "5"}
	x.check("with", "+0 ~1 =0 -0 dup 2")
	x.wantParsed(1)
	x.wantDocs("a.md")
	x.check("again", "+0 ~0 =1 -0 dup 2")
	x.wantParsed(0)
}
