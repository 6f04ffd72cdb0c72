package strategy

import (
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/retrieve"
)

// Notes are what a reader has to know of searches, each once. Of how many passages
// had vectors only the least is kept: that grows from one search to the next.
type notes struct {
	texts   []string
	least   assay.IndexVersion
	counted bool // least is set
}

// add takes up what results say of themselves.
func (n *notes) add(r assay.Results) {
	covered := retrieve.CoverageNote(r.Index)
	for _, text := range r.Notes {
		if text != covered {
			n.say(text)
		}
	}
	if covered != "" && slices.Contains(r.Notes, covered) {
		n.cover(r.Index)
	}
}

// join takes up other notes.
func (n *notes) join(others notes) {
	for _, text := range others.texts {
		n.say(text)
	}
	if others.counted {
		n.cover(others.least)
	}
}

func (n *notes) say(text string) {
	if !slices.Contains(n.texts, text) {
		n.texts = append(n.texts, text)
	}
}

func (n *notes) cover(v assay.IndexVersion) {
	if !n.counted || v.Coverage < n.least.Coverage {
		n.least, n.counted = v, true
	}
}

// list returns the notes as an answer has them; nil: there are none.
func (n *notes) list() []string {
	all := slices.Clone(n.texts)
	if n.counted {
		all = append(all, retrieve.CoverageNote(n.least))
	}
	return all
}
