//go:build unix

package source

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.md": "a", "p.md.metadata.json": "->pipe", "p.md": "p", "sub/x.md": "x"})
	for _, p := range []string{"pipe", "sub/.gitignore"} {
		if err := syscall.Mkfifo(filepath.Join(dir, p), 0o644); err != nil {
			t.Skip("no named pipes here:", err)
		}
	}
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Skip("no sockets here:", err)
	}
	defer l.Close()
	write(t, dir, map[string]string{"z": "->pipe"})
	want := []string{"a.md", "p.md", "special_file pipe", "special_file socket", "bad_ignore_file sub", "special_file z"}
	if d := cmp.Diff(want, walked(t, dir, []string{dir}, Options{})); d != "" {
		t.Errorf("Walk (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"root is a named pipe, neither a file nor a folder"}, walked(t, dir, []string{filepath.Join(dir, "pipe")}, Options{})); d != "" {
		t.Errorf("Walk of a pipe (-want +got):\n%s", d)
	}
}

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
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{
		"a.md": "a", "closed/x.md": "x", "file.md": "f", "blind/y.md": "y", "ign/.gitignore": "*", "ign/z.md": "z",
		"l.md": "->closed/x.md",
	})
	for name, mode := range map[string]os.FileMode{"closed": 0, "file.md": 0, "blind": 0o444, "ign/.gitignore": 0} {
		path := filepath.Join(dir, name)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(path, 0o755) })
	}
	asNobody(t, func() {
		want := []string{"a.md", "unreadable blind", "unreadable closed", "file.md", "bad_ignore_file ign", "unreadable l.md"}
		if d := cmp.Diff(want, walked(t, dir, []string{dir}, Options{})); d != "" {
			t.Errorf("Walk (-want +got):\n%s", d)
		}
		want = []string{"root may not be read: permission denied", "root may not be read: permission denied"}
		roots := []string{filepath.Join(dir, "closed"), filepath.Join(dir, "file.md")}
		if d := cmp.Diff(want, walked(t, dir, roots, Options{})); d != "" {
			t.Errorf("Walk of what is closed (-want +got):\n%s", d)
		}
		for f, err := range Walk(t.Context(), []string{dir}, Options{}) {
			if err != nil || f.Rel != "file.md" {
				continue
			}
			_, err = f.Read(t.Context())
			if skip, ok := err.(*Skip); !ok || skip.Reason != Unreadable {
				t.Errorf("Read of a closed file: %v, want unreadable", err)
			}
		}
	})
}
