package strategy

import (
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/surface"
)

// siblings reports whether documents of these titles are about two things of a kind:
// "Falcon gateway" and "Heron gateway". What one says does not contradict what the other
// does. Titles that tell versions of one thing apart, by a number or a word such as
// "superseded", are none.
func siblings(a, b string) bool {
	ta, tb := titleTerms(a), titleTerms(b)
	shared, onlyA, onlyB := 0, 0, 0
	for t, name := range ta {
		switch {
		case tb[t] != "":
			shared++
		case !tellsVersions(name):
			onlyA++
		default:
			return false
		}
	}
	for t, name := range tb {
		if ta[t] != "" {
			continue
		}
		if tellsVersions(name) {
			return false
		}
		onlyB++
	}
	return shared > 0 && onlyA > 0 && onlyB > 0
}

// titleTerms returns a title's content words by their stems.
func titleTerms(title string) map[string]string {
	terms := map[string]string{}
	for _, t := range analysis.Tokens(title, "") {
		word := strings.ToLower(title[t.Start:t.End])
		if !t.Part && !surface.Function(word) {
			terms[t.Term] = word
		}
	}
	return terms
}

// tellsVersions reports whether a word of a title tells one version of a thing from
// another.
func tellsVersions(word string) bool {
	return strings.ContainsAny(word, "0123456789") || versionWords[word]
}

var versionWords = map[string]bool{
	"old": true, "older": true, "new": true, "newer": true, "draft": true, "final": true, "current": true, "former": true, "previous": true,
	"superseded": true, "obsolete": true, "deprecated": true, "archive": true, "archived": true, "revised": true, "updated": true, "latest": true,
	"version": true, "edition": true, "release": true, "copy": true,
}

// apart reports whether every document that claim cites is a sibling of the one of that
// title.
func (c checkedClaim) apart(title string) bool {
	for _, cit := range c.cited {
		if !siblings(cit.Title, title) {
			return false
		}
	}
	return len(c.cited) > 0
}

// allApart reports whether a claim that cites these is about other things than c.
func (c checkedClaim) allApart(others []assay.Citation) bool {
	for _, cit := range others {
		if !c.apart(cit.Title) {
			return false
		}
	}
	return len(others) > 0
}
