//go:build unix

package parseworker

import (
	"bufio"
	"bytes"
	"context"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/pdftest"
	"github.com/assay-rag/assay/parse"
)

// TestProgram checks that the OCR program that a worker runs has a limit of memory, and that it is
// killed with its worker.
func TestProgram(t *testing.T) {
	t.Parallel()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 100, 100))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		kill    func(worker int, cancel func()) // nil: the time ends
	}{
		{"canceled", time.Hour, func(_ int, cancel func()) { cancel() }},
		{"killed", time.Hour, func(worker int, _ func()) { _ = syscall.Kill(worker, syscall.SIGKILL) }},
		{"too long", 15 * time.Second, nil}, // the program starts before, also on a busy machine
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fifo, program := filepath.Join(dir, "pipe"), filepath.Join(dir, "tesseract")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Skip(err)
			}
			script := "#!/bin/sh\nexec 1>" + fifo + " 2>/dev/null\nulimit -d\necho $PPID\nexec sleep 1000\n"
			if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			p := testPool(t, "parse")
			p.Timeout = tt.timeout
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				done <- p.Walk(ctx, parse.Input{Name: "a.png", Data: picture.Bytes(), OCR: &parse.OCR{Program: program}}, func(d parse.Parsed) error {
					t.Log(d.Err)
					return nil
				})
			}()
			f, err := os.Open(fifo) // waits for the program
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r := bufio.NewReader(f)
			limit, parent := word(t, r), word(t, r)
			if runtime.GOOS == "linux" && limit != "786432" {
				t.Errorf("the program may have %s KiB of data, want %d", limit, DefaultMemory/1024*3/2)
			}
			if tt.kill != nil {
				var worker int
				for _, c := range parent {
					worker = worker*10 + int(c-'0')
				}
				tt.kill(worker, cancel)
			}
			if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 { // the pipe ends when the program does
				t.Errorf("%q, %v", rest, err)
			}
			if err := <-done; err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
}

// TestScan checks that a scan whose pages together take longer than the time for a document is read.
func TestScan(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "tesseract")
	script := `#!/bin/sh
cd "$(dirname "$0")"
n=$(ls | wc -l)
touch page$n
set -- Hares Foxes Snow Rivers Bread Ships Towers Lanterns Wolves
shift $((n-1))
sleep 2
printf '5\t1\t1\t1\t1\t1\t300\t%d\t90\t30\t90\t%s\n' $((400+120*n)) $1
`
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var f pdftest.File
	for range 8 {
		f.Page(595, 842).Rectangle(72, 72, 300, 300, true)
	}
	compilePDFium(t)
	p := testPool(t, "parse")
	p.Timeout = 15 * time.Second // the program alone takes longer for 8 pages
	read := 0
	if err := p.Walk(t.Context(), parse.Input{Name: "a.pdf", Data: f.Bytes(), OCR: &parse.OCR{Program: program}}, func(d parse.Parsed) error {
		for _, page := range d.Document.Pages {
			if page.Outcome == assay.PageRecognized {
				read++
			}
		}
		return d.Err
	}); err != nil {
		t.Fatal(err)
	}
	if read != 8 {
		t.Errorf("%d of 8 pages are read", read)
	}
}

func word(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}
