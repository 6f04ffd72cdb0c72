package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A progress shows the progress of a command on standard error. It prints nothing if that is not a
// terminal. Its methods are safe for concurrent use.
type progress struct {
	w       io.Writer
	scrub   func(string) string // removes credentials; nil: none to remove
	watched bool
	escapes bool
	color   bool
	width   int

	mu      sync.Mutex // guards the following fields and w
	live    bool       // the last line is replaced by the next one
	noted   bool       // permanent lines were printed
	updated time.Time  // time of the last live line
}

func (a *app) progress() *progress {
	return &progress{w: a.terminal, watched: a.watched, escapes: a.escapes, color: a.color, width: a.watchedWidth}
}

// refresh is the minimum time between two updates of the live line.
const refresh = 50 * time.Millisecond

// update replaces the live line, at most once per refresh. It prints nothing on a terminal that
// cannot replace a line.
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

// note prints a permanent line.
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

// end removes the live line and separates permanent lines from later output.
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

// wipe removes the live line. The caller must hold mu.
func (p *progress) wipe() {
	if p.live {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.live = false
	}
}

// line formats a message to fit on one line.
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
