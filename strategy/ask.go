package strategy

import (
	"context"
	"fmt"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// Ask answers a question with the named strategy ("" is auto), one of Specs or of env.Strategies. It first rewrites a follow-up so
// that it can be understood without its conversation. Preparation that a question does not need
// takes no step.
//
// The answer's Question is the question as asked; Understood is the question that was answered, if
// that differs. An unknown name is assay.ErrInvalid.
func Ask(ctx context.Context, s run.Scope, env Env, name string) (assay.Answer, error) {
	spec, err := Lookup(name, env.Strategies...)
	if err != nil {
		return assay.Answer{}, err
	}
	env = env.withDefaults()
	question := env.Question
	env.asked = question
	env, said, err := env.understand(ctx, s.Sub("understand", 0))
	if stop := stopOf(err); stop != "" {
		return env.unplannable(spec.Name, stop, err, said).Answer, nil
	}
	if err != nil {
		return assay.Answer{}, err
	}
	env.understood = env.Question
	answer, given := env.fromCache(ctx, s, &said)
	r := Result{Answer: answer}
	if !given {
		r, err = env.spanning(&said).goAbout(ctx, s, spec.ask(), spec.Name, &said)
	}
	if err == nil {
		err = env.relevance(ctx, s, &r, &said)
	}
	if err != nil {
		return assay.Answer{}, err
	}
	return env.asAsked(r.Answer, question, said), nil
}

// goAbout answers the question with the strategy, unless the question is ambiguous. Then it asks
// back, or answers each of the meanings.
func (e Env) goAbout(ctx context.Context, s run.Scope, ask Func, name string, said *notes) (Result, error) {
	r, done, err := e.clarify(ctx, s.Sub("clarify", 0), name, said)
	if err != nil || done {
		return e.inWhole(r), err
	}
	if !e.spanNamed { // otherwise the question names its collections
		e.first = &firstSearch{}
	}
	if r, err = ask(ctx, s, e); err != nil {
		return Result{}, err
	}
	if r, err = e.salvage(ctx, s.Sub(quotedScope, 0), r); err != nil {
		return Result{}, err
	}
	r, err = e.readings(ctx, s.Sub("readings", 0), r, said)
	return e.inWhole(r), err
}

// asAsked turns an answer to the understood question into one to the question as asked.
func (e Env) asAsked(a assay.Answer, question string, said notes) assay.Answer {
	if a.Question != question {
		understood, _ := e.conversed().clean(a.Question)
		a.Question, a.Understood, a.UnderstoodByModel = question, visible.Line(understood), e.rewritten
	}
	if before := said.list(); len(before) > 0 {
		a.Notes = withNotes(before, a.Notes...)
	}
	return a
}

// conversed returns the allowed sources of an understood question: the words of the question as
// asked and of the conversation before it.
func (e Env) conversed() sources {
	of := asked(e.asked)
	for _, t := range e.History {
		of.words = append(of.words, asked(t.Question).words[0], asked(t.Answer).words[0])
	}
	return of
}

// understand returns e with a follow-up question rewritten so that it can be understood without its
// conversation. If it cannot be rewritten, the question is left unchanged.
func (e Env) understand(ctx context.Context, s run.Scope) (Env, notes, error) {
	var said notes
	if len(e.History) == 0 {
		return e, said, nil
	}
	if e.EarlierTurns > 0 {
		said.say(assay.NoteQuestion, fmt.Sprintf("the question is understood from the last %s; %s not read", count(len(e.History), "turn of its conversation", "turns of its conversation"), count(e.EarlierTurns, "before that was", "before those were")))
	}
	in := role.RewriteInput{Question: e.Question, Technique: role.Resolve, History: e.History}
	out, err := hand(ctx, s, e, job[role.RewriteInput, role.Rewriting]{
		task: role.RewriterRole,
		do:   e.Roles.Rewriter.Rewrite,
	}, in, &said)
	if err == nil && out.Failure == "" {
		e.untold = untold{words: visible.Line(out.Open), means: out.Means}
	}
	if err != nil || len(out.Queries) == 0 {
		return e, said, err
	}
	switch q := visible.Line(out.Queries[0]); {
	case q == "":
	case len(q) > maxQuery:
		said.say(assay.NoteQuestion, fmt.Sprintf("rewriter: the question that it made of the conversation has %d bytes, which is more than a question may have; it was gone about as it stands", len(q)))
	default:
		e.Question, e.rewritten = q, e.byModel(role.RewriterRole) && !out.StoodIn
		e = e.narrowed()
	}
	return e, said, nil
}
