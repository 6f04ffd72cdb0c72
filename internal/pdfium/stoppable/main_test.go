package main

import (
	"bytes"
	"testing"
)

// module imports _abort_js and has a function with a loop that ends at once.
var module = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x04\x01\x60\x00\x00" + // one type: no parameters, no results
	"\x02\x11\x01\x03env\x09_abort_js\x00\x00" +
	"\x03\x02\x01\x00" +
	"\x0a\x09\x01\x07\x00\x03\x40\x42\x7f\x1a\x0b" + // loop, i64.const -1, drop, end
	"\x0b")

func TestRewrite(t *testing.T) {
	m := bytes.Clone(module)
	m[len(m)-11], m[len(m)-9] = 10, 8 // sizes of the section and of the body
	got, err := rewrite(m)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(got, []byte{0x03, 0x40})
	if want := checkOf(0); at < 0 || !bytes.HasPrefix(got[at+2:], want) {
		t.Errorf("the loop does not start with % x:\n% x", want, got)
	}
	for n := range len(m) {
		if out, err := rewrite(m[:n]); err == nil && bytes.Contains(out, []byte{0x03, 0x40}) {
			t.Errorf("the first %d bytes give % x", n, out)
		}
	}
}
