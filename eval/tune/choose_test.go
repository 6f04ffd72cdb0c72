package tune

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// noise returns the scores of candidates that differ only by chance. The candidate better (-1:
// none) scores higher by gain.
func noise(random *rand.Rand, candidates, questions, better int, gain float64) (scores [][]float64, groups []string) {
	hard := make([]float64, questions)
	for q := range hard {
		hard[q] = random.Float64()
		groups = append(groups, fmt.Sprint(q/2)) // two questions per document
	}
	for c := range candidates {
		row := make([]float64, questions)
		for q := range row {
			row[q] = hard[q]
			if random.Float64() < 0.3 { // the share of questions that depend on settings
				row[q] = random.Float64()
			}
			if c == better {
				row[q] = min(1, row[q]+gain)
			}
		}
		scores = append(scores, row)
	}
	return scores, groups
}

// TestChooseDoesNotFitNoise checks that at most 5 of 100 sets of random labels change a setting,
// with three settings tuned on each. With -short there are 40 sets, and at most 2 may.
func TestChooseDoesNotFitNoise(t *testing.T) {
	t.Parallel()
	sets, most := uint64(100), 5
	if testing.Short() {
		sets, most = 40, 2
	}
	for _, questions := range []int{40, 200} {
		changed := 0
		for seed := range sets {
			random := rand.New(rand.NewPCG(seed, 7))
			for _, candidates := range []int{16, 7, 7} {
				if c := choose(noise(random, candidates, questions, -1, 0)); c.Change {
					changed++
					break
				}
			}
		}
		if changed > most {
			t.Errorf("%d questions: of %d sets of chance %d are tuned to, want at most %d", questions, sets, changed, most)
		}
		t.Logf("%d questions: of %d sets of chance %d are tuned to", questions, sets, changed)
	}
}

// TestChooseFindsAGain checks that a better candidate is chosen and that the interval of its gain
// is about right.
func TestChooseFindsAGain(t *testing.T) {
	t.Parallel()
	found, low := 0, 0
	for seed := range uint64(50) {
		scores, groups := noise(rand.New(rand.NewPCG(seed, 11)), 8, 300, 5, 0.08)
		c := choose(scores, groups)
		if c.Change && c.Best == 5 {
			found++
		}
		if c.Gain.Low <= 0.08 && 0.03 <= c.Gain.High {
			low++
		}
	}
	if found < 45 || low < 45 {
		t.Errorf("of 50 sets with a gain it is found in %d, and within the interval in %d", found, low)
	}
}

// TestChooseHoldsGroupsOut checks that the gain is measured on held-out groups: candidates that fit
// single documents gain nothing.
func TestChooseHoldsGroupsOut(t *testing.T) {
	t.Parallel()
	const questions = 100
	scores := [][]float64{make([]float64, questions)}
	var groups []string
	for q := range questions {
		groups = append(groups, fmt.Sprint(q/10))
	}
	for g := range 10 { // each candidate is right on one document and wrong on all others
		row := make([]float64, questions)
		for q := range row {
			row[q] = -0.05
			if q/10 == g {
				row[q] = 1
			}
		}
		scores = append(scores, row)
	}
	if c := choose(scores, groups); c.Change || c.Gain.Mean > 0 {
		t.Errorf("%+v", c)
	}
}

func TestChooseTooFew(t *testing.T) {
	t.Parallel()
	scores := [][]float64{make([]float64, 12), make([]float64, 12)}
	groups := make([]string, 12)
	for q := range groups {
		scores[1][q], groups[q] = 1, fmt.Sprint(q)
	}
	if c := choose(scores, groups); c.Change || c.Needed < leastQuestions || c.Gain.Mean < 0.99 {
		t.Errorf("12 questions: %+v", c)
	}
	if c := choose(nil, nil); c.Change {
		t.Errorf("no questions: %+v", c)
	}
	if c := choose([][]float64{{1, 0}}, []string{"a", "b"}); c.Change || c.Best != 0 {
		t.Errorf("no candidates: %+v", c)
	}
}

// TestChooseTooFewGroups checks that many questions about few documents change nothing. With eight
// groups p can fall below chosenBelow, but eight documents are too few to generalise to others.
func TestChooseTooFewGroups(t *testing.T) {
	t.Parallel()
	scores := [][]float64{make([]float64, 80), make([]float64, 80)}
	groups := make([]string, 80)
	for q := range groups {
		scores[1][q], groups[q] = 0.5+float64(q%3)/10, fmt.Sprint(q/10)
	}
	if c := choose(scores, groups); c.Change || c.Groups != 8 || c.Gain.P > chosenBelow || c.Gain.Low <= 0 {
		t.Errorf("80 questions about 8 documents: %+v", c)
	}
}

func TestChooseIsRepeatable(t *testing.T) {
	t.Parallel()
	scores, groups := noise(rand.New(rand.NewPCG(1, 2)), 8, 120, 3, 0.05)
	if diff := cmp.Diff(choose(scores, groups), choose(scores, groups)); diff != "" {
		t.Error(diff)
	}
}
