package parseworker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-rag/assay/parse"
)

// Defaults and bounds of a Pool.
const (
	DefaultTimeout = 30 * time.Second
	DefaultMemory  = 512 << 20

	defaultTotal   = 10 * time.Minute
	recognizeTotal = time.Hour        // if text is recognised in images
	maxServed      = 500              // requests of one worker
	maxFailures    = 16               // documents of one source that end a worker
	idleTime       = 30 * time.Second // then a worker is ended
)

// A Pool parses documents in child processes. Its fields must not change after the first Walk. It
// is safe for concurrent use and must be closed.
type Pool struct {
	// Command is the program and the arguments of a worker, whose main function calls Serve. An
	// empty program is the running one.
	Command []string

	Env []string // of the workers, besides the variables named in environment

	Workers int           // processes at a time; 0: one per CPU
	Timeout time.Duration // for each document, including those in others, and for each page; 0: DefaultTimeout
	Total   time.Duration // for a source with all documents in it; 0: 10 minutes, or an hour with parse.Input.OCR
	Memory  int64         // bytes that a worker may have in memory; 0: DefaultMemory

	once  sync.Once
	slots chan struct{} // one for each running Walk
	calls sync.WaitGroup

	mu     sync.Mutex
	closed bool
	idle   []*worker

	peak   atomic.Int64
	starts atomic.Int64
}

// ErrClosed is returned by Walk after Close.
var ErrClosed = errors.New("the parse workers are closed")

func (p *Pool) init() {
	p.Timeout = cmp.Or(p.Timeout, DefaultTimeout)
	p.Memory = cmp.Or(p.Memory, DefaultMemory)
	p.slots = make(chan struct{}, cmp.Or(p.Workers, runtime.GOMAXPROCS(0)))
}

// Peak returns the most bytes that a worker of the pool has had in memory; 0: not known. For workers
// that crashed it is by samples every 5 ms, and not known on systems other than Linux.
func (p *Pool) Peak() int64 { return p.peak.Load() }

// Started returns the number of processes that the pool has started.
func (p *Pool) Started() int64 { return p.starts.Load() }

// Walk is parse.Walk in a worker. It waits while all workers are busy.
//
// A document that exceeds a limit or crashes the worker is yielded with an error, parse.ErrLimit or
// parse.ErrCrash, and without Data; the other documents of the source are not affected. If too many
// do so, or the source as a whole takes longer than Total, the last value yielded is for the source
// itself, with an ErrLimit. Walk returns ctx's error, yield's, or the reason that no worker can be
// started. yield must not call Walk.
func (p *Pool) Walk(ctx context.Context, in parse.Input, yield func(parse.Parsed) error) error {
	p.once.Do(p.init)
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.done()
	c := call{ctx: ctx, pool: p, in: in, yield: yield, yielded: map[string]bool{}, bad: map[string]bool{}, total: p.total(in)}
	c.left = c.total
	return c.run()
}

// total returns the time for a source with all documents in it.
func (p *Pool) total(in parse.Input) time.Duration {
	if in.OCR != nil {
		return cmp.Or(p.Total, recognizeTotal)
	}
	return cmp.Or(p.Total, defaultTotal)
}

// begin waits for a slot.
func (p *Pool) begin(ctx context.Context) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return ErrClosed
	}
	p.calls.Add(1)
	p.mu.Unlock()
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		p.calls.Done()
		return ctx.Err()
	}
}

func (p *Pool) done() {
	<-p.slots
	p.calls.Done()
}

// Close waits for running Walks and ends all workers. A second Close does nothing.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.calls.Wait()
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	var ended sync.WaitGroup
	for _, w := range idle {
		w.idle.Stop()
		ended.Go(w.stop)
	}
	ended.Wait()
	return nil
}

// worker returns an idle worker or a new one.
func (p *Pool) worker() (*worker, error) {
	p.mu.Lock()
	for len(p.idle) > 0 {
		w := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if w.idle.Stop() {
			p.mu.Unlock()
			return w, nil
		}
	}
	p.mu.Unlock()
	command := slices.Clone(p.Command)
	if len(command) == 0 {
		command = []string{""}
	}
	if command[0] == "" {
		var err error
		if command[0], err = program(); err != nil {
			return nil, fmt.Errorf("start a process to parse documents: %w", err)
		}
	}
	p.starts.Add(1)
	w, err := start(command, append(environment(os.Environ()), p.Env...),
		hello{Parser: parse.Version, Timeout: int64(p.Timeout), Memory: p.Memory})
	if err != nil {
		return nil, fmt.Errorf("start a process to parse documents: %w", err)
	}
	return w, nil
}

// keep returns a worker to the pool after a request, or ends it if it is used up.
func (p *Pool) keep(w *worker, e end) {
	w.seen(e.Peak)
	p.note(w)
	w.served++
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || w.timedOut.Load() || w.tooLarge.Load() || w.served >= maxServed || e.Resident > p.Memory/2 {
		p.calls.Go(w.stop)
		return
	}
	w.idle = time.AfterFunc(idleTime, w.stop)
	p.idle = append(p.idle, w)
}

// note adds a worker's peak to the pool's.
func (p *Pool) note(w *worker) {
	peak := w.peak.Load()
	for old := p.peak.Load(); peak > old && !p.peak.CompareAndSwap(old, peak); old = p.peak.Load() {
	}
}

// environment selects the variables that parsers and the programs that they call need. The others
// may be secrets.
func environment(all []string) []string {
	var env []string
	for _, pair := range all {
		name, _, _ := strings.Cut(pair, "=")
		if slices.Contains(passedOn, strings.ToUpper(name)) || strings.HasPrefix(name, "LC_") {
			env = append(env, pair)
		}
	}
	return env
}

var passedOn = []string{
	"PATH", "HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA", "SYSTEMROOT", "PATHEXT", "COMSPEC", "TMPDIR", "TMP", "TEMP",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "LANG", "LD_LIBRARY_PATH", "TESSDATA_PREFIX", "GOCOVERDIR", "GODEBUG", "GOMAXPROCS",
}

// A call is the state of one Walk.
type call struct {
	ctx   context.Context
	pool  *Pool
	in    parse.Input
	yield func(parse.Parsed) error

	yielded map[string]bool // paths
	bad     map[string]bool // paths of documents that ended a worker, yielded with an error
	at      string          // path of the document that is parsed now
	last    string          // path of the document during which the last worker ended
	total   time.Duration   // for the source
	left    time.Duration   // of total
}

// run sends the source to workers until one answers completely.
func (c *call) run() error {
	for retry := true; ; {
		w, err := c.pool.worker()
		if err != nil {
			return err
		}
		fresh := w.served == 0
		e, stop, err := c.ask(w)
		switch {
		case err == nil:
			c.pool.keep(w, e)
			return nil
		case stop:
			w.kill()
			<-w.exited
			w.close()
			return err
		}
		f := w.end(err)
		c.pool.note(w)
		if err := c.ctx.Err(); err != nil {
			return err
		}
		c.last = c.at
		if retry && !f.tooLong && (!fresh || c.yielded[c.at]) {
			retry = false // the documents before may have been the cause
			continue
		}
		retry = true
		if done, err := c.fail(f); done || err != nil {
			return err
		}
	}
}

// fail yields the document that ended a worker. done means that the rest of the source cannot be
// parsed or that there is none.
func (c *call) fail(f failure) (done bool, err error) {
	switch {
	case c.left <= 0 && c.yielded[""]:
		return true, c.yieldError("", fmt.Sprintf("the files in it took more than %v to parse", c.total), parse.ErrLimit)
	case c.yielded[c.at]: // a container, which was parsed once; the parts after it are lost
		return true, c.yieldError("", c.reason(f), f.kind)
	}
	if err := c.yieldError(c.at, c.reason(f), f.kind); err != nil || c.at == "" {
		return true, err
	}
	c.bad[c.at] = true
	if len(c.bad) == maxFailures {
		return true, c.yieldError("", fmt.Sprintf("%d of the files in it could not be parsed within the limits; those after %s were not tried", len(c.bad), c.at), parse.ErrLimit)
	}
	return false, nil
}

// yieldError yields an error for the document at path.
func (c *call) yieldError(path, reason string, kind error) error {
	name := c.in.Name
	if path != "" {
		name = path[strings.LastIndex(path, "!/")+1:]
		name = strings.TrimPrefix(name, "/")
	}
	c.yielded[path] = true
	return c.yield(parse.Parsed{Path: path, Err: fmt.Errorf("parse %s: %s: %w", cmp.Or(name, "input"), reason, kind)})
}

// reason returns the message for a failure.
func (c *call) reason(f failure) string {
	switch {
	case f.tooLong && c.left <= 0:
		return fmt.Sprintf("parsing took more than %v", c.total)
	case f.tooLong:
		return fmt.Sprintf("parsing took more than %v", c.pool.Timeout)
	case f.tooLarge:
		return fmt.Sprintf("parsing needed more than %d MiB of memory", c.pool.Memory>>20)
	}
	return f.message
}

// skip returns the paths that a worker leaves out: all yielded ones except those that lead to where
// the last worker ended.
func (c *call) skip() []string {
	var paths []string
	for path := range c.yielded {
		if path != "" && !c.leads(path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// leads reports whether the parts of path may not all have been yielded.
func (c *call) leads(path string) bool {
	return path == c.last && !c.bad[path] || strings.HasPrefix(c.last, path+"!/")
}

// ask sends the source to w and yields the documents that it answers with. stop means that the
// error is ctx's or yield's; other errors are w's.
func (c *call) ask(w *worker) (e end, stop bool, err error) {
	defer context.AfterFunc(c.ctx, w.kill)()
	done := make(chan struct{})
	var watch sync.WaitGroup
	defer watch.Wait()
	defer close(done)
	watch.Go(func() { w.watchMemory(done) })
	clock := c.watch(w)
	defer clock.stop()
	if err := w.to.request(request{Input: c.in, Left: int64(c.left), Skip: c.skip()}, c.in.Data); err != nil {
		return end{}, false, err
	}
	c.at = ""
	root := false // this worker has sent the source itself
	for {
		kind, value, err := w.from.message()
		if err != nil {
			return end{}, false, err
		}
		switch kind {
		case kindEnter:
			var m enter
			if err := json.Unmarshal(value, &m); err != nil {
				return end{}, false, errors.Join(errWire, err)
			}
			c.at = m.Path
		case kindStep:
		case kindParsed:
			p, err := w.from.parsed(value)
			if err != nil {
				return end{}, false, errors.Join(errWire, err)
			}
			before := c.yielded[p.Path] && (p.Path != "" || !root)
			root = root || p.Path == ""
			if before {
				break
			}
			c.yielded[p.Path] = true
			clock.stop()
			if err := c.yield(p); err != nil {
				return end{}, true, err
			}
		case kindEnd:
			if err := json.Unmarshal(value, &e); err != nil {
				return end{}, false, errors.Join(errWire, err)
			}
			return e, false, nil
		default:
			return end{}, false, errWire
		}
		clock.restart()
	}
}

// A deadline kills a worker that takes too long for a step of a document or for the rest of a source.
type deadline struct {
	call  *call
	w     *worker
	mu    sync.Mutex
	timer *time.Timer // nil: stopped
	since time.Time
}

// watch starts the clock for w's first document.
func (c *call) watch(w *worker) *deadline {
	d := &deadline{call: c, w: w}
	d.restart()
	return d
}

// restart starts the clock for the next step or document.
func (d *deadline) restart() {
	d.stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since = time.Now()
	var timer *time.Timer
	timer = time.AfterFunc(min(d.call.pool.Timeout, max(d.call.left, 0)), func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.timer == timer {
			d.w.timedOut.Store(true)
			d.w.kill()
		}
	})
	d.timer = timer
}

// stop stops the clock and takes the time from that of the source.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer == nil {
		return
	}
	d.timer.Stop()
	d.timer = nil
	d.call.left -= time.Since(d.since)
}
