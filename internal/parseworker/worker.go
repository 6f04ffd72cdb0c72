package parseworker

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/assay-rag/assay/parse"
)

// A worker is a child process.
type worker struct {
	cmd    *exec.Cmd
	in     *os.File // its standard input
	to     *encoder
	from   *decoder
	out    *os.File // its standard output
	stderr head
	served int           // requests answered
	idle   *time.Timer   // while it waits in the pool
	exited chan struct{} // closed when the process has ended

	timedOut atomic.Bool // it was killed for its time
	tooLarge atomic.Bool // it was killed for its memory
	meter    meter
	limit    int64 // bytes of memory
	killed   sync.Once
	peak     atomic.Int64 // bytes, seen so far
}

// start starts a process and exchanges hellos with it.
func start(command, env []string, h hello) (*worker, error) {
	w := &worker{exited: make(chan struct{}), limit: h.Memory}
	w.cmd = exec.Command(command[0], command[1:]...)
	w.cmd.Args[0] = os.Args[0]
	w.cmd.Env = env
	w.cmd.Stderr = &w.stderr
	w.cmd.WaitDelay = time.Second
	isolate(w.cmd)
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, childIn.Close(), in.Close())
	}
	w.cmd.Stdin, w.cmd.Stdout = childIn, childOut
	w.in, w.out, w.to, w.from = in, out, newEncoder(in), newDecoder(out)
	started := make(chan error)
	go w.run(started)
	err = <-started
	childIn.Close()
	childOut.Close()
	if err != nil {
		return nil, errors.Join(err, in.Close(), out.Close())
	}
	w.meter = openMeter(strconv.Itoa(w.cmd.Process.Pid))
	if err := w.greet(h); err != nil {
		w.kill()
		<-w.exited
		w.close()
		return nil, fmt.Errorf("start: %w", cmp.Or(w.complaint(), err))
	}
	return w, nil
}

// run starts the process and waits for its end. It keeps its thread, with which the process would
// end otherwise.
func (w *worker) run(started chan<- error) {
	defer close(w.exited)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := w.cmd.Start()
	started <- err
	if err == nil {
		_ = w.cmd.Wait() // ProcessState has the result
	}
}

// greet sends the limits and waits for the answer.
func (w *worker) greet(h hello) error {
	defer time.AfterFunc(startTime, w.kill).Stop()
	w.to.message(kindHello, h)
	if err := w.to.flush(); err != nil {
		return err
	}
	kind, value, err := w.from.message()
	if err != nil {
		return err
	}
	var answer hello
	if err := json.Unmarshal(value, &answer); err != nil || kind != kindHello || answer.Parser != h.Parser {
		return errWire
	}
	return nil
}

// startTime is the longest that a process may take to start.
const startTime = time.Minute

// kill ends the process without waiting.
func (w *worker) kill() {
	select {
	case <-w.exited:
		return
	default:
	}
	w.killed.Do(func() {
		w.seen(peakOf(strconv.Itoa(w.cmd.Process.Pid)))
		_ = killProcess(w.cmd) // an error means that it has ended
	})
}

// watchMemory kills the process before it has more memory than its limit, until done is closed.
func (w *worker) watchMemory(done <-chan struct{}) {
	const (
		every   = 5 * time.Millisecond
		reserve = 24 << 20 // for an interval
	)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			now := w.meter.resident()
			w.seen(now)
			if now > w.limit-reserve {
				w.tooLarge.Store(true)
				w.kill()
				return
			}
		}
	}
}

// seen notes a value of the process's peak of memory.
func (w *worker) seen(peak int64) {
	for old := w.peak.Load(); peak > old && !w.peak.CompareAndSwap(old, peak); old = w.peak.Load() {
	}
}

// stop ends an idle process: first by the end of its input, then by a signal.
func (w *worker) stop() {
	w.in.Close()
	defer time.AfterFunc(time.Second, w.kill).Stop()
	<-w.exited
	w.close()
}

func (w *worker) close() {
	w.in.Close()
	w.out.Close()
	w.meter.close()
}

// end waits for the end of a process that failed with err, or kills it if it does not end, and
// returns the reason.
func (w *worker) end(err error) failure {
	if errors.Is(err, errWire) {
		w.kill()
	}
	timer := time.AfterFunc(time.Second, w.kill)
	<-w.exited
	timer.Stop()
	killChildren(w.cmd)
	w.close()
	text := w.stderr.String()
	code := w.cmd.ProcessState.ExitCode()
	switch {
	case w.timedOut.Load() || code == exitTimeout:
		return failure{kind: parse.ErrLimit, tooLong: true}
	case w.tooLarge.Load():
		return failure{kind: parse.ErrLimit, tooLarge: true}
	case code == exitMemory:
		_, peak, _ := strings.Cut(text, peakLine)
		peak, _, _ = strings.Cut(peak, "\n")
		if n, err := strconv.ParseInt(peak, 10, 64); err == nil {
			w.seen(n)
		}
		return failure{kind: parse.ErrLimit, tooLarge: true}
	case isOutOfMemory(text):
		return failure{kind: parse.ErrLimit, tooLarge: true}
	}
	reason := cmp.Or(w.complaint(), err)
	if errors.Is(reason, io.EOF) || errors.Is(reason, io.ErrUnexpectedEOF) || errors.Is(reason, os.ErrClosed) || errors.Is(reason, syscall.EPIPE) {
		reason = errors.New("its process ended with " + w.cmd.ProcessState.String())
	}
	return failure{kind: parse.ErrCrash, message: reason.Error()}
}

// isOutOfMemory reports whether the Go runtime has ended a process because the system refused it
// memory.
func isOutOfMemory(stderr string) bool {
	if strings.HasPrefix(stderr, "SIGSEGV") { // the runtime does not handle all refusals
		_, frames, _ := strings.Cut(stderr, "\ngoroutine ")
		_, frames, _ = strings.Cut(frames, "\n")
		return strings.HasPrefix(frames, "runtime.")
	}
	return slices.ContainsFunc(
		[]string{"out of memory", "cannot allocate memory", "cannot reserve arena", "failed to allocate", "errno=12", "pthread_create failed", "failed to create new OS thread"},
		func(s string) bool { return strings.Contains(stderr, s) })
}

// complaint returns the first line of a panic or fatal error on standard error, or its first line;
// nil if it is empty.
func (w *worker) complaint() error {
	text := w.stderr.String()
	for _, start := range []string{"panic: ", "fatal error: ", ""} {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && strings.HasPrefix(line, start) {
				return errors.New(strings.ToValidUTF8(line[:min(len(line), 300)], "\uFFFD"))
			}
		}
	}
	return nil
}

// A failure is the reason for the end of a worker.
type failure struct {
	kind     error // parse.ErrLimit or parse.ErrCrash
	tooLong  bool
	tooLarge bool
	message  string // otherwise
}

// A head keeps the first bytes that are written to it and discards the others.
type head struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (h *head) Write(p []byte) (int, error) {
	const most = 16 << 10
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buf.Write(p[:min(len(p), most-min(most, h.buf.Len()))])
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf.String()
}
