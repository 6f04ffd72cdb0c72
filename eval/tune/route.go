package tune

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/strategy"
)

// routed is the strategy whose route is chosen.
const routed = "auto"

// tunedRoutes are the strategies that are tried as the one that auto goes on with.
var tunedRoutes = []string{"static", "corrective", "adaptive", "multihop", "graph"}

// notWorse is the share of right outcomes by which a cheaper route may be worse, at the lower bound
// of the difference.
const notWorse = worthwhile

// route chooses the strategy that auto goes on with if its first search is insufficient: the one
// with the most right outcomes if that is better by more than chance, otherwise the cheapest that
// suffices.
func (t *tuner) route(ctx context.Context) (Knob, error) {
	now := cmp.Or(t.Escalate, strategy.Defaults().Auto.Escalate)
	k := Knob{Name: routeSetting, Measure: "right"}
	at := func(name string) candidate {
		return candidate{says: name, limits: t.limits, escalate: name, settings: map[string]any{routeSetting: name}}
	}
	all := []candidate{at(now)}
	for _, name := range tunedRoutes {
		if name != now {
			all = append(all, at(name))
		}
	}
	if n := t.unanswerable(); n < leastUnanswerable {
		k.Note = fmt.Sprintf("the set has only %d unanswerable questions, too few to show whether a longer route answers them wrongly", n)
	}
	if err := t.answers(ctx, &k, all); err != nil {
		return k, err
	}
	return k, t.cheapest(ctx, &k, all)
}

// unanswerable counts the unanswerable questions.
func (t *tuner) unanswerable() int {
	n := 0
	for _, c := range t.cases() {
		n += stat.One(c.Unanswerable)
	}
	return n
}

// cheapest chooses the candidate with the fewest steps that is not worse than the current one,
// unless a better one was chosen.
func (t *tuner) cheapest(ctx context.Context, k *Knob, all []candidate) error {
	cases := t.labelled()
	right, err := t.scores(ctx, k.Measure, cases, all)
	if err != nil {
		return err
	}
	steps, err := t.scores(ctx, "steps", cases, all)
	if err != nil {
		return err
	}
	for i := range k.Tried {
		k.Tried[i].Steps = stat.Mean(steps[i])
	}
	if k.Change || k.Questions < leastQuestions || k.Groups < leastGroups {
		return nil
	}
	best, gain := sufficient(right, steps, keptTogether(cases))
	if best == 0 {
		return nil
	}
	k.Change, k.Cheaper, k.Chosen, k.Settings, k.Needed = true, true, all[best].says, all[best].settings, 0
	k.Gain = Gained{gain.Mean, gain.Low, gain.High, gain.P}
	k.Why = fmt.Sprintf("not worse, in %.1f steps instead of %.1f", stat.Mean(steps[best]), stat.Mean(steps[0]))
	return nil
}

// sufficient returns the candidate with the fewest steps whose share of right outcomes is at most
// notWorse below that of the first, at the lower bound of the difference. It returns 0 if no
// candidate with fewer steps is.
func sufficient(right, steps [][]float64, groups []string) (best int, gain stat.Difference) {
	names := slices.Compact(slices.Sorted(slices.Values(groups)))
	for i := 1; i < len(right); i++ {
		if stat.Mean(steps[i]) >= stat.Mean(steps[best]) {
			continue
		}
		differences := make([]float64, len(groups))
		for q := range differences {
			differences[q] = right[i][q] - right[0][q]
		}
		if d := byGroup(differences, groups, names); d.Low >= -notWorse {
			best, gain = i, d
		}
	}
	return best, gain
}

// labelled returns the cases that can be right or wrong.
func (t *tuner) labelled() []testset.Case {
	return slices.DeleteFunc(slices.Clone(t.cases()), func(c testset.Case) bool { return !c.Labelled() })
}
