package strategy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/ambiguity"
)

// withChosenMeaning returns e for a follow-up that chose one of the meanings offered before, if its
// words do not distinguish that meaning from others of the same name, as in "Getting started
// (vega)". Only passages of that meaning count then, and its name is removed from the query.
func (e Env) withChosenMeaning() Env {
	for i := len(e.History) - 1; i >= 0; i-- {
		for _, name := range ambiguity.Offered(e.History[i].Answer) {
			if !strings.HasSuffix(name, ")") || !strings.Contains(name, " (") || !strings.Contains(e.Question, name) {
				continue
			}
			e.chosenMeaning, e.fullQuestion = name, e.Question
			e.Question = strings.ReplaceAll(strings.ReplaceAll(e.Question, " ("+name+")", ""), name, "it")
			return e
		}
	}
	return e
}

// keepChosenMeaning drops the hits that are not of the chosen meaning, if there is one.
func (e Env) keepChosenMeaning(found assay.Results) assay.Results {
	if e.chosenMeaning == "" {
		return found
	}
	found.Hits = slices.DeleteFunc(slices.Clone(found.Hits), func(h assay.Hit) bool {
		return !slices.ContainsFunc(ambiguity.Names(h), func(name string) bool {
			shown := shownNames([]string{name})
			return len(shown) == 1 && shown[0] == e.chosenMeaning
		})
	})
	note := assay.Note{Kind: assay.NoteQuestion, Text: fmt.Sprintf("only passages of %s were read, because it was chosen", e.chosenMeaning)}
	found.Notes = append(slices.Clone(found.Notes), note)
	return found
}
