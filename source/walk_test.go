package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

// write creates files from a map of paths to contents. A path that ends in "/" is a folder; a
// content that starts with "->" makes a link.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		target, isLink := strings.CutPrefix(content, "->")
		switch {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		case isLink:
			err = os.Symlink(target, path)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// walked returns the results of Walk as strings: "rel" for a file, "reason rel" for a skip and
// "root detail" for a root. URIs are relative to dir.
func walked(t *testing.T, dir string, roots []string, opts Options) []string {
	t.Helper()
	short := func(uri string) string { return strings.TrimPrefix(uri, URI(dir)+"/") }
	got := []string{}
	for f, err := range Walk(context.Background(), roots, opts) {
		var skip *Skip
		var root *RootError
		switch {
		case errors.As(err, &skip):
			got = append(got, string(skip.Reason)+" "+short(skip.URI))
		case errors.As(err, &root):
			got = append(got, "root "+root.Detail)
		case err != nil:
			t.Fatalf("Walk: %v", err)
		default:
			got = append(got, short(f.URI))
		}
	}
	return got
}

func TestWalk(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		roots []string // below the folder; default: the folder itself
		opts  Options
		want  []string
	}{
		{
			name:  "by name, folders in place",
			files: map[string]string{"b.md": "b", "a/z.md": "z", "a/b/c.md": "c", "c.md": "c"},
			want:  []string{"a/b/c.md", "a/z.md", "b.md", "c.md"},
		},
		{
			name: "hidden, version control and data folders",
			files: map[string]string{
				".hidden.md": "x", ".config/x.md": "x", ".git/x": "x", ".hg/x": "x", "CVS/x": "x",
				"node_modules/m/x.js": "x", ".assay/content.db": "x", "testdata/x.md": "x", "x_test.go": "x",
			},
			want: []string{"testdata/x.md", "x_test.go"},
		},
		{
			name: "assay's data, whatever its folder is called",
			files: map[string]string{
				"data/assay.json": `{"program":"assay","format":1}`, "data/tenants/x/content.db": "x",
				"mine/assay.json": `{"program":"mine"}`, "a.md": "a",
			},
			want: []string{"a.md", "mine/assay.json"},
		},
		{
			name:  "assay's data as a root",
			files: map[string]string{"data/assay.json": `{"program":"assay","format":1}`, "data/a.md": "x"},
			roots: []string{"data"},
			want:  []string{"root is a data directory of assay, which holds no documents"},
		},
		{
			name:  "hidden on demand",
			files: map[string]string{".hidden.md": "x", ".git/x": "x", ".assay/x": "x", "a.md": "a"},
			opts:  Options{Hidden: true},
			want:  []string{".hidden.md", "a.md"},
		},
		{
			name:  "a gitignore's exception is about git, an assayignore's about assay",
			files: map[string]string{".gitignore": "*.log\n!.gitkeep\n", ".gitkeep": "", "a.log": "", "a.md": "a", "s/.assayignore": "!.github/\n!*.log\n", "s/.github/x.md": "x", "s/b.log": "b"},
			want:  []string{"a.md", "s/.github/x.md", "s/b.log"},
		},
		{
			name:  "options win",
			files: map[string]string{".assayignore": "!keep.log\n*.md\n", "keep.log": "x", "a.md": "a", "b/c.md": "c"},
			opts:  Options{Exclude: []string{"*.log", "!b/**/*.md"}},
			want:  []string{"b/c.md"},
		},
		{
			name:  "an excluded folder is not looked into",
			files: map[string]string{".gitignore": "out/\n!out/keep.md\n", "out/keep.md": "k", "a.md": "a"},
			want:  []string{"a.md"},
		},
		{
			name:  "sidecars",
			files: map[string]string{"a.md": "a", "a.md.metadata.json": "{}", "b.md.metadata.json": "{}", "d.metadata.json/x.md": "x"},
			want:  []string{"a.md", "sidecar_without_document b.md.metadata.json", "d.metadata.json/x.md"},
		},
		{
			name:  "sidecars named by a shell's star",
			files: map[string]string{"a.md": "a", "a.md.metadata.json": "{}", "b.md": "b", "b.md.metadata.json": "{}"},
			roots: []string{"a.md", "a.md.metadata.json", "b.md.metadata.json"},
			want:  []string{"a.md", "sidecar_without_document b.md.metadata.json"},
		},
		{
			name:  "too large among good ones",
			files: map[string]string{"a.md": "a", "big.md": strings.Repeat("x", 101), "c.md": strings.Repeat("x", 100)},
			opts:  Options{MaxFileBytes: 100},
			want:  []string{"a.md", "too_large big.md", "c.md"},
		},
		{
			name: "links",
			files: map[string]string{
				"r/a.md": "a", "r/d/b.md": "b", "out/o.md": "o",
				"r/l1": "->a.md", "r/l2": "->d", "r/d/up": "->..", "r/self": "->self", "r/gone": "->nowhere",
				"r/esc": "->../out/o.md", "r/escdir": "->../out",
			},
			roots: []string{"r"},
			want: []string{
				"r/a.md", "r/d/b.md", "same_file r/d/up", "link_outside r/esc", "link_outside r/escdir",
				"link_broken r/gone", "same_file r/l1", "same_file r/l2", "link_broken r/self",
			},
		},
		{
			name: "links into hidden folders are followed, into excluded ones not",
			files: map[string]string{
				"..2024/a.md": "a", "..2024/sub/b.md": "b", "..data": "->..2024", "a.md": "->..data/a.md", "sub": "->..data/sub",
				".gitignore": "secret\n", "secret/s.md": "s", "s.md": "->secret/s.md", "node_modules/m.md": "m", "m.md": "->node_modules/m.md",
			},
			want: []string{"a.md", "link_excluded m.md", "link_excluded s.md", "sub/b.md"},
		},
		{
			name:  "a link to a folder that a pattern excludes by the link's name",
			files: map[string]string{".gitignore": "l/\n", ".h/a.md": "a", "l": "->.h", "b.md": "b"},
			want:  []string{"b.md"},
		},
		{
			name:  "overlapping roots, each file once",
			files: map[string]string{"d/a.md": "a", "d/e/b.md": "b", "l": "->d"},
			roots: []string{"d/e", "d", "d/a.md", "l"},
			want:  []string{"d/e/b.md", "d/a.md", "same_file l/a.md", "same_file l/e/b.md"},
		},
		{
			name:  "a root that is a link, or excluded by name",
			files: map[string]string{"real/a.md": "a", "l": "->real", "f.md": "->real/a.md", ".h/x.md": "x"},
			roots: []string{"l", ".h", ".h/x.md"},
			opts:  Options{Exclude: []string{".h"}},
			want:  []string{"l/a.md", ".h/x.md"},
		},
		{
			name:  "roots that cannot be walked",
			files: map[string]string{"a.md": "a", "empty/": "", "hid/.x": "x"},
			roots: []string{"gone", "empty", "hid", "a.md", "a.md/b"},
			want: []string{
				"root no such file or folder", "root nothing to ingest: the folder holds no files",
				"root nothing to ingest: all that the folder holds is excluded or hidden", "a.md", "root not a directory",
			},
		},
		{
			name:  "names that are not text",
			files: map[string]string{"a\xff.md": "a", "a\ufffd.md": "b", "new\nline.md": "c", "50%.md": "d"},
			want:  []string{"50%.md", "a\ufffdEF\ufffdBF\ufffdBD.md", "a\ufffdFF.md", "new\nline.md"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, tt.files)
			roots := []string{dir}
			if tt.roots != nil {
				roots = nil
				for _, r := range tt.roots {
					roots = append(roots, filepath.Join(dir, r))
				}
			}
			got := walked(t, dir, roots, tt.opts)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("Walk (-want +got):\n%s", d)
			}
		})
	}
}

func TestWalkExcludePaths(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.md": "a", "data/content.db": "x", "l": "->data"})
	got := walked(t, dir, []string{dir}, Options{ExcludePaths: []string{filepath.Join(dir, "l"), filepath.Join(dir, "gone")}})
	if d := cmp.Diff([]string{"a.md"}, got); d != "" {
		t.Errorf("Walk (-want +got):\n%s", d)
	}
}

func TestRootErrorKinds(t *testing.T) {
	dir := t.TempDir()
	for root, want := range map[string]error{filepath.Join(dir, "gone"): fs.ErrNotExist, dir: ErrEmpty, "": fs.ErrInvalid} {
		for _, err := range Walk(context.Background(), []string{root}, Options{}) {
			if !errors.Is(err, want) || !errors.Is(err, assay.ErrInvalid) {
				t.Errorf("Walk(%q): %v, want %v and ErrInvalid", root, err, want)
			}
		}
	}
}

func TestWalkStops(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.md": "a", "b.md": "b", "l": "->.."})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var got []error
	for _, err := range Walk(ctx, []string{dir, dir}, Options{}) {
		got = append(got, err)
		cancel()
	}
	if len(got) != 2 || got[0] != nil || !errors.Is(got[1], context.Canceled) {
		t.Errorf("Walk cancelled after the first file yields %v, want a file, then context.Canceled", got)
	}
	for range Walk(context.Background(), []string{dir, dir}, Options{}) {
		break // yielding again would panic
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.md": "hello", "b.md": "b", "c.md": "c", "d/e.md": "e", "grown.md": "x"})
	want := map[string]Reason{"b.md": Vanished, "c.md": SpecialFile, "d/e.md": Unreadable, "grown.md": TooLarge}
	for f, err := range Walk(context.Background(), []string{dir}, Options{MaxFileBytes: 10}) {
		if err != nil {
			t.Fatal(err)
		}
		path := Path(f.URI)
		switch f.Rel {
		case "b.md":
			os.Remove(path)
		case "c.md":
			os.Remove(path)
			os.Mkdir(path, 0o755)
		case "d/e.md": // a link out of the root, created after the walk saw a file
			os.Remove(path)
			os.Symlink("/etc/hostname", path)
		case "grown.md":
			os.WriteFile(path, bytes.Repeat([]byte("y"), 11), 0o644)
		}
		c, err := f.Read(context.Background())
		if f.Rel == "a.md" {
			if string(c.Data) != "hello" || !c.Modified.Equal(f.Modified) || err != nil {
				t.Errorf("Read(a.md) = %q %v, %v", c.Data, c.Modified, err)
			}
			continue
		}
		var skip *Skip
		if !errors.As(err, &skip) || skip.Reason != want[f.Rel] {
			t.Errorf("Read(%s): %v, want a skip with %s", f.Rel, err, want[f.Rel])
		}
	}
}

func TestStdin(t *testing.T) {
	read := func(in io.Reader, ctx context.Context) (File, Content, error) {
		for f, err := range Walk(ctx, []string{"-", "-"}, Options{Stdin: in, StdinName: "notes.md", MaxFileBytes: 5}) {
			if err != nil {
				t.Fatal(err)
			}
			c, err := f.Read(ctx)
			return f, c, err
		}
		return File{}, Content{}, errors.New("nothing yielded")
	}
	f, c, err := read(strings.NewReader("hello"), context.Background())
	if f.URI != "stdin:notes.md" || f.Rel != "notes.md" || f.Source != FromStdin || string(c.Data) != "hello" || err != nil {
		t.Errorf("Read = %+v %q, %v", f, c.Data, err)
	}
	var skip *Skip
	if _, _, err = read(strings.NewReader("hello!"), context.Background()); !errors.As(err, &skip) || skip.Reason != TooLarge {
		t.Errorf("Read of 6 bytes with a limit of 5: %v, want too_large", err)
	}
	if _, _, err = read(io.MultiReader(strings.NewReader("a"), failing{}), context.Background()); !errors.As(err, &skip) || skip.Reason != BadStandardIn {
		t.Errorf("Read of a failing standard input: %v, want %s", err, BadStandardIn)
	}
	pr, pw := io.Pipe()
	defer pw.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, _, err = read(pr, ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Read of a silent pipe: %v, want the context's error", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, fmt.Errorf("wire cut") }

func FuzzURI(f *testing.F) {
	for _, s := range []string{"/a/b", "/a\xff\xfe", "/\ufffd", "/\ufffdFF", "/\xef\xbf", ""} {
		f.Add(s, s+"x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		ua, ub := EscapeName(a), EscapeName(b)
		if (ua == ub) != (a == b) {
			t.Errorf("EscapeName(%q) = %q, EscapeName(%q) = %q", a, ua, b, ub)
		}
		if got := filepath.ToSlash(Path(ua)); filepath.Separator == '/' && got != a {
			t.Errorf("Path(EscapeName(%q)) = %q", a, got)
		}
		if !bytes.Equal([]byte(ua), []byte(strings.ToValidUTF8(ua, "?"))) {
			t.Errorf("EscapeName(%q) = %q is not UTF-8", a, ua)
		}
	})
}
