package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// A library holds a few documents of one chunk each. It retrieves by the words of the query and
// reads its own documents.
type library struct {
	documents []assay.Document
	relevance map[string]float64   // by URI; default 0.9
	err       error                // of Retrieve
	readErr   error                // of ACL
	last      map[string]assay.ACL // of deleted documents, by ID
	kept      []assay.Document     // versions that were replaced or deleted after they were found

	hidden   string            // a document with this word is found only by a query with it
	relevant map[string]string // a query with the word finds only documents with the other one

	onSearch func() // called by each search; may be nil

	mu       sync.Mutex
	searches []string
	limits   []int // limits of the searches
}

func newLibrary(texts ...string) *library {
	l := &library{relevance: map[string]float64{}}
	for i, text := range texts {
		uri := fmt.Sprintf("doc%d", i+1)
		l.documents = append(l.documents, assay.Document{
			ID: assay.DocumentID("", uri), Version: assay.DocumentVersion(text, nil, ""), URI: uri, Title: "Title of " + uri,
			Text: text, Anchors: []assay.Anchor{{Start: 0, Line: 1}},
		})
	}
	return l
}

// all returns the documents. A test may add some while a run searches.
func (l *library) all() []assay.Document {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.documents)
}

func (l *library) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	if l.err != nil {
		return assay.Results{}, l.err
	}
	l.mu.Lock()
	l.searches, l.limits = append(l.searches, strings.Join(append(slices.Clone(q.Rewrites), q.Text), " | ")), append(l.limits, q.Limit)
	if l.onSearch != nil {
		l.onSearch()
	}
	l.mu.Unlock()
	documents := l.all()
	found := assay.Results{Chunks: len(documents)}
	for _, w := range strings.Fields(strings.Trim(q.Text, "?")) {
		found.Terms = append(found.Terms, assay.Term{Text: w, Stem: l.stemOf(w), Chunks: 1, Weight: 0.5})
	}
	for _, d := range documents {
		words := strings.Fields(strings.ToLower(strings.Join(append([]string{q.Text}, q.Rewrites...), " ")))
		shared := slices.ContainsFunc(words, func(w string) bool {
			return len(w) > 3 && strings.Contains(strings.ToLower(d.Text), strings.Trim(w, "?."))
		})
		if !shared || l.hides(d.Text, words) {
			continue
		}
		relevance, ok := l.relevance[d.URI]
		if !ok {
			relevance = 0.9
		}
		found.Hits = append(found.Hits, assay.Hit{
			Chunk: assay.Chunk{ID: assay.ChunkID(d.ID, d.Version, 0), Document: d.ID, Version: d.Version, End: len(d.Text), Kind: assay.ChunkProse},
			Text:  d.Text, URI: d.URI, Title: d.Title, Line: 1, Scores: assay.Scores{Relevance: relevance},
		})
	}
	return found, nil
}

// hides reports whether a document is not found by a query with these words.
func (l *library) hides(text string, words []string) bool {
	asked := strings.Join(words, " ")
	for word, other := range l.relevant {
		if strings.HasPrefix(asked, "how heavy is") && strings.Contains(asked, word) && !strings.Contains(text, other) {
			return true
		}
	}
	return l.hidden != "" && strings.Contains(text, l.hidden) && !slices.Contains(words, l.hidden)
}

func (l *library) ACL(_ context.Context, id string) (assay.ACL, error) {
	if l.readErr != nil {
		return assay.ACL{}, l.readErr
	}
	for _, d := range l.all() {
		if d.ID == id {
			return d.ACL, nil
		}
	}
	if acl, ok := l.last[id]; ok {
		return acl, nil
	}
	return assay.ACL{}, assay.ErrNotFound
}

func (l *library) Version(_ context.Context, id, version string) (assay.Document, error) {
	for _, d := range slices.Concat(l.all(), l.kept) {
		if d.ID == id && d.Version == version {
			return d, nil
		}
	}
	return assay.Document{}, assay.ErrNotFound
}

// Roles made of functions, for tests.
type (
	grader    func(role.GradeInput) (role.Grade, error)
	generator func(role.GenerateInput) (role.Draft, error)
	planner   func(string) (role.Plan, error)
	verifier  func(string, []ground.Passage) (ground.Judgement, error)
)

func (f grader) Grade(_ context.Context, _ role.Caller, in role.GradeInput) (role.Grade, error) {
	return f(in)
}
func (f generator) Generate(_ context.Context, _ role.Caller, in role.GenerateInput) (role.Draft, error) {
	return f(in)
}
func (f planner) Plan(_ context.Context, _ role.Caller, q string) (role.Plan, error) { return f(q) }
func (planner) Route(ctx context.Context, c role.Caller, q string) (role.Route, error) {
	return local.Planner{}.Route(ctx, c, q)
}
func (f planner) Revise(context.Context, role.Caller, role.RevisionInput) (role.Revision, error) {
	return role.Revision{Decision: role.Keep}, nil
}
func (f verifier) Verify(_ context.Context, claim string, cited []ground.Passage) (ground.Judgement, error) {
	return f(claim, cited)
}

// covering grades only by the words that passages cover, since the passages of these tests have no
// scores. Its answers are scripted: reads has those to a question that contains a text.
type covering struct {
	local.Grader
	reads map[string][]string
}

func (g covering) Grade(ctx context.Context, c role.Caller, in role.GradeInput) (role.Grade, error) {
	in.MinAnswerability = 0
	grade, err := g.Grader.Grade(ctx, c, in)
	for asked, answers := range g.reads {
		if strings.Contains(in.Question, asked) {
			grade.Answers = answersIn(in.Hits, answers...)
		}
	}
	return grade, err
}

// answersIn returns the texts as answers, as far as a hit contains them.
func answersIn(hits []assay.Hit, texts ...string) []role.Extract {
	var answers []role.Extract
	for i, text := range texts {
		at := slices.IndexFunc(hits, func(h assay.Hit) bool { return strings.Contains(h.Text, text) })
		if at >= 0 {
			answers = append(answers, role.Extract{Text: text, Chunk: hits[at].Chunk.ID, Score: 1 / float64(i+1)})
		}
	}
	return answers
}

// taskRoles are the roles of a test, one field for each task.
type taskRoles struct {
	Planner planOnly
	Router  role.Router

	Rewriter  rewriteOnly
	Querier   role.Querier
	Clarifier role.Clarifier

	Grader    role.Grader
	Generator role.Generator
	Verifier  role.Verifier

	Judge           role.DraftJudge
	Critic          role.Critic
	SupportGrader   role.SupportGrader
	RetrievalGrader role.RetrievalGrader
	AnswerGrader    role.AnswerGrader
	Scorer          role.Scorer
	Analyst         role.Analyst
	Reflector       role.Reflector

	Actor role.Actor

	Models map[string]string
}

type planOnly interface {
	Plan(ctx context.Context, c role.Caller, question string) (role.Plan, error)
	Revise(ctx context.Context, c role.Caller, in role.RevisionInput) (role.Revision, error)
}

type rewriteOnly interface {
	Rewrite(ctx context.Context, c role.Caller, in role.RewriteInput) (role.Rewriting, error)
}

func localRoles() taskRoles {
	judge, rewriter := local.Judge{}, local.Rewriter{}
	return taskRoles{
		Planner: local.Planner{}, Router: local.Planner{}, Rewriter: rewriter, Querier: rewriter, Clarifier: lenient{},
		Grader: covering{}, Generator: local.Generator{}, Verifier: role.ByClaim(ground.Local{}),
		Judge: judge, Critic: judge, SupportGrader: judge, RetrievalGrader: judge, AnswerGrader: lenient{}, Scorer: judge, Analyst: judge, Reflector: judge,
		Actor: local.Actor{},
	}
}

// roles returns the roles of a strategy.
func (r taskRoles) roles() strategy.Roles {
	return strategy.Roles{
		Planner: struct {
			planOnly
			role.Router
		}{r.Planner, r.Router},
		Rewriter: struct {
			rewriteOnly
			role.Querier
			role.Clarifier
		}{r.Rewriter, r.Querier, r.Clarifier},
		Grader: r.Grader, Generator: r.Generator, Verifier: r.Verifier,
		Judge: struct {
			role.DraftJudge
			role.Critic
			role.SupportGrader
			role.RetrievalGrader
			role.AnswerGrader
			role.Scorer
			role.Analyst
			role.Reflector
		}{r.Judge, r.Critic, r.SupportGrader, r.RetrievalGrader, r.AnswerGrader, r.Scorer, r.Analyst, r.Reflector},
		Actor: r.Actor, Models: r.Models, Relevance: r.AnswerGrader,
	}
}

// actsBy is an actor whose tools are those of the local one.
type actsBy struct {
	local.Actor
	by actOnly
}

type actOnly interface {
	Plan(ctx context.Context, c role.Caller, question string) (role.Plan, error)
	Act(ctx context.Context, c role.Caller, in role.ActInput) (role.Action, error)
	Critique(ctx context.Context, c role.Caller, in role.ActInput) (role.SelfCritique, error)
}

func (a actsBy) Plan(ctx context.Context, c role.Caller, question string) (role.Plan, error) {
	return a.by.Plan(ctx, c, question)
}

func (a actsBy) Critique(ctx context.Context, c role.Caller, in role.ActInput) (role.SelfCritique, error) {
	return a.by.Critique(ctx, c, in)
}

func (a actsBy) Act(ctx context.Context, c role.Caller, in role.ActInput) (role.Action, error) {
	return a.by.Act(ctx, c, in)
}

// lenient finds no question ambiguous and no answer off topic.
type lenient struct{}

func (lenient) Clarify(context.Context, role.Caller, role.ClarifyInput) (role.Clarity, error) {
	return role.Clarity{}, nil
}

func (lenient) GradeAnswer(context.Context, role.Caller, role.AnswerInput) (role.AnswerGrade, error) {
	relevance := 1.0
	return role.AnswerGrade{Relevance: &relevance}, nil
}

func env(l *library, question string, roles taskRoles) strategy.Env {
	return strategy.Env{
		Request: strategy.Request{Question: question, Access: assay.Local().Access()},
		Tools:   strategy.Tools{Retriever: l, Content: l, Roles: roles.roles()},
	}
}

func ask(t *testing.T, f strategy.Func, e strategy.Env, budget assay.Budget) assay.Answer {
	t.Helper()
	journal := &run.Memory{}
	r, err := run.New(run.Config{Run: "r", Journal: journal, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	a, err := f(context.Background(), r.Scope(), e)
	if err != nil {
		t.Fatal(err)
	}
	check(t, e, a.Answer)
	return a.Answer
}

// check checks the invariants of every answer.
func check(t *testing.T, e strategy.Env, a assay.Answer) {
	t.Helper()
	if a.Status == "" || a.Stop == "" || a.Justification == "" || a.Text == "" {
		t.Errorf("an answer lacks status %q, stop %q, justification %q or text %q", a.Status, a.Stop, a.Justification, a.Text)
	}
	for i, c := range a.Claims {
		if c.Verdict != assay.Supported {
			t.Errorf("claim %q is shown as %s", a.Text[c.Start:c.End], c.Verdict)
		}
		if len(c.Citations) == 0 || !slices.ContainsFunc(a.Citations, func(ci assay.Citation) bool { return ci.Claim == i }) {
			t.Errorf("claim %q cites nothing", a.Text[c.Start:c.End])
		}
	}
	for _, c := range a.Citations {
		d, err := e.Content.Version(context.Background(), c.Document, c.Version)
		if err != nil || d.Text[c.Start:c.End] != c.Quote {
			t.Errorf("citation %d quotes %q, which is not at [%d, %d)", c.Number, c.Quote, c.Start, c.End)
		}
		if !slices.Contains(a.Claims[c.Claim].Citations, c.Number) {
			t.Errorf("claim %d does not list its citation %d", c.Claim, c.Number)
		}
	}
}

const shutdown = "Shutdown gracefully shuts down\nthe server. It first closes all open listeners. Nobody likes long names."

func TestAnswered(t *testing.T) {
	for _, name := range strategy.Names() {
		if name == "managed" {
			continue // it does not search
		}
		spec, err := strategy.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		l := newLibrary("Bananas are yellow.", shutdown)
		a := ask(t, spec.Func, env(l, "What does Shutdown do to open listeners?", localRoles()), assay.Budget{})
		if a.Status != assay.Answered || a.Stop != assay.StopSufficient {
			t.Errorf("%s: %s (%s): %s", name, a.Status, a.Stop, a.Justification)
		}
		if !strings.Contains(a.Text, "It first closes all open listeners. [1]") {
			t.Errorf("%s: text %q", name, a.Text)
		}
		if a.Citations[0].Line == 0 || a.Citations[0].URI != "doc2" {
			t.Errorf("%s: citation %+v", name, a.Citations[0])
		}
	}
}

func TestConflicting(t *testing.T) {
	l := newLibrary("The default timeout is 30 seconds.", "Note: bananas. The default timeout is 60 seconds.", "The maximum timeout is 90 seconds.")
	a := ask(t, strategy.Auto, env(l, "What is the default timeout?", localRoles()), assay.Budget{})
	if a.Status != assay.Conflicting || !strings.Contains(a.Text, "30 seconds. [") || !strings.Contains(a.Text, "60 seconds. [") {
		t.Errorf("%s: %q (%s), want conflicting with both sides", a.Status, a.Text, a.Justification)
	}
	a = ask(t, strategy.Auto, env(l, "Is the default timeout 30 seconds?", localRoles()), assay.Budget{})
	if a.Status != assay.Conflicting {
		t.Errorf("%s: %q, want conflicting", a.Status, a.Text)
	}
}

func TestNotFound(t *testing.T) {
	l := newLibrary(shutdown)
	l.relevance["doc1"] = 0.2
	for _, question := range []string{"What is the capital of France?", "Does the server like bananas?"} {
		a := ask(t, strategy.Auto, env(l, question, localRoles()), assay.Budget{})
		if a.Status != assay.NotFound || len(a.Claims) != 0 || len(a.Searched) == 0 || len(a.Missing) == 0 {
			t.Errorf("%q: %+v", question, a)
		}
	}
	a := ask(t, strategy.Auto, env(l, "Does the server like bananas?", localRoles()), assay.Budget{})
	if len(a.Closest) != 1 || a.Closest[0].Relevance != 0.2 {
		t.Errorf("closest = %+v, want doc1 with 0.2", a.Closest)
	}
}

// TestHostileRoles checks that roles that fail or lie cannot show an unsupported claim or make the
// run hang.
func TestHostileRoles(t *testing.T) {
	const question = "What does Shutdown do to open listeners?"
	broken := errors.New("broken")
	say := func(text string, numbers ...int) generator {
		return func(role.GenerateInput) (role.Draft, error) {
			return role.Draft{Statements: []role.Statement{{Text: text, Evidence: numbers}}}, nil
		}
	}
	tests := []struct {
		name   string
		change func(*taskRoles)
		want   assay.Status
	}{
		{"planner fails", func(r *taskRoles) {
			r.Planner = planner(func(string) (role.Plan, error) { return role.Plan{}, broken })
		}, assay.Answered},
		{"planner plans nothing", func(r *taskRoles) {
			r.Planner = planner(func(string) (role.Plan, error) { return role.Plan{}, nil })
		}, assay.Answered},
		{"planner plans a hundred parts in circles", func(r *taskRoles) {
			r.Planner = planner(func(q string) (role.Plan, error) {
				p := role.Plan{Shape: role.Conjunction}
				for i := range 100 {
					p.SubQuestions = append(p.SubQuestions, role.SubQuestion{Text: q + strings.Repeat("?", i), Needs: []int{i, i + 1, -1}})
				}
				return p, nil
			})
		}, assay.Incomplete},
		{"grader fails", func(r *taskRoles) {
			r.Grader = grader(func(role.GradeInput) (role.Grade, error) { return role.Grade{}, broken })
		}, assay.Incomplete},
		{"grader invents chunks", func(r *taskRoles) {
			r.Grader = grader(func(role.GradeInput) (role.Grade, error) {
				return role.Grade{Verdict: assay.Sufficient, Relevant: []string{"invented"}}, nil
			})
		}, assay.NotFound},
		{"grader never has enough", func(r *taskRoles) {
			n := 0
			r.Grader = grader(func(role.GradeInput) (role.Grade, error) {
				n++
				return role.Grade{Verdict: assay.Insufficient, Query: fmt.Sprintf("open query %d", n)}, nil
			})
		}, assay.NotFound},
		{"generator fails", func(r *taskRoles) {
			r.Generator = generator(func(role.GenerateInput) (role.Draft, error) { return role.Draft{}, broken })
		}, assay.Incomplete},
		{"generator invents numbers", func(r *taskRoles) { r.Generator = say("It first closes all open listeners.", 0, 7, -1) }, assay.Answered}, // repaired
		{"generator cites nothing", func(r *taskRoles) { r.Generator = say("It first closes all open listeners.") }, assay.Answered},
		{"generator invents facts", func(r *taskRoles) { r.Generator = say("It first closes all 17 open listeners in Paris.", 1) }, assay.Incomplete},
		{"generator mixes", func(r *taskRoles) {
			r.Generator = say("It first closes all open listeners. Then it opens the windows of Paris.", 1)
		}, assay.Answered},
		{"verifier fails", func(r *taskRoles) {
			r.Verifier = role.ByClaim(verifier(func(string, []ground.Passage) (ground.Judgement, error) {
				return ground.Judgement{Verdict: assay.Supported, Score: 1}, broken
			}))
		}, assay.Incomplete},
		{"verifier cannot decide", func(r *taskRoles) {
			r.Verifier = role.ByClaim(verifier(func(string, []ground.Passage) (ground.Judgement, error) { return ground.Judgement{}, nil }))
		}, assay.Incomplete},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			roles := localRoles()
			tt.change(&roles)
			a := ask(t, strategy.Auto, env(newLibrary(shutdown), question, roles), assay.Budget{})
			if a.Status != tt.want {
				t.Errorf("status %s, want %s: %s\n%s", a.Status, tt.want, a.Justification, a.Text)
			}
			if strings.Contains(a.Text, "Paris") {
				t.Errorf("an invention is shown: %q", a.Text)
			}
		})
	}
}

func TestIterationLimit(t *testing.T) {
	l := newLibrary("alpha 0", "alpha 1", "alpha 2", "alpha 3", "alpha 4", "alpha 5")
	roles := localRoles()
	n := 0
	roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
		n++
		l.documents = append(l.documents, newLibrary(fmt.Sprintf("alpha more %d", n)).documents...)
		return role.Grade{Verdict: assay.Insufficient, Query: fmt.Sprintf("alpha %d", n)}, nil
	})
	a := ask(t, strategy.Corrective, env(l, "Which alpha is missing?", roles), assay.Budget{})
	if a.Stop != assay.StopIterationLimit || a.Iterations != 4 || len(l.searches) != 4 {
		t.Errorf("stop %s after %d iterations and %d searches, want iteration_limit after 4", a.Stop, a.Iterations, len(l.searches))
	}
}

func TestNoProgressAndCircular(t *testing.T) {
	stuck := func(query func(n int) string) assay.Answer {
		roles := localRoles()
		n := 0
		roles.Grader = grader(func(role.GradeInput) (role.Grade, error) {
			n++
			return role.Grade{Verdict: assay.Insufficient, Query: query(n)}, nil
		})
		return ask(t, strategy.Corrective, env(newLibrary("alpha"), "Which alpha is missing?", roles), assay.Budget{})
	}
	if a := stuck(func(n int) string { return fmt.Sprintf("alpha %d", n) }); a.Stop != assay.StopNoProgress || a.Iterations != 3 {
		t.Errorf("nothing new: stop %s after %d iterations, want no_progress after 3", a.Stop, a.Iterations)
	}
	if a := stuck(func(int) string { return "which  ALPHA is missing?" }); a.Stop != assay.StopCircular || a.Iterations != 1 {
		t.Errorf("same query: stop %s after %d iterations, want circular after 1", a.Stop, a.Iterations)
	}
}

func TestDeadline(t *testing.T) {
	l := newLibrary(shutdown)
	now := time.Unix(0, 0)
	r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}, Budget: assay.Budget{Wall: time.Second}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(800 * time.Millisecond) // past three quarters: no search, but time to finish
	e := env(l, "What does Shutdown do to open listeners?", localRoles())
	e.Limits.Wall = time.Second
	a, err := strategy.Auto(context.Background(), r.Scope(), e)
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != assay.Incomplete || a.Stop != assay.StopDeadline {
		t.Errorf("%s, stop %s; want incomplete, deadline", a.Status, a.Stop)
	}
}

func TestStoredBytesDecide(t *testing.T) {
	const question = "What does Shutdown do to open listeners?"
	moved := newLibrary(shutdown)
	e := env(moved, question, localRoles())
	stored := newLibrary(strings.ReplaceAll(shutdown, "listeners", "liste ers"))
	stored.documents[0].Version = moved.documents[0].Version
	e.Content = stored
	if a := ask(t, strategy.Auto, e, assay.Budget{}); a.Status != assay.NotFound {
		t.Errorf("the stored bytes differ from the hit: %s %q", a.Status, a.Text)
	}

	hidden := newLibrary(shutdown)
	acl, err := assay.RestrictTo("user:someone")
	if err != nil {
		t.Fatal(err)
	}
	hidden.documents[0].ACL = acl
	if a := ask(t, strategy.Auto, env(hidden, question, localRoles()), assay.Budget{}); a.Status != assay.NotFound {
		t.Errorf("the document may no longer be seen: %s %q", a.Status, a.Text)
	}
}

func TestRetrieverError(t *testing.T) {
	l := newLibrary(shutdown)
	l.err = fmt.Errorf("filter key \"nope\": %w", assay.ErrInvalid)
	r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strategy.Auto(context.Background(), r.Scope(), env(l, "What is open?", localRoles())); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("error %v, want ErrInvalid", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	roles := localRoles()
	roles.Grader = grader(func(role.GradeInput) (role.Grade, error) {
		cancel()
		return role.Grade{}, ctx.Err()
	})
	r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := strategy.Auto(ctx, r.Scope(), env(newLibrary(shutdown), "What does Shutdown do?", roles)); !errors.Is(err, context.Canceled) {
		t.Errorf("answer %v, error %v; want context.Canceled", a, err)
	}
}

func TestUnknownStrategy(t *testing.T) {
	if _, err := strategy.Lookup("magic"); !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), "corrective") {
		t.Errorf("Lookup(magic) = %v, want ErrInvalid that names the known ones", err)
	}
}

// stemOf returns the stem of a word.
func (l *library) stemOf(word string) string {
	if tokens := analysis.Tokens(word, ""); len(tokens) > 0 {
		return tokens[0].Term
	}
	return strings.ToLower(word)
}

// noteTexts returns the texts of notes.
func noteTexts(notes []assay.Note) []string {
	var texts []string
	for _, n := range notes {
		texts = append(texts, n.Text)
	}
	return texts
}

// gapTexts returns the texts of gaps.
func gapTexts(gaps []assay.Gap) []string {
	texts := []string{}
	for _, g := range gaps {
		texts = append(texts, g.Text)
	}
	return texts
}

// TestRepeatedSubQuestions checks that a sub-question repeated by a plan is searched once.
func TestRepeatedSubQuestions(t *testing.T) {
	for _, spec := range strategy.Specs() {
		if spec.Name != "corrective" && spec.Name != "reflect" && spec.Name != "multihop" {
			continue
		}
		l := newLibrary(shutdown, "Paris has windows.")
		roles := localRoles()
		roles.Grader, roles.Generator = grader(enough), generator(verbatim)
		roles.Planner = planner(func(q string) (role.Plan, error) {
			return role.Plan{Shape: role.Conjunction, SubQuestions: []role.SubQuestion{
				{Text: "What does Shutdown do?"}, {Text: "What has windows?"}, {Text: "what does  shutdown do?"}, {Text: "Which windows?", Needs: []int{2}},
			}}, nil
		})
		ask(t, spec.Func, env(l, "What does Shutdown do to windows?", roles), assay.Budget{})
		n := 0
		for _, q := range l.searches {
			if strings.HasPrefix(strings.ToLower(q), "what does shutdown do?") || strings.EqualFold(strings.Join(strings.Fields(q), " "), "what does shutdown do?") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: searched for %q, want the repeated sub-question once", spec.Name, l.searches)
		}
	}
}

// TestTimeOfSubQuestion checks that the search for a sub-question ends after its own time, and that
// its hits are then graded without a model and used for the answer.
func TestTimeOfSubQuestion(t *testing.T) {
	chain := plans(role.Chain, role.SubQuestion{Text: "open listeners"}, role.SubQuestion{Text: "What closes #1?", Needs: []int{0}})
	single := plans(role.Single, role.SubQuestion{Text: "What does Shutdown do to open listeners?"})
	for _, tt := range []struct {
		strategy        strategy.Func
		planner         planner
		wholeInTime     bool // the search for the whole question is no sub-question's
		seconds, grades int
		stop            assay.Stop
	}{
		{strategy.Corrective, single, false, 0, 0, assay.StopDeadline}, {strategy.Corrective, single, false, 60, 1, assay.StopSufficient}, // 0: 12 s
		{strategy.Adaptive, single, false, 0, 0, assay.StopDeadline}, {strategy.Adaptive, single, false, 60, 1, assay.StopSufficient},
		{strategy.Adaptive, chain, true, 0, 0, assay.StopIterationLimit}, {strategy.Adaptive, chain, true, 60, 2, assay.StopIterationLimit},
		{strategy.Judge, single, false, 0, 0, assay.StopDeadline}, {strategy.Judge, single, false, 60, 1, assay.StopSufficient},
		{strategy.Reflect, single, false, 0, 0, assay.StopDeadline}, {strategy.Reflect, single, false, 60, 1, assay.StopSufficient},
		{strategy.Self, single, false, 0, 0, assay.StopDeadline}, {strategy.Self, single, false, 60, 1, assay.StopSufficient},
		{strategy.Advanced, single, false, 0, 0, assay.StopDeadline}, {strategy.Advanced, single, false, 60, 1, assay.StopSufficient},
	} {
		now := time.Unix(0, 0)
		l := newLibrary(shutdown)
		roles := localRoles()
		roles.Planner, roles.Router = tt.planner, says(role.Complex)
		grades := 0
		roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) { // its call takes 13 s
			if whole := in.Question == "What does Shutdown do to open listeners?"; whole && tt.wholeInTime {
				return partly(in)
			}
			if tt.seconds == 0 {
				now = now.Add(12 * time.Second)
				return role.Grade{}, fmt.Errorf("a call: %w", assay.ErrDeadline)
			}
			now = now.Add(13 * time.Second)
			grades++
			return enough(in)
		})
		e := env(l, "What does Shutdown do to open listeners?", roles)
		e.Began = map[string]string{role.GraderRole: "slow/model"}
		e.Limits.Wall, e.Limits.Seconds = 10*time.Minute, tt.seconds
		r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}, Budget: assay.Budget{Wall: 10 * time.Minute}, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		a, err := tt.strategy(t.Context(), r.Scope(), e)
		if err != nil {
			t.Fatal(err)
		}
		noted := slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.Contains(n, "graded without a model") })
		if len(a.Claims) == 0 || grades != tt.grades || noted != (tt.grades == 0) || a.Stop != tt.stop {
			t.Errorf("%d s: %s (%s) with %d claims after %d grades, notes %q", tt.seconds, a.Status, a.Stop, len(a.Claims), grades, a.Notes)
		}
	}
}
