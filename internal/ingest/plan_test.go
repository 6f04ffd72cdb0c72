package ingest

import (
	"context"
	"fmt"
	"testing"
)

// TestPlan checks that a plan agrees with the run after it and changes nothing.
func TestPlan(t *testing.T) {
	x := newBoxes(t, newMemory(), map[string]string{
		"a.md": "# A\n\nalpha", "b.md": "# B\n\nbeta", "c.zip": "\x00\x01", "d.txt": "delta", "e.md": "# E\n\nepsilon", "e.md.metadata.json": "{",
	})
	plan := func(step, want string) {
		t.Helper()
		x.parsed.Store(0)
		before := x.sequence()
		p, err := MakePlan(context.Background(), x.w, x.opts)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%v, %d files, %d bytes, %d of text, =%d -%d", p.Read, p.Files, p.Bytes, p.TextBytes, p.Unchanged, p.Gone)
		if s := x.short(Report{Skipped: p.Skipped}); got+s[len("+0 ~0 =0 -0"):] != want {
			t.Errorf("%s: %s, want %s", step, got+s[len("+0 ~0 =0 -0"):], want)
		}
		x.wantParsed(0)
		if after := x.sequence(); after != before {
			t.Errorf("%s: the store moved from %d to %d", step, before, after)
		}
	}
	plan("first", "[{md 2 19} {txt 1 5} {zip 1 2}], 4 files, 26 bytes, 24 of text, =0 -0; bad_sidecar e.md")
	x.check("first", "+3 ~0 =0 -0; binary c.zip; bad_sidecar e.md")
	plan("unchanged", "[], 0 files, 0 bytes, 0 of text, =3 -0; binary c.zip; bad_sidecar e.md")
	x.write(map[string]string{"a.md": "-", "b.md": "# B\n\nother"})
	plan("changed", "[{md 1 10}], 1 files, 10 bytes, 10 of text, =1 -1; binary c.zip; bad_sidecar e.md")
	x.check("changed", "+0 ~1 =1 -1; binary c.zip; bad_sidecar e.md")
}
