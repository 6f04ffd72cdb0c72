package resilient

import (
	"bytes"
	"strings"
	"sync"

	"github.com/assay-rag/assay/llm"
)

// A listener stands between the attempts of a call and whoever listens to it, who is
// told a text once.
type listener struct {
	tell func(llm.Delta) // nil: nobody listens
	most int             // bytes of a text

	mu       sync.Mutex // models are not trusted to keep to one goroutine
	attempt  int
	told     []byte
	said     []byte // by this attempt
	strays   bool   // this attempt says something else than was told
	closed   bool
	panicked any // by tell
}

// begin starts an attempt and returns what hears it. It calls stop when the text gets
// too long.
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

// pass tells what is new. A panic of whoever listens is not one of the model.
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

// heard returns what the last attempt has said.
func (l *listener) heard() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.said)
}

// rest tells what of a reply's text was not told yet, if what was told is its
// beginning.
func (l *listener) rest(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fresh, ok := strings.CutPrefix(text, string(l.told)); ok {
		l.pass(fresh)
	}
}

// close ends the telling.
func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}
