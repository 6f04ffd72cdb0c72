package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"empty", "", ""},
		{"short", "one two", "  one two\n"},
		{"long", "one two three four five six", "  one two three four\n  five six\n"},
		{"a word longer than a line", "a abcdefghijklmnopqrstuvwxyz b", "  a\n  abcdefghijklmnopqrstuvwxyz\n  b\n"},
		{"paragraphs", "one\n\ntwo", "  one\n\n  two\n"},
		{"list", "- one two three four five", "  - one two three\n    four five\n"},
		{"indented code", "see\n\tif x { return a.very.long.name }", "  see\n  \tif x { return a.very.long.name }\n"},
		{"fenced code", "```\na  b   c d e f g h i j k\n```\nd  e", "  ```\n  a  b   c d e f g h i j k\n  ```\n  d e\n"},
		{"columns count, characters do not", "日本語 日本語 日本 日", "  日本語 日本語 日本\n  日\n"},
		{"runes count, bytes do not", "éééé éééé éééé éééé", "  éééé éééé éééé\n  éééé\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, wrap(test.text, "  ", 20)); diff != "" {
				t.Errorf("wrap(%q) (-want +got):\n%s", test.text, diff)
			}
		})
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"", ""},
		{"a\n b", "a b"},
		{"0123456789", "0123456789"},
		{"0123456789a", "012345678…"},
		{"ééééééééééé", "ééééééééé…"},
		{"日本語日本", "日本語日本"},
		{"日本語日本語", "日本語日…"},
		{"e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301", "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301"},
	}
	for _, test := range tests {
		if got := oneLine(test.text, 10); got != test.want {
			t.Errorf("oneLine(%q, 10) = %q, want %q", test.text, got, test.want)
		}
	}
}
