package ground

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"
)

// A pairText is a text with statements that it supports, in other words, and ones that it
// does not, each with one thing changed: see testdata/README.md.
type pairText struct {
	ID    string   `json:"id"`
	Text  string   `json:"text"`
	Right []string `json:"right"`
	Wrong []struct {
		Kind  string `json:"kind"`
		Claim string `json:"claim"`
	} `json:"wrong"`
}

// TestVetoPairs says how many statements of twenty texts, written by hand beside the rules,
// are refused by vetoes alone, without vectors: what has one thing changed, and what has
// nothing but other words.
func TestVetoPairs(t *testing.T) {
	var right, wrong, rightRefused, wrongRefused int
	kinds, seen := map[string]int{}, map[string]int{}
	for _, p := range pairTexts(t) {
		refuses := func(claim string) string {
			cited := []Passage{{Quote: p.Text, Context: p.Text}}
			s, err := compare(t.Context(), nil, nil, claim, cited)
			if err != nil {
				t.Fatal(err)
			}
			return s.veto()
		}
		for _, claim := range p.Right {
			right++
			if reason := refuses(claim); reason != "" {
				rightRefused++
				t.Logf("%s refused: %s (%s)", p.ID, claim, reason)
			}
		}
		for _, w := range p.Wrong {
			wrong++
			kinds[w.Kind]++
			if refuses(w.Claim) != "" {
				wrongRefused++
				seen[w.Kind]++
			}
		}
	}
	t.Logf("right: %d of %d refused; wrong: %d of %d", rightRefused, right, wrongRefused, wrong)
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("  %-10s %d of %d", k, seen[k], kinds[k])
	}
	const mostRight, leastWrong = 0.05, 0.70
	if share := ratio(rightRefused, right); share > mostRight {
		t.Errorf("%.3f of what is right is refused, want at most %.2f", share, mostRight)
	}
	if share := ratio(wrongRefused, wrong); share < leastWrong {
		t.Errorf("%.3f of what is wrong is refused, want at least %.2f", share, leastWrong)
	}
}

func pairTexts(t *testing.T) []pairText {
	t.Helper()
	f, err := os.Open("testdata/pairs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []pairText
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var p pairText
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
