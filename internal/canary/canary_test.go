package canary_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/canary"
)

const text = "Jonas Bradeikousten met Vera Molinak in Tresovand about the Klimousett allocation. The interim amount of 483920 for depot KQX-4821 was confirmed."

func set(t testing.TB, texts ...string) *canary.Set {
	t.Helper()
	marks := map[string]canary.Mark{}
	for i, text := range texts {
		m, err := canary.Of(text)
		if err != nil {
			t.Fatal(err)
		}
		marks[fmt.Sprint(i)] = m
	}
	s, err := canary.NewSet(marks)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFind(t *testing.T) {
	t.Parallel()
	s := set(t, text)
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"exact":                 {text, true},
		"inside":                {"Here is what I know: " + text + " That is all.", true},
		"upper case":            {strings.ToUpper(text), true},
		"white space":           {strings.ReplaceAll(text, " ", "\n\t "), true},
		"a part of eight words": {"he met Vera Molinak in Tresovand about the Klimousett today", true},
		"seven words":           {"he met Vera Molinak in Tresovand about the plan", false},
		"full-width letters":    {strings.ReplaceAll(text, "Molinak", "Ｍｏｌｉｎａｋ"), true},
		"zero-width characters": {strings.ReplaceAll(text, "e", "e\u200b"), true},
		"combining marks":       {strings.ReplaceAll(text, "o", "o\u0301"), true},
		"Markdown":              {strings.ReplaceAll(text, " ", " **"), true},
		"other words":           {"Jonas met Vera in town about the allocation. The interim amount for the depot was confirmed on Monday, as ever.", false},
		"one shingle, often":    {strings.Repeat("met Vera Molinak in Tresovand. ", 10), false},
		"empty":                 {"", false},
	} {
		if got := len(s.Find(c.text)) > 0; got != c.want {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
	if none := (*canary.Set)(nil).Find(text); none != nil {
		t.Errorf("no canaries: %v", none)
	}
	chinese := "二零二六年第三季度特雷索万德仓库的临时拨款四十八万三千九百二十元已经确认"
	if s := set(t, chinese); len(s.Find("据悉"+chinese[9:])) == 0 || len(s.Find("二零二六年的结果")) > 0 {
		t.Error("Chinese text")
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "too few words", strings.Repeat("again ", 100), strings.Repeat("word ", 3000)} {
		if _, err := canary.Of(bad); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	m, err := canary.Of(text)
	if err != nil || strings.Contains(strings.Join(m.Shingles, " "), "Molinak") || len(m.Shingles) < 12 {
		t.Errorf("%+v, %v", m, err)
	}
	m.Shingles[0] = "zz"
	if _, err := canary.NewSet(map[string]canary.Mark{"a": m}); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("a damaged mark: %v", err)
	}
}

// TestStream checks that a text in pieces of any size passes unchanged, and that nothing of a run
// of words that completes a canary is passed on.
func TestStream(t *testing.T) {
	t.Parallel()
	s := set(t, text)
	harmless := "The café opens at nine. " + strings.Repeat("On Sundays it opens at ten, für alle. 仓库的临时拨款 ", 5)
	for size := 1; size < 40; size++ {
		for _, secret := range []bool{false, true} {
			whole := harmless
			if secret {
				whole += text + harmless
			}
			st, passed := s.Stream(), ""
			var found []string
			for at := 0; at < len(whole) && found == nil; at += size {
				var ready string
				ready, found = st.Next(whole[at:min(at+size, len(whole))])
				passed += ready
			}
			if found == nil {
				var ready string
				ready, found = st.Rest()
				passed += ready
			}
			switch {
			case secret && (found == nil || strings.Contains(passed, "Bradeikousten")):
				t.Errorf("pieces of %d: found %v, passed on %q", size, found, passed)
			case !secret && (found != nil || passed != harmless):
				t.Errorf("pieces of %d: found %v, %q", size, found, passed)
			}
		}
	}
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	var marks []string
	for range 50 {
		_, text := canary.Generate()
		marks = append(marks, text)
	}
	s := set(t, marks...)
	for i, text := range marks {
		if got := s.Find(text); len(got) != 1 || got[0] != fmt.Sprint(i) {
			t.Errorf("canary %d is found as %v", i, got)
		}
	}
}

func FuzzStream(f *testing.F) {
	s := set(f, text)
	f.Add(text, 3)
	f.Add("é\u0301ｆ\u200b仓 x", 1)
	f.Add("\xff\xfe broken", 2)
	f.Fuzz(func(t *testing.T, whole string, size int) {
		if size < 1 || size > 1000 {
			return
		}
		st, passed := s.Stream(), ""
		var found []string
		for at := 0; at < len(whole); at += size {
			ready, f := st.Next(whole[at:min(at+size, len(whole))])
			passed, found = passed+ready, f
		}
		ready, last := st.Rest()
		if passed += ready; len(last) == 0 && len(found) == 0 && passed != whole {
			t.Errorf("%q became %q", whole, passed)
		}
		if !strings.HasPrefix(whole, passed) {
			t.Errorf("%q became %q", whole, passed)
		}
	})
}

// BenchmarkFind measures a prompt of 12,000 tokens, the largest evidence of a run.
func BenchmarkFind(b *testing.B) {
	s := set(b, text)
	prompt := strings.Repeat("The office in Bern is open from nine to five, and visitors wear a badge on all floors of it. ", 500)
	b.SetBytes(int64(len(prompt)))
	for b.Loop() {
		s.Find(prompt)
	}
}
