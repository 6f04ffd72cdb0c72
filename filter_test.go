package assay_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func comparison(op assay.FilterOp, key string, v assay.Value) assay.Filter {
	return assay.Filter{Op: op, Key: key, Value: v}
}

func all(filters ...assay.Filter) assay.Filter {
	return assay.Filter{Op: assay.OpAndAll, Filters: filters}
}

func anyOf(filters ...assay.Filter) assay.Filter {
	return assay.Filter{Op: assay.OpOrAll, Filters: filters}
}

func not(f assay.Filter) assay.Filter {
	return assay.Filter{Op: assay.OpNot, Filters: []assay.Filter{f}}
}

func instant(s string) assay.Value {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return assay.TimeValue(t)
}

var (
	legal   = comparison(assay.OpEquals, "team", assay.StringValue("legal"))
	recent  = comparison(assay.OpGreaterThanOrEquals, "year", assay.NumberValue(2022))
	drafts  = comparison(assay.OpIn, "tag", assay.ListValue("draft", "old"))
	example = all(legal, recent, not(drafts))
)

func TestParseFilter(t *testing.T) {
	tests := []struct {
		text string
		want assay.Filter
		back string // String of it; "": text
	}{
		{`team = "legal" and year >= 2022 and not tag in ("draft", "old")`, example, ""},
		{` TEAM=="legal" `, comparison(assay.OpEquals, "TEAM", assay.StringValue("legal")), `TEAM = "legal"`},
		{`a != 1`, comparison(assay.OpNotEquals, "a", assay.NumberValue(1)), ""},
		{`a<-1.5`, comparison(assay.OpLessThan, "a", assay.NumberValue(-1.5)), `a < -1.5`},
		{`a <= 1e21`, comparison(assay.OpLessThanOrEquals, "a", assay.NumberValue(1e21)), `a <= 1e+21`},
		{`a > 0`, comparison(assay.OpGreaterThan, "a", assay.NumberValue(0)), ""},
		{`a = true OR b = False`, anyOf(comparison(assay.OpEquals, "a", assay.BooleanValue(true)), comparison(assay.OpEquals, "b", assay.BooleanValue(false))), `a = true or b = false`},
		{`modified >= 2024-01-31`, comparison(assay.OpGreaterThanOrEquals, "modified", instant("2024-01-31T00:00:00Z")), ""},
		{`modified < 2024-01-31T10:00:00.5+02:00`, comparison(assay.OpLessThan, "modified", instant("2024-01-31T08:00:00.5Z")), `modified < 2024-01-31T08:00:00.5Z`},
		{`tags = ["a", "b\n\""]`, comparison(assay.OpEquals, "tags", assay.ListValue("a", "b\n\"")), ""},
		{`tags has "a" and title contains "b" and title startsWith "c"`, all(
			comparison(assay.OpListContains, "tags", assay.StringValue("a")),
			comparison(assay.OpStringContains, "title", assay.StringValue("b")),
			comparison(assay.OpStartsWith, "title", assay.StringValue("c"))), ""},
		{`tag not in ("a")`, comparison(assay.OpNotIn, "tag", assay.ListValue("a")), ""},
		{`tag in ()`, comparison(assay.OpIn, "tag", assay.ListValue()), ""},
		{`year in (2022, 2023)`, anyOf(comparison(assay.OpEquals, "year", assay.NumberValue(2022)), comparison(assay.OpEquals, "year", assay.NumberValue(2023))), `year = 2022 or year = 2023`},
		{`year not in (2022)`, not(comparison(assay.OpEquals, "year", assay.NumberValue(2022))), `not year = 2022`},
		{`a.b-c = 1 and "a b" = 2 and "in" = 3 and größe = 4`, all(
			comparison(assay.OpEquals, "a.b-c", assay.NumberValue(1)), comparison(assay.OpEquals, "a b", assay.NumberValue(2)),
			comparison(assay.OpEquals, "in", assay.NumberValue(3)), comparison(assay.OpEquals, "größe", assay.NumberValue(4))), ""},
		{`a = 1 or b = 2 and c = 3`, anyOf(comparison(assay.OpEquals, "a", assay.NumberValue(1)),
			all(comparison(assay.OpEquals, "b", assay.NumberValue(2)), comparison(assay.OpEquals, "c", assay.NumberValue(3)))), `a = 1 or (b = 2 and c = 3)`},
		{`(a = 1 or b = 2) and c = 3`, all(anyOf(comparison(assay.OpEquals, "a", assay.NumberValue(1)), comparison(assay.OpEquals, "b", assay.NumberValue(2))),
			comparison(assay.OpEquals, "c", assay.NumberValue(3))), ""},
		{`not (not a = 1)`, not(not(comparison(assay.OpEquals, "a", assay.NumberValue(1)))), `not not a = 1`},
		{"", assay.Filter{}, ""},
		{" \n", assay.Filter{}, " \n"},
	}
	for _, tt := range tests {
		got, err := assay.ParseFilter(tt.text)
		if err != nil {
			t.Errorf("ParseFilter(%q): %v", tt.text, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("ParseFilter(%q): -want +got\n%s", tt.text, diff)
		}
		want := tt.back
		if want == "" {
			want = tt.text
		}
		if back := got.String(); back != strings.TrimSpace(want) {
			t.Errorf("ParseFilter(%q).String() = %q, want %q", tt.text, back, want)
		}
	}
}

func TestParseFilterErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{`team`, `position 5: found the end, want an operator`},
		{`team =`, `position 7: found the end, want a value`},
		{`team = legal`, `position 8: found legal, want a value`},
		{`größe ~ 1`, `position 7: found ~, want a key, an operator or a value`},
		{`a = 1 b = 2`, `position 7: found b, want and, or, or the end`},
		{`a = 1 and`, `position 10: found the end, want a key, not or (`},
		{`(a = 1`, `position 7: found the end, want )`},
		{`a = 1)`, `position 6: found ), want and, or, or the end`},
		{`a = "x`, `position 5: string "x does not end`},
		{`a = 2024-13-01`, `position 5: 2024-13-01 is no number, date`},
		{`a = 12monkeys`, `12monkeys is no number`},
		{`a in "x"`, `position 6: found "x", want (`},
		{`a in ("x" "y")`, `position 11: found "y", want ,`},
		{`a not 1`, `position 7: found 1, want in`},
		{`and = 1`, `position 1: found and, want a key`},
		{`a = [1]`, `strings only`},
		{`a in (["x"])`, `no list inside another`},
		{`a > "x"`, `greaterThan on key "a" has a string, want a number or a time`},
		{`a has 1`, `listContains on key "a" has a number, want a string`},
		{`a = 1e999`, `is no number`},
		{strings.Repeat("(", 100) + `a = 1`, `at most 32 parentheses`},
		{strings.Repeat("not ", 100) + `a = 1`, `at most 32 parentheses`},
		{strings.Repeat("a = 1 and ", 2000) + `a = 1`, `over 1000 operators`},
		{strings.Repeat(" ", 2<<20), `at most 1048576 are read`},
	}
	for _, tt := range tests {
		_, err := assay.ParseFilter(tt.text)
		if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParseFilter(%.60q): error %v, want ErrInvalid with %q", tt.text, err, tt.want)
		}
	}
}

func TestFilterJSON(t *testing.T) {
	tests := []struct {
		text string
		want assay.Filter
		back string // its JSON; "": text
	}{
		{`{"equals":{"key":"team","value":"legal"}}`, legal, ""},
		{`{"andAll":[{"equals":{"key":"team","value":"legal"}},{"greaterThanOrEquals":{"key":"year","value":2022}},{"not":{"in":{"key":"tag","value":["draft","old"]}}}]}`, example, ""},
		{`{"orAll":[{"equals":{"key":"a","value":true}}]}`, anyOf(comparison(assay.OpEquals, "a", assay.BooleanValue(true))), ""},
		{`{"lessThan":{"key":"m","value":{"time":"2024-01-31T00:00:00Z"}}}`, comparison(assay.OpLessThan, "m", instant("2024-01-31T00:00:00Z")), ""},
		{`{"startsWith":{"key":"a","value":""}}`, comparison(assay.OpStartsWith, "a", assay.StringValue("")), ""},
		{`{"stringContains":{"key":"a","value":"x"}}`, comparison(assay.OpStringContains, "a", assay.StringValue("x")), ""},
		{`{"listContains":{"key":"a","value":"x"}}`, comparison(assay.OpListContains, "a", assay.StringValue("x")), ""},
		{`{"notIn":{"key":"a","value":[]}}`, comparison(assay.OpNotIn, "a", assay.ListValue()), ""},
		{`{"in":{"key":"year","value":[2022,2023]}}`, anyOf(comparison(assay.OpEquals, "year", assay.NumberValue(2022)), comparison(assay.OpEquals, "year", assay.NumberValue(2023))),
			`{"orAll":[{"equals":{"key":"year","value":2022}},{"equals":{"key":"year","value":2023}}]}`},
		{`{"notIn":{"key":"year","value":[2022]}}`, not(comparison(assay.OpEquals, "year", assay.NumberValue(2022))), `{"not":{"equals":{"key":"year","value":2022}}}`},
		{`{}`, assay.Filter{}, ""},
		{`null`, assay.Filter{}, `{}`},
	}
	for _, tt := range tests {
		var got assay.Filter
		if err := json.Unmarshal([]byte(tt.text), &got); err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", tt.text, diff)
		}
		want := tt.back
		if want == "" {
			want = tt.text
		}
		back, err := json.Marshal(got)
		if err != nil || string(back) != want {
			t.Errorf("%s is written as %s (%v), want %s", tt.text, back, err, want)
		}
	}
}

func TestFilterJSONErrors(t *testing.T) {
	deep := strings.Repeat(`{"not":`, 100) + `{}` + strings.Repeat(`}`, 100)
	tests := []struct{ text, want string }{
		{`{"near":{"key":"a","value":1}}`, `operator "near" does not exist`},
		{`{"equals":{"key":"a","value":1,"fuzzy":true}}`, `"fuzzy"`},
		{`{"equals":{"key":"a"}}`, `want "key" and "value"`},
		{`{"equals":{"key":"","value":1}}`, `no key`},
		{`{"equals":{"key":"a","value":null}}`, `key "a"`},
		{`{"equals":{"key":"a","value":1,"key":"b"}}`, `once each`},
		{`{"equals":{"Key":"a","value":1}}`, `"Key"`},
		{`{"equals":{"key":1,"value":1}}`, `key`},
		{`{"equals":{"key":"a","value":1},"equals":{"key":"b","value":1}}`, `["equals" "equals"]`},
		{`{"in":{"key":"a","value":null}}`, `want a list`},
		{`{"equals":{"key":"a","value":{"x":1}}}`, `key "a"`},
		{`{"equals":{"key":"a","value":1},"not":{}}`, `["equals" "not"]`},
		{`{"andAll":[]}`, `andAll has no filters`},
		{`{"andAll":{}}`, `want a list of filters`},
		{`{"andAll":[{}]}`, `want exactly one`},
		{`{"not":[]}`, `want an object`},
		{`{"in":{"key":"a","value":"x"}}`, `want a list`},
		{`{"greaterThan":{"key":"a","value":"x"}}`, `greaterThan on key "a" has a string, want a number or a time`},
		{`[]`, `filter`},
		{`"x"`, `filter`},
		{deep, `over 32 operators inside each other`},
	}
	for _, tt := range tests {
		var f assay.Filter
		err := json.Unmarshal([]byte(tt.text), &f)
		if !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.80s: error %v, want ErrInvalid with %q", tt.text, err, tt.want)
		}
	}
	// Invalid JSON reaches UnmarshalJSON from callers only, not from json.Unmarshal.
	whole := `{"andAll":[{"equals":{"key":"a","value":1}}]}`
	for _, text := range []string{whole + " and more", whole + "}", whole + whole, whole[:len(whole)-1], whole[:len(whole)-2], "{", "{,}", "n ull"} {
		var f assay.Filter
		if err := f.UnmarshalJSON([]byte(text)); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("UnmarshalJSON(%s) = %v, %v, want ErrInvalid", text, f, err)
		}
	}
	for _, f := range []assay.Filter{{Op: "near", Key: "a"}, {Op: assay.OpNot}, all(assay.Filter{}), {Key: "a"}} {
		if _, err := json.Marshal(f); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("Marshal(%#v): error %v, want ErrInvalid", f, err)
		}
	}
}

func TestFilterMatch(t *testing.T) {
	document := assay.Metadata{
		"team": assay.StringValue("legal"), "year": assay.NumberValue(2022), "draft": assay.BooleanValue(false),
		"tags": assay.ListValue("old", "public"), "modified": instant("2024-01-31T12:00:00Z"),
	}
	tests := []struct {
		text string
		want bool
	}{
		{``, true},
		{`team = "legal"`, true},
		{`team = "Legal"`, false},
		{`team != "legal"`, false},
		{`team != "Legal"`, true},
		{`year = 2022`, true},
		{`year = "2022"`, false},
		{`year != "2022"`, true},
		{`year > 2022`, false},
		{`year >= 2022 and year <= 2022`, true},
		{`year < 2022.5`, true},
		{`team > 1`, false},
		{`modified > 2024-01-31 and modified < 2024-02-01`, true},
		{`modified = 2024-01-31T13:00:00+01:00`, true},
		{`draft = false`, true},
		{`team in ("hr", "legal")`, true},
		{`team not in ("hr", "legal")`, false},
		{`tags in ("hr", "old")`, true},
		{`tags not in ("hr")`, true},
		{`tags has "old" and team has "legal"`, true},
		{`tags has "ol"`, false},
		{`tags contains "ubl" and team contains "ega"`, true},
		{`team startsWith "leg"`, true},
		{`tags startsWith "old"`, false},
		{`tags = ["old", "public"]`, true},
		{`tags = ["public", "old"]`, false},
		{`year in (2021, 2022)`, true},
		// A missing key.
		{`none = 1`, false},
		{`none < 1`, false},
		{`none in ("a")`, false},
		{`none startsWith ""`, false},
		{`none != 1 and none not in ("a") and not none = 1`, true},
		{`none = 1 or (team = "legal" and not year = 2021)`, true},
	}
	for _, tt := range tests {
		f, err := assay.ParseFilter(tt.text)
		if err != nil {
			t.Errorf("ParseFilter(%q): %v", tt.text, err)
			continue
		}
		if got := f.Match(document); got != tt.want {
			t.Errorf("%s matches: %v, want %v", tt.text, got, tt.want)
		}
	}
}

func TestAnd(t *testing.T) {
	tests := []struct {
		filters []assay.Filter
		want    assay.Filter
	}{
		{nil, assay.Filter{}},
		{[]assay.Filter{{}, {}}, assay.Filter{}},
		{[]assay.Filter{{}, legal}, legal},
		{[]assay.Filter{legal, {}, recent}, all(legal, recent)},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, assay.And(tt.filters...)); diff != "" {
			t.Errorf("And(%v): -want +got\n%s", tt.filters, diff)
		}
	}
}

func TestFilterCheck(t *testing.T) {
	kinds := func(key string) []assay.ValueKind {
		return map[string][]assay.ValueKind{
			"team": {assay.KindString}, "year": {assay.KindNumber}, "tags": {assay.KindList},
			"mixed": {assay.KindString, assay.KindNumber}, "modified": {assay.KindTime},
		}[key]
	}
	tests := []struct{ text, want string }{ // want: "" for no error
		{``, ""},
		{`team = "legal" and year >= 2022 and not tags in ("draft") and modified > 2024-01-31`, ""},
		{`mixed = "x" or mixed > 3 or mixed startsWith "x"`, ""},
		{`tags has "x" or tags contains "x" or team has "x" or team in ("x")`, ""},
		{`yaer = 2022`, `key "yaer", compared with a number, is a key of no document`},
		{`year = "2022"`, `key "year" is a number, but equals compares it with a string`},
		{`not (team = "x" and year in ("2022"))`, `key "year" is a number, but in compares it with a list`},
		{`mixed > 2024-01-31`, ""}, // a string may be a date
		{`year > 2024-01-31`, `key "year" is a number, but greaterThan compares it with a time`},
		{`modified > "2024-01-31" and modified = "2024-01-31"`, ""},
		{`modified = "spring"`, `key "modified" is a time, but equals compares it with a string`},
		{`tags startsWith "x"`, `key "tags" is a list, but startsWith compares it with a string`},
	}
	for _, tt := range tests {
		f, err := assay.ParseFilter(tt.text)
		if err != nil {
			t.Fatalf("ParseFilter(%q): %v", tt.text, err)
		}
		err = f.Check(kinds)
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("Check of %s: %v, want %q", tt.text, err, tt.want)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	for _, s := range []string{
		example.String(), `a = 1 or (b != "x\x00" and not "in" in ())`, `m >= 2024-01-31T08:00:00.5Z`, `t = ["a"] and b = true`,
		`y in (1, true, "x", 2024-01-31)`, `a = -0`, `größe.x-1 < 1e300`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := assay.ParseFilter(text)
		if err != nil {
			if !errors.Is(err, assay.ErrInvalid) {
				t.Fatalf("%q: %v is not ErrInvalid", text, err)
			}
			return
		}
		again, err := assay.ParseFilter(parsed.String())
		if err != nil {
			t.Fatalf("%q is written as %q, which cannot be read: %v", text, parsed, err)
		}
		if diff := cmp.Diff(parsed, again); diff != "" {
			t.Fatalf("%q is written as %q: -parsed +again\n%s", text, parsed, diff)
		}
	})
}

func FuzzFilterJSON(f *testing.F) {
	data, err := json.Marshal(example)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"notIn":{"key":"year","value":[2022,true,{"time":"2024-01-31T00:00:00Z"}]}}`))
	f.Add([]byte(`{"orAll":[{"listContains":{"key":"a","value":"x"}}]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var parsed assay.Filter
		if json.Unmarshal(data, &parsed) != nil {
			return
		}
		back, err := json.Marshal(parsed)
		if err != nil {
			t.Fatalf("%s cannot be written: %v", data, err)
		}
		var again assay.Filter
		if err := json.Unmarshal(back, &again); err != nil {
			t.Fatalf("%s is written as %s: %v", data, back, err)
		}
		if diff := cmp.Diff(parsed, again); diff != "" {
			t.Fatalf("%s is written as %s: -parsed +again\n%s", data, back, diff)
		}
		if parsed.Match(nil) != again.Match(nil) {
			t.Fatal("matches differ")
		}
	})
}

// TestFilterDates checks that strings that are dates compare as dates with times.
func TestFilterDates(t *testing.T) {
	text := func(s string) assay.Metadata { return assay.Metadata{"due": assay.StringValue(s)} }
	may, ok := assay.ParseDate("2024-05-01")
	if !ok {
		t.Fatal("2024-05-01 is no date")
	}
	tests := []struct {
		filter string
		in     assay.Metadata
		want   bool
	}{
		{`due > 2024-04-30`, text("2024-05-01"), true},
		{`due > 2024-05-01`, text("2024-05-01"), false},
		{`due >= "2024-05-01"`, text("2024-05-01"), true},
		{`due < 2024-05-02`, text("2024/05/01 "), false}, // a trailing blank
		{`due < 2024-05-02`, text("2024/05/01"), true},
		{`due < 2024-05-02`, text("2024-05-01 23:59"), true},
		{`due < 2024-05-02`, text("soon"), false},
		{`due = 2024-05-01`, text("2024-05-01"), true},
		{`due != 2024-05-01`, text("2024-05-01T00:00:00Z"), false},
		{`due = "2024-05-01"`, assay.Metadata{"due": assay.TimeValue(may)}, true},
		{`due > "2024-04-30"`, assay.Metadata{"due": assay.TimeValue(may)}, true},
		{`due = "2024/05/01"`, text("2024-05-01"), false}, // two strings
		{`due > 5`, text("2024-05-01"), false},
	}
	for _, tt := range tests {
		f, err := assay.ParseFilter(tt.filter)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Match(tt.in); got != tt.want {
			t.Errorf("%s of %v is %v, want %v", f, tt.in, got, tt.want)
		}
		data, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		var again assay.Filter
		if err := json.Unmarshal(data, &again); err != nil || again.Match(tt.in) != tt.want {
			t.Errorf("%s from JSON: %v, %v", data, again, err)
		}
	}
}
