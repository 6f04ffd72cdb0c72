package parseworker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/assay-rag/assay/parse"
)

// The exit statuses of a worker that ends itself. Others are crashes.
const (
	exitProtocol = 80 // it cannot understand its parent
	exitTimeout  = 81
	exitMemory   = 82
)

// grace is how long a worker outlives its limit of time, so that its parent usually ends it first.
const grace = 5 * time.Second

// Serve runs a worker on the standard input and output of the process until the input ends, and
// does not return. Everything that the process prints afterwards goes to standard error.
func Serve() { os.Exit(serve(parse.WalkParts)) }

// A walk is parse.WalkParts, or a test's.
type walk func(context.Context, parse.Input, func(string) bool, func(parse.Parsed) error) error

func serve(walk walk) int {
	in, out := os.Stdin, os.Stdout
	os.Stdout = os.Stderr
	s := server{walk: walk, in: newDecoder(in), out: newEncoder(out)}
	err := s.hello()
	if err == nil {
		err = s.serve()
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return exitProtocol
}

// A server answers the requests of a Pool.
type server struct {
	walk  walk
	in    *decoder
	out   *encoder
	clock *clock
}

// hello reads the limits and applies them to the process.
func (s *server) hello() error {
	kind, value, err := s.in.message()
	if err != nil {
		return err
	}
	var h hello
	if err := json.Unmarshal(value, &h); err != nil || kind != kindHello {
		return errWire
	}
	if h.Parser != parse.Version {
		return fmt.Errorf("the program was replaced while it ran: it has the parser %s, want %s", parse.Version, h.Parser)
	}
	if h.Memory > 0 {
		runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))) // so that a parser's loop does not stop the watchdogs
		debug.SetMemoryLimit(h.Memory * 4 / 5)
		debug.SetMaxStack(int(h.Memory / 8))
		if err := limitMemory(h.Memory); err != nil {
			return fmt.Errorf("limit memory: %w", err)
		}
		go watchMemory(h.Memory)
	}
	s.clock = &clock{limit: time.Duration(h.Timeout) + grace}
	s.out.message(kindHello, hello{Parser: parse.Version})
	return s.out.flush()
}

// serve answers requests until the input ends. The process exits at once if the input ends during
// a request, because its parent is gone.
func (s *server) serve() error {
	requests := make(chan request)
	failed := make(chan error, 1)
	var busy sync.Mutex // held while a request is answered
	go func() {
		for {
			kind, value, err := s.in.message()
			var r request
			if err == nil && kind != kindRequest {
				err = errWire
			}
			if err == nil {
				r, err = s.in.request(value)
			}
			if err != nil {
				if !busy.TryLock() {
					os.Exit(0)
				}
				failed <- err
				return
			}
			requests <- r
		}
	}()
	for {
		select {
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case r := <-requests:
			busy.Lock()
			err := s.answer(r)
			r = request{}
			busy.Unlock()
			if err != nil {
				return err
			}
		}
	}
}

// answer parses one source. The clock runs while it works and not while it writes, which may wait
// for the parent.
func (s *server) answer(r request) error {
	skip := map[string]bool{}
	for _, path := range r.Skip {
		skip[path] = true
	}
	left := time.Duration(r.Left)
	r.Input.Until = time.Now().Add(left - left/10) // the rest is for the text of the pages read until then
	r.Input.Progress = func() {
		s.clock.stop()
		defer s.clock.start()
		s.out.message(kindStep, struct{}{})
		_ = s.out.flush() // the next message has the same error
	}
	s.clock.start()
	defer s.clock.stop()
	err := s.walk(context.Background(), r.Input, func(path string) bool {
		if skip[path] {
			return false
		}
		s.clock.stop()
		s.out.message(kindEnter, enter{path})
		err := s.out.flush()
		s.clock.start()
		return err == nil
	}, func(p parse.Parsed) error {
		s.clock.stop()
		defer s.clock.start()
		return s.out.parsed(p)
	})
	if err != nil {
		return err
	}
	s.clock.stop()
	r.Input.Data = nil
	now := resident()
	if now > keptMemory {
		debug.FreeOSMemory()
		now = resident()
	}
	s.out.message(kindEnd, end{Peak: peak(), Resident: now})
	return s.out.flush()
}

// keptMemory is how many resident bytes a worker keeps between requests without returning some to
// the system.
const keptMemory = 128 << 20

// A clock ends the process when it has run for longer than its limit since its start, which is the
// start of a step of a document.
type clock struct {
	limit time.Duration
	timer *time.Timer
}

func (c *clock) start() {
	c.stop()
	c.timer = time.AfterFunc(c.limit, func() {
		fmt.Fprintln(os.Stderr, "parsing took too long")
		os.Exit(exitTimeout)
	})
}

func (c *clock) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
}

// watchMemory ends the process before it has more than limit bytes in memory. The parent does the
// same from outside, earlier: nothing runs here while the garbage collector stops the process.
func watchMemory(limit int64) {
	const (
		every   = 5 * time.Millisecond
		reserve = 16 << 20 // for an interval
	)
	for range time.Tick(every) {
		if resident() > limit-reserve {
			fmt.Fprintf(os.Stderr, "%s%d\n", peakLine, peak())
			os.Exit(exitMemory)
		}
	}
}

// peakLine starts the line on standard error in which a worker that ends for its memory states its
// peak in bytes.
const peakLine = "peak of memory: "
