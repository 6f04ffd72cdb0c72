package answers

import (
	"context"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/judge"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
)

// An Estimate is the likely spending of an evaluation on models and services.
type Estimate struct {
	Questions  int // left to ask, over all contenders
	Calls      int // of language models
	Tokens     int // input plus output
	CostMicros int64
	Priced     bool // all prices are known; otherwise CostMicros is 0

	Measured bool // from the spending of these questions so far
	Tried    int  // otherwise, number of trial questions; 0: by the strategy's usual figures

	Services []ServiceEstimate // other paid services
}

// A ServiceEstimate is the likely use of a paid service that is not a language model: an encoder, a
// reranker or a verifier.
type ServiceEstimate struct {
	Does   string // "vectors", "reranking", "verifying"
	Model  string
	Calls  int // 0: not known, or included in Estimate.Calls if that is Measured
	Tokens int // 0: not known
}

// Asked lists the models and services that an evaluation uses.
type Asked struct {
	// Engine is the configuration of the engine under evaluation, with its models. EstimateSpending
	// runs a few trial questions with it and stand-in models, and leaves no trace of them.
	Engine engine.Config

	// Encoder is the paid embedding service, or nil. Unembedded is the number of tokens of the
	// passages that have no vector yet.
	Encoder    llm.Embedder
	Unembedded int
}

// Free reports whether the evaluation is known to cost nothing.
func (e Estimate) Free() bool {
	if len(e.Services) > 0 {
		return e.Priced && e.CostMicros == 0
	}
	return e.Questions == 0 || e.Calls == 0 || e.Priced && e.CostMicros == 0
}

// usual holds the mean calls, input tokens and output tokens per question for each strategy if
// models fill all roles. The means are over 20 questions of musique-train100 and 20 of
// clapnq-answerable with scripted models (assay eval strategies --record FILE --scripted). A
// strategy that is missing here counts as the most expensive one.
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

// usualJudging is the usual cost of judging one answer with a model.
var usualJudging = [3]float64{1, 3000, 500}

// enoughAsked is the number of measured questions from which on their spending is used for the
// estimate.
const enoughAsked = 5

// EstimateSpending estimates the cost of asking the rest of a set. If the folder has enough
// outcomes, it extrapolates from these. Otherwise it runs a few of the questions with stand-ins for
// the models (see trial). If that is not possible, it uses the usual figures of the strategy.
func EstimateSpending(ctx context.Context, d testset.Dataset, folder *Folder, opts Options, asked Asked) (Estimate, error) {
	models := asked.Engine.Models
	e := Estimate{Questions: folder.left(d, opts.Limit, names(opts.Contenders)...), Priced: true}
	services := asked.services()
	if e.Questions == 0 || len(models.Roles) == 0 && len(services) == 0 && judge.Calls(opts.Judge) == 0 {
		return e, nil
	}
	var price llm.Facts
	price, e.Priced = dearest(models)
	e.Priced = e.Priced && (judge.Calls(opts.Judge) == 0 || len(models.Roles) > 0)
	spent, done, err := spentBy(ctx, folder)
	if err != nil {
		return e, err
	}
	for _, c := range opts.Contenders {
		n := float64(folder.left(d, opts.Limit, c.Name))
		if n == 0 {
			continue
		}
		each := usually(c, opts.Judge, models)
		if times := float64(done[c.Name]); times >= enoughAsked {
			u := spent[c.Name]
			each = [3]float64{float64(u.Calls) / times, float64(u.InputTokens) / times, float64(u.OutputTokens) / times}
			e.Measured = true
		} else {
			t, ok, err := tryOut(ctx, d, folder, opts, c, asked.Engine)
			if err != nil {
				return e, err
			}
			if ok {
				each, e.Tried = t.each(opts.Judge), max(e.Tried, t.questions)
				services.count(t, n/float64(t.questions), c.Request.Local)
			}
		}
		all := assay.Usage{Calls: int(each[0] * n), InputTokens: int(each[1] * n), OutputTokens: int(each[2] * n)}
		e.Calls += all.Calls
		e.Tokens += all.InputTokens + all.OutputTokens
		e.CostMicros += price.Cost(all)
	}
	e.Services = services.asked(&e, opts.Contenders)
	if !e.Priced {
		e.CostMicros = 0
	}
	return e, nil
}

// spentBy returns the usage of each system so far, and its number of questions.
func spentBy(ctx context.Context, folder *Folder) (map[string]assay.Usage, map[string]int, error) {
	spent, done := map[string]assay.Usage{}, map[string]int{}
	for o, err := range folder.Outcomes(ctx) {
		if err != nil {
			return nil, nil, err
		}
		spent[o.System] = spent[o.System].Add(o.Answer.Usage).Add(o.Judging)
		done[o.System]++
	}
	return spent, done, nil
}

// usually returns the usual cost of one question in language models, for the contender's strategy
// and the judge.
func usually(c Contender, j judge.Judge, models engine.Models) [3]float64 {
	var each [3]float64
	if !c.Request.Local && len(models.Roles) > 0 {
		known := false
		if each, known = usual[c.Request.Strategy]; !known {
			each = dearestUsual()
		}
	}
	for i := range each {
		each[i] += float64(judge.Calls(j)) * usualJudging[i]
	}
	return each
}

// A service accumulates the calls of one paid service.
type service struct {
	ServiceEstimate
	facts   llm.Facts
	unasked bool // not used by requests that must be answered locally
	calls   func(t trial) (calls, tokens int)
	anyway  int // tokens that it reads in any case
}

type services []*service

// services returns the paid services other than language models.
func (a Asked) services() services {
	var all services
	if a.Encoder != nil {
		all = append(all, &service{ServiceEstimate: ServiceEstimate{Does: "vectors", Model: a.Encoder.Model()}, facts: llm.FactsOf(a.Encoder), anyway: a.Unembedded,
			calls: func(t trial) (int, int) { return t.searches, t.searches * questionTokens }})
	}
	if r := a.Engine.Models.Reranker; r != nil {
		all = append(all, &service{ServiceEstimate: ServiceEstimate{Does: "reranking", Model: r.Model()}, facts: llm.FactsOf(r), unasked: true,
			calls: func(t trial) (int, int) { return t.reranked[0], t.reranked[1] }})
	}
	if v, ok := a.Engine.Models.Verifier.(ground.Service); ok {
		all = append(all, &service{ServiceEstimate: ServiceEstimate{Does: "verifying", Model: v.Model()}, facts: llm.FactsOf(v), unasked: true,
			calls: func(t trial) (int, int) { return t.verified + t.questions, 0 }}) // each claim, and each whole answer
	}
	return all
}

// questionTokens is the assumed length of a question.
const questionTokens = 20

// count adds the services' share of a trial, multiplied by times.
func (s services) count(t trial, times float64, local bool) {
	for _, one := range s {
		if local && one.unasked {
			continue
		}
		calls, tokens := one.calls(t)
		one.Calls += int(float64(calls) * times)
		one.Tokens += int(float64(tokens) * times)
	}
}

// asked returns the estimates of the services that are used, and adds their cost to e.
func (s services) asked(e *Estimate, by []Contender) []ServiceEstimate {
	local := !slices.ContainsFunc(by, func(c Contender) bool { return !c.Request.Local })
	var all []ServiceEstimate
	for _, one := range s {
		if local && one.unasked {
			continue
		}
		one.Tokens += one.anyway
		e.Priced = e.Priced && one.facts.Priced
		e.CostMicros += one.facts.Cost(assay.Usage{Calls: one.Calls, InputTokens: one.Tokens})
		all = append(all, one.ServiceEstimate)
	}
	return all
}

func names(contenders []Contender) []string {
	all := make([]string, len(contenders))
	for i, c := range contenders {
		all[i] = c.Name
	}
	return all
}

// dearest returns the highest prices of the models, and whether all prices are known.
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
