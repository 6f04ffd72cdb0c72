//go:build unix

package parseworker

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func init() {
	openPipe = func(file string) {
		if file == "" {
			return
		}
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			os.Exit(9)
		}
		f.WriteString("open\n") // to a pipe
		pipe = f
	}
}

var pipe *os.File // of a hanging worker

// TestOrphan checks that a worker that hangs ends when its parent is killed.
func TestOrphan(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PARSEWORKER_TEST=parent", "PARSEWORKER_PIPE="+fifo)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(fifo) // waits for the worker
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 100)
	if n, err := f.Read(buf); err != nil || string(buf[:n]) != "open\n" {
		t.Fatalf("the worker wrote %q, %v", buf[:n], err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if n, err := f.Read(buf); n != 0 { // the pipe ends when the worker does
		t.Errorf("the worker wrote %q, %v after its parent's end", buf[:n], err)
	}
}
