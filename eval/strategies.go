package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/metric"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// Handed is how many passages every strategy hands the generator when it is
// measured, so that none gains by showing more.
const Handed = 10

// StrategyOptions say which strategies are measured, and how.
type StrategyOptions struct {
	Strategies []string // by name; empty: all but managed, which asks a service
	Questions  int      // the first of the set; 0: all

	Roles    string            // what the rows call who does the jobs; empty: "local"
	Models   engine.Models     // who does them; zero: everything is done locally
	Settings strategy.Settings // thresholds; zero fields: the defaults

	// AsAsked has strategies hand over what they would when a user asks: what they
	// accepted, and however much that is. All of it counts then.
	AsAsked bool

	// Wall bounds a question. 0: an hour, so that what is found does not depend on how
	// fast the machine is.
	Wall time.Duration
}

// A StrategyRow is what one strategy reaches on one set.
type StrategyRow struct {
	Set       string `json:"set"`
	Strategy  string `json:"strategy"`
	Roles     string `json:"roles"`
	Scripted  bool   `json:"scripted,omitempty"` // by the models of Scripted, which are none: its figures are of the plumbing alone
	AsAsked   bool   `json:"as_asked,omitempty"` // see StrategyOptions; then all that was handed counts
	Questions int    `json:"questions"`

	Recall  Mean    `json:"recall@10"`   // share of a question's relevant passages that the generator was handed
	AllGold Mean    `json:"all_gold@10"` // share of questions of which it was handed every one
	Handed  float64 `json:"handed"`      // passages, mean
	Over    int     `json:"over"`        // questions for which it was more than Handed; only so many count

	Answers int     `json:"answers"`      // questions of which the set has the answer
	Match   float64 `json:"answer_match"` // share of those whose answer stands in what was answered
	F1      float64 `json:"answer_f1"`    // mean of the words that the two share
	Failed  int     `json:"failed"`       // questions that the strategy returned an error for
	Failure string  `json:"failure,omitempty"`

	Statuses  map[assay.Status]int `json:"statuses"`
	AskedBack int                  `json:"asked_back"`      // questions of which it was asked what they mean
	Notes     []Noted              `json:"notes,omitempty"` // of the answers, the most frequent first

	// Means of a question: records of the journal, searches, calls of models and their
	// tokens, input and output together.
	Steps       float64 `json:"steps"`
	Searches    float64 `json:"searches"`
	Calls       float64 `json:"calls"`
	Tokens      float64 `json:"tokens"`
	CallsFailed int     `json:"calls_failed"` // calls of all questions that no reply came of: not recorded, when played back
	MedianMS    float64 `json:"median_ms"`    // wall time of a question

	// Gain compares it with static, where that was measured by the same roles.
	Gain *Gain `json:"gain,omitempty"`

	Outcomes []StrategyOutcome `json:"outcomes"` // in the order of the set's questions
}

// A StrategyOutcome is one question's.
type StrategyOutcome struct {
	Question    string       `json:"question"` // its ID
	Kind        string       `json:"kind,omitempty"`
	Status      assay.Status `json:"status"`
	Stop        assay.Stop   `json:"stop"`
	Answered    string       `json:"answered_by"` // the strategy that produced the answer
	AskBack     string       `json:"ask_back,omitempty"`
	Handed      []string     `json:"handed"`           // passage IDs, in the order of their numbers
	Missed      []string     `json:"missed,omitempty"` // relevant ones that are not among them
	Recall      float64      `json:"recall@10"`
	AllGold     bool         `json:"all_gold@10"`
	Match       bool         `json:"answer_match"`
	F1          float64      `json:"answer_f1"`
	Steps       int          `json:"steps"`
	Usage       assay.Usage  `json:"usage"`
	CallsFailed int          `json:"calls_failed,omitempty"`
	MS          float64      `json:"ms"`
	Failure     string       `json:"failure,omitempty"` // the strategy's error

	notes []assay.Note
}

// A Mean is a mean over questions, with the bounds within which it lies for 95 of 100
// sets of as many questions of this kind, by bootstrap.
type Mean struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A Gain is by how much a strategy is better than another on the same questions.
type Gain struct {
	Strategy string `json:"strategy"` // the other
	Recall   Mean   `json:"recall@10"`
	AllGold  Mean   `json:"all_gold@10"`
}

// floorStrategy is the one that the others are compared with, localRoles what rows call
// it when no model is asked, and managed the one that asks a service with passages of its
// own.
const (
	floorStrategy = "static"
	localRoles    = "local"
	managed       = "managed"
)

// Strategies asks the set's questions by each of the strategies, all over the search
// that users get and with as many passages handed to the generator, and measures
// what came of it. Each row after static's is compared with it. Questions are asked
// side by side, one on each processor. On an error the rows that were finished are
// returned with it.
//
// A strategy that fails at a question has found nothing for it; only the end of ctx
// ends the measuring.
func (o *Opened) Strategies(ctx context.Context, opts StrategyOptions) ([]StrategyRow, error) {
	if len(opts.Strategies) == 0 {
		opts.Strategies = slices.DeleteFunc(strategy.Names(), func(name string) bool { return name == managed })
	}
	opts.Roles, opts.Wall = cmp.Or(opts.Roles, localRoles), cmp.Or(opts.Wall, time.Hour)
	for _, name := range opts.Strategies {
		if _, err := strategy.Lookup(name); err != nil {
			return nil, err
		}
	}
	queries := o.Set.Queries
	if opts.Questions > 0 {
		queries = queries[:min(len(queries), opts.Questions)]
	}
	retriever := o.Retriever(Ranking{Graph: true, Rerank: true})
	var rows []StrategyRow
	for _, name := range opts.Strategies {
		outcomes, err := o.askAll(ctx, retriever, name, queries, opts)
		if err != nil {
			CompareStrategies(rows)
			return rows, err
		}
		row := rowOf(o.Set.Name, name, opts.Roles, queries, outcomes)
		row.Scripted, row.AsAsked = isScripted(opts.Models), opts.AsAsked
		rows = append(rows, row)
	}
	CompareStrategies(rows)
	return rows, nil
}

// CompareStrategies sets the gain over static of each of a set's rows, by the same
// roles and over the same questions.
func CompareStrategies(rows []StrategyRow) {
	for i := range rows {
		at := slices.IndexFunc(rows, func(r StrategyRow) bool {
			return r.Strategy == floorStrategy && r.Set == rows[i].Set && r.Roles == rows[i].Roles && r.Questions == rows[i].Questions
		})
		if at >= 0 && at != i {
			rows[i].Gain = gain(rows[i], rows[at])
		}
	}
}

// askAll asks each of the questions by one strategy.
func (o *Opened) askAll(ctx context.Context, retriever assay.Retriever, name string, queries []Query, opts StrategyOptions) ([]StrategyOutcome, error) {
	outcomes := make([]StrategyOutcome, len(queries))
	report := o.stage(name + " (" + opts.Roles + ")")
	var mu sync.Mutex
	done := 0
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, q := range queries {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			var err error
			if outcomes[i], err = o.ask(gctx, retriever, name, q, opts); err != nil {
				return fmt.Errorf("%s: %s: question %s: %w", o.Set.Name, name, q.ID, err)
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			report(done, len(queries))
			return nil
		})
	}
	return outcomes, errors.Join(g.Wait(), ctx.Err())
}

// ask asks one question by a strategy, in a run of its own. Its error is that ctx has
// ended, or that the journal does not say what it should.
func (o *Opened) ask(ctx context.Context, retriever assay.Retriever, name string, q Query, opts StrategyOptions) (StrategyOutcome, error) {
	out := StrategyOutcome{Question: q.ID, Kind: q.Kind}
	journal := &run.Memory{}
	session, err := run.New(run.Config{Run: "eval", Journal: journal, Budget: assay.Budget{Wall: opts.Wall}})
	if err != nil {
		return out, err
	}
	env := opts.Models.Equip(strategy.Env{
		Request:  strategy.Request{Question: q.Text, Access: assay.Local().Access()},
		Tools:    strategy.Tools{Retriever: retriever, Content: o.Stored},
		Settings: opts.Settings,
	})
	if env.Limits.Wall = opts.Wall; !opts.AsAsked {
		env.Limits.Passages = Handed
	}
	began := time.Now()
	answer, err := strategy.Ask(ctx, session.Scope(), env, name)
	out.MS = float64(time.Since(began).Microseconds()) / 1000
	if err = cmp.Or(session.Finish(), err); ctx.Err() != nil {
		return out, ctx.Err()
	}
	if err != nil {
		out.Failure = err.Error()
	}
	records := journal.Records()
	out.Steps, out.Usage = len(records), session.Scope().Spent()
	for _, rec := range records {
		out.CallsFailed += one(rec.Kind == assay.StepModel && rec.Error != nil)
	}
	out.Status, out.Stop, out.Answered, out.AskBack, out.notes = answer.Status, answer.Stop, answer.Strategy, answer.AskBack, answer.Notes
	if out.Handed, err = handed(records); err != nil {
		return out, err
	}
	most := Handed
	if opts.AsAsked {
		most = len(out.Handed)
	}
	out.judge(q, most, said(answer))
	return out, nil
}

// handed returns the passages that the generator was handed, by the last of its steps:
// an answer that is written again is written from what was found by then.
func handed(records []assay.Record) ([]string, error) {
	ids := []string{}
	for _, rec := range slices.Backward(records) {
		if rec.Kind != assay.StepGenerate {
			continue
		}
		var in struct {
			Evidence []struct {
				Hit struct {
					URI string `json:"uri"`
				} `json:"hit"`
			} `json:"evidence"`
		}
		if err := json.Unmarshal(rec.Input, &in); err != nil {
			return nil, fmt.Errorf("step %s: %w: %w", rec.Path, assay.ErrDamaged, err)
		}
		for _, ev := range in.Evidence {
			ids = append(ids, ev.Hit.URI)
		}
		return ids, nil
	}
	return ids, nil
}

// said is what an answer says, without its citation numbers: its claims, and the few words
// that join the clauses of a sentence.
func said(a assay.Answer) string {
	var b strings.Builder
	end := -1 // of the claim before
	for _, c := range a.Claims {
		if c.Start < 0 || c.End < c.Start || c.End > len(a.Text) {
			continue
		}
		if 0 <= end && end <= c.Start {
			b.WriteString(joint(a.Text[end:c.Start]))
		}
		b.WriteString(a.Text[c.Start:c.End])
		end = c.End
	}
	return b.String()
}

// mostJoining is how many words join two clauses at most.
const mostJoining = 3

// joint is what stands between two claims, if that is words of their sentence; else a
// blank.
func joint(between string) string {
	words := strings.Fields(citationNumbers.ReplaceAllString(between, " "))
	if strings.Contains(between, "\n") || len(words) == 0 || len(words) > mostJoining {
		return " "
	}
	for _, w := range words {
		if strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && r != ',' && r != '’' && r != '\'' }) {
			return " "
		}
	}
	text := strings.Join(words, " ") + " "
	if !strings.HasPrefix(text, ",") {
		text = " " + text
	}
	return text
}

// citationNumbers matches the numbers of evidence in an answer.
var citationNumbers = lazyregexp.New(`\s*\[\d+(?:, *\d+)*\]`)

// judge compares what was said, and the first of what was handed, with what is right.
func (o *StrategyOutcome) judge(q Query, most int, said string) {
	counted := o.Handed[:min(len(o.Handed), most)]
	found := 0
	for id := range q.Relevant {
		if slices.Contains(counted, id) {
			found++
		} else {
			o.Missed = append(o.Missed, id)
		}
	}
	slices.Sort(o.Missed)
	o.Recall, o.AllGold = float64(found)/float64(len(q.Relevant)), found == len(q.Relevant)
	o.Match, o.F1 = metric.Contains(said, q.Answers) == 1, metric.F1(said, q.Answers)
}

// rowOf sums outcomes up.
func rowOf(set, name, roles string, queries []Query, outcomes []StrategyOutcome) StrategyRow {
	row := StrategyRow{Set: set, Strategy: name, Roles: roles, Questions: len(outcomes), Statuses: map[assay.Status]int{}, Outcomes: outcomes}
	notes := map[string]int{}
	var times []float64
	for i, o := range outcomes {
		row.Handed += float64(len(o.Handed))
		row.Over += one(len(o.Handed) > Handed)
		row.Steps += float64(o.Steps)
		row.Searches += float64(o.Usage.Searches)
		row.Calls += float64(o.Usage.Calls)
		row.Tokens += float64(o.Usage.InputTokens + o.Usage.OutputTokens)
		row.CallsFailed += o.CallsFailed
		row.AskedBack += one(o.AskBack != "")
		times = append(times, o.MS)
		if len(queries[i].Answers) > 0 {
			row.Answers++
			row.Match += float64(one(o.Match))
			row.F1 += o.F1
		}
		if o.Failure != "" {
			row.Failed++
			row.Failure = cmp.Or(row.Failure, o.Failure)
		} else {
			row.Statuses[o.Status]++
		}
		for _, note := range o.notes {
			notes[note.Text]++
		}
	}
	for _, sum := range []*float64{&row.Handed, &row.Steps, &row.Searches, &row.Calls, &row.Tokens} {
		*sum /= float64(max(row.Questions, 1))
	}
	row.Match /= float64(max(row.Answers, 1))
	row.F1 /= float64(max(row.Answers, 1))
	row.MedianMS = median(times)
	row.Recall, row.AllGold = meanOf(recalls(outcomes)), meanOf(allGolds(outcomes))
	row.Notes = noted(notes)
	return row
}

func recalls(outcomes []StrategyOutcome) []float64 {
	xs := make([]float64, len(outcomes))
	for i, o := range outcomes {
		xs[i] = o.Recall
	}
	return xs
}

func allGolds(outcomes []StrategyOutcome) []float64 {
	xs := make([]float64, len(outcomes))
	for i, o := range outcomes {
		xs[i] = float64(one(o.AllGold))
	}
	return xs
}

// gain compares two rows of the same questions.
func gain(row, other StrategyRow) *Gain {
	return &Gain{
		Strategy: other.Strategy,
		Recall:   meanOf(minus(recalls(row.Outcomes), recalls(other.Outcomes))),
		AllGold:  meanOf(minus(allGolds(row.Outcomes), allGolds(other.Outcomes))),
	}
}

func minus(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}

// noted lists notes, the most frequent first.
func noted(times map[string]int) []Noted {
	var all []Noted
	for note, n := range times {
		all = append(all, Noted{note, n})
	}
	slices.SortFunc(all, func(a, b Noted) int { return cmp.Or(b.Queries-a.Queries, strings.Compare(a.Note, b.Note)) })
	return all
}

// median sorts xs.
func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	slices.Sort(xs)
	return (xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2
}
