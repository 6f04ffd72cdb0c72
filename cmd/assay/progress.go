package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A progress shows the progress of a command on standard error: on a terminal as a live line, and
// otherwise, as in a pipe or a log, as a line a minute. Its methods are safe for concurrent use.
type progress struct {
	w       io.Writer
	scrub   func(string) string // removes credentials; nil: none to remove
	watched bool
	escapes bool
	color   bool
	width   int
	now     func() time.Time // nil: time.Now
	began   time.Time        // of the ingest shown; zero: none yet

	mu      sync.Mutex // guards the following fields and w
	live    bool       // the last line is replaced by the next one
	noted   bool       // permanent lines were printed
	updated time.Time  // time of the last live line or, without one, of the last line or the start
}

func (a *app) progress() *progress {
	scrub := func(text string) string {
		if a.stderr.scrub == nil {
			return text
		}
		return a.stderr.scrub(text)
	}
	p := &progress{w: a.terminal, scrub: scrub, watched: a.watched, escapes: a.escapes, color: a.color, width: a.watchedWidth}
	p.updated = p.clock()
	return p
}

func (p *progress) clock() time.Time {
	if p.now != nil {
		return p.now()
	}
	return time.Now()
}

// refresh is the minimum time between two updates of the live line.
const refresh = 50 * time.Millisecond

// lineInterval is the time between two lines where a line cannot be replaced. A command that ends sooner
// prints none.
const lineInterval = time.Minute

// update replaces the live line, at most once per refresh. Where a line cannot be replaced it prints
// one per lineInterval.
func (p *progress) update(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	if !p.escapes {
		if now.Sub(p.updated) >= lineInterval {
			fmt.Fprintln(p.w, p.line(format, args...))
			p.updated = now
		}
		return
	}
	if p.live && now.Sub(p.updated) < refresh {
		return
	}
	p.wipe()
	fmt.Fprint(p.w, p.faint(p.line(format, args...)))
	p.live, p.updated = true, now
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
