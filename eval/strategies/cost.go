package strategies

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/retrieval"
	"github.com/assay-rag/assay/eval/scripted"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// A CostReport measures how ways to save calls and tokens change the cost of a set's questions. The
// models are scripted, so it counts the requests and not what a real model would write.
type CostReport struct {
	Set       string    `json:"set"`
	Questions int       `json:"questions"`
	Ways      []CostRow `json:"ways"` // the first saves nothing
}

// A CostRow is the result of one way, as the mean over questions with the strategy static.
type CostRow struct {
	Way     string        `json:"way"`
	Recall  stat.Interval `json:"recall"`   // share of a question's relevant passages that the generator was given
	AllGold stat.Interval `json:"all_gold"` // share of questions for which it was given all of them
	Handed  float64       `json:"handed"`   // passages given to the generator
	Calls   float64       `json:"calls"`
	Tokens  float64       `json:"tokens"` // input and output of all models
	Large   float64       `json:"large"`  // those of Tokens that the large model used
	Kept    float64       `json:"kept"`   // share of the input that is a common prefix with an earlier request of the same role
}

// aloneFrom is the relevance from which the best hit is passed alone.
const aloneFrom = 0.9

// Cost asks the set's first questions (0: all) with each way to save.
func Cost(ctx context.Context, o *retrieval.Opened, questions int) (CostReport, error) {
	queries := o.Set.Queries
	if questions > 0 {
		queries = queries[:min(questions, len(queries))]
	}
	report := CostReport{Set: o.Set.Name, Questions: len(queries)}
	for _, way := range []struct {
		name   string
		limits strategy.Limits
		small  bool
	}{
		{"as it is", strategy.Limits{}, false},
		{"one strong hit alone", strategy.Limits{Alone: aloneFrom}, false},
		{"a small generator", strategy.Limits{}, true},
	} {
		models := scripted.Models()
		if way.small {
			models.Small = scripted.Rule("scripted/small")
		}
		row, err := costOf(ctx, o, way.name, queries, models, way.limits)
		if err != nil {
			return report, err
		}
		report.Ways = append(report.Ways, row)
	}
	return report, nil
}

// costOf asks questions in one way. The roles that select the evidence are local, because a
// scripted model would select unlike a real one.
func costOf(ctx context.Context, o *retrieval.Opened, name string, queries []testset.Query, models engine.Models, limits strategy.Limits) (CostRow, error) {
	writer := models.Roles[role.GeneratorRole]
	heard := make([]hearing, len(queries)) // by question, because questions run concurrently
	retriever := o.Retriever(retrieval.Ranking{Graph: true, Rerank: true})
	outcomes := make([]Outcome, len(queries))
	large := make([]int, len(queries))
	report := o.Stage(name)
	var mu sync.Mutex
	done := 0
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, q := range queries {
		g.Go(func() error {
			journal := &run.Memory{}
			session, err := run.New(run.Config{Run: "eval", Journal: journal, Budget: assay.Budget{Wall: time.Hour}})
			if err != nil {
				return err
			}
			asked := engine.Models{Roles: map[string]llm.Model{role.GeneratorRole: listening{writer, &heard[i]}}}
			if models.Small != nil {
				asked.Small = listening{models.Small, &heard[i]}
			}
			env := asked.Equip(strategy.Env{
				Request: strategy.Request{Question: q.Text, Access: assay.Local().Access()},
				Tools:   strategy.Tools{Retriever: retriever, Content: o.Stored, Roles: readingRoles(o, true)},
			})
			env.Limits.Alone, env.Limits.Wall = limits.Alone, time.Hour
			_, err = strategy.Ask(gctx, session.Scope(), env, "static")
			if err = errors.Join(session.Finish(), err); err != nil {
				return fmt.Errorf("%s: %s: question %s: %w", o.Set.Name, name, q.ID, err)
			}
			records := journal.Records()
			out := &outcomes[i]
			out.Usage = session.Scope().Spent()
			if out.Handed, err = handed(records); err != nil {
				return err
			}
			out.judge(q, Handed, "")
			for _, rec := range records {
				if rec.Kind == assay.StepModel && rec.Model == writer.Model() {
					large[i] += rec.Usage.InputTokens + rec.Usage.OutputTokens
				}
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			report(done, len(queries))
			return nil
		})
	}
	if err := errors.Join(g.Wait(), ctx.Err()); err != nil {
		return CostRow{}, err
	}
	row := CostRow{Way: name, Recall: stat.Bootstrap(recalls(outcomes)), AllGold: stat.Bootstrap(allGolds(outcomes)), Kept: kept(heard)}
	for i, out := range outcomes {
		row.Handed += float64(len(out.Handed))
		row.Calls += float64(out.Usage.Calls)
		row.Tokens += float64(out.Usage.InputTokens + out.Usage.OutputTokens)
		row.Large += float64(large[i])
	}
	for _, sum := range []*float64{&row.Handed, &row.Calls, &row.Tokens, &row.Large} {
		*sum /= float64(max(len(queries), 1))
	}
	return row, nil
}

// A hearing is the requests to models for one question.
type hearing []heardRequest

type heardRequest struct {
	role string // the model and its system prompt
	text string
}

// listening is a model that records its requests.
type listening struct {
	asked llm.Model
	heard *hearing
}

// Model implements llm.Model.
func (l listening) Model() string { return l.asked.Model() }

// Facts implements llm.Described.
func (l listening) Facts() llm.Facts { return llm.FactsOf(l.asked) }

// Generate implements llm.Model.
func (l listening) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	text := req.System
	for _, m := range req.Messages {
		text += "\n" + m.Text
	}
	*l.heard = append(*l.heard, heardRequest{l.asked.Model() + "\n" + req.System, text})
	return l.asked.Generate(ctx, req, stream)
}

// kept returns the share of the request tokens that a provider could have cached from earlier
// requests, if the questions were asked one after the other.
func kept(heard []hearing) float64 {
	seen := map[string][]string{}
	all, known := 0, 0
	for _, h := range heard {
		for _, r := range h {
			most := 0
			for _, earlier := range seen[r.role] {
				n := 0
				for n < len(r.text) && n < len(earlier) && r.text[n] == earlier[n] {
					n++
				}
				most = max(most, n)
			}
			seen[r.role] = append(seen[r.role], r.text)
			all += llm.EstimateTokens(r.text)
			known += llm.EstimateTokens(r.text[:most])
		}
	}
	if all == 0 {
		return 0
	}
	return float64(known) / float64(all)
}
