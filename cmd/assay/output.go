package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An output is a stream for people and programs. What documents, file names and
// questions hold could steer the terminal that it ends on: control characters,
// and those that turn the direction of text, are written as \u001b, which in
// JSON, where they stand in strings alone, means the same as they do.
//
// The first error is kept, so that an output that was cut short is found out
// whoever wrote to it.
type output struct {
	w     io.Writer
	scrub func(string) string // takes credentials out; nil: there are none
	err   error
}

// Write writes p, which holds whole characters. Bytes that are not UTF-8 become
// U+FFFD.
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

// faint writes text, faintly if asked to: on a terminal that understands it.
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

// plain replaces what could steer a terminal, all but line breaks and tabs.
func plain(text string) string {
	return escape(text, func(r rune) bool { return r != '\n' && r != '\t' && steers(r) })
}

// plainLine is plain for text that has to stay on its line, such as the name of
// a file.
func plainLine(text string) string { return escape(text, steers) }

// steers reports whether a character is an order to the terminal and not a sign.
func steers(r rune) bool {
	return unicode.IsControl(r) ||
		'\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069' || // embed, override, isolate a direction
		r == '\u2028' || r == '\u2029' // break a line
}

// escape writes the characters that are to be replaced as \u and four digits.
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
