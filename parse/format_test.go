package parse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/google/go-cmp/cmp"
)

// paged is a binary format for tests: a signature with a zero byte, then pages of lines between
// form feeds.
var paged = format{
	name: "paged",
	is:   func(src *source) bool { return bytes.HasPrefix(src.data, []byte("\x00PAGED")) },
	parse: func(src *source, b *builder) bool {
		for i, page := range bytes.Split(src.data[len("\x00PAGED"):], []byte("\f")) {
			b.page = i + 1
			if string(page) == "locked" {
				b.err = fmt.Errorf("page %d is encrypted: %w", b.page, ErrBinary)
				return false
			}
			b.puts(Paragraph, string(page), 0)
		}
		return true
	},
}

// TestBinaryFormat checks that a row of the table suffices for a format that is not text, whose
// anchors are pages.
func TestBinaryFormat(t *testing.T) {
	with := slices.Concat([]format{paged}, formats)
	doc, err := parseAs(t.Context(), Input{Name: "a.txt", Data: []byte("\x00PAGEDone\ftwo\nlines\f\fthree")}, with)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Type != "paged" || doc.Text != "one\n\ntwo\nlines\n\nthree" {
		t.Errorf("%s %q", doc.Type, doc.Text)
	}
	want := []assay.Anchor{{Start: 0, Page: 1}, {Start: 5, Page: 2}, {Start: 16, Page: 4}}
	if diff := cmp.Diff(want, doc.Anchors); diff != "" {
		t.Errorf("anchors (-want +got):\n%s", diff)
	}
	whole := assay.Document{Text: doc.Text, Anchors: doc.Anchors}
	for word, page := range map[string]int{"one": 1, "two": 2, "lines": 2, "three": 4} {
		if line, got := whole.Position(strings.Index(doc.Text, word)); got != page || line != 0 {
			t.Errorf("%s is on page %d, line %d, want page %d", word, got, line, page)
		}
	}
	_, err = parseAs(t.Context(), Input{Name: "a.pg", Data: []byte("\x00PAGEDone\flocked")}, with)
	if !errors.Is(err, ErrBinary) || !strings.Contains(err.Error(), "parse a.pg: page 2 is encrypted") {
		t.Errorf("an encrypted page: %v", err)
	}
	_, err = parseAs(t.Context(), Input{Data: []byte("\x00PAGED")}, with)
	if !errors.Is(err, ErrEmpty) {
		t.Errorf("no page: %v", err)
	}
	_, err = Parse(t.Context(), Input{Data: []byte("\x00PAGEDone")})
	if !errors.Is(err, ErrBinary) || !strings.Contains(err.Error(), "zero bytes") {
		t.Errorf("an unknown binary format: %v", err)
	}
}

// TestMediaType checks that a media type replaces the extension as a hint and that the content
// overrides both.
func TestMediaType(t *testing.T) {
	for _, tt := range []struct{ name, mediaType, text, want string }{
		{"", "text/markdown", "hello", "markdown"},
		{"page.php", "text/html", "<p>one</p><p>two", "html"},
		{"a.md", "text/plain", "hello", "text"},
		{"a.md", "application/octet-stream", "hello", "markdown"},
		{"", "Application/JSON", `{"a": 1}`, "json"},
		{"", "text/plain", "<!doctype html><p>hello", "html"},
		{"", "text/html", "no markup at all", "text"},
		{"", "text/csv", "a,b\n1,2\n", "csv"},
	} {
		doc, err := Parse(context.Background(), Input{Name: tt.name, Type: tt.mediaType, Data: []byte(tt.text)})
		if err != nil || doc.Type != tt.want {
			t.Errorf("%q as %q, %q: %s, %v, want %s", tt.text, tt.name, tt.mediaType, doc.Type, err, tt.want)
		}
	}
}
