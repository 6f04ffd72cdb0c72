package source

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPattern(t *testing.T) {
	tests := []struct {
		line, path string
		isDir      bool
		want       bool
	}{
		{"foo", "foo", false, true},
		{"foo", "a/foo", true, true},
		{"foo/", "foo", false, false},
		{"foo/", "a/foo", true, true},
		{"/foo", "a/foo", false, false},
		{"a/foo", "b/a/foo", false, false},
		{"*.log", "a/b/x.log", false, true},
		{"*.log", "x.logs", false, false},
		{"a/*.log", "a/b/x.log", false, false},
		{"**/foo", "foo", false, true},
		{"**/foo", "a/b/foo", false, true},
		{"a/**", "a", true, false},
		{"a/**", "a/b/c", false, true},
		{"a/**/b", "a/b", false, true},
		{"a/**/b", "a/x/y/b", false, true},
		{"a**b", "aXb", false, true},
		{"x/a**b", "x/a/b", false, false},
		{`\#x`, "#x", false, true},
		{`\!x`, "!x", false, true},
		{`x\ `, "x ", false, true},
		{"x  ", "x", false, true},
		{"x\r", "x", false, true},
		{"[a-c]x", "bx", false, true},
		{"[!a-c]x", "bx", false, false},
		{"[^a-c]x", "dx", false, true},
		{"[]x]", "]", false, true},
		{"[[:digit:]x]", "7", false, true},
		{"[[:nonsense:]]", "n", false, false},
		{"[x", "[x", false, false},
		{`[a\]]`, "]", false, true},
		{"[a-]", "-", false, true},
		{"?", "/", false, false},
		{"a?c", "abc", false, true},
		{`a\`, `a\`, false, false},
	}
	for _, tt := range tests {
		p, ok := parsePattern(tt.line)
		if got := ok && p.match(strings.Split(tt.path, "/"), tt.isDir); got != tt.want {
			t.Errorf("%q matches %q (folder: %v) = %v, want %v", tt.line, tt.path, tt.isDir, got, tt.want)
		}
	}
	for _, line := range []string{"", "  ", "# x", "!", "/", "!/"} {
		if _, ok := parsePattern(line); ok {
			t.Errorf("parsePattern(%q) is a pattern", line)
		}
	}
}

// TestWalkAsGit compares the files that Walk yields with git's, for random trees and ignore files
// that cover corner cases of the syntax.
func TestWalkAsGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	rounds := 60
	if os.Getenv("ASSAY_LONG") != "" {
		rounds = 3000
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		dir := t.TempDir()
		drawTree(t, rng, dir)
		want := gitFiles(t, dir)
		got := []string{}
		for f, err := range Walk(t.Context(), []string{dir}, Options{Hidden: true}) {
			if errors.Is(err, ErrEmpty) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, f.Rel)
		}
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			for _, name := range []string{".gitignore", "a/.gitignore"} {
				data, _ := os.ReadFile(filepath.Join(dir, name))
				t.Logf("%s: %q", name, data)
			}
			t.Fatalf("files (-git +Walk):\n%s", d)
		}
	}
}

func drawTree(t *testing.T, rng *rand.Rand, dir string) {
	names := []string{"a", "b", "ab", "a.md", "b.log", "x y", "[a", "-", "#c", "!d", `e\f`, "a*b", "abc", "docs", "B"}
	pieces := []string{
		"a", "b", "ab", "docs", ".md", ".log", "*", "**", "?", "/", "/", "[a-c]", "[!a]", "[]a]", "[[:alpha:]]", "[^-a]", "[a",
		`\*`, `\#`, " ", `\ `, "#c", "!d", "x y", `\\`, "[[:x:]]", "[a-", "B", "-", "[b-]", `[\]-a]`, "***", "[+--]", "[[.a]",
	}
	files := map[string]string{}
	for range 25 {
		parts := []string{}
		for range 1 + rng.IntN(4) {
			parts = append(parts, names[rng.IntN(len(names))])
		}
		files[strings.Join(parts, "/")] = "x"
	}
	for name := range files { // a name is a file or a folder, not both
		for p := filepath.ToSlash(filepath.Dir(name)); p != "."; p = filepath.ToSlash(filepath.Dir(p)) {
			delete(files, p)
		}
	}
	write(t, dir, files)
	ignore := []string{dir}
	if info, err := os.Stat(filepath.Join(dir, "a")); err == nil && info.IsDir() {
		ignore = append(ignore, filepath.Join(dir, "a"))
	}
	for _, folder := range ignore {
		var lines []string
		for range 1 + rng.IntN(6) {
			var b strings.Builder
			if rng.IntN(3) == 0 {
				b.WriteString("!")
			}
			for range 1 + rng.IntN(4) {
				b.WriteString(pieces[rng.IntN(len(pieces))])
			}
			lines = append(lines, b.String())
		}
		end := []string{"\n", "\r\n"}[rng.IntN(2)]
		if err := os.WriteFile(filepath.Join(folder, ".gitignore"), []byte(strings.Join(lines, end)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// gitFiles lists the files of a folder that git does not ignore.
func gitFiles(t *testing.T, dir string) []string {
	t.Helper()
	run := func(args ...string) []byte {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "core.excludesFile=" + os.DevNull}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return out
	}
	run("init", "-q", "--template=")
	files := strings.Split(strings.TrimSuffix(string(run("ls-files", "-z", "--others", "--exclude-standard")), "\x00"), "\x00")
	files = slices.DeleteFunc(files, func(f string) bool { return f == "" })
	slices.Sort(files)
	if files == nil {
		files = []string{}
	}
	return files
}
