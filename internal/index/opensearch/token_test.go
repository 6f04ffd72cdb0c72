package opensearch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
)

// matches evaluates a query of filterQuery for a document with these tokens, as OpenSearch does.
func matches(t *testing.T, q object, tokens []string) bool {
	t.Helper()
	for kind, v := range q {
		switch kind {
		case "bool":
			return matchesBool(t, v.(object), tokens)
		case "terms":
			return slices.ContainsFunc(v.(object)["meta"].([]string), func(s string) bool { return slices.Contains(tokens, s) })
		case "prefix":
			return slices.ContainsFunc(tokens, func(s string) bool { return strings.HasPrefix(s, v.(object)["meta"].(string)) })
		case "wildcard":
			pattern := v.(object)["meta"].(object)["value"].(string)
			return slices.ContainsFunc(tokens, func(s string) bool { return glob([]rune(pattern), []rune(s)) })
		case "range":
			bounds := v.(object)["meta"].(object)
			return slices.ContainsFunc(tokens, func(s string) bool { return within(bounds, s) })
		}
	}
	t.Fatalf("query %v is not known", q)
	return false
}

func matchesBool(t *testing.T, b object, tokens []string) bool {
	t.Helper()
	match := func(q object) bool { return matches(t, q, tokens) }
	if list, ok := b["must_not"].([]object); ok && slices.ContainsFunc(list, match) {
		return false
	}
	if list, ok := b["filter"].([]object); ok && slices.ContainsFunc(list, func(q object) bool { return !match(q) }) {
		return false
	}
	list, ok := b["should"].([]object)
	return !ok || slices.ContainsFunc(list, match)
}

func within(bounds object, s string) bool {
	for op, bound := range bounds {
		n := strings.Compare(s, bound.(string))
		if !map[string]bool{"gt": n > 0, "gte": n >= 0, "lt": n < 0, "lte": n <= 0}[op] {
			return false
		}
	}
	return true
}

// glob matches a pattern in which "*" is any string and a backslash quotes.
func glob(pattern, s []rune) bool {
	switch {
	case len(pattern) == 0:
		return len(s) == 0
	case pattern[0] == '*':
		for i := range len(s) + 1 {
			if glob(pattern[1:], s[i:]) {
				return true
			}
		}
		return false
	case pattern[0] == '\\' && len(pattern) > 1:
		pattern = pattern[1:]
	}
	return len(s) > 0 && s[0] == pattern[0] && glob(pattern[1:], s[1:])
}

var metaValues = func() []assay.Value {
	long := strings.Repeat("0123456789", 2_500)
	list := []assay.Value{
		assay.BooleanValue(true), assay.BooleanValue(false),
		assay.ListValue(), assay.ListValue("a"), assay.ListValue("a", "b"), assay.ListValue("b", "a"), assay.ListValue("a*", ""), assay.ListValue(long + "end"),
	}
	for _, s := range []string{"", "a", "ab", "b", "a*", "a?", `a\`, "*", "é", "\xc3", "\xff\x00", "日本", "2024-01-31", "2024/01/31", "2024-02-01 10:00", long, long + "end", long[:maxToken], long[:maxToken+1], "9" + long[:100]} {
		list = append(list, assay.StringValue(s))
	}
	for _, n := range []float64{0, math.Copysign(0, -1), 1, -1, 1.5, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64} {
		list = append(list, assay.NumberValue(n))
	}
	for _, s := range []string{"0000-01-01T00:00:00Z", "1901-12-31T00:00:00Z", "2024-01-31T00:00:00Z", "2024-01-31T00:00:00.000000001Z", "9999-12-31T23:59:59.999999999Z"} {
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			panic(err)
		}
		list = append(list, assay.TimeValue(at))
	}
	return list
}()

var operators = []assay.FilterOp{
	assay.OpEquals, assay.OpNotEquals, assay.OpGreaterThan, assay.OpGreaterThanOrEquals, assay.OpLessThan, assay.OpLessThanOrEquals,
	assay.OpIn, assay.OpNotIn, assay.OpStartsWith, assay.OpStringContains, assay.OpListContains,
}

// TestFilterQuery checks that the query of every comparison holds for the tokens of a value if and
// only if the comparison holds for the value.
func TestFilterQuery(t *testing.T) {
	check := func(f assay.Filter, m assay.Metadata) {
		t.Helper()
		q, err := filterQuery(f)
		if err != nil {
			return // a string that is too long
		}
		_, tokens := metaTokens(m)
		if got, want := matches(t, q, tokens), f.Match(m); got != want {
			t.Errorf("filter %.200s of %.200s: %v, want %v", fmt.Sprint(f), fmt.Sprint(m), got, want)
		}
	}
	var comparisons []assay.Filter
	for _, op := range operators {
		for _, v := range metaValues {
			if f := (assay.Filter{Op: op, Key: "k", Value: v}); f.Check(nil) == nil {
				comparisons = append(comparisons, f)
				check(f, nil)
				for _, has := range metaValues {
					check(f, assay.Metadata{"k": has})
					check(f, assay.Metadata{"other": has})
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		pick := func() assay.Filter { return comparisons[r.IntN(len(comparisons))] }
		f := assay.Filter{Op: []assay.FilterOp{assay.OpAndAll, assay.OpOrAll}[r.IntN(2)], Filters: []assay.Filter{
			pick(), {Op: assay.OpNot, Filters: []assay.Filter{{Op: assay.OpOrAll, Filters: []assay.Filter{pick(), pick()}}}},
		}}
		check(f, assay.Metadata{"k": metaValues[r.IntN(len(metaValues))]})
	}
}

// TestLongStrings checks that every short substring of a long string is found.
func TestLongStrings(t *testing.T) {
	s := make([]byte, 5*maxToken/2+17)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range s {
		s[i] = byte('a' + r.IntN(26))
	}
	_, tokens := metaTokens(assay.Metadata{"k": assay.StringValue(string(s))})
	for range 300 {
		size := 1 + r.IntN(maxToken/2)
		at := r.IntN(len(s) - size + 1)
		part := string(s[at : at+size])
		if _, err := metaKeyOf("k").contains(part); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(tokens, func(token string) bool { return strings.Contains(token, part) }) {
			t.Fatalf("the substring [%d, %d) is in no token", at, at+size)
		}
	}
}

func FuzzLatin(f *testing.F) {
	f.Add("", "a")
	f.Add("\xff", "日本")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := latin(a), latin(b)
		if unlatin(x) != a {
			t.Errorf("%q becomes %q", a, unlatin(x))
		}
		if strings.Contains(x, y) != strings.Contains(a, b) || strings.HasPrefix(x, y) != strings.HasPrefix(a, b) || strings.Compare(x, y) != strings.Compare(a, b) {
			t.Errorf("%q and %q relate differently as %q and %q", a, b, x, y)
		}
		if (keyword(a) == keyword(b)) != (a == b) {
			t.Errorf("the tokens of %q and %q are %q and %q", a, b, keyword(a), keyword(b))
		}
	})
}

func FuzzOrderedNumber(f *testing.F) {
	f.Add(0.0, math.Copysign(0, -1))
	f.Add(-1.5, 2.0)
	f.Fuzz(func(t *testing.T, a, b float64) {
		if math.IsNaN(a) || math.IsNaN(b) {
			return
		}
		want := 0
		if a < b {
			want = -1
		} else if a > b {
			want = 1
		}
		if got := strings.Compare(orderedNumber(a), orderedNumber(b)); got != want {
			t.Errorf("%v and %v are ordered %d, want %d", a, b, got, want)
		}
	})
}
