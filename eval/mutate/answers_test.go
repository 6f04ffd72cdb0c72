package mutate_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/mutate"
	"github.com/assay-rag/assay/ground"
)

const testdata = "../../ground/testdata"

// substring takes for supported what stands in the cited text letter by letter.
type substring struct{}

func (substring) Verify(_ context.Context, claim string, cited []ground.Passage) (ground.Judgement, error) {
	for _, p := range cited {
		if strings.Contains(p.Context, claim) {
			return ground.Judgement{Verdict: assay.Supported, Score: 1}, nil
		}
	}
	return ground.Judgement{Verdict: assay.Unsupported}, nil
}

// cites is what a verifier is given of an answer, as a strategy gives it.
func cites(a mutate.Answer) []ground.Passage {
	start, end := ground.Locate(a.Claim, a.Cited)
	if start == end {
		start, end = 0, len(a.Cited)
	}
	return []ground.Passage{{Quote: a.Cited[start:end], Context: a.Cited, Heading: a.Heading}}
}

// Figures are what a verifier makes of correct and mutated answers.
type figures struct {
	verbatim, paraphrases, mutated    int
	verbatimOut, paraphrasesOut, seen int
	kinds, caught                     map[mutate.Kind]int
	right, wrong                      []float64 // scores
	failures                          []string
}

func measure(t *testing.T, v ground.Verifier, halves ...string) figures {
	t.Helper()
	f := figures{kinds: map[mutate.Kind]int{}, caught: map[mutate.Kind]int{}}
	for _, half := range halves {
		correct, wrong, err := mutate.Answers(testdata, os.Getenv("ASSAY_TESTDATA"), half)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range slices.Concat(correct, wrong) {
			j, err := v.Verify(t.Context(), a.Claim, cites(a))
			if err != nil {
				t.Fatal(err)
			}
			f.count(a, j)
		}
	}
	return f
}

func (f *figures) count(a mutate.Answer, j ground.Judgement) {
	shown := j.Verdict == assay.Supported
	switch {
	case a.Kind != "":
		f.mutated++
		f.kinds[a.Kind]++
		f.wrong = append(f.wrong, j.Score)
		if !shown {
			f.seen++
			f.caught[a.Kind]++
		} else {
			f.failures = append(f.failures, fmt.Sprintf("%-10s let through %.3f (%s): %s\n\tof: %s", a.Kind, j.Score, a.Passage, a.Claim, a.Of))
		}
		return
	case a.Verbatim:
		f.verbatim++
		if !shown {
			f.verbatimOut++
		}
	default:
		f.paraphrases++
		if !shown {
			f.paraphrasesOut++
		}
	}
	f.right = append(f.right, j.Score)
	if !shown {
		f.failures = append(f.failures, fmt.Sprintf("%-10s rejected %.3f (%s): %s\n\t%s", map[bool]string{true: "verbatim", false: "paraphrase"}[a.Verbatim], j.Score, a.Passage, a.Claim, j.Reason))
	}
}

func share(n, of int) float64 { return float64(n) / float64(max(of, 1)) }

// risk is the share of wrong answers among those shown, where so few are shown that it is
// the given share of the correct ones.
func (f figures) risk(coverage float64) float64 {
	scores := slices.Sorted(slices.Values(f.right))
	floor := scores[int(float64(len(scores))*(1-coverage))]
	right, wrong := 0, 0
	for _, s := range f.right {
		if s >= floor {
			right++
		}
	}
	for _, s := range f.wrong {
		if s >= floor {
			wrong++
		}
	}
	return share(wrong, right+wrong)
}

func (f figures) caughtShare() float64      { return share(f.seen, f.mutated) }
func (f figures) verbatimRejected() float64 { return share(f.verbatimOut, f.verbatim) }
func (f figures) rejected() float64         { return share(f.paraphrasesOut, f.paraphrases) }

func (f figures) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mutated %d, caught %.1f%%; verbatim %d, rejected %.1f%%; paraphrases %d, rejected %.1f%%; wrong among those shown at 90%% of the correct ones: %.1f%%\n",
		f.mutated, 100*f.caughtShare(), f.verbatim, 100*f.verbatimRejected(), f.paraphrases, 100*f.rejected(), 100*f.risk(0.9))
	for _, k := range mutate.Kinds {
		fmt.Fprintf(&b, "  %-10s %3d of %3d caught (%.1f%%)\n", k, f.caught[k], f.kinds[k], 100*share(f.caught[k], f.kinds[k]))
	}
	return b.String()
}

// passes reports whether the figures are those that a verifier has to reach.
func (f figures) passes() bool {
	return f.caughtShare() >= 0.95 && f.verbatimRejected() <= 0.005 && f.rejected() <= 0.10 && f.risk(0.9) <= 0.02
}

// TestSubstringFails holds the test to its purpose: whoever only looks for the words of a
// claim in the source does not pass it.
func TestSubstringFails(t *testing.T) {
	f := measure(t, substring{}, "dev", "test")
	t.Log(f)
	if f.passes() {
		t.Error("an exact-substring check passes")
	}
}

// TestStrict says what the surface rules make of the answers: they let nothing wrong
// through, and nothing in other words.
func TestStrict(t *testing.T) {
	f := measure(t, ground.Local{}, "dev", "test")
	t.Log(f)
	if f.caughtShare() < 0.99 || f.verbatimRejected() > 0.005 {
		t.Errorf("caught %.3f, verbatim rejected %.3f", f.caughtShare(), f.verbatimRejected())
	}
	for _, s := range f.failures {
		if !strings.HasPrefix(s, "paraphrase") {
			t.Log(s)
		}
	}
}
