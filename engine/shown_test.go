package engine

import (
	"context"
	"errors"
	"hash/fnv"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/strategy"
)

// anyVerifier is a verifier that is not a model.
type anyVerifier func(claim string, cited []ground.Passage) (ground.Judgement, error)

func (f anyVerifier) Verify(_ context.Context, claim string, cited []ground.Passage) (ground.Judgement, error) {
	return f(claim, cited)
}

// chance returns a number that depends only on the text and is otherwise arbitrary.
func chance(text string) int {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(text))
	return int(sum.Sum32() % 97)
}

// hostileVerifiers are verifiers that fail in different ways, each with the parts of a claim that
// it may let through.
var hostileVerifiers = map[string]struct {
	ground.Verifier
	lets func(claim string) bool
}{
	"fails":  {anyVerifier(func(string, []ground.Passage) (ground.Judgement, error) { return supported(1), errors.New("broken") }), nil},
	"panics": {anyVerifier(func(string, []ground.Passage) (ground.Judgement, error) { panic("no") }), nil},
	"gives no number": {anyVerifier(func(string, []ground.Passage) (ground.Judgement, error) {
		return supported(math.NaN()), nil
	}), nil},
	"contradicts all": {anyVerifier(func(string, []ground.Passage) (ground.Judgement, error) {
		return ground.Judgement{Verdict: assay.Contradicted, Score: 0.1, Reason: "no"}, nil
	}), nil},
	"invents a verdict": {anyVerifier(func(string, []ground.Passage) (ground.Judgement, error) {
		return ground.Judgement{Verdict: "SUPPORTED", Score: 1}, nil
	}), nil},
	"by chance, and points anywhere": {anyVerifier(func(claim string, cited []ground.Passage) (ground.Judgement, error) {
		n := chance(claim)
		if n%2 == 0 {
			return ground.Judgement{Verdict: assay.Unsupported, Score: 0.2, Reason: "no"}, nil
		}
		j := supported(0.9)
		j.Spans = []ground.Span{{Passage: n % 5, Start: n, End: 2 * n}, {Passage: -n, Start: -n, End: n}, {Start: n, End: math.MaxInt}}
		return j, nil
	}), func(claim string) bool { return chance(claim)%2 == 1 }},
}

func supported(score float64) ground.Judgement {
	return ground.Judgement{Verdict: assay.Supported, Score: score}
}

// TestEveryClaimShownIsSupported checks that with every strategy and every verifier, each claim
// that an answer shows is supported by exact quotes of the stored text, and that the answer shows
// no text besides its claims.
func TestEveryClaimShownIsSupported(t *testing.T) {
	t.Parallel()
	e, _, _ := openEvery(t)
	shown := 0
	for how, v := range hostileVerifiers {
		for _, way := range everyWay {
			for _, name := range strategy.Names() {
				everyModels(e, way)
				if e.config.Models.Roles != nil {
					delete(e.config.Models.Roles, role.VerifierRole)
				}
				e.config.Models.Verifier = v.Verifier
				a, err := e.Answer(t.Context(), assay.Local(), everyRequest(name))
				if err != nil {
					t.Fatalf("%s, %s, %s: %v", name, way, how, err)
				}
				if len(a.Claims) > 0 && v.lets == nil {
					t.Errorf("%s, %s, a verifier that %s: %q", name, way, how, a.Text)
				}
				shown += len(a.Claims)
				checkShown(t, e, name+", "+way+", "+how, a)
			}
		}
	}
	if shown == 0 {
		t.Error("no claim was shown at all")
	}
}

// furniture matches the parts of an answer that are not claims: citation numbers, the markup of
// lists, tables and headings, and the notice of its origin.
var furniture = regexp.MustCompile(`(?m)\[\d+\]|^Statements citing .*$|^##? .*$|^\| .*Sources \|$|[|*-]+|^- `)

// checkShown checks that an answer meets these conditions.
func checkShown(t *testing.T, e *Engine, what string, a assay.Answer) {
	t.Helper()
	rest, end := "", 0
	for i, c := range a.Claims {
		if c.Verdict != assay.Supported || c.Score < 0 || c.Score > 1 || len(c.Citations) == 0 {
			t.Errorf("%s: claim %+v is shown", what, c)
		}
		if c.Start < end || c.End <= c.Start || c.End > len(a.Text) {
			t.Fatalf("%s: claim %d is [%d, %d), after %d of %d", what, i, c.Start, c.End, end, len(a.Text))
		}
		rest, end = rest+"\n"+a.Text[end:c.Start], c.End
		if !slices.ContainsFunc(a.Citations, func(ci assay.Citation) bool { return ci.Claim == i && ci.Quote != "" }) {
			t.Errorf("%s: claim %q quotes nothing", what, a.Text[c.Start:c.End])
		}
	}
	for _, c := range a.Citations {
		if c.Origin != assay.FromDocuments {
			continue
		}
		d, err := e.content.Version(t.Context(), c.Document, c.Version)
		if err != nil || d.Text[c.Start:c.End] != c.Quote {
			t.Errorf("%s: citation %+v is not what is stored (%v)", what, c, err)
		}
	}
	if len(a.Claims) == 0 {
		return
	}
	rest = furniture.ReplaceAllString(rest+"\n"+a.Text[end:], " ")
	for _, word := range strings.FieldsFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !slices.Contains([]string{"and", "or", "but", "while", "whereas"}, word) { // they join the parts of a sentence
			t.Errorf("%s: %q is shown and is no claim: %q", what, word, a.Text)
		}
	}
}
