package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
)

// findQuote returns the first step that returned the text which a citation quotes; nil: none did. Of a
// document it must have read the cited version at the cited place. Of a page of the web, and of an
// answer that was reused, the quote must be in a text that the step returned.
func findQuote(records []assay.Record, c assay.Citation) (*ProvenCitation, error) {
	for _, read := range []func(assay.Record) ([]readText, error){textsRead, textsSearched, textsFound} {
		for _, rec := range records {
			if rec.Output == nil {
				continue
			}
			texts, err := read(rec)
			if err != nil {
				return nil, fmt.Errorf("step %s: %w: %w", rec.Path, assay.ErrDamaged, err)
			}
			for _, t := range texts {
				if t.holds(c) {
					return &ProvenCitation{Citation: c, Step: rec.Path, Sequence: rec.Sequence, Text: t.Text}, nil
				}
			}
		}
	}
	return nil, nil
}

// A readText is text that a step returned, with its place if it is of a document.
type readText struct {
	Document string `json:"document"`
	Version  string `json:"version"`
	Start    int    `json:"start"`
	Text     string `json:"text"`
	place    bool   // Document, Version and Start are known

	origins []assay.Origin // without a place: where citations of it come from; nil: anywhere
}

// holds reports whether the text has the citation's quote, at its place if that is known.
func (t readText) holds(c assay.Citation) bool {
	if c.Quote == "" {
		return false
	}
	if !t.place {
		return (t.origins == nil || slices.Contains(t.origins, c.Origin)) && strings.Contains(t.Text, c.Quote)
	}
	if c.Origin != assay.FromDocuments || t.Document != c.Document || t.Version != c.Version {
		return false
	}
	from, to := c.Start-t.Start, c.End-t.Start
	inside := 0 <= from && from <= to && to <= len(t.Text)
	return inside && t.Text[from:to] == c.Quote
}

// textsSearched returns the texts that a search found, with their places if they are of documents.
func textsSearched(rec assay.Record) ([]readText, error) {
	if rec.Kind != assay.StepSearch {
		return nil, nil
	}
	var out struct {
		Hits []struct {
			Chunk  readText
			Text   string
			Origin assay.Origin
		}
	}
	err := json.Unmarshal(rec.Output, &out)
	var texts []readText
	for _, h := range out.Hits {
		if h.Origin != assay.FromDocuments { // its document is kept nowhere else
			texts = append(texts, readText{Text: h.Text, origins: []assay.Origin{h.Origin}})
			continue
		}
		h.Chunk.Text, h.Chunk.place = h.Text, true
		texts = append(texts, h.Chunk)
	}
	return texts, err
}

// textsRead returns the texts of documents that a step read, with their places.
func textsRead(rec assay.Record) ([]readText, error) {
	if rec.Kind != assay.StepRead {
		return nil, nil
	}
	if len(rec.Output) > 0 && rec.Output[0] == '{' { // a page for a tool
		page := readText{place: true}
		err := json.Unmarshal(rec.Output, &page)
		return []readText{page}, err
	}
	var wanted, got []readText
	if err := json.Unmarshal(rec.Input, &wanted); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(rec.Output, &got); err != nil {
		return nil, err
	}
	if len(got) > len(wanted) {
		return nil, fmt.Errorf("it read %d passages and returned %d", len(wanted), len(got))
	}
	for i := range got {
		wanted[i].Text, wanted[i].place = got[i].Text, true
	}
	return wanted[:len(got)], nil
}

// textsFound returns the texts of steps that did not read a document of this store: pages of the web,
// and the citations of an answer that was reused.
func textsFound(rec assay.Record) ([]readText, error) {
	var origins []assay.Origin
	switch rec.Kind {
	case assay.StepCache: // nil: an earlier answer has citations of any origin
	case assay.StepWeb:
		origins = []assay.Origin{assay.FromWeb}
	case assay.StepModel:
		origins = []assay.Origin{assay.FromService}
	default:
		return nil, nil
	}
	var out any
	if err := json.Unmarshal(rec.Output, &out); err != nil {
		return nil, err
	}
	var texts []readText
	eachString(out, func(text string) { texts = append(texts, readText{Text: text, origins: origins}) })
	return texts, nil
}

// eachString calls fn for each string value in decoded JSON.
func eachString(v any, fn func(string)) {
	switch v := v.(type) {
	case string:
		fn(v)
	case []any:
		for _, e := range v {
			eachString(e, fn)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			eachString(v[key], fn)
		}
	}
}
