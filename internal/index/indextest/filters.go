package indextest

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-rag/assay"
)

func day(s string) assay.Value {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return assay.TimeValue(t)
}

// filterMetadata holds the metadata of documents with every kind of value, mixed kinds under one
// key, and missing keys.
var filterMetadata = []assay.Metadata{
	nil,
	{"team": assay.StringValue("legal"), "year": assay.NumberValue(2022), "draft": assay.BooleanValue(true), "modified": day("2024-01-31"), "tags": assay.ListValue("old", "draft")},
	{"team": assay.StringValue("legal affairs"), "year": assay.NumberValue(2023.5), "draft": assay.BooleanValue(false), "modified": day("2024-02-01")},
	{"team": assay.StringValue("Legal"), "year": assay.StringValue("2022"), "tags": assay.ListValue()},
	{"team": assay.ListValue("legal", "hr"), "year": assay.NumberValue(-1), "tags": assay.StringValue("old")},
	{"year": assay.NumberValue(2022), "modified": day("1901-12-31")},
	{"team": assay.StringValue(""), "tags": assay.ListValue("new", "older")},
	{"team": assay.StringValue("légal 日本"), "year": assay.NumberValue(math.Copysign(0, -1)), "modified": assay.TimeValue(time.Date(2024, 1, 31, 0, 0, 0, 1, time.UTC))},
	{"team": assay.StringValue("legal\x00affairs"), "year": assay.NumberValue(math.MaxFloat64), "draft": assay.StringValue("true"), "modified": assay.TimeValue(time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC))},
	{"team": assay.BooleanValue(true), "year": assay.NumberValue(-math.SmallestNonzeroFloat64), "modified": assay.TimeValue(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)), "tags": assay.ListValue("", "old", "old")},
	{"modified": assay.StringValue("2024-01-31")},
	{"modified": assay.StringValue("2024/02/01"), "year": assay.StringValue("2021-12-31 23:59")},
	{"modified": assay.StringValue("spring"), "year": assay.StringValue("2022-01-01")},
	{"team": assay.StringValue(strings.Repeat("legal ", 20)), "year": day("2022-01-01"), "draft": assay.ListValue("true"), "tags": assay.ListValue("\xff", "zoë")},
}

// filters has every operator, alone and combined.
var filters = func() []assay.Filter {
	var list []assay.Filter
	add := func(op assay.FilterOp, key string, values ...assay.Value) {
		for _, v := range values {
			list = append(list, assay.Filter{Op: op, Key: key, Value: v})
		}
	}
	for _, op := range []assay.FilterOp{assay.OpEquals, assay.OpNotEquals} {
		add(op, "team", assay.StringValue("legal"), assay.StringValue("none"), assay.ListValue("legal", "hr"))
		add(op, "year", assay.NumberValue(2022), assay.StringValue("2022"))
		add(op, "draft", assay.BooleanValue(true), assay.StringValue("true"))
		add(op, "modified", day("2024-01-31"), assay.TimeValue(time.Date(2024, 1, 31, 1, 0, 0, 0, time.FixedZone("", 3600))))
		add(op, "year", assay.NumberValue(0), day("2022-01-01"), assay.StringValue("2022-01-01"))
		add(op, "modified", assay.StringValue("2024-01-31"), assay.StringValue("spring"))
		add(op, "tags", assay.ListValue(), assay.ListValue("old", "draft"), assay.ListValue("draft", "old"))
	}
	for _, op := range []assay.FilterOp{assay.OpGreaterThan, assay.OpGreaterThanOrEquals, assay.OpLessThan, assay.OpLessThanOrEquals} {
		add(op, "year", assay.NumberValue(2022), assay.NumberValue(0), assay.NumberValue(-1), assay.NumberValue(math.MaxFloat64))
		add(op, "modified", day("2024-01-31"), day("0000-01-01"), day("9999-12-31"), day("2023-06-01"))
		add(op, "year", day("2022-01-01"))
	}
	for _, op := range []assay.FilterOp{assay.OpIn, assay.OpNotIn} {
		add(op, "team", assay.ListValue("hr", "Legal", ""), assay.ListValue())
		add(op, "tags", assay.ListValue("old"))
	}
	add(assay.OpStartsWith, "team", assay.StringValue("legal"), assay.StringValue(""), assay.StringValue("legal\x00"), assay.StringValue("zz"), assay.StringValue("l\xff"))
	add(assay.OpStringContains, "team", assay.StringValue("gal"), assay.StringValue(""), assay.StringValue("\xc3"))
	add(assay.OpStringContains, "tags", assay.StringValue("old"), assay.StringValue(""))
	add(assay.OpListContains, "tags", assay.StringValue(""))
	add(assay.OpListContains, "tags", assay.StringValue("old"))
	add(assay.OpListContains, "team", assay.StringValue("hr"))
	for i, f := range slices.Clone(list) {
		other := list[(i*7+3)%len(list)]
		list = append(list,
			assay.Filter{Op: assay.OpNot, Filters: []assay.Filter{f}},
			assay.Filter{Op: assay.OpAndAll, Filters: []assay.Filter{f, other}},
			assay.Filter{Op: assay.OpOrAll, Filters: []assay.Filter{f, {Op: assay.OpNot, Filters: []assay.Filter{other}}}})
	}
	return append(list, assay.Filter{})
}()

func testFilter(t *testing.T, c contract) {
	s := NewSource("a")
	var entries []Entry
	for i, m := range filterMetadata {
		e := NewEntry("c", fmt.Sprint(i), "", "needle")
		e.Document.Metadata = m
		entries = append(entries, e)
	}
	s.Put(entries[:3]...)
	s.Put(entries[3:]...)
	ix := c.open(t, s, t.TempDir())
	for _, f := range filters {
		if f.Check(c.newModel(s).visibleTo(everyone).kinds) != nil {
			t.Fatalf("filter %s is not valid here", f)
		}
		result := search(t, ix, assay.Query{Text: "needle", Filter: f})
		var want []string
		for i, m := range filterMetadata {
			if f.Match(m) {
				want = append(want, fmt.Sprint(i))
			}
		}
		if diff := cmp.Diff(want, documents(s, result), cmpopts.SortSlices(strings.Compare), cmpopts.EquateEmpty()); diff != "" || result.Total != len(want) {
			t.Errorf("filter %s: Total %d, -want +got\n%s", f, result.Total, diff)
		}
	}
}

// testFilterRandom checks that random filters keep exactly the chunks that Filter.Match accepts,
// and that filters rejected by Filter.Check are rejected. Some of the documents are deleted, hidden
// or put again.
func testFilterRandom(t *testing.T, c contract) {
	for _, seed := range seeds(t, 3) {
		w := newWorld(seed, 60)
		s := NewSource("a")
		ix, m := c.open(t, s, t.TempDir()), c.newModel(s)
		refused := 0
		for range rounds(10) {
			s.Put(w.entries(15)...)
			s.Delete(w.id(), w.id())
			if w.IntN(3) == 0 {
				if err := ix.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for range 40 {
				q := assay.Query{Text: "alpha beta os", Limit: 1000, Filter: w.filter(4)}
				access := w.access()
				got, err := ix.Search(t.Context(), access, q)
				want := m.search(access, q)
				checkSearch(t, want, q, got, err)
				if want.invalid != nil {
					refused++
				}
				if t.Failed() {
					t.Fatalf("ASSAY_SEED=%d", seed)
				}
			}
		}
		if refused == 0 {
			t.Error("no filter was refused")
		}
	}
}

func testFilterErrors(t *testing.T, c contract) {
	s := NewSource("a")
	e := NewEntry("c", "d", "", "needle")
	e.Document.Metadata = assay.Metadata{"year": assay.NumberValue(2024), "team": assay.StringValue("legal")}
	other := NewEntry("c", "e", "", "needle")
	other.Document.Metadata = assay.Metadata{"pages": assay.NumberValue(3)}
	s.Put(e, other)
	ix := c.open(t, s, t.TempDir())
	check := func(f assay.Filter, names ...string) {
		t.Helper()
		_, err := ix.Search(t.Context(), everyone, assay.Query{Text: "needle", Filter: f, Limit: 1})
		if !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("filter %s: error %v, want ErrInvalid", f, err)
			return
		}
		for _, name := range names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("filter %s: error %q does not name %s", f, err, name)
			}
		}
	}
	equals := func(key string, v assay.Value) assay.Filter {
		return assay.Filter{Op: assay.OpEquals, Key: key, Value: v}
	}
	check(equals("yaer", assay.NumberValue(1)), "yaer", "number")
	check(equals("Year", assay.NumberValue(1)), "Year")
	check(equals("year", assay.StringValue("2024")), "year", "number", "string")
	check(assay.Filter{Op: assay.OpStartsWith, Key: "year", Value: assay.StringValue("2")}, "year", "number", "string")
	check(assay.And(equals("team", assay.StringValue("legal")), assay.Filter{Op: assay.OpNot, Filters: []assay.Filter{equals("nokey", assay.BooleanValue(true))}}), "nokey", "boolean")
	check(assay.Filter{Op: "near", Key: "year", Value: assay.NumberValue(1)}, "near")

	// A key disappears with the last document that has it.
	search(t, ix, assay.Query{Text: "needle", Filter: equals("pages", assay.NumberValue(3))})
	s.Delete(other.Document.ID)
	check(equals("pages", assay.NumberValue(3)), "pages")
}

// filter returns a random well-formed filter with at most depth nested operators.
func (w world) filter(depth int) assay.Filter {
	if depth > 1 && w.IntN(2) == 0 {
		f := assay.Filter{Op: []assay.FilterOp{assay.OpAndAll, assay.OpOrAll, assay.OpNot}[w.IntN(3)]}
		parts := 1
		if f.Op != assay.OpNot {
			parts += w.IntN(3)
		}
		for range parts {
			f.Filters = append(f.Filters, w.filter(depth-1))
		}
		return f
	}
	for {
		f := assay.Filter{Op: comparisons[w.IntN(len(comparisons))], Key: w.pick("team", "year", "draft", "modified", "tags", assay.MetaLanguage), Value: w.value()}
		if f.Check(nil) == nil {
			return f
		}
	}
}

var comparisons = []assay.FilterOp{
	assay.OpEquals, assay.OpNotEquals, assay.OpGreaterThan, assay.OpGreaterThanOrEquals, assay.OpLessThan, assay.OpLessThanOrEquals,
	assay.OpIn, assay.OpNotIn, assay.OpStartsWith, assay.OpStringContains, assay.OpListContains,
}

func (w world) pick(from ...string) string { return from[w.IntN(len(from))] }

// value returns a value that the documents' metadata has, a part of one, or another value.
func (w world) value() assay.Value {
	m := filterMetadata[w.IntN(len(filterMetadata))]
	keys := slices.Sorted(maps.Keys(m))
	if len(keys) == 0 {
		return assay.StringValue(w.pick("", "e", "de", "al", "none"))
	}
	v := m[keys[w.IntN(len(keys))]]
	switch {
	case v.Kind == assay.KindString && w.IntN(3) == 0 && v.String != "":
		return assay.StringValue(v.String[:w.IntN(len(v.String))])
	case v.Kind == assay.KindString && w.IntN(3) == 0:
		return assay.ListValue(v.String, "none")
	case v.Kind == assay.KindNumber && w.IntN(3) == 0:
		return assay.NumberValue(v.Number + w.NormFloat64())
	case v.Kind == assay.KindTime && w.IntN(3) == 0:
		return assay.TimeValue(v.Time.Add(time.Duration(w.IntN(3)-1) * time.Nanosecond))
	case v.Kind == assay.KindList && w.IntN(3) == 0 && len(v.List) > 0:
		return assay.StringValue(v.List[w.IntN(len(v.List))])
	}
	return v
}
