package engine

import (
	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/retrieve"
)

// Types of an Explanation.
type (
	// A SearchMatch is a term of the query that a hit has, with the fields that have it.
	SearchMatch = retrieve.Match

	// A SearchDrop is a hit that was left out.
	SearchDrop = retrieve.Drop

	// A SearchStage is a part of a search with its time.
	SearchStage = retrieve.Stage

	// A SearchMark is a part of a hit's text that matches a term of the query.
	SearchMark = retrieve.Mark
)

// A SearchReport is the result of a search for display: assay.Results with a reason for each hit.
type SearchReport struct {
	Hits   []ReportedHit      `json:"hits"`
	Terms  []assay.Term       `json:"terms"`
	Chunks int                `json:"chunks"` // in the index
	Total  int                `json:"total"`  // passages with a term of the query
	Index  assay.IndexVersion `json:"index"`
	Notes  []assay.Note       `json:"notes,omitempty"`

	// Dropped and Stages are set if the search was explained.
	Dropped []SearchDrop  `json:"dropped,omitempty"`
	Stages  []SearchStage `json:"stages,omitempty"`
}

// A ReportedHit is a hit with its reasons.
type ReportedHit struct {
	assay.Hit
	Link      string        `json:"link,omitempty"` // as of assay.PageLink
	Why       []SearchMatch `json:"why"`
	Explained *Explained    `json:"explained,omitempty"` // set if the search was explained
}

// ReportOfSearch returns the report of a search. With explain it has how each hit was ranked, what was
// left out and the time of each stage.
func ReportOfSearch(found Explanation, explain bool) SearchReport {
	r := found.Results
	out := SearchReport{Hits: []ReportedHit{}, Terms: r.Terms, Chunks: r.Chunks, Total: r.Total, Index: r.Index, Notes: r.Notes}
	if out.Terms == nil {
		out.Terms = []assay.Term{}
	}
	for i, h := range r.Hits {
		hit := ReportedHit{Hit: h, Link: assay.PageLink(h.URI, h.Page), Why: []SearchMatch{}}
		if i < len(found.Hits) && found.Hits[i].Why != nil {
			hit.Why = found.Hits[i].Why
		}
		if explain && i < len(found.Hits) {
			hit.Explained = &found.Hits[i]
		}
		out.Hits = append(out.Hits, hit)
	}
	if explain {
		out.Dropped, out.Stages = found.Dropped, found.Stages
	}
	return out
}

// MarksOfSearch returns the words of a hit that match the terms of its query, as offsets into its text.
func MarksOfSearch(terms []assay.Term, h assay.Hit) []SearchMark { return retrieve.Marks(terms, h) }
