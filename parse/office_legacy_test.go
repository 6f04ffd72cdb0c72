package parse

import (
	"context"
	endian "encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// compound returns a compound file of streams of 4,096 bytes, which start with the given ones.
func compound(streams map[string]string) []byte {
	const size, entry, free, end = 512, 128, 0xffffffff, 0xfffffffe
	names := []string{}
	for name := range streams {
		names = append(names, name)
	}
	slices.Sort(names)
	fat := make([]uint32, size/4)
	for i := range fat {
		fat[i] = free
	}
	fat[0], fat[1] = 0xfffffffd, end // the table itself, the directory
	directory := make([]byte, size)
	put := func(i int, name string, kind byte, child, right, start, length uint32) {
		e := directory[i*entry:]
		for k, c := range utf16.Encode([]rune(name)) {
			endian.LittleEndian.PutUint16(e[2*k:], c)
		}
		endian.LittleEndian.PutUint16(e[64:], uint16(2*len(name)+2))
		e[66], e[67] = kind, 1
		for k, v := range []uint32{free, right, child} {
			endian.LittleEndian.PutUint32(e[68+4*k:], v)
		}
		endian.LittleEndian.PutUint32(e[116:], start)
		endian.LittleEndian.PutUint32(e[120:], length)
	}
	put(0, "Root Entry", 5, 1, free, end, 0)
	var data []byte
	for i, name := range names {
		right := uint32(free)
		if i+1 < len(names) {
			right = uint32(i + 2)
		}
		start := 2 + 8*i
		put(i+1, name, 2, free, right, uint32(start), 4096)
		for k := range 8 {
			fat[start+k] = uint32(start + k + 1)
		}
		fat[start+7] = end
		data = append(data, append([]byte(streams[name]), make([]byte, 4096-len(streams[name]))...)...)
	}
	head := make([]byte, size)
	copy(head, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
	for at, v := range map[int]uint16{24: 0x3e, 26: 3, 28: 0xfffe, 30: 9, 32: 6} {
		endian.LittleEndian.PutUint16(head[at:], v)
	}
	for at, v := range map[int]uint32{44: 1, 48: 1, 56: 4096, 60: end, 68: end} {
		endian.LittleEndian.PutUint32(head[at:], v)
	}
	for i := 76; i < size; i += 4 {
		endian.LittleEndian.PutUint32(head[i:], free)
	}
	endian.LittleEndian.PutUint32(head[76:], 0)
	for _, v := range fat {
		head = endian.LittleEndian.AppendUint32(head, v)
	}
	return append(append(head, directory...), data...)
}

func TestCFBKind(t *testing.T) {
	filePass := "\x09\x08\x02\x00\x00\x00\x2f\x00\x02\x00\x00\x00"
	tests := []struct {
		streams map[string]string
		kind    string
		locked  bool
	}{
		{map[string]string{"WordDocument": ""}, "doc", false},
		{map[string]string{"WordDocument": "0123456789\x00\x01"}, "doc", true},
		{map[string]string{"Workbook": "\x09\x08\x02\x00\x00\x00\x0a\x00\x00\x00"}, "xls", false},
		{map[string]string{"Book": filePass}, "xls", true},
		{map[string]string{"PowerPoint Document": ""}, "ppt", false},
		{map[string]string{"PowerPoint Document": "", "EncryptedSummary": ""}, "ppt", true},
		{map[string]string{"__properties_version1.0": ""}, "msg", false},
		{map[string]string{"EncryptedPackage": ""}, kindEncrypted, false},
		{map[string]string{"Else": ""}, "", false},
	}
	for _, tt := range tests {
		if kind, locked := cfbKind(compound(tt.streams)); kind != tt.kind || locked != tt.locked {
			t.Errorf("%v is %q %v, want %q %v", tt.streams, kind, locked, tt.kind, tt.locked)
		}
	}
}

func TestLegacyNeedsProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for stream, says := range map[string]string{"WordDocument": "old Word format", "Workbook": "old Excel format", "PowerPoint Document": "old PowerPoint format"} {
		_, err := Parse(context.Background(), Input{Name: "a", Data: compound(map[string]string{stream: ""})})
		if !errors.Is(err, ErrNeedsProgram) || !strings.Contains(fmt.Sprint(err), says+"; install LibreOffice (soffice)") {
			t.Errorf("%s: %v", stream, err)
		}
	}
}

func TestLegacyLocked(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Parse(context.Background(), Input{Name: "a.doc", Data: compound(map[string]string{"WordDocument": "0123456789\x00\x01"})})
	if !errors.Is(err, ErrPassword) {
		t.Error(err)
	}
}

// fakeOffice puts a script named soffice into the PATH.
func fakeOffice(t *testing.T, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "soffice"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("TMPDIR", t.TempDir())
}

// TestLegacyConverts has a program write the converted document where it is told to.
func TestLegacyConverts(t *testing.T) {
	converted := filepath.Join(t.TempDir(), "converted.docx")
	if err := os.WriteFile(converted, docx(t, wordPara("", wordRun("converted")), nil), 0o600); err != nil {
		t.Fatal(err)
	}
	fakeOffice(t, `
case "$1" in -env:UserInstallation=file://*/profile) ;; *) exit 2 ;; esac
while [ $# -gt 1 ]; do
	case "$1" in --convert-to) to=$2 ;; --outdir) out=$2 ;; esac
	shift
done
test -r "$1" && test -r "$HOME/profile/user/registrymodifications.xcu" && mkdir "$out" && cp "`+converted+`" "$out/in.$to"
`)
	doc, err := Parse(context.Background(), Input{Name: "a.doc", Data: compound(map[string]string{"WordDocument": ""})})
	if err != nil || doc.Text != "converted" || doc.Type != "doc" {
		t.Errorf("%q %q %v", doc.Type, doc.Text, err)
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

func TestLegacyFails(t *testing.T) {
	data := compound(map[string]string{"Workbook": ""})
	for script, kind := range map[string]error{"exit 3": ErrDamaged, "exit 0": ErrDamaged, "mkdir out; echo x >out/in.xlsx": ErrDamaged} {
		fakeOffice(t, script)
		if _, err := Parse(context.Background(), Input{Name: "a.xls", Data: data}); !errors.Is(err, kind) {
			t.Errorf("%s: %v", script, err)
		}
	}
}

// TestLegacyKilled ends the context of a program that has started another.
func TestLegacyKilled(t *testing.T) {
	fakeOffice(t, "sleep 1000 & sleep 1000")
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := Parse(ctx, Input{Name: "a.xls", Data: compound(map[string]string{"Workbook": ""})})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestLegacyReal converts real documents to the formats of old and reads them.
func TestLegacyReal(t *testing.T) {
	soffice, err := findOffice()
	root := os.Getenv("ASSAY_TESTDATA")
	if err != nil || root == "" || testing.Short() {
		t.Skip("needs soffice and ASSAY_TESTDATA, and is slow")
	}
	for _, tt := range []struct{ name, to, says string }{
		{"docx/sources/word_sample.docx", "doc", "first lay down in a water"},
		{"pptx/sources/powerpoint_sample.pptx", "ppt", "Second slide title"},
		{"xlsx/sources/xlsx_03_chartsheet.xlsx", "xls", "Freshwater Ducks"},
	} {
		folder := t.TempDir()
		in := filepath.Join(root, "data", "parsing", filepath.FromSlash(tt.name))
		if _, err := os.Stat(in); err != nil {
			t.Skip(err)
		}
		cmd := exec.Command(soffice, "-env:UserInstallation=file://"+folder+"/profile", "--headless", "--convert-to", tt.to, "--outdir", folder, in)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		base := filepath.Base(in)
		data, err := os.ReadFile(filepath.Join(folder, strings.TrimSuffix(base, filepath.Ext(base))+"."+tt.to))
		if err != nil {
			t.Fatal(err)
		}
		if doc := parseOffice(t, "a", data); doc.Type != tt.to || !strings.Contains(doc.Text, tt.says) {
			t.Errorf("%s: %q %.200q", tt.name, doc.Type, doc.Text)
		}
	}
}

func TestNativeFile(t *testing.T) {
	body := "\x00\x00\x00\x00\x02\x00a.txt\x00C:\\a.txt\x00\x00\x00\x03\x00\x02\x00\x00\x00C\x00\x04\x00\x00\x00text"
	if name, file := nativeFile([]byte(body)); name != "a.txt" || string(file) != "text" {
		t.Errorf("%q %q", name, file)
	}
	for i := range body {
		if _, file := nativeFile([]byte(body[:i])); file != nil {
			t.Errorf("%d bytes give %q", i, file)
		}
	}
}
