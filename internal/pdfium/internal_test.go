package pdfium

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestParseDate(t *testing.T) {
	for in, want := range map[string]string{
		"D:20240102030405+01'00'": "2024-01-02T02:04:05Z",
		"D:20240102030405-05'30":  "2024-01-02T08:34:05Z",
		"D:20240102030405Z00'00'": "2024-01-02T03:04:05Z",
		"D:20240102030405":        "2024-01-02T03:04:05Z",
		"20240102":                "2024-01-02T00:00:00Z",
		"D:2024":                  "2024-01-01T00:00:00Z",
		"D:202":                   "",
		"D:20241302":              "",
		"D:20240102030405+1":      "",
		"D:20240102030405+99'00'": "",
		"yesterday":               "",
		"":                        "",
	} {
		got := ""
		if d, ok := ParseDate(in); ok {
			got = d.Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("ParseDate(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMendChars(t *testing.T) {
	at := func(r rune, x0, x1 float32) Char { return Char{Rune: r, X: x0, Y: 10, Box: Box{x0, 0, x1, 12}} }
	for _, tt := range []struct {
		name string
		in   []Char
		want string
	}{
		{"ligature of lam and alef", []Char{at('ا', 20, 25), at('إ', 10, 20), at('ل', 10, 20), at('ن', 5, 10)}, "الإن"},
		{"ligature in order", []Char{at('ل', 10, 20), at('ا', 10, 20)}, "لا"},
		{"the same glyph twice", []Char{at('f', 10, 20), at('i', 10, 20)}, "fi"},
		{"mark before its base", []Char{at('ي', 20, 25), at(' ', 19, 19), at('ً', 12, 14), at('ض', 10, 18)}, "يضً"},
		{"mark after its base", []Char{at('ض', 10, 18), at('ً', 12, 14), at('ا', 5, 10)}, "ضًا"},
		{"surrogates", []Char{at(0xd83d, 0, 5), at(0xde00, 0, 5), at(0xd83d, 6, 9)}, "😀\ufffd"},
	} {
		got := ""
		for _, c := range mendChars(tt.in) {
			got += string(c.Rune)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestPrivateFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if got := privateFolder(dir); got != dir {
		t.Errorf("a new folder: %q, want %q", got, dir)
	}
	if info, err := os.Stat(dir); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := privateFolder(file); got != "" {
		t.Errorf("a file: %q", got)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if got := privateFolder(dir); got != "" {
		t.Errorf("a folder that others may write: %q", got)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if got := privateFolder(link); got != "" {
		t.Errorf("a symbolic link: %q", got)
	}
}

// TestDamagedCache checks that a damaged cache does not keep PDFium from being compiled.
func TestDamagedCache(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles PDFium three times")
	}
	dir := t.TempDir()
	compileAt := func() {
		t.Helper()
		e, err := newEngine(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.runtime.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	compileAt()
	entries, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(entries) != 2 {
		t.Fatalf("the cache has %v, %v", entries, err)
	}
	for _, entry := range entries {
		data, err := os.ReadFile(entry)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 1
		if err := os.WriteFile(entry, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compileAt()
}
