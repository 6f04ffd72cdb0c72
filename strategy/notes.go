package strategy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/retrieve"
	"github.com/assay-rag/assay/role"
)

// Notes are what a reader has to know of searches and of how the roles did their
// jobs, each once, and what was searched. Of how many passages had vectors only the
// least is kept: that grows from one search to the next.
type notes struct {
	texts    []string
	searched bool
	index    assay.IndexVersion // of the search with the least coverage
	covered  string             // what that said of it; "": nothing
}

// add takes up what results say of themselves.
func (n *notes) add(r assay.Results) {
	covered := retrieve.CoverageNote(r.Index)
	for _, text := range r.Notes {
		if text != covered {
			n.say(text)
		}
	}
	if !slices.Contains(r.Notes, covered) {
		covered = ""
	}
	n.cover(r.Index, covered)
}

// bounded returns, on one line, what a role asks to have searched; nothing where that is
// longer than a question may be, which the notes then say.
func (n *notes) bounded(name, query string) string {
	query = visible.Line(query)
	if len(query) > maxQuery {
		n.say(fmt.Sprintf("%s: it asked for a search of %d bytes, which is more than a question may have; that was not made", name, len(query)))
		return ""
	}
	return query
}

// outcome takes up how a role's job went.
func (n *notes) outcome(name string, o role.Outcome) {
	for _, text := range o.Notes {
		n.say(remark(text))
	}
	if o.Failure != "" {
		n.say(remark(name + ": " + strings.TrimPrefix(o.Failure, name+": ")))
	}
}

// join takes up other notes.
func (n *notes) join(others notes) {
	for _, text := range others.texts {
		n.say(text)
	}
	if others.searched {
		n.cover(others.index, others.covered)
	}
}

func (n *notes) say(text string) {
	if !slices.Contains(n.texts, text) {
		n.texts = append(n.texts, text)
	}
}

func (n *notes) cover(index assay.IndexVersion, covered string) {
	if !n.searched || index.Coverage < n.index.Coverage {
		n.index, n.covered, n.searched = index, covered, true
	}
}

// list returns the notes as an answer has them; nil: there are none.
func (n *notes) list() []string {
	all := slices.Clone(n.texts)
	if n.covered != "" {
		all = append(all, n.covered)
	}
	return all
}
