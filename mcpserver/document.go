package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
)

// mostText is the most bytes of a document in one result.
const mostText = 40_000

// A part is a piece of a document's text.
type part struct {
	document   assay.Document
	text       string // document.Text[start:end]
	start, end int
	next       string // ID of the next part; empty: there is none
}

// partSeparator separates the elements of the ID of a part: document, version, offset. A template of
// URIs takes it unencoded.
const partSeparator = "."

// readPart returns the part of a document with an ID: that of the document for the first one. The
// error is assay.ErrInvalid if the document has changed since the part before.
func readPart(ctx context.Context, s *engine.Session, id string) (part, error) {
	p := part{}
	name, rest, later := strings.Cut(id, partSeparator)
	d, err := s.Document(ctx, name)
	if err != nil {
		return p, err
	}
	if later {
		version, offset, _ := strings.Cut(rest, partSeparator)
		if p.start, err = strconv.Atoi(offset); err != nil || p.start < 0 || p.start > len(d.Text) {
			return p, fmt.Errorf("%q is not the id of a part: %w", id, assay.ErrInvalid)
		}
		if version != d.Version {
			return p, fmt.Errorf("the document has changed; fetch %s again: %w", name, assay.ErrInvalid)
		}
		if p.start < len(d.Text) && !utf8.RuneStart(d.Text[p.start]) {
			return p, fmt.Errorf("%q is not the id of a part: it begins inside of a character: %w", id, assay.ErrInvalid)
		}
	}
	var more bool
	p.document = d
	p.text, more = cut(d.Text[p.start:], mostText)
	p.end = p.start + len(p.text)
	if more {
		p.next = strings.Join([]string{d.ID, d.Version, strconv.Itoa(p.end)}, partSeparator)
	}
	return p, nil
}

// cut returns the beginning of text, at most n bytes, and whether there is more. It ends after a line
// if that is not much shorter, and always between characters.
func cut(text string, n int) (head string, more bool) {
	if len(text) <= n {
		return text, false
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	if i := strings.LastIndexByte(text[:n], '\n'); i >= n/2 {
		n = i + 1
	}
	return text[:n], true
}

// titleOf returns the title of a document or, if it has none, the last element of its URI.
func titleOf(title, uri string) string { return cmp.Or(title, path.Base(uri)) }

// linkOf returns the address of a document: its URI if that is on the web, and otherwise that of its
// resource here.
func linkOf(uri, id string) string {
	if strings.HasPrefix(uri, "https://") || strings.HasPrefix(uri, "http://") {
		return uri
	}
	return documentResource(id)
}
