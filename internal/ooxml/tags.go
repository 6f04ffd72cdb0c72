package ooxml

import (
	"fmt"
	"io"
)

// maxTag is the most bytes of a tag. Package xml holds a tag with all its attributes in memory.
const maxTag = 4 << 20

// A tagReader fails at a tag that is too long.
type tagReader struct {
	r     io.Reader
	name  string // of the part
	state byte   // one of the states below, or the open quote
	size  int    // of the tag so far
}

// States of a tagReader.
const (
	inText   = 0
	inTag    = 't'
	inMarkup = '!' // a comment, declaration or instruction, in which quotes are text
)

func (t *tagReader) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	for _, c := range b[:n] {
		t.next(c)
		if t.size > maxTag {
			return 0, fmt.Errorf("part %q has a tag of more than %d MiB: %w", t.name, maxTag>>20, ErrLimit)
		}
	}
	return n, err
}

func (t *tagReader) next(c byte) {
	if t.state == inText {
		if c == '<' {
			t.state, t.size = inTag, 0
		}
		return
	}
	t.size++
	switch {
	case t.state == '"' || t.state == '\'':
		if c == t.state {
			t.state = inTag
		}
	case c == '>':
		t.state, t.size = inText, 0
	case t.state == inMarkup:
	case t.size == 1 && (c == '!' || c == '?'):
		t.state = inMarkup
	case c == '"' || c == '\'':
		t.state = c
	}
}
