package tune

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/assay-rag/assay/eval/stat"
)

// Parameters of the choice of settings by cross-validation.
const (
	// chooseFolds is the number of folds, and chooseRounds the number of rounds, each with other
	// folds. The gain of a question is the mean over the rounds, so that it does not depend on one
	// partition.
	chooseFolds, chooseRounds = 5, 10

	// leastQuestions is the least number of questions for a choice. With fewer, a fold of a fifth
	// of them is too small.
	leastQuestions = 30

	// worthwhile is the gain for which needed computes the number of questions if a smaller one or
	// none is seen.
	worthwhile = 0.02

	// chosenBelow is the p of the paired randomisation test that a gain must reach. It is less than
	// 0.05 divided by the three settings that are tuned one after the other (Bonferroni), because
	// the folds of a round share questions, which the test does not account for. Of 100 sets on
	// which no setting matters at most 5 may change anything.
	chosenBelow = 0.01
)

// A choice is the result of cross-validation over several candidates. The first candidate is the
// current configuration.
type choice struct {
	Best      int             // best candidate over all questions; 0: the current one
	Gain      stat.Difference // over the current one, on held-out questions
	Questions int
	Groups    int // of questions that are kept in one fold
	Change    bool
	Needed    int // questions that would separate the gain, or a worthwhile one, from chance; 0: there are enough
}

// choose finds the best of the candidates. scores[c][q] is the score of candidate c on question q.
// Questions of one group, such as those about one document, are always in the same fold, because a
// setting that suits one of them suits the others.
//
// For each fold, the best candidate on the other folds is compared with the current configuration
// on the fold that is left out. The gain is thus of questions that took no part in the choice
// (Stone, "Cross-Validatory Choice and Assessment of Statistical Predictions", JRSS B 1974; Varma
// and Simon, "Bias in error estimation when using cross-validation for model selection", BMC
// Bioinformatics 2006). A candidate is better than the current configuration if its mean is better
// by more than a standard error (the rule of Breiman et al., "Classification and Regression Trees",
// 1984). The interval comes from a bootstrap over whole groups.
func choose(scores [][]float64, groups []string) choice {
	n := len(groups)
	c := choice{Questions: n, Gain: stat.Difference{P: 1}}
	if n == 0 || len(scores) == 0 {
		return c
	}
	names := slices.Compact(slices.Sorted(slices.Values(groups)))
	c.Groups = len(names)
	gains := make([]float64, n)
	for round := range chooseRounds {
		fold := cutGroups(names, round)
		for left := range chooseFolds {
			var learn, test []int
			for q, g := range groups {
				if fold[g] == left {
					test = append(test, q)
				} else {
					learn = append(learn, q)
				}
			}
			best := bestOf(scores, learn)
			for _, q := range test {
				gains[q] += (scores[best][q] - scores[0][q]) / chooseRounds
			}
		}
	}
	all := make([]int, n)
	for q := range all {
		all[q] = q
	}
	c.Best = bestOf(scores, all)
	c.Gain = byGroup(gains, groups, names)
	c.Change = n >= leastQuestions && c.Groups >= leastGroups && c.Best > 0 && c.Gain.Low > 0 && c.Gain.P <= chosenBelow
	if !c.Change {
		c.Needed = needed(scores, c, n)
	}
	return c
}

// cutGroups assigns groups to folds of about equal size. The assignment depends on the round.
func cutGroups(names []string, round int) map[string]int {
	order := slices.Clone(names)
	random := rand.New(rand.NewPCG(1974, uint64(round)))
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	fold := map[string]int{}
	for i, name := range order {
		fold[name] = i % chooseFolds
	}
	return fold
}

// bestOf returns the candidate with the best mean over questions, the earlier of equal ones. It
// returns 0 if the best is not better than the first by more than a standard error.
func bestOf(scores [][]float64, questions []int) int {
	if len(questions) == 0 {
		return 0
	}
	best, bestMean := 0, math.Inf(-1)
	for c := range scores {
		mean := 0.0
		for _, q := range questions {
			mean += scores[c][q] / float64(len(questions))
		}
		if mean > bestMean+1e-12 {
			best, bestMean = c, mean
		}
	}
	mean, deviation := differences(scores[best], scores[0], questions)
	if mean <= deviation/math.Sqrt(float64(len(questions))) {
		return 0
	}
	return best
}

// differences returns the mean and the standard deviation of a minus b.
func differences(a, b []float64, questions []int) (mean, deviation float64) {
	n := float64(len(questions))
	for _, q := range questions {
		mean += (a[q] - b[q]) / n
	}
	for _, q := range questions {
		d := a[q] - b[q] - mean
		deviation += d * d / max(n-1, 1)
	}
	return mean, math.Sqrt(deviation)
}

// byGroup returns the mean gain of a question, with bounds and p computed over whole groups.
func byGroup(gains []float64, groups, names []string) stat.Difference {
	at := map[string]int{}
	for i, name := range names {
		at[name] = i
	}
	sums := make([]float64, len(names))
	for q, g := range gains {
		sums[at[groups[q]]] += g * float64(len(names)) / float64(len(gains))
	}
	return stat.Paired(sums, make([]float64, len(sums)))
}

// needed estimates how many questions would separate the observed gain, or a worthwhile one if that
// is greater, from chance at a p of chosenBelow. The number grows with the square of the factor by
// which the standard error is too large.
func needed(scores [][]float64, c choice, n int) int {
	const ofInterval, ofChosen = 1.96, 2.58 // standard errors: half a 95% interval, and the distance at p = chosenBelow
	deviation := (c.Gain.High - c.Gain.Low) / 2 / ofInterval
	if deviation < 1e-9 { // no candidate was ever chosen: use the one that differs most
		all := make([]int, n)
		for q := range all {
			all[q] = q
		}
		for _, s := range scores[1:] {
			_, d := differences(s, scores[0], all)
			deviation = max(deviation, d/math.Sqrt(float64(n)))
		}
	}
	short := ofChosen * deviation / max(c.Gain.Mean, worthwhile)
	return max(int(math.Ceil(float64(n)*short*short)), leastQuestions, n)
}
