package local

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/learn"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// Grader grades evidence by the probability that it answers the question. If this is a little
// too low, the grade is Partly, and its reason names the closest passage as such.
type Grader struct {
	Reader llm.Reader // nil: relevance and shared words decide
}

// readBest is the number of hits that are read for a grade.
const readBest = 8

// DefaultMinAnswerability is the least probability that passages answer a question for a grade of
// Sufficient. See docs/evaluation.md, Abstention.
const DefaultMinAnswerability = 0.6

// usualFloor is the default relevance floor. Passages that answer by the reader's word need
// not reach it, unless the caller sets a higher one.
const usualFloor = 0.5

// closest is the share of the odds of Sufficient that a grade of Partly needs.
const closest = 0.5

// Grade implements role.Grader. It returns an error only when ctx has ended.
func (g Grader) Grade(ctx context.Context, _ role.Caller, in role.GradeInput) (role.Grade, error) {
	hits := in.Hits[:min(len(in.Hits), readBest)]
	readings, err := ReadHits(ctx, g.Reader, in.Question, hits)
	if ctx.Err() != nil {
		return role.Grade{}, ctx.Err()
	}
	q := read(in.Question, in.Terms)
	grade := role.Grade{Verdict: assay.Insufficient, Relevant: []string{}, Missing: []string{in.Question}}
	switch {
	case len(q.terms) == 0:
		grade.Reason = "the question has no words to search for"
	case len(in.Hits) == 0:
		grade.Reason = "nothing was found"
	case readings != nil && answerable(readings) == 0:
		grade.Reason = "the reader finds no answer in the passages"
	case readings == nil:
		byCoverage(&grade, q, in)
	default:
		byReading(&grade, q, in, hits, readings)
	}
	if err != nil {
		grade.Notes = append(grade.Notes, "grader: "+err.Error()+"; passages were graded by word overlap only")
	}
	if grade.Verdict != assay.Sufficient {
		grade.Query = reformulate(q, in)
	}
	return grade, nil
}

// byReading grades by the readings of the hits. If in.MinAnswerability is 0, as for the steps of a
// plan, the grade has no probability.
func byReading(grade *role.Grade, q question, in role.GradeInput, hits []assay.Hit, readings []llm.Reading) {
	held := math.Round(learn.Sigmoid(answerability().Line.LogOdds(featuresOf(q, hits, readings)))*1000) / 1000
	needed := in.MinAnswerability
	if needed > 0 {
		grade.Answerability = &held
	} else {
		needed = DefaultMinAnswerability
	}
	order := byAnswerable(readings)
	named := -1 // index of the section whose heading the question names
	for _, i := range order {
		answers := readings[i].Answerable >= alsoAnswers*readings[order[0]].Answerable
		if namesSectionOf(in.Question, hits[i]) {
			answers, named = true, i
		}
		if answers && (in.Floor <= usualFloor || hits[i].Scores.Relevance >= in.Floor) {
			grade.Relevant = append(grade.Relevant, hits[i].Chunk.ID)
		}
	}
	grade.Answers = answersOf(order, hits, readings)
	near := closest * needed / (1 - needed)
	switch {
	case len(grade.Relevant) == 0:
		grade.Reason = fmt.Sprintf("no passage reaches the relevance floor of %.2f", in.Floor)
	case named >= 0 && slices.Contains(grade.Relevant, hits[named].Chunk.ID):
		grade.Verdict, grade.Missing = assay.Sufficient, []string{}
		grade.Reason = "the question asks for a section by its heading"
	case held >= needed:
		grade.Verdict, grade.Missing = assay.Sufficient, []string{}
		grade.Reason = fmt.Sprintf("the passages answer the question with probability %.2f; %.2f is needed", held, needed)
	case held/(1-held) >= near:
		grade.Verdict = assay.Partly
		grade.Reason = fmt.Sprintf("the closest passage may not answer the question (probability %.2f; %.2f is needed)", held, needed)
	default:
		grade.Relevant = []string{}
		grade.Reason = fmt.Sprintf("no passage is likely to answer the question (probability %.2f; %.2f is needed)", held, needed)
	}
}

// maxAnswers is the number of answers in a grade.
const maxAnswers = 3

// answersOf lists the likeliest answers without duplicates.
func answersOf(order []int, hits []assay.Hit, readings []llm.Reading) []role.Extract {
	var out []role.Extract
	for _, i := range order {
		for _, s := range readings[i].Spans {
			x := role.Extract{Text: oneLine(hits[i].Text[s.Start:s.End]), Chunk: hits[i].Chunk.ID, Score: readings[i].Answerable * s.Score}
			if at := slices.IndexFunc(out, func(o role.Extract) bool { return strings.EqualFold(o.Text, x.Text) }); at < 0 {
				out = append(out, x)
			} else {
				out[at].Score = max(out[at].Score, x.Score)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b role.Extract) int { return cmp.Compare(b.Score, a.Score) })
	return out[:min(len(out), maxAnswers)]
}

// answerabilityJSON holds the weights of the answerability model, as written by
// `go run ./train/fit answerability`.
//
//go:embed answerability.json
var answerabilityJSON []byte

var answerability = sync.OnceValue(func() AnswerabilityModel {
	var m AnswerabilityModel
	if err := json.Unmarshal(answerabilityJSON, &m); err != nil {
		panic("internal/role/local: answerability.json: " + err.Error())
	}
	fits := m.Line != nil && m.Line.Fits(len(m.Features))
	if !fits || !slices.Equal(m.Features, AnswerabilityFeatures) {
		panic("internal/role/local: answerability.json: not the weights of these features")
	}
	return m
})

// An AnswerabilityModel is a logistic regression that gives the probability that passages
// answer a question.
type AnswerabilityModel struct {
	Features []string      `json:"features"` // AnswerabilityFeatures
	Line     *learn.Linear `json:"line"`
	Reader   string        `json:"reader"` // the reader that it was fitted with
	Sets     []string      `json:"sets"`
	Rows     int           `json:"questions"`
	Fitted   string        `json:"fitted_by"`
	Licences string        `json:"licences"`
}

// AnswerabilityFeatures are the features of a question and the passages found for it, in
// order.
var AnswerabilityFeatures = []string{
	"answerable", // log odds of the reader's highest probability of an answer
	"relevance",  // log odds of the reader's highest relevance
	"found",      // log odds of the highest relevance in the search
	"coverage",   // largest share of the question's weight that a passage holds
	"covered",    // share that the most answerable passage holds
}

// FeaturesOf returns the features of a question and the hits that were read for it. Terms
// are those of a search for the question.
func FeaturesOf(question string, terms []assay.Term, hits []assay.Hit, readings []llm.Reading) []float64 {
	return featuresOf(read(question, terms), hits, readings)
}

func featuresOf(q question, hits []assay.Hit, readings []llm.Reading) []float64 {
	relevance, found, coverage, covered := 0.0, 0.0, 0.0, 0.0
	best := MostAnswerable(readings)
	for i, h := range hits {
		relevance = max(relevance, readings[i].Relevance)
		found = max(found, h.Scores.Relevance)
		share := q.coverage(stems(h.Language, around(h)...))
		coverage = max(coverage, share)
		if i == best {
			covered = share
		}
	}
	return []float64{logit(answerable(readings)), logit(relevance), logit(found), coverage, covered}
}

// minCoverage is the least share of the question's weight that the relevant hits must hold if
// there is no reader.
const minCoverage = 0.5

// byCoverage grades by relevance and by the share of the question's words that the relevant
// hits hold.
func byCoverage(grade *role.Grade, q question, in role.GradeInput) {
	held := map[string]bool{}
	for _, h := range in.Hits {
		if h.Scores.Relevance >= in.Floor {
			grade.Relevant = append(grade.Relevant, h.Chunk.ID)
			maps.Copy(held, stems(h.Language, around(h)...))
		}
	}
	share := q.coverage(held)
	switch {
	case len(grade.Relevant) == 0:
		grade.Reason = fmt.Sprintf("no passage reaches the relevance floor of %.2f; the best has %.2f", in.Floor, in.Hits[0].Scores.Relevance)
	case share < minCoverage:
		grade.Verdict, grade.Missing = assay.Partly, q.missing(held)
		grade.Reason = fmt.Sprintf("the relevant passages cover %.0f%% of the question", 100*share)
	default:
		grade.Verdict, grade.Missing = assay.Sufficient, q.missing(held)
		grade.Reason = fmt.Sprintf("%d relevant passages, the best with relevance %.2f", len(grade.Relevant), in.Hits[0].Scores.Relevance)
	}
}

// reformulate returns the first of these queries that was not tried yet: the question's
// content words, those that the best hit lacks, all of them with the heading of the best hit.
func reformulate(q question, in role.GradeInput) string {
	var words, lacking, heading []string
	for _, t := range q.terms {
		words = append(words, t.Text)
	}
	if len(in.Hits) > 0 {
		best := in.Hits[0]
		lacking = q.missing(stems(best.Language, around(best)...))
		if hs := best.Chunk.Headings; len(hs) > 0 {
			heading = contentWords(hs[len(hs)-1])
		}
	}
	for _, candidate := range [][]string{words, lacking, append(slices.Clone(words), heading...)} {
		query := strings.Join(distinct(candidate), " ")
		if query != "" && !slices.ContainsFunc(in.Tried, func(t string) bool { return strings.EqualFold(t, query) }) {
			return query
		}
	}
	return ""
}

// distinct returns words without duplicates, ignoring case.
func distinct(words []string) []string {
	var out []string
	for _, w := range words {
		if !slices.ContainsFunc(out, func(o string) bool { return strings.EqualFold(o, w) }) {
			out = append(out, w)
		}
	}
	return out
}
