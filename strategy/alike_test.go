package strategy

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// TestAlike goes through pairs of questions that are one, of which some may be missed,
// and pairs that are two, of which none may be taken for one.
func TestAlike(t *testing.T) {
	f, err := os.Open("testdata/alike.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	equal, known := 0, 0
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var p struct {
			One   string `json:"one"`
			Other string `json:"other"`
			Equal bool   `json:"equal"`
		}
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		likeness := Alike(p.One, p.Other)
		if back := Alike(p.Other, p.One); back != likeness {
			t.Errorf("%q and %q: %d, the other way round %d", p.One, p.Other, likeness, back)
		}
		for _, q := range []string{p.One, p.Other} {
			if got := Alike(q, "  "+q+" ? "); got != Same {
				t.Errorf("%q is not itself (%d)", q, got)
			}
		}
		switch {
		case p.Equal:
			equal++
			if likeness != Different {
				known++
			}
		case likeness != Different:
			t.Errorf("%q is taken for %q", p.One, p.Other)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d of %d pairs that are one are taken for one", known, equal); known < 28 {
		t.Errorf("%d of %d pairs that are one are taken for one, want 28", known, equal)
	}
}

func FuzzAlike(f *testing.F) {
	f.Add("Who approves travel?", "Please tell me who approves the travel")
	f.Add("the head of the department of law of", "of of a of")
	f.Fuzz(func(t *testing.T, one, other string) {
		if Alike(one, other) != Alike(other, one) {
			t.Errorf("%q and %q are not alike both ways", one, other)
		}
		if Alike(one, one) != Same {
			t.Errorf("%q is not itself", one)
		}
	})
}
