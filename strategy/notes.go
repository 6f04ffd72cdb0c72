package strategy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// noteList collects the distinct notes of searches and roles for an answer. Vector coverage grows
// from one search to the next, so only the lowest coverage is kept.
type noteList struct {
	texts    []assay.Note
	searched bool
	index    assay.IndexVersion // of the search with the least coverage
	covered  assay.Note         // its note on coverage; zero if none
}

// add adds the notes of search results.
func (n *noteList) add(r assay.Results) {
	var covered assay.Note
	for _, note := range r.Notes {
		if note.Kind == assay.NoteCoverage {
			covered = note
		} else {
			n.keep(note)
		}
	}
	n.cover(r.Index, covered)
}

// bounded returns a role's query on one line. If the query is longer than maxQuery, it returns ""
// and adds a note.
func (n *noteList) bounded(name, query string) string {
	query = visible.Line(query)
	if len(query) > maxQuery {
		n.say(assay.NoteRole, fmt.Sprintf("%s: its query of %d bytes is longer than a question may be and was not searched", name, len(query)))
		return ""
	}
	return query
}

// outcome adds the notes and the failure of a role's job.
func (n *noteList) outcome(name string, o role.Outcome) {
	kind := assay.NoteRole
	if o.StoodIn {
		kind = assay.NoteStoodIn
	}
	for _, text := range o.Notes {
		n.say(kind, remarkLine(text))
	}
	if o.Failure != "" {
		n.say(assay.NoteFailed, remarkLine(name+": "+strings.TrimPrefix(o.Failure, name+": ")))
	}
}

// join adds the notes of others.
func (n *noteList) join(others noteList) {
	for _, note := range others.texts {
		n.keep(note)
	}
	if others.searched {
		n.cover(others.index, others.covered)
	}
}

// say adds a note unless it is already present.
func (n *noteList) say(kind assay.NoteKind, text string) { n.keep(assay.Note{Kind: kind, Text: text}) }

func (n *noteList) keep(note assay.Note) {
	if !slices.Contains(n.texts, note) {
		n.texts = append(n.texts, note)
	}
}

func (n *noteList) cover(index assay.IndexVersion, covered assay.Note) {
	if !n.searched || index.Coverage < n.index.Coverage {
		n.index, n.covered, n.searched = index, covered, true
	}
}

// last returns the text of the last note, or "".
func (n *noteList) last() string {
	if len(n.texts) == 0 {
		return ""
	}
	return n.texts[len(n.texts)-1].Text
}

// list returns the notes in the form an answer has them, or nil.
func (n *noteList) list() []assay.Note {
	all := slices.Clone(n.texts)
	if n.covered != (assay.Note{}) {
		all = append(all, n.covered)
	}
	return all
}
