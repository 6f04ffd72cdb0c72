package testset

import (
	"github.com/assay-rag/assay"
)

// A Case is a question of a set with its labels.
type Case struct {
	ID       string       `json:"id"`
	Question string       `json:"question"`
	History  []assay.Turn `json:"conversation,omitempty"` // previous turns, the oldest first
	Filter   assay.Filter `json:"filter,omitzero"`        // restricts the search
	Tenant   string       `json:"tenant,omitempty"`       // tenant of the caller

	Collections []string `json:"collections,omitempty"` // to search; empty: all

	Answers      []string `json:"answers,omitempty"` // reference answers; any of them is right
	Gold         []Gold   `json:"gold,omitempty"`    // places that an answer must rest on: all of them if AllGold, else any
	AllGold      bool     `json:"all_gold,omitempty"`
	Unanswerable bool     `json:"unanswerable,omitempty"` // the documents do not answer it
	Conflicting  *bool    `json:"conflicting,omitempty"`  // the documents disagree about it; nil: unknown

	Slices map[string]string `json:"slices,omitempty"` // groups for the figures, such as {"type": "number"}

	presumed bool // Unanswerable was inferred from a golden question without sections
}

// Labelled reports whether the case has any label. Without one, no answer can be judged right or
// wrong.
func (c Case) Labelled() bool {
	return c.Unanswerable || len(c.Answers) > 0 || len(c.Gold) > 0
}

// Gold is a place in the documents: a whole document, a span of one, or a section.
type Gold struct {
	Document string `json:"document"`          // its ID, its URI, or a suffix of that from a "/" on; empty: any that has the section
	Section  string `json:"section,omitempty"` // heading of the section
	Start    int    `json:"start,omitempty"`   // byte offset in the document's text; with End 0: all of it
	End      int    `json:"end,omitempty"`
	Quote    string `json:"quote,omitempty"` // text of the span; it locates the place if the document has changed
	Grade    int    `json:"grade,omitempty"` // of relevance, from 1; 0: 1
}
