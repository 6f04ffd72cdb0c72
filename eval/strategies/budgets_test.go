package strategies_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/scripted"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// A billing is a scripted model with prices. Each call takes a second on a fake clock, and may
// report more usage than was requested.
type billing struct {
	scripted llm.Model
	clock    *atomic.Int64 // nanoseconds
	times    int           // factor by which usage is multiplied
}

func (b billing) Model() string { return b.scripted.Model() }

func (b billing) Facts() llm.Facts {
	return llm.Facts{Window: 32768, Priced: true, Input: 2_000_000, Output: 8_000_000}
}

func (b billing) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	r, err := b.scripted.Generate(ctx, req, stream)
	b.clock.Add(int64(time.Second))
	r.Usage.InputTokens *= b.times
	r.Usage.OutputTokens = min(r.Usage.OutputTokens, req.MaxTokens) * b.times
	if err == nil {
		r.Usage.CostMicros = b.Facts().Cost(r.Usage)
	}
	return r, err
}

// A budgeted runs strategies under budgets.
type budgeted struct {
	set    *retrieval.Opened
	clock  *atomic.Int64
	models engine.Models
}

func newBudgeted(t *testing.T, set *retrieval.Opened, times int) budgeted {
	t.Helper()
	b := budgeted{set: set, clock: new(atomic.Int64), models: scripted.Models()}
	for name, m := range b.models.Roles {
		b.models.Roles[name] = billing{m, b.clock, times}
	}
	return b
}

// ask asks a question, checks that a replay gives the same answer, and returns the answer with the
// journal and the usage.
func (b budgeted) ask(t *testing.T, name, question string, budget assay.Budget) (assay.Answer, []assay.Record, assay.Usage) {
	t.Helper()
	journal := &run.Memory{}
	b.clock.Store(0)
	wall := budget.Wall
	if wall == 0 {
		wall = time.Hour
	}
	session, err := run.New(run.Config{
		Run: "r", Journal: journal, Budget: budget, Now: func() time.Time { return time.Unix(0, b.clock.Load()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	env := b.models.Equip(strategy.Env{
		Request: strategy.Request{Question: question, Access: assay.Local().Access()},
		Tools:   strategy.Tools{Retriever: b.set.Retriever(retrieval.Ranking{Graph: true, Rerank: true}), Content: b.set.Stored},
	})
	env.Limits.Wall, env.Limits.Iterations = wall, budget.Iterations
	answer, err := strategy.Ask(t.Context(), session.Scope(), env, name)
	if err = errors.Join(err, session.Finish()); err != nil {
		t.Fatalf("%s, %+v: %v", name, budget, err)
	}
	records := journal.Records()
	again, err := run.Replay(run.Config{Run: "r", Records: records, Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	env.Retriever, env.Content = nil, nil
	replayed, err := strategy.Ask(t.Context(), again.Scope(), env, name)
	if err = errors.Join(err, again.Finish()); err != nil {
		t.Fatalf("%s, %+v: replay: %v", name, budget, err)
	}
	if diff := cmp.Diff(jsonOf(t, answer), jsonOf(t, replayed)); diff != "" || again.Scope().Spent() != session.Scope().Spent() {
		t.Errorf("%s, %+v: the replay differs (-live +replayed):\n%s", name, budget, diff)
	}
	return answer, records, session.Scope().Spent()
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// beyond returns how much the calls of a journal were billed in excess of their reservations.
func beyond(t *testing.T, records []assay.Record) (tokens int, micros int64) {
	t.Helper()
	for _, rec := range records {
		if rec.Kind != assay.StepModel || rec.Usage.Calls == 0 {
			continue
		}
		var call struct {
			Request llm.Request `json:"request"`
		}
		if err := json.Unmarshal(rec.Input, &call); err != nil {
			t.Fatal(err)
		}
		most := assay.Usage{InputTokens: call.Request.InputTokens(), OutputTokens: call.Request.MaxTokens}
		tokens += max(0, rec.Usage.InputTokens+rec.Usage.OutputTokens-most.InputTokens-most.OutputTokens)
		micros += max(0, rec.Usage.CostMicros-billing{}.Facts().Cost(most))
	}
	return tokens, micros
}

// holds checks the guarantees of every answer under a budget.
func holds(t *testing.T, what string, budget assay.Budget, a assay.Answer, records []assay.Record, spent assay.Usage) {
	t.Helper()
	tokens, micros := beyond(t, records)
	if budget.Calls > 0 && spent.Calls > budget.Calls {
		t.Errorf("%s: %d calls were made", what, spent.Calls)
	}
	if used := spent.InputTokens + spent.OutputTokens; budget.Tokens > 0 && used > budget.Tokens+tokens {
		t.Errorf("%s: %d tokens were used, of which %d were billed beyond what was asked for", what, used, tokens)
	}
	if budget.CostMicros > 0 && spent.CostMicros > budget.CostMicros+micros {
		t.Errorf("%s: it cost %d, of which %d was billed beyond what was asked for", what, spent.CostMicros, micros)
	}
	if a.Status == "" || a.Stop == "" || a.Text == "" || a.Justification == "" {
		t.Errorf("%s: an answer lacks status %q, stop %q, text %q or justification %q", what, a.Status, a.Stop, a.Text, a.Justification)
	}
	for _, c := range a.Claims {
		if c.Verdict != assay.Supported || len(c.Citations) == 0 {
			t.Errorf("%s: %q is shown as %s with %d citations", what, a.Text[c.Start:c.End], c.Verdict, len(c.Citations))
		}
	}
	if a.Status == assay.Answered && (len(a.Claims) == 0 || len(a.Missing) > 0) {
		t.Errorf("%s: answered with %d claims, and %q missing", what, len(a.Claims), fmt.Sprint(a.Missing))
	}
	refused := map[assay.Stop]bool{}
	for _, rec := range records {
		if rec.Error == nil {
			continue
		}
		switch rec.Error.Kind {
		case assay.ErrDeadline.Error():
			refused[assay.StopDeadline] = true
		case assay.ErrBudget.Error():
			refused[assay.Stop(stopIn(rec.Error.Message))] = true
		}
	}
	if a.Status == assay.Answered || len(refused) == 0 {
		return
	}
	if !refused[a.Stop] {
		t.Errorf("%s: %s is said to have stopped for %q, and refused was %v\n%s %q", what, a.Status, a.Stop, refused, a.Text, a.Notes)
	}
	unjudged := a.Reason == assay.ReasonUnjudged && len(a.Notes) > 0 // all parts may be answered, but no judge confirmed it
	if a.Status == assay.Incomplete && a.AskBack == "" && len(a.Missing) == 0 && !unjudged {
		t.Errorf("%s: incomplete (%s), and nothing is said to be missing", what, a.Reason)
	}
}

// stopIn returns the reason to stop that the message of a refusal begins with.
func stopIn(message string) string {
	for i, c := range message {
		if c == ':' {
			return message[:i]
		}
	}
	return message
}

// budgetQuestions ask for one fact, for two, and for one that needs two hops.
var budgetQuestions = []string{
	"When was the quince tree planted?",
	"When was the fig tree planted, and who built the old mill?",
	"Where was the builder of the old mill born?",
}

// TestBudgets checks that every strategy keeps every budget and reports the right stop reason when
// the budget runs out. With -short each strategy meets each variant with one of the questions.
func TestBudgets(t *testing.T) {
	set := opened(t, orchard())
	defer set.Close()
	for s, name := range strategy.Names() {
		if name == "managed" { // it calls a service and has a test of its own
			continue
		}
		t.Run(name, func(t *testing.T) {
			for k, v := range []struct {
				times int  // factor on the billed usage
				local bool // the verifier is local and works when the budget is spent
			}{{1, false}, {3, false}, {1, true}} {
				b := newBudgeted(t, set, v.times)
				if v.local {
					delete(b.models.Roles, role.VerifierRole)
					b.models.LocalVerifier = true // otherwise the generator's model verifies
				}
				for i, question := range budgetQuestions {
					if testing.Short() && (i+k+s)%len(budgetQuestions) > 0 {
						continue
					}
					free, records, spent := b.ask(t, name, question, assay.Budget{})
					holds(t, name, assay.Budget{}, free, records, spent)
					for _, budget := range budgetsUpTo(spent, testing.Short() || v.times > 1 || v.local) {
						a, records, spent := b.ask(t, name, question, budget)
						what := fmt.Sprintf("%s, %q, %+v, %+v", name, question, v, budget)
						holds(t, what, budget, a, records, spent)
						if spentBudget := a.Stop != assay.StopDeadline && a.Status == assay.Incomplete; v.local && i == 0 && spentBudget && len(a.Claims) == 0 {
							t.Errorf("%s: nothing is said (%s): %s %q", what, a.Stop, a.Text, a.Notes)
						}
					}
				}
			}
		})
	}
}

// budgetsUpTo returns budgets from nearly zero to about what an unlimited run spends.
func budgetsUpTo(spent assay.Usage, few bool) []assay.Budget {
	steps := 6
	if few {
		steps = 3
	}
	var budgets []assay.Budget
	for calls := 1; calls <= spent.Calls; calls++ {
		if !few || calls%3 == 1 {
			budgets = append(budgets, assay.Budget{Calls: calls})
		}
	}
	for i := range steps {
		budgets = append(budgets,
			assay.Budget{Tokens: 1 + (spent.InputTokens+spent.OutputTokens)*i*3/(2*steps)},
			assay.Budget{CostMicros: 1 + spent.CostMicros*int64(i*3)/int64(2*steps)},
			assay.Budget{Wall: time.Second/2 + time.Duration(spent.Calls*i)*time.Second*3/time.Duration(2*steps)},
			assay.Budget{Iterations: 1, Calls: 1 + spent.Calls*i/steps, Tokens: 1 + (spent.InputTokens+spent.OutputTokens)*(steps-i)/steps},
		)
	}
	return slices.Clip(budgets)
}
