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
// evidence covers the question. A router returns to the planner, which then names the best sub-query for the
// open points, or goes on to the finaliser, which writes. Settings.Reflect limits the rounds of
// planner, retriever, analyst and reflector.
//
// A question is answered only if the reflector returned COMPLETED with a coverage of at least
// Settings.Reflect.Coverage, and the evidence for each part was graded sufficient. Points that the
// reflector finds open are missing in the answer. A reflector that fails has not returned
// COMPLETED. The answer's Review has the verdict, justification, coverage, threshold and history of
// queries, answers and sources.
func Reflect(ctx context.Context, s run.Scope, env Env) (Result, error) {
	r := &reflectRun{env: env.withDefaults(), stop: assay.StopIterationLimit}
	for node := PlannerNode; node != FinaliserNode; node = r.next(node) {
		if err := r.do(ctx, s, node); err != nil {
			return Result{}, err
		}
		if env.After == nil {
			continue
		}
		if err := env.After(ctx, r.progress(node)); err != nil {
			return Result{}, err
		}
	}
	return r.finalise(ctx, s)
}

// A Node is a node of Reflect that has steps, which the router has not.
type Node string

// The nodes of Reflect, in their order.
const (
	PlannerNode   Node = "planner"
	RetrieverNode Node = "retriever"
	AnalystNode   Node = "analyst"
	ReflectorNode Node = "reflector"
	FinaliserNode Node = "finaliser"
)

// MaxRoutes is the usual number of reflections after which the router goes on to the finaliser,
// whatever their verdict.
const MaxRoutes = 3

// Route is the router of Reflect: it returns the node that follows a reflection. routes counts the
// reflections so far, and most is the number after which the rounds end.
func Route(verdict role.ReflectionStatus, routes, most int) Node {
	if verdict == role.CompletedStatus || routes >= most {
		return FinaliserNode
	}
	return PlannerNode
}

// Progress is the state of Reflect after a node.
type Progress struct {
	Node     Node
	Round    int                   // that the node belongs to, from 0
	Routes   int                   // reflections so far
	Verdict  role.ReflectionStatus // of the last reflection; empty: none yet
	Coverage *float64              // by the last reflection; nil: the reflector was not asked
	Queries  int                   // searches so far
	Evidence []assay.Evidence      // of the last analysis
	Ended    bool                  // the finaliser follows, without another reflection
	Stop     assay.Stop            // why the rounds ended; empty: they go on
}

// reflectRun is the state of Reflect.
type reflectRun struct {
	env       Env
	plan      role.Plan     // without the parts beyond the limit
	found     []subQuestion // those beyond the limit of parts are not searched
	history   searchHistory // of all sub-questions
	query     string        // the planner's last, after the first round
	at        int           // index of the sub-question that it is searched for
	dry       noProgressCount
	evidence  []assay.Evidence
	open      []string // by the last analysis
	known     []string // by the last analysis
	last      role.Reflection
	routes    int // number of reflections
	made      int // number of analyses
	completed bool
	ended     bool // the rounds end before a reflection
	stop      assay.Stop
	failure   error   // that ended the rounds; nil: none
	unplanned *Result // of a run that could not plan; nil: there is a plan
}

// next returns the node that follows a node.
func (r *reflectRun) next(node Node) Node {
	switch {
	case r.ended:
		return FinaliserNode
	case node == PlannerNode:
		return RetrieverNode
	case node == RetrieverNode:
		return AnalystNode
	case node == AnalystNode:
		return ReflectorNode
	}
	return Route(r.verdict(), r.routes, r.env.Settings.Reflect.Rounds)
}

// verdict returns the verdict of the last reflection.
func (r *reflectRun) verdict() role.ReflectionStatus {
	if r.completed {
		return role.CompletedStatus
	}
	return role.IncompleteStatus
}

// progress returns the state after a node.
func (r *reflectRun) progress(node Node) Progress {
	p := Progress{Node: node, Round: r.routes, Routes: r.routes, Queries: len(r.history), Evidence: r.evidence, Ended: r.ended}
	if node == ReflectorNode && !r.ended {
		p.Round--
	}
	if r.routes > 0 {
		p.Verdict = r.verdict()
	}
	if r.last.Status != "" {
		p.Coverage = new(r.last.Coverage)
	}
	if r.ended || r.next(node) == FinaliserNode {
		p.Stop = r.stop
	}
	return p
}

// do takes the steps of a node. The end of the budget ends the rounds.
func (r *reflectRun) do(ctx context.Context, s run.Scope, node Node) error {
	var err error
	round := s.Sub("round", r.routes)
	switch {
	case node == PlannerNode && r.routes == 0:
		err = r.planParts(ctx, s)
	case node == PlannerNode:
		err = r.planQuery(ctx, round)
	case node == RetrieverNode && r.routes == 0:
		err = r.retrieveParts(ctx, round)
	case node == RetrieverNode:
		err = r.retrieveQuery(ctx, round)
	case node == AnalystNode:
		err = r.analyse(ctx, round)
	case node == ReflectorNode:
		err = r.reflect(ctx, round)
	}
	if stop := stopOf(err); stop != "" {
		r.ended, r.stop, r.failure = true, stop, err
		return nil
	}
	return err
}

// end ends the rounds.
func (r *reflectRun) end(stop assay.Stop) { r.ended, r.stop = true, stop }

// planParts splits the question into sub-questions.
func (r *reflectRun) planParts(ctx context.Context, s run.Scope) error {
	plan, notes, err := r.env.plan(ctx, s)
	if stop := stopOf(err); stop != "" {
		result := r.env.unplannable("reflect", stop, err, notes)
		r.unplanned = &result
	}
	if err != nil {
		return err
	}
	r.found = make([]subQuestion, len(plan.SubQuestions))
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
	plan.SubQuestions = plan.SubQuestions[:min(len(plan.SubQuestions), r.env.Limits.Parts)]
	r.plan = plan
	return nil
}

// planQuery asks for the next query for the open points. It belongs to the part that shares the most
// words with it, preferably one that is not graded sufficient, among those whose time is not over.
func (r *reflectRun) planQuery(ctx context.Context, s run.Scope) error {
	query, stop, err := r.env.nextQuery(ctx, s, r.env.Question, &r.found[0], r.history, r.open)
	if err != nil {
		return err
	}
	if stop != "" {
		r.end(stop)
		return nil
	}
	if r.query, r.at = query, nearest(r.searched(), query); r.at < 0 {
		r.end(assay.StopDeadline)
	}
	return nil
}

// searched returns the sub-questions that are searched.
func (r *reflectRun) searched() []subQuestion { return r.found[:len(r.plan.SubQuestions)] }

// finalise sets the stop reason of each part and finishes.
func (r *reflectRun) finalise(ctx context.Context, s run.Scope) (Result, error) {
	if r.unplanned != nil {
		return *r.unplanned, nil
	}
	searched := r.searched()
	for i := range searched {
		switch {
		case r.failure != nil:
			searched[i].endSearch(r.stop, r.failure)
		case !searched[i].cutShort():
			searched[i].stop = r.stop
		}
	}
	env := r.env
	answer, _, err := env.finish(ctx, s.Sub("finish", 0), "reflect", r.found)
	answer.Review = r.review()
	if err == nil && !r.completed && len(answer.Claims) > 0 {
		answer.holdBack(env.roleGaps(env.Question, r.open, env.byModel(role.AnalystTask)), "the reflector did not judge the question covered")
	}
	return answer, err
}

// review returns the Review of the answer.
func (r *reflectRun) review() *assay.Review {
	env := r.env
	out := &assay.Review{Verdict: string(r.verdict()), Iterations: r.made}
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

// retrieveParts searches once for each sub-question. One that needs others is searched with the names
// from their hits.
func (r *reflectRun) retrieveParts(ctx context.Context, s run.Scope) error {
	env, plan := r.env, r.plan
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

// retrieveQuery searches for the planner's query and adds the hits to its part. It ends the rounds if
// the last searches found few new passages.
func (r *reflectRun) retrieveQuery(ctx context.Context, s run.Scope) error {
	sq := &r.found[r.at]
	err := sq.inTime(ctx, s, r.env, func(s run.Scope) error {
		fresh, err := sq.searchNext(ctx, s, r.env, r.query, &r.history)
		if err != nil {
			return err
		}
		r.dry.add(fresh, sq.lastHits)
		return sq.gradeAboveFloor(ctx, s, r.env)
	})
	if err == nil && r.dry.stalled() {
		r.end(assay.StopNoProgress)
	}
	return err
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

// analyse has the analyst sort the evidence. Without evidence it does not ask, and all parts are open.
func (r *reflectRun) analyse(ctx context.Context, s run.Scope) error {
	env := r.env
	r.made = r.routes + 1
	evidence, parts := env.numberEvidence(r.found)
	r.evidence, r.open, r.known = evidence, nil, nil
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
	r.open, r.known = questionSources(env.Question).lines(analysis.Open), knownBy(analysis, evidence)
	return nil
}

// reflect asks the reflector whether the evidence covers the question. If nothing is known, it does not
// ask, and the question is not covered.
func (r *reflectRun) reflect(ctx context.Context, s run.Scope) error {
	env := r.env
	if len(r.known) > 0 {
		threshold := env.Settings.Reflect.Coverage
		in := role.ReflectInput{Question: env.Question, Known: r.known, Open: r.open, Rounds: r.made, Threshold: threshold}
		last, err := env.reflect(ctx, s, in, &r.found[0].notes)
		if err != nil {
			return err
		}
		r.last = last
		r.completed = last.Status == role.CompletedStatus && last.Failure == "" && last.Coverage >= threshold
	}
	r.routes++
	if r.completed {
		r.stop = assay.StopSufficient
	}
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
