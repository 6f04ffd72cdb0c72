package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay/internal/visible"
)

// An output is a stream for people and programs. Text from documents, file names and questions
// could control the terminal, so control characters and those that change the direction of text are
// written as escapes such as \u001b. In JSON they occur only in strings, where the escape has the
// same meaning.
//
// The first error is kept, so that incomplete output is detected even if the writer ignored the
// error.
type output struct {
	w     io.Writer
	scrub func(string) string // removes credentials; nil: none to remove
	err   error
}

// Write writes p, which must hold whole characters. Bytes that are not UTF-8 become U+FFFD.
func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	text := string(p)
	if o.scrub != nil {
		text = o.scrub(text)
	}
	if _, o.err = io.WriteString(o.w, plain(text)); o.err != nil {
		return 0, o.err
	}
	return len(p), nil
}

// faint writes text, faintly if the terminal supports it.
func (o *output) faint(text string, faintly bool) error {
	if !faintly {
		_, err := o.Write([]byte(text))
		return err
	}
	if o.err == nil {
		_, o.err = io.WriteString(o.w, "\x1b[2m")
	}
	_, _ = o.Write([]byte(text))
	if o.err == nil {
		_, o.err = io.WriteString(o.w, "\x1b[0m")
	}
	return o.err
}

// plain escapes characters that could control a terminal, except line breaks and tabs.
func plain(text string) string {
	return escape(text, func(r rune) bool { return r != '\n' && r != '\t' && visible.Steers(r) })
}

// plainLine is plain for text that must stay on one line, such as a file name.
func plainLine(text string) string { return escape(text, visible.Steers) }

// escape writes the characters that replace selects as \u and four digits.
func escape(text string, replace func(rune) bool) string {
	if utf8.ValidString(text) && strings.IndexFunc(text, replace) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if replace(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
