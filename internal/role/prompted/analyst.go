package prompted

import (
	"context"
	"fmt"
	"slices"

	"github.com/assay-rag/assay/internal/language"
	"github.com/assay-rag/assay/role"
)

// analysisReply is the reply requested from the model.
type analysisReply struct {
	Categories []categoryReply `json:"categories"`
	Answered   []string        `json:"answered,omitempty"`
	Open       []string        `json:"open,omitempty"`
}

type categoryReply struct {
	Name       string       `json:"name"`
	Statements []claimReply `json:"statements"`
}

// A claimReply is a statement in the form that most roles request.
type claimReply struct {
	Text    string `json:"text"`
	Sources []int  `json:"sources"`
}

var analysisOutput = outputOf[analysisReply]("analysis")

// Analyse implements role.Analyst. It sorts the statements of the evidence by category. A
// statement that names something must cite a source that contains the name verbatim. It checks
// this, and drops and lists statements that fail.
func (a Judge) Analyse(ctx context.Context, c role.Caller, in role.Reading) (role.Analysis, error) {
	var given []int
	return typed[analysisReply, role.Analysis]{
		job: job[analysisReply]{
			Config: a.Config, task: role.AnalystTask, out: analysisOutput(), maxTokens: 1500,
			write: readingAll(in, &given),
			check: func(r *analysisReply) []string {
				var problems []string
				for _, cat := range r.Categories {
					problems = append(problems, checkClaims(fmt.Sprintf("category %q", shorten(line(cat.Name), 40)), cat.Statements, given)...)
				}
				return problems
			},
			salvage: func(r *analysisReply) ([]string, bool) { return nil, sourced(textsOf(*r), given) }, // invalid ones are dropped below
		},
		local: ifAny(a.Local != nil, func() (role.Analysis, error) { return a.Local.Analyse(ctx, c, in) }),
		cautious: func(o role.Outcome) role.Analysis {
			return role.Analysis{Categories: []role.Category{}, Answered: []string{}, Open: []string{in.Question}, Outcome: o}
		},
		finish: func(reply analysisReply, outcome role.Outcome) role.Analysis {
			out := role.Analysis{Categories: []role.Category{}, Answered: phrases(reply.Answered), Open: phrases(reply.Open)}
			held := newHoldings(in, given, textsOf(reply))
			for _, cat := range reply.Categories {
				kept, dropped := held.vet(cat.Statements)
				out.Dropped = append(out.Dropped, dropped...)
				if len(kept) > 0 {
					out.Categories = append(out.Categories, role.Category{Name: shorten(line(cat.Name), maxPhrase), Statements: kept})
				}
			}
			if len(out.Categories) == 0 {
				out.Answered, out.Open = []string{}, []string{in.Question}
			}
			out.Outcome = leftOut(outcome, role.AnalystTask, out.Dropped)
			return out
		},
	}.do(ctx, c)
}

func textsOf(r analysisReply) []claimReply {
	var all []claimReply
	for _, cat := range r.Categories {
		all = append(all, cat.Statements...)
	}
	return all
}

// readingAll returns a job's write function that shows the evidence for a question and stores the
// shown numbers in given.
func readingAll(in role.Reading, given *[]int) func(prompt, int) (string, []string, bool) {
	best, _ := contextOf(role.GenerateInput{Evidence: in.Evidence, Context: in.Context})
	return reading(best, func(shown []passage) any {
		*given = numbersOf(shown)
		return map[string]any{"Question": in.Question, "Passages": shown, "Language": language.Guess(in.Question)}
	})
}

// checkClaims returns the problems of statements.
func checkClaims(where string, claims []claimReply, given []int) []string {
	var problems []string
	for i, s := range claims {
		at := fmt.Sprintf("%s, statement %d", where, i+1)
		for _, p := range unknown("passage", s.Sources, given) {
			problems = append(problems, at+": "+p)
		}
		if len(s.Sources) == 0 {
			problems = append(problems, at+" has no sources")
		}
	}
	return problems
}

// sourced reports whether any of the statements has a source that was given.
func sourced(claims []claimReply, given []int) bool {
	return slices.ContainsFunc(claims, func(c claimReply) bool { return len(known(c.Sources, given)) > 0 })
}

// leftOut adds a note on dropped statements to an outcome.
func leftOut(o role.Outcome, name string, dropped []role.Dropped) role.Outcome {
	if n := len(dropped); n == 1 {
		o.Notes = append(o.Notes, fmt.Sprintf("%s: dropped a statement: %s", name, dropped[0].Reason))
	} else if n > 1 {
		o.Notes = append(o.Notes, fmt.Sprintf("%s: dropped %d statements; the first: %s", name, n, dropped[0].Reason))
	}
	return o
}
