package eval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/internal/learn"
	"github.com/assay-rag/assay/role/local"
)

// An AbstentionTraining is a model that was learned from sets, and what it reaches on each.
type AbstentionTraining struct {
	Model local.HeldModel       `json:"-"`
	Rows  AbstentionRows        `json:"-"` // that it was learned from
	Sets  []AbstentionJudgement `json:"sets"`
}

// An AbstentionJudgement is what is reached on a set, by the probabilities alone: a
// question counts as answered right where a right passage is among the best five.
type AbstentionJudgement struct {
	Set       string `json:"set"`
	By        string `json:"by"` // "words" or "words and vectors"
	Questions int    `json:"questions"`
	// Cross is by cross-validation: learned from the other sets and from four fifths of
	// this, the questions of one article on one side. Left is learned from the others alone,
	// and calibrated on them.
	Cross AbstentionFigures `json:"cross_validated"`
	Left  AbstentionFigures `json:"left_out"`
}

// AbstentionFigures are what probabilities are worth.
type AbstentionFigures struct {
	AUC         float64         `json:"auc"`
	ECE         float64         `json:"ece"`
	AtMostFalse AbstentionPoint `json:"at_most_false"` // chosen on these very questions
	AtDefault   AbstentionPoint `json:"at_default"`    // at the threshold that the program has
}

// TrainAbstention learns from two or more sets to tell whether passages hold the answer to
// a question, from the rows that ReadAbstention makes of them. It is deterministic.
func TrainAbstention(ctx context.Context, sets []Set, parts Parts) (AbstentionTraining, error) {
	if len(sets) < 2 {
		return AbstentionTraining{}, fmt.Errorf("to learn abstention takes two sets or more: %w", assay.ErrInvalid)
	}
	rows, err := ReadAbstention(ctx, sets, parts)
	if err != nil {
		return AbstentionTraining{}, err
	}
	t := AbstentionTraining{Model: rows.learn(), Rows: rows}
	for _, vectors := range []bool{false, true} {
		table, by := rows.table(vectors), "words"
		if vectors {
			by = "words and vectors"
		}
		for _, set := range table.Sets {
			var crossed []rated
			for fold := range articleFolds {
				w := learnHeld(rows.withoutFold(set.Name, fold).table(vectors))
				crossed = append(crossed, ratedBy(w, slices.DeleteFunc(slices.Clone(set.Rows), func(r heldRow) bool { return foldOf(r.Article, articleFolds) != fold }))...)
			}
			t.Sets = append(t.Sets, AbstentionJudgement{
				Set: set.Name, By: by, Questions: len(set.Rows),
				Cross: figuresOf(crossed, vectors), Left: figuresOf(ratedBy(learnHeld(rows.without(set.Name).table(vectors)), set.Rows), vectors),
			})
		}
	}
	return t, nil
}

// learn makes a model of the rows.
func (r AbstentionRows) learn() local.HeldModel {
	return local.HeldModel{
		Words: learnHeld(r.Words), Vectors: learnHeld(r.Vectors),
		Sets: r.names(), Learned: "assay eval train-abstention", Licences: licences,
	}
}

// heldRidge keeps weights small: with a tenth of it sets that were learned from are told
// better by a point or two, and those that were not worse by five.
const heldRidge = 0.06

// learnHeld learns from all rows. Its slope and offset are fitted to the log odds that the
// rows of each set have by what was learned from the others: on documents that it has not
// seen a model is less sure than it says. One set alone is not calibrated.
func learnHeld(t AbstentionTable) local.HeldWeights {
	w := fitHeld(t)
	var rows []learn.Row
	for _, set := range t.Sets {
		others := t.only(func(name string, _ heldRow) bool { return !related(name, set.Name) })
		if len(others.Sets) == 0 {
			continue
		}
		left := fitHeld(others)
		for _, r := range set.Rows {
			if len(r.Features) > 0 {
				rows = append(rows, learn.Row{Features: []float64{left.Line.LogOdds(r.Features)}, Positive: r.Held, Weight: weightIn(set)})
			}
		}
	}
	w.Slope, w.Offset = scaleOf(rows)
	return w
}

// weightIn is what a row of a set weighs: all rows of it together weigh the square root of
// their number.
func weightIn(set heldSet) float64 { return 1 / math.Sqrt(float64(len(set.Rows))) }

// scaleOf returns the slope and the offset that make probabilities of log odds.
//
// Source: Platt, "Probabilistic Outputs for Support Vector Machines", 1999.
func scaleOf(rows []learn.Row) (slope, offset float64) {
	l := learn.Logistic(rows, 1e-6)
	if len(l.Weights) == 0 {
		return 1, 0
	}
	slope = l.Weights[0] * l.Scale[0]
	return fourPlaces(slope), fourPlaces(l.Bias - slope*l.Mean[0])
}

// fitHeld is learnHeld before its probabilities are calibrated.
func fitHeld(t AbstentionTable) local.HeldWeights {
	w := local.HeldWeights{Features: t.Features, Slope: 1}
	var rows []learn.Row
	for _, set := range t.Sets {
		for _, r := range set.Rows {
			if len(r.Features) == 0 || r.Held && !r.Found {
				continue // nothing was found, or not what answers it: there is nothing to see
			}
			rows = append(rows, learn.Row{Features: r.Features, Positive: r.Held, Weight: weightIn(set)})
		}
	}
	w.Questions = len(rows)
	w.Line = learn.Logistic(rows, heldRidge)
	return w
}

// ratedBy returns the rows with the probabilities that weights give them.
func ratedBy(w local.HeldWeights, rows []heldRow) []rated {
	out := make([]rated, len(rows))
	for i, r := range rows {
		out[i] = rated{answerable: r.Held, right: r.Found}
		if len(r.Features) > 0 {
			out[i].p = w.Probability(r.Features)
		}
	}
	return out
}

// figuresOf says what probabilities are worth.
func figuresOf(all []rated, vectors bool) AbstentionFigures {
	var scores []float64
	var holds []bool
	for _, x := range all {
		scores, holds = append(scores, x.p), append(holds, x.answerable)
	}
	const bins = 10
	return AbstentionFigures{AUC: auc(all), ECE: stat.ECE(stat.Bins(scores, holds, bins)), AtMostFalse: atMost(all, MostFalse), AtDefault: pointAt(all, local.HeldNeeded(vectors))}
}
