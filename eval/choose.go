package eval

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/assay-rag/assay/eval/stat"
)

// How settings are chosen by cross-validation.
const (
	// chooseFolds is into how many parts questions are cut, and chooseRounds how often,
	// each time otherwise: the gain of a question is the mean over the rounds, so that it
	// does not hang on one way to cut.
	chooseFolds, chooseRounds = 5, 10

	// leastQuestions is how many questions a choice takes: with fewer, and a fifth of them
	// set aside, a fold holds too few to say anything.
	leastQuestions = 30

	// worthwhile is the gain that questions have to suffice for where none is seen.
	worthwhile = 0.02

	// chosenBelow is the p, of a paired randomisation test, that a gain has to have: less
	// than 0.05 shared by the three settings that are looked at one after the other
	// (Bonferroni), for the folds of a round share questions, which the test knows nothing
	// of. Of 100 sets on which no setting matters at most 5 may change anything.
	chosenBelow = 0.01
)

// A choice is what cross-validation says of several candidates, of which the first is
// what is configured.
type choice struct {
	Best      int             // of all questions; 0: what is configured
	Gain      stat.Difference // of questions that took no part in choosing, to what is configured
	Questions int
	Groups    int // of questions that were kept together
	Change    bool
	Needed    int // questions that would tell the gain, or a worthwhile one, from chance; 0: these do
}

// choose finds the best of candidates. scores[c][q] is how well candidate c does at
// question q. Questions of one group are never on both sides of a cut: those about one
// document, say, for what is good for one of them is good for the others.
//
// Questions are cut into folds. What is best on all folds but one is compared with what is
// configured on the one that is left out, so that the gain is of questions that took no
// part in choosing (Stone, "Cross-Validatory Choice and Assessment of Statistical
// Predictions", JRSS B 1974; Varma and Simon, "Bias in error estimation when using
// cross-validation for model selection", BMC Bioinformatics 2006). A candidate is better
// than what is configured when it is by more than a standard error (the rule of Breiman et
// al., "Classification and Regression Trees", 1984). The interval is of a bootstrap of
// whole groups.
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

// cutGroups cuts groups into folds of about as many, another way each round.
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

// bestOf returns the candidate with the best mean over questions, the earlier of equal
// ones; the first, where that is no better than by a standard error.
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

// differences returns the mean and the standard deviation of a less b.
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

// byGroup is the mean gain of a question, with bounds and a p of whole groups.
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

// needed estimates how many questions would tell the gain that was seen from chance, or a
// worthwhile one where that is less: as many more as the square of what its standard error
// is too large by, for a p of chosenBelow.
func needed(scores [][]float64, c choice, n int) int {
	const ofInterval, ofChosen = 1.96, 2.58 // standard errors: half an interval of 95%, and the distance that p stands for
	deviation := (c.Gain.High - c.Gain.Low) / 2 / ofInterval
	if deviation < 1e-9 { // nothing was ever chosen: of the candidate that differs most
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
