package strategy

import (
	"context"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
)

// reflectSpec describes Reflect.
var reflectSpec = Spec{
	Name:     "reflect",
	Summary:  "analyses what is still open after each round, and searches for that",
	Source:   "assay's own, after Shinn et al., \"Reflexion: Language Agents with Verbal Reinforcement Learning\", 2023",
	Func:     Reflect,
	Defaults: "3 rounds (reflect.rounds); a coverage of 0.8 (reflect.coverage)",
	UsualCost: "a plan, an analysis and a reflection more than static; each further round costs a query, a search, a " +
		"grade, an analysis and a reflection",
}

// Reflect has six nodes. A planner splits the question into sub-questions, a retriever searches for
// them, an analyst sorts the evidence and names open points, and a reflector decides whether the
// evidence covers the question. If it does not, a router searches for the best sub-query for the
// open points. Finally a finalizer writes. Settings.Reflect limits the rounds of retriever, analyst
// and reflector.
//
// A question is answered only if the reflector returned COMPLETED with a coverage of at least
// Settings.Reflect.Coverage, and the evidence for each part was graded sufficient. Points that the
// reflector finds open are missing in the answer. A reflector that fails has not returned
// COMPLETED. The answer's Review has the verdict, justification, coverage, threshold and history of
// queries, answers and sources.
func Reflect(ctx context.Context, s run.Scope, env Env) (Result, error) {
	env = env.withDefaults()
	plan, notes, err := env.plan(ctx, s)
	if stop := stopOf(err); stop != "" {
		return env.unplannable("reflect", stop, err, notes), nil
	}
	if err != nil {
		return Result{}, err
	}
	r := reflectLoop{found: make([]subQuestion, len(plan.SubQuestions)), stop: assay.StopIterationLimit}
	spelled := displayQuestions(plan)
	for i, sub := range plan.SubQuestions {
		r.found[i] = subQuestion{question: spelled[i], filter: sub.Filter, stop: assay.StopIterationLimit}
		for _, n := range sub.Needs {
			if n >= 0 && n < i {
				r.found[n].neededBy = append(r.found[n].neededBy, i)
			}
		}
	}
	r.found[0].notes.join(notes)
	plan.SubQuestions = plan.SubQuestions[:min(len(plan.SubQuestions), env.Limits.Parts)]
	if err := r.rounds(ctx, s, env, plan); err != nil {
		return Result{}, err
	}
	answer, _, err := env.finish(ctx, s.Sub("finish", 0), "reflect", r.found)
	answer.Review = r.review(env)
	if err == nil && !r.completed && len(answer.Claims) > 0 {
		answer.holdBack(env.roleGaps(env.Question, r.open, env.byModel(role.AnalystTask)), "the reflector did not judge the question covered")
	}
	return answer, err
}

// reflectLoop is the state of the loop.
type reflectLoop struct {
	found     []subQuestion // those beyond the limit of parts are not searched
	history   searchHistory // of all sub-questions
	open      []string      // by the last analysis
	last      role.Reflection
	made      int // number of rounds
	completed bool
	stop      assay.Stop
}

// review returns the Review of the answer.
func (r *reflectLoop) review(env Env) *assay.Review {
	out := &assay.Review{Verdict: string(role.IncompleteStatus), Iterations: r.made}
	if r.completed {
		out.Verdict = string(role.CompletedStatus)
	}
	if r.last.Status != "" {
		coverage := r.last.Coverage
		threshold := env.Settings.Reflect.Coverage
		out.Coverage, out.Threshold, out.Justification = &coverage, &threshold, questionSources(env.Question).line(r.last.Justification)
		out.ByModel = env.byModel(role.ReflectorTask) && !r.last.StoodIn
	}
	for _, a := range r.history {
		out.History = append(out.History, assay.Exchange{Query: a.Query, Answer: a.Brought, Sources: a.Sources})
	}
	return out
}

// rounds searches and reflects until the reflector is satisfied, and sets the stop reason of each
// part.
func (r *reflectLoop) rounds(ctx context.Context, s run.Scope, env Env, plan role.Plan) error {
	looked := r.found[:len(plan.SubQuestions)]
	err := r.continueRounds(ctx, s, env, plan)
	stop := stopOf(err)
	for i := range looked {
		switch {
		case stop != "":
			looked[i].endSearch(stop, err)
		case !looked[i].cutShort():
			looked[i].stop = r.stop
		}
	}
	if stop != "" {
		return nil
	}
	return err
}

func (r *reflectLoop) continueRounds(ctx context.Context, s run.Scope, env Env, plan role.Plan) error {
	var dry noProgressCount
	for round := range env.Settings.Reflect.Rounds {
		s := s.Sub("round", round)
		if round == 0 {
			if err := r.retrieve(ctx, s, env, plan); err != nil {
				return err
			}
		} else {
			stop, err := r.route(ctx, s, env, r.found[:len(plan.SubQuestions)], &dry)
			if err != nil {
				return err
			}
			if stop == "" && dry.stalled() {
				stop = assay.StopNoProgress
			}
			if stop != "" {
				r.stop = stop
				return nil
			}
		}
		if err := r.assess(ctx, s, env, round+1); err != nil {
			return err
		}
		if r.completed {
			r.stop = assay.StopSufficient
			return nil
		}
	}
	return nil
}

// retrieve searches once for each sub-question. One that needs others is searched with the names
// from their hits.
func (r *reflectLoop) retrieve(ctx context.Context, s run.Scope, env Env, plan role.Plan) error {
	trails := make([]searchHistory, len(plan.SubQuestions))
	for k, stage := range stages(plan) {
		err := s.Sub("stage", k).Parallel(ctx, "sub", len(stage), sideBySide, func(ctx context.Context, j int, s run.Scope) error {
			i := stage[j]
			sq := &r.found[i]
			sq.setSubstitutions(substitutions(plan, r.found, i))
			query := strings.Join(append([]string{sq.question}, hints(plan, r.found, i)...), " ")
			err := sq.inTime(ctx, s, env, func(s run.Scope) error { return sq.lookOn(ctx, s, env, query, &trails[i]) })
			if stop := stopOf(err); stop != "" {
				sq.endSearch(stop, err)
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	r.history = slices.Concat(trails...)
	return nil
}

// route searches for the open points with the querier's next query. The hits are added to the part
// that shares the most words with it, preferably one that is not graded sufficient, among those
// whose time is not over.
func (r *reflectLoop) route(ctx context.Context, s run.Scope, env Env, looked []subQuestion, dry *noProgressCount) (stop assay.Stop, err error) {
	query, stop, err := env.nextQuery(ctx, s, env.Question, &r.found[0], r.history, r.open)
	if err != nil || stop != "" {
		return stop, err
	}
	at := nearest(looked, query)
	if at < 0 {
		return assay.StopDeadline, nil
	}
	sq := &looked[at]
	return "", sq.inTime(ctx, s, env, func(s run.Scope) error {
		fresh, err := sq.searchNext(ctx, s, env, query, &r.history)
		if err != nil {
			return err
		}
		dry.add(fresh, sq.lastHits)
		return sq.gradeAboveFloor(ctx, s, env)
	})
}

// nearest returns the index of the sub-question whose question shares the most words with the query. It
// prefers sub-questions that are not graded sufficient, and takes none whose time is over. Of equals it
// takes the last, to which the others lead. It returns -1 if the time of all is over.
func nearest(found []subQuestion, query string) int {
	words := lexical.Content(query)
	best, most := -1, -1
	for i, sq := range found {
		if sq.late {
			continue
		}
		n := 0
		if !sq.sufficient() {
			n += len(words) + 1
		}
		of := lexical.Content(sq.question)
		for _, w := range words {
			if slices.Contains(of, w) {
				n++
			}
		}
		if n >= most {
			best, most = i, n
		}
	}
	return best
}

// assess asks the analyst to sort the evidence, and the reflector whether it covers the question.
// Without evidence it asks neither.
func (r *reflectLoop) assess(ctx context.Context, s run.Scope, env Env, rounds int) error {
	r.made = rounds
	evidence, parts := env.numberEvidence(r.found)
	r.open = nil
	if len(evidence) == 0 {
		for _, sq := range r.found {
			r.open = append(r.open, questionSources(env.Question).line(sq.displayText()))
		}
		return nil
	}
	analysis, err := env.analyse(ctx, s, role.Reading{Question: env.Question, Evidence: evidence, Context: env.assemble(evidence, parts)}, &r.found[0].notes)
	if err != nil {
		return err
	}
	r.open = questionSources(env.Question).lines(analysis.Open)
	known := knownBy(analysis, evidence)
	if len(known) == 0 {
		return nil
	}
	word, err := env.reflect(ctx, s, role.ReflectInput{
		Question: env.Question, Known: known, Open: r.open, Rounds: rounds, Threshold: env.Settings.Reflect.Coverage,
	}, &r.found[0].notes)
	if err != nil {
		return err
	}
	r.last = word
	r.completed = word.Status == role.CompletedStatus && word.Failure == "" && word.Coverage >= env.Settings.Reflect.Coverage
	return nil
}

// knownBy returns an analysis's statements that cite existing evidence, each with the title of the
// first cited.
func knownBy(a role.Analysis, evidence []assay.Evidence) []string {
	var known []string
	for _, k := range a.Categories {
		for _, st := range k.Statements {
			at := slices.IndexFunc(evidence, func(ev assay.Evidence) bool { return slices.Contains(st.Evidence, ev.Number) })
			text := visible.Line(st.Text)
			if at < 0 || text == "" {
				continue
			}
			if title := visible.Line(evidence[at].Hit.Title); title != "" {
				text = title + ": " + text
			}
			known = append(known, text)
		}
	}
	return known
}

// analyse asks the analyst. If the analyst fails, the analysis has no statements.
func (e Env) analyse(ctx context.Context, s run.Scope, in role.Reading, notes *noteList) (role.Analysis, error) {
	return runRole(ctx, s, e, job[role.Reading, role.Analysis]{
		task:     role.AnalystTask,
		do:       e.Roles.Judge.Analyse,
		cautious: role.Analysis{Categories: []role.Category{}, Answered: []string{}, Open: []string{in.Question}},
	}, in, notes)
}

// reflect asks the reflector. If the reflector fails, the status is incomplete.
func (e Env) reflect(ctx context.Context, s run.Scope, in role.ReflectInput, notes *noteList) (role.Reflection, error) {
	return runRole(ctx, s, e, job[role.ReflectInput, role.Reflection]{
		task:     role.ReflectorTask,
		do:       e.Roles.Judge.Reflect,
		cautious: role.Reflection{Status: role.IncompleteStatus, Threshold: in.Threshold},
	}, in, notes)
}
