package strategy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// A subAnswer is the verified draft of an answer to one sub-question.
type subAnswer struct {
	question string // as asked
	part     string // as searched
	drafted  bool
	draft    checkedDraft
}

// subAnswers writes and verifies an answer to each sub-question, from its own evidence and in
// parallel. A sub-question without evidence has an empty one, and so has one that the run had no
// room to answer. The numbers of the evidence are those of the whole answer. The question itself
// counts as a sub-question only if its own evidence is sufficient.
func (e Env) subAnswers(ctx context.Context, s run.Scope, found []subQuestion) ([]subAnswer, error) {
	if e.offTopic(found) {
		return nil, nil
	}
	evidence, parts := e.numberEvidence(found)
	answers := make([]subAnswer, len(parts))
	said := make([]noteList, len(parts))
	err := s.Parallel(ctx, "answer", len(parts), sideBySide, func(ctx context.Context, i int, s run.Scope) error {
		p := parts[i]
		answers[i].question, answers[i].part = found[i].displayText(), p.Question
		itself := p.Question == e.Question && !found[i].sufficient()
		if len(p.Evidence) == 0 || itself || found[i].cutShort() {
			return nil
		}
		own := e
		own.Question, own.fullQuestion = p.Question, ""
		in := role.GenerateInput{Question: p.Question, Parts: own.splitPartsByCollection([]role.Part{p}, evidence), Evidence: evidence, Context: own.contextOf(p, evidence)}
		var last checkedDraft
		w, err := own.write(ctx, s, in, &said[i], &last)
		if stop := stopOf(err); stop != "" {
			said[i].say(assay.NoteLimit, fmt.Sprintf("the run had no budget left to answer a part of the question by itself (%s)", stop))
			return nil
		}
		answers[i].draft, answers[i].drafted = w, err == nil
		return err
	})
	for _, n := range said {
		found[0].notes.join(n)
	}
	return slices.DeleteFunc(answers, func(a subAnswer) bool { return a.question == e.Question && !a.drafted }), err
}

// contextOf returns the excerpts of one part's evidence.
func (e Env) contextOf(p role.Part, evidence []assay.Evidence) []role.Excerpt {
	own := slices.DeleteFunc(slices.Clone(evidence), func(ev assay.Evidence) bool { return !slices.Contains(p.Evidence, ev.Number) })
	return e.assemble(own, []role.Part{p})
}

// kept returns the sub-answer to a part of the question in the form of an answer. It has the supported
// claims only. The planner's words are shown without links.
func (a subAnswer) kept(question string) assay.SubAnswer {
	var out assay.Answer
	write(&out, a.draft.draft, a.draft.supported())
	sub := assay.SubAnswer{Question: questionSources(question).line(a.question), Answer: out.Text, Claims: []assay.Claim{}, Citations: []assay.Citation{}}
	sub.Claims, sub.Citations = append(sub.Claims, out.Claims...), append(sub.Citations, out.Citations...)
	return sub
}

// given returns the sub-answer in the form in which the generator gets it. A statement with a
// refused claim is given as its supported claims.
func (a subAnswer) given() role.SubAnswer {
	w := a.draft
	out := role.SubAnswer{Question: a.part, Columns: w.draft.Columns, Statements: []role.Statement{}}
	supported := w.supported()
	for i, st := range w.draft.Statements {
		own := slices.DeleteFunc(slices.Clone(supported), func(c checkedClaim) bool { return c.statement != i })
		refused := slices.ContainsFunc(w.checked, func(c checkedClaim) bool { return c.statement == i && c.Verdict != assay.Supported })
		switch {
		case len(own) == 0:
		case refused:
			for _, c := range own {
				out.Statements = append(out.Statements, role.Statement{Text: c.Text, Evidence: numbersOf(c), Item: c.Item, Section: c.section})
			}
		default:
			st.Evidence = numbersOf(own...)
			out.Statements = append(out.Statements, st)
		}
	}
	return out
}

// numbersOf returns the numbers of the evidence that claims cite, ascending.
func numbersOf(claims ...checkedClaim) []int {
	var numbers []int
	for _, c := range claims {
		for _, cit := range c.cited {
			numbers = append(numbers, cit.Number)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// synthesise has the answer put together from the sub-answers: by the generator if that is a model,
// else by joining them without repetition. Like every answer it is cut into claims, and each is
// verified against the evidence. If the run has no room for that, the verified sub-answers stand as
// they are.
func (e Env) synthesise(ctx context.Context, s run.Scope, strategy string, found []subQuestion, answers []subAnswer) (Result, error) {
	review := &assay.Review{ByModel: e.writer() != "", SubAnswers: []assay.SubAnswer{}}
	for _, a := range answers {
		review.SubAnswers = append(review.SubAnswers, a.kept(e.Question))
		if a.drafted {
			review.Iterations++
		}
		if given := a.given(); len(given.Statements) > 0 {
			e.subs = append(e.subs, given)
		}
	}
	r, _, err := e.finish(ctx, s.Sub("finish", 0), strategy, found)
	if err != nil {
		return Result{}, err
	}
	if len(r.Claims) == 0 && spentBy(r.Stop) && len(e.subs) > 0 {
		r = e.unsynthesised(strategy, found, answers, r.Stop)
	}
	r.Review = review
	r.updateStatus()
	return r, nil
}

// unsynthesised returns the answer that consists of the verified sub-answers, without repetition,
// of a run that had no room for a synthesis.
func (e Env) unsynthesised(strategy string, found []subQuestion, answers []subAnswer, stop assay.Stop) Result {
	_, parts := e.numberEvidence(found)
	var w checkedDraft
	seen := map[string]bool{}
	for _, a := range answers {
		if !a.drafted {
			continue
		}
		from := len(w.draft.Statements)
		w.append(a.draft)
		if w.draft.Columns == nil {
			w.draft.Columns = a.draft.draft.Columns
		}
		for _, c := range a.draft.checked {
			ofOtherTable := c.row != nil && !slices.Equal(w.draft.Columns, a.draft.draft.Columns)
			if ofOtherTable && c.statement >= 0 {
				w.unusable = append(w.unusable, c.statement+from)
			}
			if key := strings.ToLower(c.Text); !seen[key] && !ofOtherTable {
				seen[key] = true
				if c.statement >= 0 {
					c.statement += from
				}
				w.checked = append(w.checked, c)
			}
		}
	}
	found[0].notes.say(assay.NoteLimit, fmt.Sprintf("the run had no budget left to put the answers to its parts together (%s); they are listed one after the other", stop))
	r := e.compose(strategy, found, parts, w)
	r.stopped(stop)
	return r
}

// append adds the statements of another draft from the same evidence, and all that keeps an answer
// from being complete, but not its claims.
func (w *checkedDraft) append(other checkedDraft) {
	from := len(w.draft.Statements)
	d := &w.draft
	d.Statements = append(d.Statements, other.draft.Statements...)
	d.Open = appendNew(d.Open, other.draft.Open...)
	d.Torn = d.Torn || other.draft.Torn
	d.Failure = cmp.Or(d.Failure, other.draft.Failure)
	for _, pair := range other.draft.Conflicts {
		d.Conflicts = append(d.Conflicts, [2]int{pair[0] + from, pair[1] + from})
	}
	for _, i := range other.unusable {
		w.unusable = append(w.unusable, i+from)
	}
	w.evidence, w.passages, w.readable = other.evidence, other.passages, w.readable || other.readable
	w.conflicts = append(w.conflicts, other.conflicts...)
	w.byModel = w.byModel || other.byModel
	w.notes.join(other.notes)
}
