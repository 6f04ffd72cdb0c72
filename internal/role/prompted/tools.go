package prompted

import (
	"context"
	"fmt"
	"slices"

	"github.com/assay-rag/assay/role"
)

// extractionReply is the reply requested from the model.
type extractionReply struct {
	Entities []entityReply `json:"entities"`
	Facts    []claimReply  `json:"facts,omitempty"`
}

type entityReply struct {
	Name    string `json:"name"`
	Kind    string `json:"kind,omitempty"`
	Sources []int  `json:"sources"`
}

var extractionOutput = outputOf[extractionReply]("extraction")

// Extract implements role.Extractor. It lists the entities and facts in evidence.
func (e Actor) Extract(ctx context.Context, c role.Caller, in role.ExtractInput) (role.Extraction, error) {
	out := role.Extraction{Entities: []role.Entity{}, Facts: []role.Statement{}}
	if len(in.Evidence) == 0 {
		return out, nil
	}
	var given []int
	return typed[extractionReply, role.Extraction]{
		job: job[extractionReply]{
			Config: e.Config, task: role.ExtractorTask, out: extractionOutput(), maxTokens: 1200,
			write: readingTyped(in, &given),
			check: func(r *extractionReply) []string {
				problems := checkClaims("facts", r.Facts, given)
				for _, x := range r.Entities {
					problems = append(problems, unknown("passage", x.Sources, given)...)
				}
				return problems
			},
			salvage: func(r *extractionReply) ([]string, bool) { // entries without a source are dropped below
				named := slices.ContainsFunc(r.Entities, func(x entityReply) bool { return len(known(x.Sources, given)) > 0 })
				return nil, named || sourced(r.Facts, given)
			},
		},
		local: ifAny(e.Local != nil, func() (role.Extraction, error) { return e.Local.Extract(ctx, c, in) }),
		cautious: func(o role.Outcome) role.Extraction {
			return role.Extraction{Entities: []role.Entity{}, Facts: []role.Statement{}, Outcome: o}
		},
		finish: func(reply extractionReply, outcome role.Outcome) role.Extraction {
			held := newHoldings(in.Reading, given, reply.Facts)
			for _, x := range reply.Entities {
				name := shorten(line(x.Name), maxPhrase)
				named := slices.DeleteFunc(slices.Sorted(slices.Values(known(x.Sources, given))), func(n int) bool { return !held.says(n, name) })
				if name == "" || len(named) == 0 {
					out.Dropped = append(out.Dropped, role.Dropped{Text: name, Reason: nobodyNames(name)})
					continue
				}
				out.Entities = append(out.Entities, role.Entity{Name: name, Kind: shorten(line(x.Kind), 60), Evidence: named})
			}
			facts, dropped := held.vet(reply.Facts)
			out.Facts = append(out.Facts, facts...)
			out.Dropped = append(out.Dropped, dropped...)
			out.Outcome = leftOut(outcome, role.ExtractorTask, out.Dropped)
			return out
		},
	}.do(ctx, c)
}

// readingTyped is readingAll with the type of the entities, if it is a certain one.
func readingTyped(in role.ExtractInput, given *[]int) func(prompt, int) (string, []string, bool) {
	kind := in.EntityType
	if kind == role.AnyEntity {
		kind = ""
	}
	best, _ := contextOf(role.GenerateInput{Evidence: in.Evidence, Context: in.Context})
	return reading(best, func(shown []passage) any {
		*given = numbersOf(shown)
		return map[string]any{"Question": in.Question, "Passages": shown, "Type": kind}
	})
}

type summaryReply struct {
	Statements []claimReply `json:"statements"`
}

var summaryOutput = outputOf[summaryReply]("summary")

// Summarise implements role.Summariser. It summarises evidence.
func (s Actor) Summarise(ctx context.Context, c role.Caller, in role.Reading) (role.Summary, error) {
	out := role.Summary{Statements: []role.Statement{}}
	if len(in.Evidence) == 0 {
		return out, nil
	}
	var given []int
	return typed[summaryReply, role.Summary]{
		job: job[summaryReply]{
			Config: s.Config, task: role.SummariserTask, out: summaryOutput(), maxTokens: 800,
			write:   readingAll(in, &given),
			check:   func(r *summaryReply) []string { return checkClaims("statements", r.Statements, given) },
			salvage: func(r *summaryReply) ([]string, bool) { return nil, sourced(r.Statements, given) },
		},
		local:    ifAny(s.Local != nil, func() (role.Summary, error) { return s.Local.Summarise(ctx, c, in) }),
		cautious: func(o role.Outcome) role.Summary { return role.Summary{Statements: []role.Statement{}, Outcome: o} },
		finish: func(reply summaryReply, outcome role.Outcome) role.Summary {
			kept, dropped := newHoldings(in, given, reply.Statements).vet(reply.Statements)
			out.Statements, out.Dropped = append(out.Statements, kept...), dropped
			out.Outcome = leftOut(outcome, role.SummariserTask, dropped)
			return out
		},
	}.do(ctx, c)
}

type contrastReply struct {
	Points []pointReply `json:"points"`
}

type pointReply struct {
	Aspect   string        `json:"aspect"`
	Sides    []claimReply  `json:"sides"`
	Relation role.Relation `json:"relation"`
}

var contrastOutput = outputOf[contrastReply]("comparison")

// Compare implements role.Comparer. It compares pieces of evidence.
func (m Actor) Compare(ctx context.Context, c role.Caller, in role.Reading) (role.Contrast, error) {
	out := role.Contrast{Points: []role.Point{}}
	if len(in.Evidence) == 0 {
		return out, nil
	}
	var given []int
	return typed[contrastReply, role.Contrast]{
		job: job[contrastReply]{
			Config: m.Config, task: role.ComparerTask, out: contrastOutput(), maxTokens: 1200,
			write: readingAll(in, &given),
			check: func(r *contrastReply) []string {
				var problems []string
				for i, p := range r.Points {
					at := fmt.Sprintf("point %d", i+1)
					problems = append(problems, checkClaims(at, p.Sides, given)...)
					if len(p.Sides) < 2 {
						problems = append(problems, fmt.Sprintf("%s has %d sides; want at least two", at, len(p.Sides)))
					}
				}
				return problems
			},
			salvage: func(r *contrastReply) ([]string, bool) { // points with fewer than two sides are dropped below
				return nil, slices.ContainsFunc(r.Points, func(p pointReply) bool { return sourced(p.Sides, given) })
			},
		},
		local:    ifAny(m.Local != nil, func() (role.Contrast, error) { return m.Local.Compare(ctx, c, in) }),
		cautious: func(o role.Outcome) role.Contrast { return role.Contrast{Points: []role.Point{}, Outcome: o} },
		finish: func(reply contrastReply, outcome role.Outcome) role.Contrast {
			var all []claimReply
			for _, p := range reply.Points {
				all = append(all, p.Sides...)
			}
			held := newHoldings(in, given, all)
			for _, p := range reply.Points {
				sides, dropped := held.vet(p.Sides)
				out.Dropped = append(out.Dropped, dropped...)
				if len(sides) < 2 {
					out.Dropped = append(out.Dropped, role.Dropped{Text: shorten(line(p.Aspect), maxPhrase), Reason: "a comparison has at least two sides with sources"})
					continue
				}
				out.Points = append(out.Points, role.Point{Aspect: shorten(line(p.Aspect), maxPhrase), Sides: sides, Relation: p.Relation})
			}
			out.Outcome = leftOut(outcome, role.ComparerTask, out.Dropped)
			return out
		},
	}.do(ctx, c)
}
