package main

import (
	"bytes"
	"testing"
)

// The model is the same each time, and small.
func TestEncode(t *testing.T) {
	first, second := encode(metadata(), tensors()), encode(metadata(), tensors())
	if !bytes.Equal(first, second) {
		t.Error("two models differ")
	}
	if len(first) > 2<<20 {
		t.Errorf("the model has %d bytes", len(first))
	}
}

// The tests of package e2e name these tokens by their numbers.
func TestTokens(t *testing.T) {
	if call != 3 || token('"') != 38 {
		t.Errorf("a call is token %d, a quotation mark %d; want 3 and 38", call, token('"'))
	}
}
