package ui

import (
	"fmt"
	"testing"

	"github.com/assay-rag/assay"
)

// TestWebAddress checks that only what a browser can open becomes a link, on each page with sources.
func TestWebAddress(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"https://example.com/a.html":             "https://example.com/a.html",
		"https://example.com/a.zip!/part/b.html": "", // a part of a container
		"http:handbook.md":                       "",
		"javascript:alert(1)":                    "",
		"handbook/travel.md":                     "",
	} {
		if got := webAddress(uri, 0); got != want {
			t.Errorf("webAddress(%q) = %q, want %q", uri, got, want)
		}
		shared := sharedSources(assay.Answer{Citations: []assay.Citation{{Number: 1, URI: uri, Line: 3}}})
		if len(shared) != 1 || shared[0].URL != want || shared[0].Place != "line 3" {
			t.Errorf("the source of a shared answer from %q: %+v, want the address %q", uri, shared, want)
		}
	}
}

// TestPlainError checks that an error beside a field is a sentence, in any script.
func TestPlainError(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"the note is long": "The note is long.", "éclair: unknown": "Éclair: unknown.", "„x“ is no name": "„x“ is no name."} {
		if got := plainError(fmt.Errorf("%s: %w", text, assay.ErrInvalid)); got != want {
			t.Errorf("plainError(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestPassagePath checks that passages of a managed service lead to no page of a document.
func TestPassagePath(t *testing.T) {
	t.Parallel()
	h := assay.Hit{Chunk: assay.Chunk{Document: "a/b", Version: "v", Start: 1, End: 2}}
	if got, want := passagePath(h), "/documents/a%2Fb?end=2&start=1&version=v#span"; got != want {
		t.Errorf("passagePath = %q, want %q", got, want)
	}
	if h.Origin = assay.FromService; passagePath(h) != "" {
		t.Errorf("passagePath of a managed service = %q", passagePath(h))
	}
}
