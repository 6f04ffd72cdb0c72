//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A sandbox is a folder with documents and room for a data directory, and the built binary.
type sandbox struct {
	t      *testing.T
	binary string
	dir    string
	user   *syscall.Credential // user that runs the binary; nil: the user of the test
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	binary, err := buildBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "assay-sandbox-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s := &sandbox{t: t, binary: binary, dir: dir}
	s.write("handbook/travel.md", "# Travel\n\n## Approval\n\nTravel to a customer is approved by the head of the department.\n\n"+
		"## Receipts\n\nReceipts are handed in within 30 days.\n")
	s.write("handbook/security.md", "# Security\n\n## Devices\n\nA lost laptop is reported to the platform team.\n\n"+
		"## Visitors\n\nVisitors wear a badge.\n")
	return s
}

func (s *sandbox) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// unprivileged makes an ordinary user run the binary from now on, because root can write read-only
// files.
func (s *sandbox) unprivileged() {
	if os.Getuid() != 0 {
		return
	}
	const nobody = 65534
	s.user = &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: true}
	err := filepath.WalkDir(s.dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *sandbox) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), s.binary, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "XDG_CACHE_HOME="+filepath.Join(s.dir, ".cache"), "XDG_CONFIG_HOME="+filepath.Join(s.dir, ".config"), "ASSAY_DATA=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.user}
	return cmd
}

// want runs the binary, which must exit with the code and print the words on standard output or
// error.
func (s *sandbox) want(code int, words string, args ...string) {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	if got != code || !strings.Contains(string(out), words) {
		s.t.Errorf("assay %s ended with %d, want %d with %q; it printed\n%s", strings.Join(args, " "), got, code, words, out)
	}
}

// await waits until another process has brought about a condition.
func (s *sandbox) await(there func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); !there(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatal("waited for ten minutes in vain")
		}
	}
}

// TestBinaryExitCodes checks the exit codes of the built binary.
func TestBinaryExitCodes(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.want(exitAnswered, "approved by the head of the department", "ask", "--docs", "handbook", "Who approves travel to a customer?")
	s.want(exitNotFound, "Not found in these documents.", "ask", "--docs", "handbook", "What is the boiling point of tungsten?")
	s.want(exitUsage, "unknown flag", "ask", "--nosuchflag", "x")
	s.want(exitUsage, "unknown strategy", "ask", "--docs", "handbook", "--strategy", "magic", "x")
	s.want(exitError, "no documents yet", "ask", "x")
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	s.write(".assay/assay.json", `{"program":"assay","format":99}`)
	s.want(exitDamaged, "newer version", "ask", "x")
	s.want(exitAnswered, "go1", "version")
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.write("handbook/secret.md", "# Secret\n")
	s.write("closed/note.md", "# Note\n")
	s.unprivileged()
	for _, path := range []string{"handbook/secret.md", "closed"} {
		if err := os.Chmod(filepath.Join(s.dir, path), 0); err != nil {
			t.Fatal(err)
		}
	}
	s.want(exitUsage, "closed: may not be read: permission denied", "ingest", "closed")
	s.want(exitAnswered, "skipped handbook/secret.md: ", "ingest", "handbook")
	s.want(exitAnswered, "2 documents", "documents")
	s.want(exitAnswered, "head of the department", "ask", "Who approves travel to a customer?")
}

// TestReadOnlyData checks that a read-only data directory can be searched, and that errors explain
// why other operations fail.
func TestReadOnlyData(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	s.unprivileged()
	chmod := func(dir, file os.FileMode) {
		err := filepath.WalkDir(filepath.Join(s.dir, ".assay"), func(path string, entry os.DirEntry, err error) error {
			mode := file
			if entry.IsDir() {
				mode = dir
			}
			return errors.Join(err, os.Chmod(path, mode))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	chmod(0o555, 0o444)
	s.want(exitAnswered, "Approval", "search", "approves travel")
	s.want(exitAnswered, "2 documents", "documents")
	s.want(exitError, "data is read-only; make it writable", "ask", "Who approves travel to a customer?")
	s.want(exitError, "data is read-only; make it writable", "ingest", "handbook")
	s.want(exitError, "read-only", "doctor")
	s.want(exitAnswered, "", "runs")
	chmod(0o755, 0o644)
	s.want(exitAnswered, "head of the department", "ask", "Who approves travel to a customer?")
}

// TestIngestTwice checks that a second ingest fails while another process is ingesting, that its
// error names that process, and that questions are still answered.
func TestIngestTwice(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	// The first one waits for standard input and holds the writer's lock.
	first := s.command("ingest", "-", "--name", "note.md")
	in, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	who := fmt.Sprintf("process %d", first.Process.Pid)
	s.await(func() bool {
		holder, err := os.ReadFile(filepath.Join(s.dir, ".assay/tenants/default/writer.lock"))
		return err == nil && strings.TrimSpace(string(holder)) == fmt.Sprint(first.Process.Pid)
	})
	s.want(exitLocked, who+"; wait until it has finished, or stop it", "ingest", "handbook")
	s.want(exitAnswered, who, "doctor")
	s.want(exitAnswered, "head of the department", "ask", "Who approves travel to a customer?")
	if _, err := in.Write([]byte("# Note\n\nA note.\n")); err != nil {
		t.Error(err)
	}
	if err := errors.Join(in.Close(), first.Wait()); err != nil {
		t.Errorf("the first ingest: %v", err)
	}
	s.want(exitAnswered, "2 unchanged", "ingest", "handbook")
	s.want(exitAnswered, "3 documents", "documents")
}

// TestAskTogether asks several questions concurrently about a folder that has not been read. One
// process reads it and the others wait.
func TestAskTogether(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			s.want(exitAnswered, "head of the department", "ask", "--docs", "handbook", "Who approves travel to a customer?")
		})
	}
	asking.Wait()
	s.want(exitAnswered, "4 runs replayed to the same answer", "replay", "--all", "--docs", "handbook")
}

// TestInterruptIngest checks that Ctrl-C during an ingest keeps the stored documents and that the
// same command continues.
func TestInterruptIngest(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			s := newSandbox(t)
			cmd := s.command("ingest", "handbook", "-", "--name", "note.md")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// The process waits for standard input after it has stored the handbook.
			s.await(func() bool {
				out, _ := s.command("documents").Output()
				return bytes.Contains(out, []byte("2 documents"))
			})
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			exit, ok := errors.AsType[*exec.ExitError](cmd.Wait())
			if !ok || exit.ExitCode() != exitInterrupted {
				t.Errorf("interrupted ingest: %v, want exit code %d", exit, exitInterrupted)
			}
			if want := "assay: ingest: interrupted; everything stored so far is kept"; !strings.Contains(stderr.String(), want) {
				t.Errorf("it says %q, want %q", stderr.String(), want)
			}
			s.want(exitAnswered, "2 unchanged", "ingest", "handbook")
		})
	}
}

// TestInterruptAsk checks that a run interrupted by Ctrl-C is kept and can be resumed.
func TestInterruptAsk(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for i := range 200 { // enough to take a while
		s.write(fmt.Sprintf("notes/%d.md", i), strings.Repeat(fmt.Sprintf("# Note %d\n\nTravel note %d.\n\n", i, i), 40))
	}
	s.want(exitAnswered, "202 added", "ingest", "handbook", "notes")
	// Without the index, a question must read all documents again.
	if err := os.RemoveAll(filepath.Join(s.dir, ".assay/tenants/default/index")); err != nil {
		t.Fatal(err)
	}
	cmd := s.command("ask", "--trace", "--timeout", "10m", "Who approves travel to a customer?")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	lines.Scan() // the plan is done, the search has begun
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var rest strings.Builder
	for lines.Scan() {
		rest.WriteString(lines.Text() + "\n")
	}
	exit, ok := errors.AsType[*exec.ExitError](cmd.Wait())
	if !ok {
		t.Skip("the question was answered before the signal arrived")
	}
	if exit.ExitCode() != exitInterrupted || !strings.Contains(rest.String(), "assay: ask: interrupted; continue with: assay resume ") {
		t.Errorf("interrupted ask: %v, and it says\n%s", exit, rest.String())
	}
	s.want(exitAnswered, "interrupted", "runs")
	s.want(exitAnswered, "1 interrupted, can be resumed", "doctor")
	s.want(exitAnswered, "head of the department", "resume", "last")
	s.want(exitAnswered, "the same answer", "replay", "last")
}

// TestFullDisk checks that a full disk loses no stored data, and that ingest and questions work
// again when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for i := range 40 {
		s.write(fmt.Sprintf("large/%d.md", i), fmt.Sprintf("# Large %d\n\n", i)+strings.Repeat("words and more words to fill the disk with. ", 5000))
	}
	script := `
mount -t tmpfs -o size=3m tmpfs disk || exit 99
step() { want=$1; shift; "$@" >out 2>&1; got=$?; cat out
	[ $got = $want ] || { echo "*** $* ended with $got, want $want"; exit 1; }; }
step 0 "$ASSAY" ingest --data disk/data handbook
step 1 "$ASSAY" ingest --data disk/data handbook large
grep -q 'no space left on device.*; free some space and try again' out || { echo "*** it does not say why"; exit 1; }
dd if=/dev/zero of=disk/ballast bs=4096 >out 2>&1
step 1 "$ASSAY" ask --data disk/data 'Who approves travel to a customer?'
grep -q 'no space left on device' out || { echo "*** it does not say why"; exit 1; }
rm disk/ballast
mount -o remount,size=60m disk || exit 99
step 0 "$ASSAY" ask --data disk/data 'Who approves travel to a customer?'
grep -q 'head of the department' out || { echo "*** the handbook is lost"; exit 1; }
step 0 "$ASSAY" ingest --data disk/data handbook large
step 0 "$ASSAY" documents --data disk/data
grep -q '42 documents' out || { echo "*** not all documents are there"; exit 1; }
step 0 "$ASSAY" replay --all --data disk/data
`
	if err := os.Mkdir(filepath.Join(s.dir, "disk"), 0o755); err != nil {
		t.Fatal(err)
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("needs unshare, to mount a small disk")
	}
	cmd := exec.CommandContext(t.Context(), unshare, "--user", "--map-root-user", "--mount", "sh", "-c", script)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "ASSAY="+s.binary, "XDG_CACHE_HOME="+filepath.Join(s.dir, ".cache"))
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && (exit.ExitCode() == 99 || bytes.Contains(out, []byte("unshare: "))) {
		t.Skipf("cannot mount a small disk here: %s", out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAlteredText changes a letter of a stored text on disk. The text must not be quoted, doctor
// must find it, and ingest --verify must store it again.
func TestAlteredText(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.want(exitAnswered, "2 added", "ingest", "handbook")
	database := filepath.Join(s.dir, ".assay", "tenants", "default", "content.db")
	before, err := os.ReadFile(database)
	if err != nil {
		t.Fatal(err)
	}
	after := bytes.ReplaceAll(before, []byte("approved by the head"), []byte("approved by the hand"))
	if bytes.Equal(before, after) {
		t.Fatal("the text is not in the file")
	}
	if err := os.WriteFile(database, after, 0o600); err != nil {
		t.Fatal(err)
	}
	s.want(exitDamaged, "was altered since it was stored", "ask", "Who approves travel to a customer?")
	s.want(exitDamaged, "travel.md: the text from 0 to", "doctor")
	s.want(exitAnswered, "0 added, 1 updated, 1 unchanged", "ingest", "--verify", "handbook")
	s.want(exitAnswered, "ok    documents", "doctor")
	s.want(exitAnswered, "approved by the head", "ask", "Who approves travel to a customer?")
}
