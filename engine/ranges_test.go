package engine

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/identity"
	"github.com/assay-rag/assay/strategy"
)

// unchecked are the fields of a request that have no bad values.
var unchecked = map[string]bool{"Local": true, "Web": true, "NoCache": true, "Measuring": true, "Limits.Unranked": true}

// badValues returns values that a field must not accept, by its kind.
func badValues(v reflect.Value) []reflect.Value {
	var bad []any
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		bad = []any{-1, math.MinInt64, math.MaxInt64}
	case reflect.Float64:
		bad = []any{-0.001, 1e9, math.NaN(), math.Inf(1), math.Inf(-1)}
	case reflect.String:
		bad = []any{strings.Repeat("x", 1<<20), "a\xffb"}
	case reflect.Slice:
		switch v.Interface().(type) {
		case []string:
			bad = []any{make([]string, 1<<17), []string{strings.Repeat("x", 1<<20)}, []string{"a\xff"}, []string{"a\nb"}}
		case []assay.Turn:
			bad = []any{make([]assay.Turn, 1<<17), []assay.Turn{{Question: strings.Repeat("x", 1<<20)}}, []assay.Turn{{Question: "q\xff"}}}
		}
	case reflect.Struct:
		if _, ok := v.Interface().(assay.Filter); ok {
			deep := assay.Filter{Op: assay.OpEquals, Key: "k", Value: assay.StringValue("v")}
			for range 100 {
				deep = assay.Filter{Op: assay.OpNot, Filters: []assay.Filter{deep}}
			}
			wide := assay.Filter{Op: assay.OpOrAll}
			for range 10_000 {
				wide.Filters = append(wide.Filters, assay.Filter{Op: assay.OpEquals, Key: "k", Value: assay.StringValue("v")})
			}
			bad = []any{deep, wide, assay.Filter{Op: "none"}, assay.Filter{Op: assay.OpEquals, Key: "k", Value: assay.NumberValue(math.NaN())}}
		}
	}
	values := make([]reflect.Value, len(bad))
	for i, b := range bad {
		values[i] = reflect.ValueOf(b).Convert(v.Type())
	}
	return values
}

// TestEveryFieldOfARequestIsChecked sets each field of a request to bad values, one at a time. A new
// field without a check fails, and so does one of a kind that the test does not know.
func TestEveryFieldOfARequestIsChecked(t *testing.T) {
	t.Parallel()
	e := openDir(t, t.TempDir())
	fields := 0
	var walk func(path string, at func(*Request) reflect.Value)
	walk = func(path string, at func(*Request) reflect.Value) {
		var probe Request
		v := at(&probe)
		bad := badValues(v)
		if v.Kind() == reflect.Struct && len(bad) == 0 {
			for i := range v.NumField() {
				walk(strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), func(r *Request) reflect.Value { return at(r).Field(i) })
			}
			return
		}
		if unchecked[path] {
			return
		}
		if fields++; len(bad) == 0 {
			t.Errorf("%s: no bad values of the type %s are known", path, v.Type())
		}
		for _, b := range bad {
			req := Request{Question: "Why?"}
			at(&req).Set(b)
			_, err := e.Answer(t.Context(), assay.Local(), req)
			if !errors.Is(err, assay.ErrInvalid) {
				t.Errorf("%s = %.40v: %v, want ErrInvalid", path, b, err)
			} else if len(err.Error()) > 500 {
				t.Errorf("%s: a message of %d bytes", path, len(err.Error()))
			}
		}
	}
	walk("", func(r *Request) reflect.Value { return reflect.ValueOf(r).Elem() })
	if fields < 40 {
		t.Errorf("%d fields were checked", fields)
	}
	if runs, err := e.Runs(t.Context(), assay.Local(), 0); err != nil || len(runs) > 0 {
		t.Errorf("%d runs were stored, %v", len(runs), err)
	}
}

// TestRangesHaveLimits checks that the highest value of each range is accepted.
func TestRangesHaveLimits(t *testing.T) {
	t.Parallel()
	ranges := append(append(strategy.Limits{}.Ranges(), strategy.Settings{}.Ranges()...), BudgetRanges(assay.Budget{})...)
	for _, r := range ranges {
		if r.Value = r.Most; r.Check() != nil || r.Most <= 0 {
			t.Errorf("%+v: %v", r, r.Check())
		}
	}
	if _, err := Open(t.Context(), Config{Dir: t.TempDir(), Settings: strategy.Settings{Fusion: strategy.FusionSettings{Queries: -1}}}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("Open with bad settings: %v", err)
	}
	if _, err := Open(t.Context(), Config{Dir: t.TempDir(), Limits: strategy.Limits{Floor: math.NaN()}}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("Open with bad limits: %v", err)
	}
}

// TestEveryFieldOfAQueryIsChecked sets each field of a query to bad values, one at a time, and searches
// as a door does.
func TestEveryFieldOfAQueryIsChecked(t *testing.T) {
	t.Parallel()
	h := openHost(t, HostConfig{Config: Config{Dir: t.TempDir(), NoBackground: true}}, "acme")
	s := mustSession(t, h, roleGrant("acme", staff, identity.Reader))
	fields := 0
	var walk func(path string, at func(*assay.Query) reflect.Value)
	walk = func(path string, at func(*assay.Query) reflect.Value) {
		var probe assay.Query
		v := at(&probe)
		bad := badValues(v)
		if v.Kind() == reflect.Struct && len(bad) == 0 {
			for i := range v.NumField() {
				walk(strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), func(q *assay.Query) reflect.Value { return at(q).Field(i) })
			}
			return
		}
		if v.Kind() == reflect.Bool {
			return
		}
		if fields++; len(bad) == 0 {
			t.Errorf("%s: no bad values of the type %s are known", path, v.Type())
		}
		if path == "Rewrites" {
			bad = slices.DeleteFunc(bad, func(v reflect.Value) bool { return v.Len() == 1 && v.Index(0).String() == "a\nb" }) // text may have lines
		}
		for _, b := range bad {
			q := assay.Query{Text: "travel", Limit: 10}
			at(&q).Set(b)
			_, searched := s.Search(t.Context(), q)
			_, explained := s.Explain(t.Context(), q)
			for _, err := range []error{searched, explained} {
				if !errors.Is(err, assay.ErrInvalid) {
					t.Errorf("%s = %.40v: %v, want ErrInvalid", path, b, err)
				} else if len(err.Error()) > 500 {
					t.Errorf("%s: a message of %d bytes", path, len(err.Error()))
				}
			}
		}
	}
	walk("", func(q *assay.Query) reflect.Value { return reflect.ValueOf(q).Elem() })
	if fields < 13 {
		t.Errorf("%d fields were checked", fields)
	}
	for _, limit := range []int{0, MaxHits + 1} {
		if _, err := s.Search(t.Context(), assay.Query{Text: "travel", Limit: limit}); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	if _, err := s.Search(t.Context(), assay.Query{Text: "travel", Limit: MaxHits}); err != nil {
		t.Errorf("the highest limit: %v", err)
	}
}

// FuzzRequest decodes requests from JSON, as doors do, and checks them. A request that is accepted is
// in range, and its JSON is accepted again.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"question":"Why?"}`, `{"question":"Why?","budget":{"calls":-1}}`, `{"question":"Why?","limits":{"floor":1e308}}`,
		`{"question":"Why?","filter":{"equals":{"key":"a","value":1}},"collections":["a","b"]}`,
		`{"question":"Why?","history":[{"question":"a","answer":"b"}],"settings":{"crag":{"correct":0.5}},"mode":"quick"}`,
		`{"question":"\u0000 \ud800","strategy":"static"}`, `{"question":"Why?","budget":{"wall_ns":9223372036854775807}}`,
	} {
		f.Add([]byte(seed))
	}
	e, err := Open(f.Context(), Config{Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { e.Close() })
	f.Fuzz(func(t *testing.T, data []byte) {
		var req Request
		if json.Unmarshal(data, &req) != nil {
			return
		}
		got, err := e.check(t.Context(), assay.Local(), req)
		if err != nil {
			if !errors.Is(err, assay.ErrInvalid) {
				t.Fatalf("%v, want ErrInvalid", err)
			}
			return
		}
		if err := got.checkRanges(); err != nil {
			t.Fatalf("the accepted request is out of range: %v", err)
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var back Request
		if err := json.Unmarshal(again, &back); err != nil {
			t.Fatal(err)
		}
		if _, err := e.check(t.Context(), assay.Local(), back); err != nil {
			t.Fatalf("the accepted request, read back, is refused: %v", err)
		}
	})
}
