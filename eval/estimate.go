package eval

import (
	"context"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/judge"
	"github.com/assay-rag/assay/llm"
)

// An Estimate is what an evaluation is likely to spend on language models.
type Estimate struct {
	Questions  int // that are left to be asked, by all contenders together
	Calls      int
	Tokens     int   // input and output together
	CostMicros int64 // at the prices of the dearest model that does a role; more than it is likely to be
	Priced     bool  // the prices of all models are known; else CostMicros is 0 and says nothing
	Measured   bool  // by what these questions have spent so far, and not by the strategy's usual figures
}

// Free reports whether it is known to cost nothing.
func (e Estimate) Free() bool {
	return e.Questions == 0 || e.Calls == 0 || e.Priced && e.CostMicros == 0
}

// usual is what a question takes by each strategy where models do all roles: calls, input
// tokens and output tokens, means over 20 questions of musique-train100 and 20 of
// clapnq-answerable with models that reply by a rule (assay eval strategies --record FILE
// --scripted). A strategy that is not here is as the dearest.
var usual = map[string][3]float64{
	"auto":       {5.1, 25500, 3500},
	"static":     {3.5, 17900, 2200},
	"advanced":   {7.5, 24300, 2500},
	"corrective": {5.1, 25500, 3500},
	"self":       {8.2, 45100, 4200},
	"crag":       {4.4, 20300, 2400},
	"adaptive":   {5.0, 12400, 1600},
	"fusion":     {4.5, 18400, 2200},
	"judge":      {5.9, 27800, 2300},
	"reflect":    {6.5, 24600, 3400},
	"react":      {7.4, 27300, 2200},
	"multihop":   {4.7, 20200, 2300},
	"graph":      {3.5, 17200, 1600},
	"agent":      {7.4, 27600, 2200},
}

// usualJudging is what judging an answer takes of a model.
var usualJudging = [3]float64{1, 3000, 500}

// enoughAsked is from how many questions on what they have spent is gone by.
const enoughAsked = 5

// EstimateSpending says what asking the rest of a set is likely to spend. The outcomes that
// the folder has already are gone by where there are enough of them.
func EstimateSpending(ctx context.Context, d Dataset, folder *Folder, opts AskOptions, models engine.Models) (Estimate, error) {
	var e Estimate
	if len(models.Roles) == 0 {
		e.Questions = folder.left(d, opts.Limit, names(opts.Contenders)...)
		e.Priced = true
		return e, nil
	}
	var price llm.Facts
	price, e.Priced = dearest(models)
	spent, asked := map[string]assay.Usage{}, map[string]int{}
	for o, err := range folder.Outcomes(ctx) {
		if err != nil {
			return e, err
		}
		spent[o.System] = spent[o.System].Add(o.Answer.Usage).Add(o.Judging)
		asked[o.System]++
	}
	for _, c := range opts.Contenders {
		n := folder.left(d, opts.Limit, c.Name)
		e.Questions += n
		if n == 0 {
			continue
		}
		var each [3]float64
		if !c.Request.Local {
			known := false
			if each, known = usual[c.Request.Strategy]; !known {
				each = dearestUsual()
			}
		}
		for i := range each {
			each[i] += float64(judge.Calls(opts.Judge)) * usualJudging[i]
		}
		if times := float64(asked[c.Name]); times >= enoughAsked {
			u := spent[c.Name]
			each = [3]float64{float64(u.Calls) / times, float64(u.InputTokens) / times, float64(u.OutputTokens) / times}
			e.Measured = true
		}
		all := assay.Usage{
			Calls: int(each[0] * float64(n)), InputTokens: int(each[1] * float64(n)), OutputTokens: int(each[2] * float64(n)),
		}
		e.Calls += all.Calls
		e.Tokens += all.InputTokens + all.OutputTokens
		if e.Priced {
			e.CostMicros += price.Cost(all)
		}
	}
	return e, nil
}

func names(contenders []Contender) []string {
	all := make([]string, len(contenders))
	for i, c := range contenders {
		all[i] = c.Name
	}
	return all
}

// dearest returns the greatest prices of models, and whether all are known.
func dearest(models engine.Models) (llm.Facts, bool) {
	var most llm.Facts
	all := true
	add := func(m llm.Model) {
		f := llm.FactsOf(m)
		all = all && f.Priced
		most.Input, most.Output = max(most.Input, f.Input), max(most.Output, f.Output)
	}
	for _, m := range models.Roles {
		add(m)
	}
	if models.Small != nil {
		add(models.Small)
	}
	return most, all
}

func dearestUsual() [3]float64 {
	var most [3]float64
	for _, u := range usual {
		for i := range u {
			most[i] = max(most[i], u[i])
		}
	}
	return most
}
