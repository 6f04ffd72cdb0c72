package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/assay-rag/assay"
)

// place formats the location of a passage: the document's path with its line or page. The path is
// relative to the working directory if that is shorter. The page of a PDF is the fragment that opens
// it there.
func place(uri string, line, page int) string {
	p := shortPath(uri)
	switch {
	case assay.PageLink(uri, page) != "":
		return fmt.Sprintf("%s#page=%d", p, page)
	case line > 0 && page > 0:
		return fmt.Sprintf("%s:%d, page %d", p, line, page)
	case line > 0:
		return fmt.Sprintf("%s:%d", p, line)
	case page > 0:
		return fmt.Sprintf("%s, page %d", p, page)
	}
	return p
}

// shortPath returns path or, if it is shorter, the path relative to the working directory. The
// result is one line.
func shortPath(path string) string { return plainLine(shorter(path)) }

func shorter(path string) string {
	switch {
	case path == "stdin:-":
		return "standard input"
	case strings.Contains(path, ":") && !filepath.IsAbs(path):
		return path // a URL, or a name given to standard input
	}
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(wd, filepath.FromSlash(path))
	if err != nil || len(rel) >= len(path) {
		return path
	}
	return rel
}

// title joins a document's title and heading path on one line.
func title(name string, headings []string) string {
	var parts []string
	for _, part := range append([]string{name}, headings...) {
		part = strings.Join(strings.Fields(part), " ")
		if part != "" && (len(parts) == 0 || parts[len(parts)-1] != part) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " › ")
}
