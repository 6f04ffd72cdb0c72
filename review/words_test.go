package review

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		want          []Change
	}{
		"nothing":       {"", "", []Change{}},
		"the same":      {"Five days.", "Five days.", []Change{{"same", "Five days."}}},
		"one word":      {"Up to five days.", "Up to ten days.", []Change{{"same", "Up to "}, {"removed", "five"}, {"added", "ten"}, {"same", " days."}}},
		"a phrase":      {"The head decides.", "A director decides.", []Change{{"removed", "The head"}, {"added", "A director"}, {"same", " decides."}}},
		"an addition":   {"Ask.", "Ask early. [1]", []Change{{"same", "Ask"}, {"added", " early"}, {"same", "."}, {"added", " [1]"}}},
		"a sentence":    {"Travel is approved by the head.", "Ask the head of the office first.", []Change{{"removed", "Travel is approved by the head"}, {"added", "Ask the head of the office first"}, {"same", "."}}},
		"umlauts":       {"Für Züge", "Für Flüge", []Change{{"same", "Für "}, {"removed", "Züge"}, {"added", "Flüge"}}},
		"combined":      {"cafe\u0301 ok", "cafe ok", []Change{{"removed", "cafe\u0301"}, {"added", "cafe"}, {"same", " ok"}}},
		"arabic":        {"خمسة أيام", "عشرة أيام", []Change{{"removed", "خمسة"}, {"added", "عشرة"}, {"same", " أيام"}}},
		"all removed":   {"Five", "", []Change{{"removed", "Five"}}},
		"invalid bytes": {"a\xffb", "a\xfeb", []Change{{"same", "a"}, {"removed", "\xff"}, {"added", "\xfe"}, {"same", "b"}}},
	} {
		if diff := cmp.Diff(c.want, Words(c.before, c.after)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestWordsLong checks texts that differ by more words than are compared one by one.
func TestWordsLong(t *testing.T) {
	t.Parallel()
	before, after := "Start. "+strings.Repeat("a b ", 3000)+"End.", "Start. "+strings.Repeat("c d e ", 3000)+"End."
	got := Words(before, after)
	checkWords(t, before, after, got)
	if got[0] != (Change{"same", "Start. "}) || got[len(got)-1].Text != " End." || len(got) != 4 {
		t.Errorf("%d changes", len(got))
	}
}

// checkWords checks that both texts follow from a comparison.
func checkWords(t *testing.T, before, after string, changes []Change) {
	t.Helper()
	var was, is strings.Builder
	for i, c := range changes {
		if c.Text == "" || i > 0 && changes[i-1].Op == c.Op {
			t.Fatalf("change %d is %+v after %+v", i, c, changes[max(i-1, 0)])
		}
		if c.Op != "added" {
			was.WriteString(c.Text)
		}
		if c.Op != "removed" {
			is.WriteString(c.Text)
		}
	}
	if was.String() != before || is.String() != after {
		t.Fatalf("Words(%q, %q) = %q", before, after, changes)
	}
}

func FuzzWords(f *testing.F) {
	for _, pair := range [][2]string{
		{"Up to five days.", "Up to ten days."}, {"", "x"}, {"Grüße aus 東京 🏔️", "Grüße  aus 京都 🏔"},
		{"\xff\xfe a", "a \xff"}, {"a b a b a", "b a b a b"}, {"👩‍👩‍👧 family", "👩‍👧 family"},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		checkWords(t, before, after, Words(before, after))
	})
}
