package strategy

import (
	"slices"
	"strings"

	"github.com/assay-rag/assay"
)

// since returns an answer that stands although more was searched after it: with what was
// searched until now, and with the remarks that are its own.
func since(a, now assay.Answer, remarks []string) assay.Answer {
	a.Stop, a.Searched, a.Iterations, a.Index = now.Stop, now.Searched, now.Iterations, now.Index
	a.Notes = append(slices.Clone(now.Notes), without(remarks, now.Notes)...)
	return a
}

// keptBack returns an answer that somebody found wanting as one that is not complete, with
// what they want, or else the question, among what is missing.
func keptBack(a assay.Answer, wanted []string, why string) assay.Answer {
	if len(wanted) == 0 && len(a.Missing) == 0 {
		wanted = []string{asked(a.Question).line(a.Question)}
	}
	a.Missing = append(slices.Clone(a.Missing), without(wanted, a.Missing)...)
	if a.Status == assay.Answered {
		a.Status = assay.Incomplete
	}
	a.Justification = strings.TrimSuffix(a.Justification, ".") + "; " + why + "."
	return a
}
