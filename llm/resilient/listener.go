package resilient

import (
	"bytes"
	"strings"
	"sync"

	"github.com/assay-rag/assay/llm"
)

// A listener passes the text of a call's attempts to a stream callback, so that the callback
// receives a text only once.
type listener struct {
	tell func(llm.Delta) // may be nil
	most int             // limit of a text in bytes

	mu       sync.Mutex // models may call from several goroutines
	attempt  int
	told     []byte
	said     []byte // text of this attempt so far
	strays   bool   // this attempt's text differs from told
	closed   bool
	panicked any // value of a panic of tell
}

// begin starts an attempt and returns its stream callback, which calls stop if the text gets too
// long.
func (l *listener) begin(stop func()) func(llm.Delta) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempt++
	l.said, l.strays = l.said[:0], false
	this := l.attempt
	return func(d llm.Delta) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.closed || l.attempt != this || d.Text == "" {
			return
		}
		if len(l.said)+len(d.Text) > l.most {
			stop()
			return
		}
		from := len(l.said)
		l.said = append(l.said, valid(d.Text)...)
		known := min(len(l.said), len(l.told))
		l.strays = l.strays || from < known && !bytes.Equal(l.said[from:known], l.told[from:known])
		if !l.strays {
			l.pass(string(l.said[known:]))
		}
	}
}

// pass passes new text to the callback. It records a panic of the callback, so that it is not
// attributed to the model.
func (l *listener) pass(fresh string) {
	if l.tell == nil || fresh == "" {
		return
	}
	defer func() {
		if l.panicked = recover(); l.panicked != nil {
			panic(l.panicked)
		}
	}()
	l.told = append(l.told, fresh...)
	l.tell(llm.Delta{Text: fresh})
}

// heard returns the text of the last attempt.
func (l *listener) heard() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.said)
}

// rest streams the part of a reply's text that was not streamed yet, if the text begins with what
// was streamed.
func (l *listener) rest(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fresh, ok := strings.CutPrefix(text, string(l.told)); ok {
		l.pass(fresh)
	}
}

// close makes the listener ignore further text.
func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}
