package prompted

import (
	"context"
	"fmt"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/role"
)

// scoresReply is the reply requested from the model. The scores are integers, which models
// distinguish better than fractions.
type scoresReply struct {
	Scores []scoreReply `json:"scores"`
}

type scoreReply struct {
	Passage int     `json:"passage"`
	Score   float64 `json:"score"` // 0 to maxScore
}

const maxScore = 10

var scoresOutput = outputOf[scoresReply]("scores")

// Score implements role.Scorer. It scores hits by reading them. A hit that is not shown, or
// whose score is unreadable, gets the cautious score.
func (s Judge) Score(ctx context.Context, c role.Caller, question string, hits []assay.Hit) (role.HitScores, error) {
	out := role.HitScores{Scores: slices.Repeat([]float64{role.CautiousScore}, len(hits))}
	if len(hits) == 0 {
		return out, nil
	}
	var given []int
	return typed[scoresReply, role.HitScores]{
		job: job[scoresReply]{
			Config: s.Config, task: role.ScorerTask, out: scoresOutput(), maxTokens: 24*len(hits) + 80,
			write: readingFor(question, hits, &given),
			check: func(r *scoresReply) []string {
				numbers := make([]int, len(r.Scores))
				var problems []string
				for i, x := range r.Scores {
					numbers[i] = x.Passage
					if x.Score < 0 || x.Score > maxScore {
						problems = append(problems, fmt.Sprintf("the score of passage %d is %v, not between 0 and %d", x.Passage, x.Score, maxScore))
					}
				}
				return append(problems, eachOnce("passage", numbers, given)...)
			},
			salvage: func(r *scoresReply) ([]string, bool) {
				r.Scores = slices.DeleteFunc(r.Scores, func(x scoreReply) bool { return x.Score < 0 || x.Score > maxScore })
				r.Scores = onceOnly(r.Scores, func(x scoreReply) int { return x.Passage }, given)
				return []string{fmt.Sprintf("the model scored %d of %d passages; the others have the score %v", len(r.Scores), len(given), role.CautiousScore)}, len(r.Scores) > 0
			},
		},
		local: ifAny(s.Local != nil, func() (role.HitScores, error) { return s.Local.Score(ctx, c, question, hits) }),
		cautious: func(o role.Outcome) role.HitScores {
			return role.HitScores{Scores: out.Scores, Outcome: o}
		},
		finish: func(reply scoresReply, outcome role.Outcome) role.HitScores {
			out.Outcome = outcome
			for _, x := range reply.Scores {
				out.Scores[x.Passage-1] = x.Score / maxScore
			}
			return out
		},
	}.do(ctx, c)
}

// quotesReply is the reply requested from the model: quotes of the passages.
type quotesReply struct {
	Passages []quotedReply `json:"passages"`
}

type quotedReply struct {
	Passage int      `json:"passage"`
	Quotes  []string `json:"quotes"`
}

var quotesOutput = outputOf[quotesReply]("quotes")

// refineTokens is the room for the quotes of one passage in a reply.
const refineTokens = 240

// Refine implements role.Scorer. The parts are the sentences that the model quotes; a hit without a
// quote has no parts. A hit that the model is not shown, does not mention, or quotes words of that
// are not in it stays whole.
func (s Judge) Refine(ctx context.Context, c role.Caller, question string, hits []assay.Hit) (role.Refinement, error) {
	whole := role.Refinement{Parts: role.WholeHits(hits)}
	if len(hits) == 0 {
		return whole, nil
	}
	var given []int
	number := func(x quotedReply) int { return x.Passage }
	return typed[quotesReply, role.Refinement]{
		job: job[quotesReply]{
			Config: s.Config, task: role.RefinerTask, out: quotesOutput(), maxTokens: refineTokens*len(hits) + 80,
			write: readingFor(question, hits, &given),
			check: func(r *quotesReply) []string {
				problems := eachOnce("passage", mapped(r.Passages, number), given)
				for _, x := range r.Passages {
					if !slices.Contains(given, x.Passage) {
						continue
					}
					if _, wrong := sentencesWith(hits[x.Passage-1], x.Quotes); wrong != "" {
						problems = append(problems, fmt.Sprintf("the quote %q is not in passage %d; copy its words", shorten(line(wrong), 100), x.Passage))
					}
				}
				return problems
			},
			salvage: func(r *quotesReply) ([]string, bool) {
				r.Passages = slices.DeleteFunc(onceOnly(r.Passages, number, given), func(x quotedReply) bool {
					_, wrong := sentencesWith(hits[x.Passage-1], x.Quotes)
					return wrong != ""
				})
				return []string{fmt.Sprintf("the model quoted %d of %d passages; the others are used whole", len(r.Passages), len(given))}, len(r.Passages) > 0
			},
		},
		local:    ifAny(s.Local != nil, func() (role.Refinement, error) { return s.Local.Refine(ctx, c, question, hits) }),
		cautious: func(o role.Outcome) role.Refinement { return role.Refinement{Parts: whole.Parts, Outcome: o} },
		finish: func(reply quotesReply, outcome role.Outcome) role.Refinement {
			whole.Outcome = outcome
			for _, x := range reply.Passages {
				whole.Parts[x.Passage-1], _ = sentencesWith(hits[x.Passage-1], x.Quotes)
			}
			return whole
		},
	}.do(ctx, c)
}

// sentencesWith returns the sentences of a hit that contain quotes, with adjacent ones joined.
// wrong is the first quote that is not in the hit.
func sentencesWith(h assay.Hit, quotes []string) (parts []role.Span, wrong string) {
	sentences := sentence.Spans(h.Text)
	held := make([]bool, len(sentences))
	for _, q := range quotes {
		start, end, ok := ground.Find(h.Text, q)
		if !ok {
			return nil, q
		}
		for i, sp := range sentences {
			held[i] = held[i] || sp.Start < end && start < sp.End
		}
	}
	for i, sp := range sentences {
		switch {
		case !held[i]:
		case i > 0 && held[i-1]:
			parts[len(parts)-1].End = sp.End
		default:
			parts = append(parts, role.Span{Start: sp.Start, End: sp.End})
		}
	}
	return parts, ""
}

type relevancesReply struct {
	Grades []relevanceReply `json:"grades"`
}

type relevanceReply struct {
	Passage int            `json:"passage"`
	Grade   role.Relevance `json:"grade"`
}

var relevancesOutput = outputOf[relevancesReply]("retrieval_grades")

// GradeRetrieval implements role.RetrievalGrader. It grades hits by reading them. A hit that is
// not shown, or whose grade is unreadable, is partly relevant.
func (g Judge) GradeRetrieval(ctx context.Context, c role.Caller, question string, hits []assay.Hit) (role.RetrievalGrades, error) {
	out := role.RetrievalGrades{Grades: slices.Repeat([]role.Relevance{role.PartlyRelevant}, len(hits))}
	if len(hits) == 0 {
		return out, nil
	}
	var given []int
	number := func(x relevanceReply) int { return x.Passage }
	return typed[relevancesReply, role.RetrievalGrades]{
		job: job[relevancesReply]{
			Config: g.Config, task: role.RetrievalGraderTask, out: relevancesOutput(), maxTokens: 28*len(hits) + 80,
			write: readingFor(question, hits, &given),
			check: func(r *relevancesReply) []string { return eachOnce("passage", mapped(r.Grades, number), given) },
			salvage: func(r *relevancesReply) ([]string, bool) {
				r.Grades = onceOnly(r.Grades, number, given)
				return []string{fmt.Sprintf("the model graded %d of %d passages; the others are partly relevant", len(r.Grades), len(given))}, len(r.Grades) > 0
			},
		},
		local:    ifAny(g.Local != nil, func() (role.RetrievalGrades, error) { return g.Local.GradeRetrieval(ctx, c, question, hits) }),
		cautious: func(o role.Outcome) role.RetrievalGrades { return role.RetrievalGrades{Grades: out.Grades, Outcome: o} },
		finish: func(reply relevancesReply, outcome role.Outcome) role.RetrievalGrades {
			out.Outcome = outcome
			for _, x := range reply.Grades {
				out.Grades[x.Passage-1] = x.Grade
			}
			return out
		},
	}.do(ctx, c)
}

// readingFor shows hits for a question and stores the shown numbers in given.
func readingFor(question string, hits []assay.Hit, given *[]int) func(prompt, int) (string, []string, bool) {
	return reading(numbered(hits), func(shown []passage) any {
		*given = numbersOf(shown)
		return map[string]any{"Question": question, "Passages": shown}
	})
}

// eachOnce returns a problem for each number that was not given, and for each given number that
// does not occur exactly once.
func eachOnce(what string, numbers, given []int) []string {
	problems := unknown(what, numbers, given)
	for _, n := range given {
		times := 0
		for _, m := range numbers {
			if m == n {
				times++
			}
		}
		if times != 1 {
			problems = append(problems, fmt.Sprintf("%s %d is listed %d times; want exactly once", what, n, times))
		}
	}
	return problems
}

// onceOnly returns the entries whose number was given and occurs exactly once.
func onceOnly[T any](list []T, number func(T) int, given []int) []T {
	numbers := mapped(list, number)
	var out []T
	for i, x := range list {
		again := slices.Contains(numbers[:i], numbers[i]) || slices.Contains(numbers[i+1:], numbers[i])
		if !again && slices.Contains(given, numbers[i]) {
			out = append(out, x)
		}
	}
	return out
}

func mapped[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}
