package opensearch

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/entity"
)

// Weights of the fields, those of package index.
const (
	titleWeight    = 3
	headingsWeight = 3
	bodyWeight     = 1
)

// A rowBuilder makes the rows of documents. It is not safe for concurrent use.
type rowBuilder struct {
	analyzers   analysis.Analyzers
	finder      entity.Finder
	terms       strings.Builder
	frequencies map[string]int64 // of the terms
	length      int64
}

// rows returns the rows of the text of a document. A chunk outside the document is assay.ErrDamaged,
// and an ID other than 32 lower-case hexadecimal digits assay.ErrInvalid.
func (b *rowBuilder) rows(claim int64, c assay.Change) ([]row, error) {
	d := c.Document
	for _, id := range []string{c.ID, d.ID, d.Version} {
		if err := checkID(id); err != nil {
			return nil, fmt.Errorf("document %s: %w", d.URI, err)
		}
	}
	r := row{Kind: kindText, Claim: claim, Document: d.ID, Version: d.Version, Collection: keyword(d.Collection), ACL: aclTokens(d.ACL)}
	r.Keys, r.Meta = metaTokens(d.Metadata)
	spoken := language(d)
	analyzer := b.analyzers.In(spoken)
	var rows []row
	for _, chunk := range c.Chunks {
		if chunk.Start < 0 || chunk.Start > chunk.End || chunk.End > len(d.Text) {
			return nil, fmt.Errorf("chunk %s is [%d, %d) of a document of %d bytes: %w", chunk.ID, chunk.Start, chunk.End, len(d.Text), assay.ErrDamaged)
		}
		if err := checkID(chunk.ID); err != nil {
			return nil, fmt.Errorf("chunk of document %s: %w", d.URI, err)
		}
		if chunk.Kind == assay.ChunkSection {
			continue
		}
		b.add(analyzer, d.Title, titleWeight)
		for _, h := range chunk.Headings {
			b.add(analyzer, h, headingsWeight)
		}
		b.add(analyzer, d.Text[chunk.Start:chunk.End], bodyWeight)
		r.Chunk, r.Language, r.Terms, r.Length = chunk.ID, latin(spoken), b.terms.String(), b.length
		r.Impacts = impacts(b.frequencies, b.length)
		found := b.finder.Passage(d.Title, chunk.Headings, d.Text[chunk.Start:chunk.End], spoken)
		r.Entities, r.Titles = entityTokens(slices.Clone(found))
		b.terms, b.frequencies, b.length = strings.Builder{}, nil, 0
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		r.Kind = kindBlank
		rows = append(rows, r)
	}
	return rows, nil
}

// add adds the terms of a text, each as often as it counts.
func (b *rowBuilder) add(a *analysis.Analyzer, text string, weight int) {
	a.Each(text, func(t analysis.Token) {
		stored := term(t.Term)
		if b.frequencies == nil {
			b.frequencies = make(map[string]int64)
		}
		b.frequencies[stored] += int64(weight)
		for range weight {
			b.terms.WriteString(stored)
			b.terms.WriteByte(' ')
		}
		if !t.Part {
			b.length += int64(weight)
		}
	})
}

// typicalLength is the length of a chunk that the impacts assume as the average. It is a constant, so
// that no document influences the impacts of another.
const typicalLength = 150

// impacts returns the impact of each term of a chunk, by feature: its frequency divided by the length
// normalization of BM25. They have three decimals, because OpenSearch keeps nine bits of them.
func impacts(frequencies map[string]int64, length int64) map[string]float64 {
	b := assay.DefaultBM25.B
	norm := 1 - b + b*float64(length)/typicalLength
	list := make(map[string]float64, len(frequencies))
	for t, n := range frequencies {
		list[feature(t)] = max(1, math.Round(1000*float64(n)/norm)) / 1000
	}
	return list
}

func checkID(id string) error {
	raw, err := hex.DecodeString(id)
	if err != nil || len(raw) != 16 || strings.ToLower(id) != id {
		return fmt.Errorf("ID %q is not 32 lower-case hexadecimal digits: %w", id, assay.ErrInvalid)
	}
	return nil
}
