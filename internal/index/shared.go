package index

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
)

// This file exports how the index analyses and scores, for indexes on other engines whose scores
// must equal those of a Searcher.

// ScoreUnit is the integer that represents a BM25 score of 1. Scores are sums of whole units, so
// that they do not depend on the order of addition.
const ScoreUnit = scoreUnit

// CheckQuery reports an invalid limit or invalid BM25 parameters as assay.ErrInvalid.
func CheckQuery(q assay.Query) error { return checkQuery(q) }

// IDF returns the inverse document frequency of a term that holding of the visible chunks have.
func IDF(chunks, holding int) float64 { return idf(chunks, holding) }

// TermWeight returns assay.Term.Weight of a term that holding of the visible chunks have.
func TermWeight(chunks, holding int) float64 { return weight(chunks, holding) }

// A Norm holds the length normalisation of BM25. A term of idf i with the weighted frequency tf in
// a chunk of the weighted length l adds
//
//	floor(i·ScoreUnit·tf / (tf + (PerLength·l + Fixed))) + 1
//
// units to the chunk's score, where each operation is rounded to a float64.
type Norm struct{ PerLength, Fixed float64 }

// NewNorm returns the norm for an average weighted length, with the defaults for zero fields of p.
func NewNorm(average float64, p assay.BM25) Norm {
	s := newSaturation(average, p)
	return Norm{PerLength: s.perLength, Fixed: s.fixed}
}

// CheckVector reports an unknown metric, values that are not finite or too large, and a zero vector
// under Cosine as assay.ErrInvalid.
func CheckVector(v Vector) error {
	_, _, err := nearest(context.Background(), nil, v, 1)
	return err
}

// CheckStoredVector reports values that are not finite, or too large, as assay.ErrDamaged.
func CheckStoredVector(values []float32) error {
	if !(length(values) <= maxNorm) {
		return fmt.Errorf("a vector that is not finite, or longer than %g: %w", maxNorm, assay.ErrDamaged)
	}
	return nil
}

// ParseID parses an ID of 32 lower-case hexadecimal digits.
func ParseID(s string) (id [16]byte, ok bool) {
	raw, ok := parseID(s)
	return raw, ok
}

// FormatID is the inverse of ParseID.
func FormatID(id [16]byte) string { return hex.EncodeToString(id[:]) }

// Language returns the language that a document's metadata declares, or the empty string.
func Language(d *assay.Document) string { return language(d) }

// CheckChunk reports a chunk outside its document's text as assay.ErrDamaged and an invalid ID as
// assay.ErrInvalid. It returns the parsed ID.
func CheckChunk(d *assay.Document, c *assay.Chunk) ([16]byte, error) {
	if c.Start < 0 || c.End < c.Start || c.End > len(d.Text) {
		return rawID{}, fmt.Errorf("chunk %s [%d, %d) is outside its document's %d bytes: %w", c.ID, c.Start, c.End, len(d.Text), assay.ErrDamaged)
	}
	id, ok := parseID(c.ID)
	if !ok || id == (rawID{}) {
		return rawID{}, fmt.Errorf("chunk %q: an ID is 32 hexadecimal digits, not all zero: %w", c.ID, assay.ErrInvalid)
	}
	return id, nil
}

// A TermCounter counts the terms of chunks. It is not safe for concurrent use.
type TermCounter struct {
	analyzers analysis.Analyzers
	terms     map[string]uint32
}

// Count returns the weighted frequencies of a chunk's terms and its weighted length in words. The
// map is valid until the next call.
func (t *TermCounter) Count(d *assay.Document, c *assay.Chunk) (terms map[string]uint32, length uint32) {
	if t.terms == nil {
		t.terms = make(map[string]uint32)
	}
	clear(t.terms)
	a := t.analyzers.In(language(d))
	add := func(text string, weight uint32) {
		a.Each(text, func(token analysis.Token) {
			t.terms[token.Term] += weight
			if !token.Part {
				length += weight
			}
		})
	}
	add(d.Title, titleWeight)
	for _, h := range c.Headings {
		add(h, headingsWeight)
	}
	add(d.Text[c.Start:c.End], bodyWeight)
	return t.terms, length
}
