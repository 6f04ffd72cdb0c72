//go:build unix

package ingest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// asNobody runs f without root's permission to read everything.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	const nobody = 65534
	if err := syscall.Setreuid(-1, nobody); err != nil {
		t.Skip("cannot drop root's rights:", err)
	}
	defer func() {
		if err := syscall.Setreuid(-1, 0); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

func TestUnreadable(t *testing.T) {
	x := newWorld(t, map[string]string{
		"a.md": "# A\n\nalpha", "closed/1.md": "# 1\n\none", "closed/s/2.md": "# 2\n\ntwo",
		"f.md": "# F\n\nfile", "g.md": "# G\n\ngone", "f.md.metadata.json": `{"acl":["user:u"]}`,
	})
	if err := os.Chmod(filepath.Dir(x.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	x.check("first", "+5 ~0 =0 -0")
	x.write(map[string]string{"f.md": "# F\n\nother", "f.md.metadata.json": `{"acl":["user:v"]}`, "g.md": "-"})
	for _, name := range []string{"closed", "f.md"} {
		path := filepath.Join(x.dir, name)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(path, 0o755)
	}
	asNobody(t, func() {
		x.check("closed", "+0 ~0 =1 -1; unreadable closed kept 2; unreadable f.md kept 1")
	})
	// An unreadable document stays, but with its new ACL.
	x.wantDocs("a.md", "closed/1.md", "closed/s/2.md", "f.md user:v")
}
