package strategy_test

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// A scene is a library whose searches return its first document, which is of no use, and the second
// one if holds accepts the query. It records what was searched.
type scene struct {
	*library
	holds    func(assay.Query) bool
	queries  []assay.Query
	accesses []assay.Access
}

func (s *scene) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	s.queries, s.accesses = append(s.queries, q), append(s.accesses, access)
	var found assay.Results
	for i, d := range s.documents {
		if i == 1 && !s.holds(q) {
			continue
		}
		found.Hits = append(found.Hits, assay.Hit{
			Chunk: assay.Chunk{ID: assay.ChunkID(d.ID, d.Version, 0), Document: d.ID, Version: d.Version, End: len(d.Text), Kind: assay.ChunkProse},
			Text:  d.Text, URI: d.URI, Title: d.Title, Line: 1, Collection: []string{"main", "annex"}[i], Scores: assay.Scores{Relevance: []float64{0.2, 0.9}[i]},
		})
	}
	for _, w := range strings.Fields(strings.Trim(q.Text, "?")) { // terms select the passages of web pages
		found.Terms = append(found.Terms, assay.Term{Text: w, Stem: w, Chunks: 1, Weight: 0.5})
	}
	return found, nil
}

// saysSufficient returns a grader that calls evidence sufficient if it has a passage with the text, and
// otherwise proposes a query.
func saysSufficient(text, query string) grader {
	return func(in role.GradeInput) (role.Grade, error) {
		for _, h := range in.Hits {
			if strings.Contains(h.Text, text) {
				return role.Grade{Verdict: assay.Sufficient, Relevant: []string{h.Chunk.ID}}, nil
			}
		}
		return role.Grade{Verdict: assay.Insufficient, Missing: []string{"how long"}, Reason: "no passage says how long", Query: query}, nil
	}
}

// equals returns a comparison of a text key.
func equals(key, value string) assay.Filter {
	return assay.Filter{Op: assay.OpEquals, Key: key, Value: assay.StringValue(value)}
}

// climb is a rung as the journal has it.
type climb struct {
	path string
	strategy.RungInput
	strategy.RungOutput
}

// climbs returns the rungs in a journal.
func climbs(t *testing.T, records []assay.Record) []climb {
	t.Helper()
	var out []climb
	for _, rec := range records {
		if rec.Kind != assay.StepRung || strings.HasSuffix(rec.Path, "/collections") {
			continue
		}
		c := climb{path: rec.Path}
		if err := json.Unmarshal(rec.Input, &c.RungInput); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(rec.Output, &c.RungOutput); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(rec.Path, "/"+string(c.Rung)) {
			t.Errorf("the step %s records the rung %s", rec.Path, c.Rung)
		}
		out = append(out, c)
	}
	return out
}

// TestLadder lets each rung of the ladder be the one that finds the answer, and none. It checks that
// the journal has each rung with its search and its reason, and that the caller's filter and access
// apply to every search.
func TestLadder(t *testing.T) {
	const reformulated = "vault token lifetime"
	question, reformulate, widen, collection, web, giveUp := strategy.RungQuestion, strategy.RungReformulate, strategy.RungWiden, strategy.RungCollection, strategy.RungWeb, strategy.RungGiveUp
	own, callers := equals("type", "policy"), equals("year", "2024")
	never := func(assay.Query) bool { return false }
	tests := []struct {
		name  string
		holds func(assay.Query) bool
		web   bool // the web may be searched
		found bool // and holds the answer
		want  []strategy.Rung
	}{
		{"question", func(assay.Query) bool { return true }, true, true, nil},
		{"reformulate", func(q assay.Query) bool { return q.Text == reformulated }, true, true, []strategy.Rung{question, reformulate}},
		{"widen", func(q assay.Query) bool { return q.Filter.String() == callers.String() }, true, true, []strategy.Rung{question, reformulate, widen}},
		{"another collection", func(q assay.Query) bool { return slices.Equal(q.Collections, []string{"annex"}) }, true, true,
			[]strategy.Rung{question, reformulate, widen, collection}},
		{"web", never, true, true, []strategy.Rung{question, reformulate, widen, collection, web}},
		{"give up", never, true, false, []strategy.Rung{question, reformulate, widen, collection, web, giveUp}},
		{"give up without the web", never, false, false, []strategy.Rung{question, reformulate, widen, collection, giveUp}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &scene{library: newLibrary("Bananas are yellow.", "The vault may hold a token for nine days."), holds: tt.holds}
			roles := localRoles()
			roles.Planner = plans(role.Single, role.SubQuestion{Text: vaultQuestion, Filter: own})
			roles.Grader, roles.Generator = saysSufficient("nine days", reformulated), generator(verbatim)
			roles.Querier = querier(func(role.QueryInput) (role.NextQuery, error) { return role.NextQuery{Query: reformulated}, nil })
			e := env(s.library, vaultQuestion, roles)
			e.Retriever, e.Filter = s, callers
			e.Access = assay.Principal{User: "ann"}.Access()
			e.Catalogue = func(context.Context) ([]string, error) { return []string{"annex", "main"}, nil }
			if e.NoWeb = "the question does not allow it"; tt.web {
				w := onePage()
				if !tt.found {
					w.pages = map[string][]string{"https://example.com/cache": {"A vault may hold coins."}}
				}
				e.Web, e.NoWeb = w, ""
			}
			journal := &run.Memory{}
			r, err := run.New(run.Config{Run: "r", Journal: journal})
			if err != nil {
				t.Fatal(err)
			}
			a, err := strategy.Corrective(t.Context(), r.Scope(), e)
			if err != nil {
				t.Fatal(err)
			}
			var got []strategy.Rung
			taken := climbs(t, journal.Records())
			for i, c := range taken {
				got = append(got, c.Rung)
				if (i > 0) != (c.Why != "") || c.Grade == "" {
					t.Errorf("%s: graded %q, because %q", c.path, c.Grade, c.Why)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("rungs (-want +got):\n%s", diff)
			}
			checkScene(t, s, e, own)
			if want := map[bool]assay.Status{true: assay.NotFound, false: assay.Answered}[slices.Contains(tt.want, giveUp)]; a.Status != want {
				t.Errorf("%s, want %s: %s", a.Status, want, a.Justification)
			}
			checkClimbs(t, taken, a.Answer, own, callers)
		})
	}
}

// checkScene checks that no search left the caller's rights, and that only searches from the wider
// filter on lack the sub-question's own.
func checkScene(t *testing.T, s *scene, e strategy.Env, own assay.Filter) {
	t.Helper()
	for i, q := range s.queries {
		want := assay.And(e.Filter, own)
		if i >= 2 {
			want = e.Filter
		}
		if q.Filter.String() != want.String() || !reflect.DeepEqual(e.Access, s.accesses[i]) {
			t.Errorf("search %d: filter %s, access %+v; want %s", i, q.Filter, s.accesses[i], want)
		}
	}
}

// checkClimbs checks what the rungs record.
func checkClimbs(t *testing.T, taken []climb, a assay.Answer, own, callers assay.Filter) {
	t.Helper()
	for i, c := range taken {
		filter := assay.And(callers, own)
		switch c.Rung {
		case strategy.RungWiden, strategy.RungCollection:
			filter = callers
		case strategy.RungWeb:
			filter = assay.Filter{}
		case strategy.RungGiveUp:
			var skipped []strategy.Rung
			for _, s := range c.Skipped {
				skipped = append(skipped, s.Rung)
			}
			webTaken := slices.ContainsFunc(taken, func(c climb) bool { return c.Rung == strategy.RungWeb })
			if webTaken != (len(skipped) == 0) || c.Query != "" || c.AboveFloor != 0 {
				t.Errorf("given up with %+v", c)
			}
			continue
		}
		if c.Query == "" || c.Filter.String() != filter.String() || (c.Rung == strategy.RungCollection) != (len(c.Collections) > 0) {
			t.Errorf("%s searched %q with %s in %q", c.Rung, c.Query, c.Filter, c.Collections)
		}
		last := i == len(taken)-1
		if (c.Grade == assay.Sufficient) != (last && a.Status == assay.Answered) || (c.AboveFloor > 0) != (c.Grade == assay.Sufficient) {
			t.Errorf("%s: %d above the floor, %s", c.Rung, c.AboveFloor, c.Grade)
		}
		if rung := a.Searched[i].Rung; c.Rung != strategy.RungQuestion && rung != string(c.Rung) {
			t.Errorf("search %d of the answer is of the rung %q, want %s", i, rung, c.Rung)
		}
	}
}

// TestLadderStaysInNamedCollections checks that collections which the caller or the question names
// are never left.
func TestLadderStaysInNamedCollections(t *testing.T) {
	never := func(assay.Query) bool { return false }
	for name, change := range map[string]func(*strategy.Env){
		"one of the caller's": func(e *strategy.Env) { e.Collections = []string{"main"} },
		"one of the question's": func(e *strategy.Env) {
			e.Question, e.NamedCollections = "How long may the vault hold a token in main?", []string{"main"}
		},
		"none else": func(e *strategy.Env) {
			e.Catalogue = func(context.Context) ([]string, error) { return []string{"main"}, nil }
		},
	} {
		s := &scene{library: newLibrary("Bananas are yellow.", "The vault may hold a token for nine days."), holds: never}
		roles := localRoles()
		roles.Grader, roles.Generator = saysSufficient("nine days", "vault token lifetime"), generator(verbatim)
		e := env(s.library, vaultQuestion, roles)
		e.Retriever = s
		e.Catalogue = func(context.Context) ([]string, error) { return []string{"annex", "main"}, nil }
		change(&e)
		a := askWith(t, e, "corrective")
		for _, q := range s.queries {
			if slices.Contains(q.Collections, "annex") {
				t.Errorf("%s: searched %q", name, q.Collections)
			}
		}
		if a.Status != assay.NotFound {
			t.Errorf("%s: %s", name, a.Status)
		}
	}
}

// askWith asks with a named strategy.
func askWith(t *testing.T, e strategy.Env, name string) assay.Answer {
	t.Helper()
	r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := strategy.Ask(t.Context(), r.Scope(), e, name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAutoRedrivesWhatStands checks that auto keeps the verified part of an answer to a question of
// several parts, and searches for the refused statement beside it.
func TestAutoRedrivesWhatStands(t *testing.T) {
	const opens, closes, wrong = "The kiosk opens at nine, unlike the museum.", "The museum closes late.", "The museum closes at noon."
	s := &scene{library: newLibrary(opens, closes), holds: func(q assay.Query) bool { return strings.Contains(q.Text, "noon") && strings.Contains(q.Text, "kiosk") }}
	e := written(t, nil, nil, role.Draft{}, opens)
	e.Question = "Do the kiosk and the museum differ?"
	e.Retriever, e.Content = s, s.library
	e.Outline = &role.Plan{Shape: role.Comparison, SubQuestions: []role.SubQuestion{{Text: "kiosk"}, {Text: "museum"}}}
	e.Roles.Verifier, e.Roles.Grader = role.ByClaim(verifier(sayer)), grader(enough)
	e.Roles.Generator = generator(func(in role.GenerateInput) (role.Draft, error) {
		d := role.Draft{}
		for _, ev := range in.Evidence {
			d.Statements = append(d.Statements, stating(ev.Hit.Text, ev.Number))
		}
		if len(in.Evidence) == 1 {
			d.Statements = append(d.Statements, stating(wrong, 1))
		}
		return d, nil
	})
	e.Limits.Floor = 0.1
	a := askWith(t, e, "auto")
	check(t, e, a)
	if a.Status != assay.Answered || len(a.Claims) != 2 || !strings.Contains(a.Text, closes) || a.Strategy != "static" {
		t.Errorf("%s (%s) %q after %+v: %s", a.Status, a.Strategy, a.Text, s.queries, a.Justification)
	}
}

// TestRedriveByFailedClaim checks that a false claim of the first draft is searched for with its
// words and the question's, that the answer is written again from what is found, and that all of
// this stays within the iterations.
func TestRedriveByFailedClaim(t *testing.T) {
	const (
		question = "When does the kiosk open, and what does coffee cost?"
		opens    = "The kiosk opens at nine."
		coffee   = "Coffee costs two euros."
		wrong    = "Coffee costs seven dollars."
	)
	tests := []struct {
		name       string
		iterations int
		learns     bool          // the writer uses the evidence that is found
		took       time.Duration // of a grade
		want       string
		status     assay.Status
		redrives   int
	}{
		{"found and written", 4, true, 0, opens + " [2] " + coffee + " [1]", assay.Answered, 1},
		{"no iteration left", 1, true, 0, opens + " [1]", assay.Incomplete, 0},
		{"no time left", 4, true, 12 * time.Second, opens + " [1]", assay.Incomplete, 0},
		{"the writer insists", 4, false, 0, opens + " [2]", assay.Incomplete, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &scene{library: newLibrary(opens, coffee), holds: func(q assay.Query) bool {
				return strings.Contains(q.Text, "seven dollars") && strings.Contains(q.Text, "kiosk")
			}}
			drafts, now := 0, time.Unix(0, 0)
			e := written(t, nil, nil, role.Draft{}, opens)
			e.Question = question
			e.Retriever, e.Content = s, s.library
			e.Roles.Verifier = role.ByClaim(verifier(sayer))
			e.Roles.Planner = plans(role.Single, role.SubQuestion{Text: question})
			e.Roles.Grader = grader(func(in role.GradeInput) (role.Grade, error) {
				now = now.Add(tt.took)
				return role.Grade{Verdict: assay.Sufficient, Relevant: relevant(in)}, nil
			})
			e.Roles.Generator = generator(func(in role.GenerateInput) (role.Draft, error) {
				drafts++
				number := func(text string) int {
					return 1 + slices.IndexFunc(in.Evidence, func(ev assay.Evidence) bool { return ev.Hit.Text == text })
				}
				second := stating(wrong, number(opens))
				if n := number(coffee); tt.learns && n > 0 {
					second = stating(coffee, n)
				}
				return role.Draft{Statements: []role.Statement{stating(opens, number(opens)), second}}, nil
			})
			e.Limits.Iterations = tt.iterations
			e.Limits.Floor, e.Limits.Wall = 0.1, 10*time.Minute
			journal := &run.Memory{}
			r, err := run.New(run.Config{Run: "r", Journal: journal, Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			a, err := strategy.Corrective(t.Context(), r.Scope(), e)
			if err != nil {
				t.Fatal(err)
			}
			check(t, e, a.Answer)
			if a.Status != tt.status || a.Text != tt.want {
				t.Errorf("%s %q, want %s %q (%s)", a.Status, a.Text, tt.status, tt.want, a.Justification)
			}
			redrives := 0
			for _, c := range climbs(t, journal.Records()) {
				if c.Rung == strategy.RungRedrive {
					redrives++
				}
			}
			if redrives != tt.redrives || len(s.queries) > tt.iterations || drafts > 4 {
				t.Errorf("%d redrives, %d searches, %d drafts; want %d redrives within %d searches", redrives, len(s.queries), drafts, tt.redrives, tt.iterations)
			}
		})
	}
}
