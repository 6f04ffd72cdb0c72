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
	env, notes, err := env.resolveFollowUp(ctx, s.Sub("understand", 0))
	if stop := stopOf(err); stop != "" {
		return env.unplannable(spec.Name, stop, err, notes).Answer, nil
	}
	if err != nil {
		return assay.Answer{}, err
	}
	env.understood = env.Question
	answer, cached := env.fromCache(ctx, s, &notes)
	r := Result{Answer: answer}
	if !cached {
		r, err = env.withNamedCollections(&notes).answerWith(ctx, s, spec.ask(), spec.Name, &notes)
	}
	if err == nil {
		err = env.relevance(ctx, s, &r, &notes)
	}
	if err != nil {
		return assay.Answer{}, err
	}
	return env.restoreQuestion(r.Answer, question, notes), nil
}

// answerWith answers the question with the strategy, unless the question is ambiguous. Then it asks
// back, or answers each of the meanings.
func (e Env) answerWith(ctx context.Context, s run.Scope, ask Func, name string, notes *noteList) (Result, error) {
	r, done, err := e.clarify(ctx, s.Sub("clarify", 0), name, notes)
	if err != nil || done {
		return e.restoreFullQuestion(r), err
	}
	if !e.splitNamed { // otherwise the question names its collections
		e.first = &firstSearch{}
	}
	if r, err = ask(ctx, s, e); err != nil {
		return Result{}, err
	}
	if r, err = e.quoteFallback(ctx, s.Sub(quotedScope, 0), r); err != nil {
		return Result{}, err
	}
	r, err = e.readings(ctx, s.Sub("readings", 0), r, notes)
	return e.restoreFullQuestion(r), err
}

// restoreQuestion turns an answer to the understood question into one to the question as asked.
func (e Env) restoreQuestion(a assay.Answer, question string, notes noteList) assay.Answer {
	if a.Question != question {
		understood, _ := e.conversationSources().clean(a.Question)
		a.Question, a.Understood, a.UnderstoodByModel = question, visible.Line(understood), e.rewritten
	}
	if before := notes.list(); len(before) > 0 {
		a.Notes = withNotes(before, a.Notes...)
	}
	return a
}

// conversationSources returns the allowed sources of an understood question: the words of the
// question as asked and of the conversation before it.
func (e Env) conversationSources() sources {
	of := questionSources(e.asked)
	for _, t := range e.History {
		of.words = append(of.words, questionSources(t.Question).words[0], questionSources(t.Answer).words[0])
	}
	return of
}

// resolveFollowUp returns e with a follow-up question rewritten so that it can be understood
// without its conversation. If it cannot be rewritten, the question is left unchanged.
func (e Env) resolveFollowUp(ctx context.Context, s run.Scope) (Env, noteList, error) {
	var notes noteList
	if len(e.History) == 0 {
		return e, notes, nil
	}
	if e.EarlierTurns > 0 {
		notes.say(assay.NoteQuestion, fmt.Sprintf("the question is understood from the last %s; %s not read", count(len(e.History), "turn of its conversation", "turns of its conversation"), count(e.EarlierTurns, "before that was", "before those were")))
	}
	in := role.RewriteInput{Question: e.Question, Technique: role.Resolve, History: e.History}
	out, err := runRole(ctx, s, e, job[role.RewriteInput, role.Rewriting]{
		task: role.RewriterRole,
		do:   e.Roles.Rewriter.Rewrite,
	}, in, &notes)
	if err == nil && out.Failure == "" {
		e.unresolved = unresolvedReferences{words: visible.Line(out.Open), antecedents: out.Means}
	}
	if err != nil || len(out.Queries) == 0 {
		return e, notes, err
	}
	switch q := visible.Line(out.Queries[0]); {
	case q == "":
	case len(q) > maxQuery:
		notes.say(assay.NoteQuestion, fmt.Sprintf("rewriter: the rewritten question has %d bytes, which is longer than a question may be; the question was searched unchanged", len(q)))
	default:
		e.Question, e.rewritten = q, e.byModel(role.RewriterRole) && !out.StoodIn
		e = e.withChosenMeaning()
	}
	return e, notes, nil
}
