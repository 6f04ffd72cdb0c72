package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A progress shows a person what is being done, on standard error. Where nobody
// watches, in a pipe, it prints nothing. Its methods are safe for concurrent use: who works
// on several things at once reports from each of them.
type progress struct {
	w       io.Writer
	scrub   func(string) string // takes credentials out; nil: there are none
	watched bool
	escapes bool
	color   bool
	width   int

	mu      sync.Mutex // guards what follows, and w
	live    bool       // the last line stands and is replaced by the next one
	noted   bool       // lines were printed that stay
	updated time.Time  // when the live line was written
}

func (a *app) progress() *progress {
	return &progress{w: a.terminal, watched: a.watched, escapes: a.escapes, color: a.color, width: a.watchedWidth}
}

// refresh is the shortest time between two versions of the live line.
const refresh = 50 * time.Millisecond

// update replaces the live line, at most every refresh. A terminal on which
// nothing can be replaced shows only what stays.
func (p *progress) update(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.escapes || p.live && time.Since(p.updated) < refresh {
		return
	}
	p.wipe()
	fmt.Fprint(p.w, p.faint(p.line(format, args...)))
	p.live, p.updated = true, time.Now()
}

// note prints a line that stays.
func (p *progress) note(format string, args ...any) {
	if !p.watched {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	fmt.Fprintln(p.w, p.faint(p.line(format, args...)))
	p.noted = true
}

// end removes the live line, and sets what stays apart from what follows.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	if p.noted {
		fmt.Fprintln(p.w)
		p.noted = false
	}
}

// clear removes the live line.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}

// wipe removes the live line. The caller holds mu.
func (p *progress) wipe() {
	if p.live {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.live = false
	}
}

// line is what is said, as it fits on a line.
func (p *progress) line(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if p.scrub != nil {
		text = p.scrub(text)
	}
	return oneLine(plainLine(text), p.width-1)
}

func (p *progress) faint(s string) string {
	if !p.color {
		return s
	}
	return "\x1b[2m" + s + "\x1b[0m"
}
