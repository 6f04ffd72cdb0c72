package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/parse"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/store"
)

// newBoxes is newWorldIn with a parser of containers.
func newBoxes(t *testing.T, w store.Writer, files map[string]string) *world {
	x := newWorldIn(t, w, files)
	x.opts.Walk = func(ctx context.Context, in parse.Input, yield func(parse.Parsed) error) error {
		x.parsed.Add(1)
		return boxWalk(ctx, in, yield)
	}
	return x
}

func TestParts(t *testing.T) { eachStore(t, testParts) }

func testParts(t *testing.T, w store.Writer) {
	x := newBoxes(t, w, map[string]string{
		"m/a.mail": "the mail\n" + box("b.md", "# Bee\n\nattached", "c.bin", "\x00\x00\x05\x00"), "n.md": "# N\n\nnote",
	})
	x.check("first", "+3 ~0 =0 -0; binary m/a.mail!/c.bin")
	x.wantDocs("m/a.mail", "m/a.mail!/b.md", "n.md")
	x.wantParsed(2)
	d := x.document("m/a.mail!/b.md")
	got := fmt.Sprintln(d.Container == source.URI(x.dir)+"/m/a.mail", d.Title, d.Metadata[assay.MetaType].Text(), d.Metadata[assay.MetaPath].Text(),
		d.Metadata[assay.MetaContainer].String == d.Container)
	if want := "true Bee markdown m, a.mail, b.md true\n"; got != want {
		t.Errorf("the attachment: %s, want %s", got, want)
	}

	x.check("again", "+0 ~0 =3 -0; binary m/a.mail!/c.bin")
	x.wantParsed(0)

	x.write(map[string]string{"m/a.mail.metadata.json": `{"acl":["group:legal"]}`})
	x.check("closed", "+0 ~2 =1 -0; binary m/a.mail!/c.bin")
	x.wantParsed(0)
	x.wantDocs("m/a.mail group:legal", "m/a.mail!/b.md group:legal", "n.md")

	x.write(map[string]string{"m/a.mail.metadata.json": `{"acl":["group:legal"],"team":"x"}`})
	x.check("metadata", "+0 ~2 =1 -0; binary m/a.mail!/c.bin")
	if got := x.document("m/a.mail!/b.md").Metadata["team"].String; got != "x" {
		t.Errorf("team of the attachment is %q", got)
	}

	x.write(map[string]string{"m/a.mail": "the mail\n" + box("d.md", "# Dee\n\nother", "i.box", box("e.md", "# E\n\ninner"))})
	x.check("other attachments", "+2 ~1 =1 -1")
	x.wantDocs("m/a.mail group:legal", "m/a.mail!/d.md group:legal", "m/a.mail!/i.box!/e.md group:legal", "n.md")

	x.write(map[string]string{"m/a.mail.metadata.json": `{"acl":`})
	x.check("broken sidecar", "+0 ~0 =1 -3; bad_sidecar m/a.mail removed")
	x.wantDocs("n.md")
	x.write(map[string]string{"m/a.mail.metadata.json": "-"})
	x.check("open", "+3 ~0 =1 -0")
	x.write(map[string]string{"m": "-"})
	x.check("gone", "+0 ~0 =1 -3")
	x.wantDocs("n.md")
	if got := x.sources(); !cmp.Equal(got, []string{"n.md"}) {
		t.Errorf("sources %q", got)
	}
}

// sources returns the stored sources in the form "path", "path = other" or "path ?".
func (x *world) sources() []string {
	x.t.Helper()
	short := func(uri string) string { return strings.TrimPrefix(uri, source.URI(x.dir)+"/") }
	var all []string
	for s, err := range x.w.Sources(context.Background()) {
		if err != nil {
			x.t.Fatal(err)
		}
		line := short(s.URI)
		switch {
		case s.SameAs != "":
			line += " = " + short(s.SameAs)
		case s.Info.Hash == "":
			line += " ?"
		}
		all = append(all, line)
	}
	return all
}

// TestLargeContainer checks that a container of more documents than a transaction holds is complete
// only with its last one, and that an interrupted run is continued.
func TestLargeContainer(t *testing.T) { eachStore(t, testLargeContainer) }

func testLargeContainer(t *testing.T, w store.Writer) {
	content := func(from, to int) string {
		var parts []string
		for i := from; i < to; i++ {
			parts = append(parts, fmt.Sprintf("%03d.md", i), fmt.Sprintf("# Part %d\n\ntext %d", i, i))
		}
		return box(parts...)
	}
	x := newBoxes(t, w, map[string]string{"a.box": content(0, 200)})
	ctx, cancel := context.WithCancel(context.Background())
	walk := x.opts.Walk
	x.opts.Walk = func(c context.Context, in parse.Input, yield func(parse.Parsed) error) error {
		n := 0
		return walk(c, in, func(p parse.Parsed) error {
			if n++; n == 150 {
				cancel()
				<-c.Done()
			}
			return yield(p)
		})
	}
	r, err := Run(ctx, x.w, x.opts)
	if err == nil || !r.Interrupted || r.Added != len(x.docs()) || r.Added == 0 || r.Added >= 200 {
		t.Errorf("interrupted: %+v, %v with %d documents", r, err, len(x.docs()))
	}
	if got := x.sources(); !cmp.Equal(got, []string{"a.box ?"}) {
		t.Errorf("sources %q, want one that is not complete", got)
	}
	x.opts.Walk = walk
	x.check("continued", fmt.Sprintf("+%d ~0 =%d -0", 200-r.Added, r.Added))
	x.check("again", "+0 ~0 =200 -0")
	x.wantParsed(0)
	x.write(map[string]string{"a.box": content(100, 300)})
	x.check("moved on", "+100 ~100 =0 -100")
	x.write(map[string]string{"a.box": "-", "b.md": "# B\n\nbee"})
	x.check("gone", "+1 ~0 =0 -200")
}

// TestFailuresAreRemembered checks that a file that failed is not parsed again while it is
// unchanged.
func TestFailuresAreRemembered(t *testing.T) { eachStore(t, testFailuresAreRemembered) }

func testFailuresAreRemembered(t *testing.T, w store.Writer) {
	x := newBoxes(t, w, map[string]string{"a.md": "# A\n\nalpha", "b.box": box("c.md", "# C\n\nsea", "d.bin", "\x00\x00\x01"), "e.md": ""})
	walk := x.opts.Walk
	fails := parse.ErrDamaged
	x.opts.Walk = func(ctx context.Context, in parse.Input, yield func(parse.Parsed) error) error {
		if in.Name == "a.md" && fails != nil {
			x.parsed.Add(1)
			return yield(parse.Parsed{Err: fmt.Errorf("parse a.md: torn: %w", fails)})
		}
		return walk(ctx, in, yield)
	}
	const failed = "; damaged a.md; binary b.box!/d.bin; empty e.md"
	x.check("first", "+1 ~0 =0 -0"+failed)
	x.wantParsed(3)
	r, err := x.run()
	if got := x.short(r); err != nil || got != "+0 ~0 =1 -0"+failed || !r.Skipped[0].Earlier || r.Skipped[0].Detail != "torn: damaged" {
		t.Errorf("again: %s, %v, %+v", got, err, r.Skipped)
	}
	x.wantParsed(0)

	x.touch("a.md", 0)
	x.check("touched", "+0 ~0 =1 -0"+failed)
	x.wantParsed(0)

	fails = nil
	x.check("mended, but not tried", "+0 ~0 =1 -0"+failed)
	x.opts.RetryOnly = true
	x.check("tried", "+1 ~0 =1 -0; binary b.box!/d.bin; empty e.md")
	x.wantParsed(3)
	x.opts.RetryOnly = false
	fails = parse.ErrDamaged
	x.opts.Retry = true
	x.check("all again", "+0 ~0 =2 -0; binary b.box!/d.bin; empty e.md")
	x.wantParsed(2)
	x.opts.Retry = false
	x.opts.Parser = "another"
	x.check("another parser", "+0 ~1 =0 -0; damaged a.md kept 1; binary b.box!/d.bin; empty e.md")
	x.check("again", "+0 ~0 =1 -0; damaged a.md kept 1; binary b.box!/d.bin; empty e.md")
	x.wantParsed(0)
	x.wantDocs("a.md", "b.box!/c.md")

	fails = parse.ErrPassword
	x.write(map[string]string{"a.md": "# A\n\nsealed"})
	const sealed = "+0 ~0 =1 -0; password a.md; binary b.box!/d.bin; empty e.md"
	x.check("sealed", strings.Replace(strings.Replace(sealed, "-0", "-1", 1), "a.md", "a.md removed", 1))
	x.check("again", sealed)
	x.wantParsed(0)
	x.opts.Passwords = []string{"secret"}
	x.check("with a password", sealed)
	x.wantParsed(1)

	fails = parse.ErrNeedsProgram
	x.write(map[string]string{"a.md": "# A\n\nof a program"})
	x.check("needs a program", "+0 ~0 =1 -0; needs_program a.md; binary b.box!/d.bin; empty e.md")
	x.check("again", "+0 ~0 =1 -0; needs_program a.md; binary b.box!/d.bin; empty e.md")
	x.wantParsed(1)
	x.write(map[string]string{"a.md": "-", "e.md": "-"})
	x.check("gone", "+0 ~0 =1 -0; binary b.box!/d.bin")
}

// TestPartNames checks that documents whose paths are written alike are kept apart.
func TestPartNames(t *testing.T) {
	x := newBoxes(t, newMemory(), map[string]string{
		"a.box":    box("i.box", box("x.md", "# 1\n\none"), "i.box!/x.md", "# 2\n\ntwo", "same.md", "# 3\n\nthree", "same.md", "# 4\n\nfour"),
		"b.box!/c": "plain text", "b.box": box("c", "other text"),
	})
	x.check("first", "+6 ~0 =0 -0")
	x.wantDocs("a.box!/i.box!/x.md", "a.box!/i.box!/x.md (2)", "a.box!/same.md", "a.box!/same.md (2)", "b.box!/c", "b.box\uFFFD21/c")
	x.check("again", "+0 ~0 =6 -0")
	x.write(map[string]string{"b.box!": "-"})
	x.check("the folder is gone", "+0 ~0 =5 -1")
}

// TestUnknownRest checks that the stored documents of a file that is not parsed to its end stay, and
// have the file's ACL.
func TestUnknownRest(t *testing.T) {
	x := newBoxes(t, newMemory(), map[string]string{"a.mail": "text\n" + box("b.md", "# B\n\nbee", "c.md", "# C\n\nsea")})
	x.check("first", "+3 ~0 =0 -0")
	walk := x.opts.Walk
	stop := errors.New("enough")
	x.opts.Walk = func(ctx context.Context, in parse.Input, yield func(parse.Parsed) error) error {
		n := 0
		err := walk(ctx, in, func(p parse.Parsed) error {
			if n++; n == 3 {
				return stop
			}
			return yield(p)
		})
		if errors.Is(err, stop) {
			err = yield(parse.Parsed{Err: fmt.Errorf("parse a.mail: too large: %w", parse.ErrLimit)})
		}
		return err
	}
	x.write(map[string]string{"a.mail": "more text\n" + box("b.md", "# B\n\nbees", "c.md", "# C\n\nseas"), "a.mail.metadata.json": `{"acl":["user:u"]}`})
	x.check("cut short", "+0 ~2 =0 -0; limit a.mail")
	x.wantDocs("a.mail user:u", "a.mail!/b.md user:u", "a.mail!/c.md user:u")
	x.check("again", "+0 ~0 =2 -0; limit a.mail kept 1")

	x.opts.Walk = func(context.Context, parse.Input, func(parse.Parsed) error) error { return stop }
	x.opts.Retry = true
	if _, err := x.run(); !errors.Is(err, stop) {
		t.Errorf("a parser that cannot start: %v", err)
	}
	x.wantDocs("a.mail user:u", "a.mail!/b.md user:u", "a.mail!/c.md user:u")
}
