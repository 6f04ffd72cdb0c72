package answers

import (
	"context"
	"sync/atomic"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/judge"
	"github.com/assay-rag/assay/eval/scripted"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// trialQuestions is the number of questions in a trial.
const trialQuestions = 5

// A trial is the usage of a few questions of a set, asked over the real documents with scripted
// models (see Scripted) in place of the paid ones. Passages, prompts and steps are the real ones;
// only the generated text is shorter than a model's. A trial calls nothing outside this process.
type trial struct {
	questions int
	spent     assay.Usage // of the models for roles
	handed    int         // tokens of the passages that the generator was given
	searches  int         // each calls the encoder once
	reranked  [2]int      // calls, tokens
	verified  int         // claims that a verifying service would have judged
}

// tryOut asks a few of the remaining questions with one contender. ok is false if no question could
// be asked.
func tryOut(ctx context.Context, d testset.Dataset, folder *Folder, opts Options, c Contender, config engine.Config) (t trial, ok bool, err error) {
	var left []testset.Case
	for _, q := range d.First(opts.Limit) {
		if !folder.Has(c.Name, q.ID) {
			left = append(left, q)
		}
	}
	reranker, verifier := &countingReranker{}, &countingVerifier{}
	config.Encoders, config.Web, config.Managed, config.NoBackground, config.NoCache = nil, nil, nil, true, true
	config.Models = standIns(config.Models, reranker, verifier)
	e, err := engine.Open(ctx, config)
	if err != nil {
		return t, false, ctx.Err()
	}
	defer e.Close()
	for i := range min(trialQuestions, len(left)) {
		q := left[i*len(left)/min(trialQuestions, len(left))]
		if err := t.ask(ctx, e, opts.Principal, c.Request, q); err != nil {
			return t, false, err
		}
	}
	t.reranked = [2]int{int(reranker.calls.Load()), int(reranker.tokens.Load())}
	t.verified = int(verifier.calls.Load())
	return t, t.questions > 0, nil
}

// ask asks one question and removes its run from the store. It skips a question that fails, and
// returns an error only if ctx has ended.
func (t *trial) ask(ctx context.Context, e *engine.Engine, principal assay.Principal, req engine.Request, q testset.Case) error {
	req.Question, req.History, req.Measuring = q.Question, q.History, true
	req.Filter = assay.And(req.Filter, q.Filter)
	if len(q.Collections) > 0 {
		req.Collections = q.Collections
	}
	a, err := e.Answer(ctx, principal, req)
	if a.Run == "" || err != nil {
		return ctx.Err()
	}
	_, steps, err := e.Run(ctx, principal, a.Run)
	if err == nil {
		err = e.DeleteRun(context.WithoutCancel(ctx), principal, a.Run, "")
	}
	trail, wrong := trailOf(steps)
	if err != nil || wrong != nil {
		return ctx.Err()
	}
	t.questions++
	t.spent = t.spent.Add(a.Usage)
	t.searches += len(trail.searches)
	for _, ev := range trail.evidence() {
		t.handed += llm.EstimateTokens(ev.Hit.Text)
	}
	return nil
}

// each returns the calls, input tokens and output tokens per question, of the models for roles and
// of the judge.
func (t trial) each(j judge.Judge) [3]float64 {
	n, judging := float64(t.questions), float64(judge.Calls(j))
	return [3]float64{
		float64(t.spent.Calls)/n + judging,
		float64(t.spent.InputTokens)/n + judging*(judgePrompt+float64(t.handed)/n),
		float64(t.spent.OutputTokens)/n + judging*usualJudging[2],
	}
}

// judgePrompt is the number of tokens of a judge's prompt without the passages.
const judgePrompt = 1000

// standIns returns scripted models with the windows and prices of the models in m.
func standIns(m engine.Models, reranker *countingReranker, verifier *countingVerifier) engine.Models {
	out := engine.Models{Roles: map[string]llm.Model{}, Domain: m.Domain, LocalVerifier: m.LocalVerifier}
	for name, model := range m.Roles {
		as := scripted.Rule("scripted/writer")
		if name == role.VerifierRole {
			as = "scripted/checker"
		}
		out.Roles[name] = standIn{as, llm.FactsOf(model)}
	}
	if m.Small != nil {
		out.Small = standIn{"scripted/small", llm.FactsOf(m.Small)}
	}
	if m.Verifier != nil {
		out.Verifier = verifier
	}
	if m.Reranker != nil {
		out.Reranker = reranker
	}
	return out
}

// A standIn is a scripted model with the facts of another model.
type standIn struct {
	scripted.Rule
	facts llm.Facts
}

// Facts implements llm.Described.
func (s standIn) Facts() llm.Facts { return s.facts }

// A countingReranker keeps the order and counts its calls and tokens.
type countingReranker struct{ calls, tokens atomic.Int64 }

// Model implements llm.Reranker.
func (*countingReranker) Model() string { return "scripted/reranker" }

// Rerank implements llm.Reranker.
func (r *countingReranker) Rerank(ctx context.Context, query string, texts []string) ([]float64, error) {
	r.calls.Add(1)
	scores := make([]float64, len(texts))
	for i, text := range texts {
		r.tokens.Add(int64(llm.EstimateTokens(query) + llm.EstimateTokens(text)))
		scores[i] = -float64(i)
	}
	return scores, ctx.Err()
}

// A countingVerifier is the local verifier and counts its calls.
type countingVerifier struct {
	ground.Local
	calls atomic.Int64
}

// Verify implements ground.Verifier.
func (v *countingVerifier) Verify(ctx context.Context, claim string, cited []ground.Passage) (ground.Judgement, error) {
	v.calls.Add(1)
	return v.Local.Verify(ctx, claim, cited)
}
