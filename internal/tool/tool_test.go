package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/assay-rag/assay"
)

// TestTools checks the tool definitions: names that providers accept, descriptions, and schemas
// that a standard JSON Schema reader accepts.
func TestTools(t *testing.T) {
	if len(Tools()) != 6 || len(Names()) != 6 {
		t.Fatalf("%d tools, %d names; want six", len(Tools()), len(Names()))
	}
	for i, d := range Tools() {
		if d.Name != Names()[i] || !regexp.MustCompile(`^[a-z_]{1,64}$`).MatchString(d.Name) || len(d.Description) < 60 {
			t.Errorf("tool %d: name %q, description %q", i, d.Name, d.Description)
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(d.Parameters, &s); err != nil {
			t.Fatalf("%s: %v", d.Name, err)
		}
		if s.Type != "object" || len(s.Required) == 0 || !strings.Contains(string(d.Parameters), `"additionalProperties":false`) {
			t.Errorf("%s: schema %s", d.Name, d.Parameters)
		}
		for name, p := range s.Properties {
			if p.Description == "" {
				t.Errorf("%s: nobody says what %s is", d.Name, name)
			}
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ tool, arguments, want string }{
		{Search, `{"query":" Read  timeouts "}`, `{"query":"read timeouts"}`},
		{Search, `{"filters":"","query":"READ timeouts"}`, `{"query":"read timeouts"}`},
		{Search, `{"query":"x","filters":"year>2020"}`, `{"filters":"year > 2020","query":"x"}`},
		{GetDocument, `{"id":"d2"}`, `{"id":"d2"}`},
		{GetDocument, `{"id":"/a.md","page":2e0}`, `{"id":"/a.md","page":2}`},
		{Summarise, `{"chunks":[3,1]}`, `{"chunks":[1,3]}`},
		{Compare, `{"ids":["d2","d1"],"aspect":" who  pays"}`, `{"aspect":"who pays","ids":["d1","d2"]}`},
		{Extract, `{"chunks":[20],"entity_type":"Person"}`, `{"chunks":[20],"entity_type":"person"}`},
		{Extract, `{"chunks":[2],"entity_type":"names of  rivers"}`, `{"chunks":[2],"entity_type":"names of rivers"}`},
		{Graph, `{"entities":["The Beta","Alpha"]}`, `{"entities":["alpha","the beta"]}`},
	} {
		got, err := Parse(c.tool, c.arguments)
		if err != nil || string(got.Arguments) != c.want {
			t.Errorf("Parse(%s, %s) = %s, %v; want %s", c.tool, c.arguments, got.Arguments, err, c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	for _, c := range []struct{ tool, arguments, says string }{
		{"shell", `{"command":"rm -rf /"}`, `there is no tool "shell"; the tools are search, get_document,`},
		{"http_get", `{"url":"http://169.254.169.254/"}`, "there is no tool"},
		{"delete_document", `{}`, "there is no tool"},
		{"SEARCH", `{"query":"x"}`, "there is no tool"},
		{"", `{}`, "there is no tool"},
		{"search\x00\u202e", `{}`, "there is no tool"},
		{Search, ``, "the arguments are empty"},
		{Search, `null`, "not an object"},
		{Search, `[]`, "not an object"},
		{Search, `"query"`, "not an object"},
		{Search, `{}`, "query is missing"},
		{Search, `{"query":7}`, "query is not a text"},
		{Search, `{"query":null}`, "query is not a text"},
		{Search, `{"query":["x"]}`, "query is not a text"},
		{Search, `{"query":""}`, "query has 0 characters"},
		{Search, `{"query":" \u200b\t"}`, "query is empty"},
		{Search, `{"query":"` + strings.Repeat("x", 401) + `"}`, "query has 401 characters"},
		{Search, `{"query":"x","limit":8}`, `there is no parameter "limit"`},
		{Search, `{"query":"x","filter":"year > 2020"}`, `there is no parameter "filter"`},
		{Search, `{"query":"x","filters":{"equals":{"key":"year","value":2024}}}`, "filters is not a text"},
		{Search, `{"query":"x","filters":["year > 2020"]}`, "filters is not a text"},
		{Search, `{"query":"x","filters":"year >"}`, "filters: "},
		{Search, `{"query":"x","filters":"` + strings.Repeat("(", 900) + `"}`, "filters: "},
		{Search, `{"query":"x","filters":"` + strings.Repeat("x", 1001) + `"}`, "filters has 1001 characters"},
		{GetDocument, `{"id":"d1","page":0}`, "page is 0"},
		{GetDocument, `{"id":"d1","page":-1}`, "page is -1"},
		{GetDocument, `{"id":"d1","page":2.5}`, "page is not a whole number"},
		{GetDocument, `{"id":"d1","page":"2"}`, "page is not a whole number"},
		{GetDocument, `{"id":"d1","page":1e999}`, "not valid JSON"},
		{GetDocument, `{"id":"d1","page":NaN}`, "not valid JSON"},
		{GetDocument, `{"id":"d1","page":1e300}`, "page is"},
		{GetDocument, `{"id":"\u200b"}`, "id is empty"},
		{GetDocument, `{"document":"d1"}`, "id is missing"},
		{Search, `{"query":"x","tenant":"other"}`, `there is no parameter "tenant"`},
		{Search, `{"query":"x","access":["*"]}`, `there is no parameter "access"`},
		{Search, `{"Query":"x"}`, "query is missing"},
		{Search, `{"query":"x","query":"y"}`, `"query" twice`},
		{Search, `{"query":"x"} {"query":"y"}`, "extra data follows"},
		{Search, `{"query":"x"}]`, "extra data follows"},
		{Search, `{"query":"x"`, "not valid JSON"},
		{Search, `{query:"x"}`, "not valid JSON"},
		{Search, `{'query':'x'}`, "not valid JSON"},
		{Search, "{\"query\":\"\xff\xfe\"}", "not UTF-8"},
		{Search, deep, "nested deeper"},
		{Search, strings.Repeat("[", 4000), "nested deeper"},
		{Search, `{"query":"` + strings.Repeat("x", 10<<20) + `"}`, "at most 8192 are read"},
		{Search, `{"query":"x","collections":["a"]}`, `there is no parameter "collections"`},
		{Summarise, `{"chunks":[]}`, "chunks has 0 entries"},
		{Summarise, `{"chunks":[0]}`, "entry 1 of chunks is 0"},
		{Summarise, `{"chunks":[1,1]}`, "an entry twice"},
		{Summarise, `{"chunks":["1"]}`, "not a whole number"},
		{Summarise, `{"results":[1]}`, "chunks is missing"},
		{Compare, `{"ids":["d1"],"aspect":"x"}`, "ids has 1 entries"},
		{Compare, `{"ids":["d1","d2","d3","d4","d5"],"aspect":"x"}`, "ids has 5 entries"},
		{Compare, `{"ids":["d1","d2"]}`, "aspect is missing"},
		{Compare, `{"ids":["d1","d2"],"aspect":"\u200b"}`, "aspect is empty"},
		{Compare, `{"ids":["d1"," d1"],"aspect":"x"}`, "an entry twice"},
		{Extract, `{"chunks":[1.5],"entity_type":"any"}`, "not a whole number"},
		{Extract, `{"chunks":[1]}`, "entity_type is missing"},
		{Extract, `{"chunks":[1],"entity_type":["person"]}`, "entity_type is not a text"},
		{Extract, `{"chunks":[1],"entity_type":"` + strings.Repeat("x", 61) + `"}`, "entity_type has 61 characters"},
		{Graph, `{"entities":[]}`, "entities has 0 entries"},
		{Graph, `{"entities":["a","b","c","d","e"]}`, "entities has 5 entries"},
		{Graph, `{"entities":"Alpha"}`, "entities is not a list"},
		{Graph, `{"entities":["Alpha","ALPHA "]}`, "an entry twice"},
		{Graph, `{"entities":[" \u200b"]}`, "entities is empty"},
		{Graph, `{"entity":"Alpha"}`, "entities is missing"},
	} {
		_, err := Parse(c.tool, c.arguments)
		var refusal *Refusal
		if !errors.As(err, &refusal) || !errors.Is(err, assay.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Parse(%q, %.80q) = %v, want a refusal with %q", c.tool, c.arguments, err, c.says)
			continue
		}
		if !utf8.ValidString(err.Error()) || len(err.Error()) > 2000 || strings.ContainsAny(err.Error(), "\n\x00\u202e") {
			t.Errorf("Parse(%q, %.80q) refuses with %.200q", c.tool, c.arguments, err)
		}
	}
}

// TestSchemasAgree checks that this package and the schema shown to models accept the same
// arguments.
func TestSchemasAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 11))
	taken := 0
	for range 20_000 {
		d := definitions()[random.IntN(len(definitions()))]
		value := map[string]any{}
		for name, p := range d.schema.Properties {
			if random.IntN(4) > 0 {
				value[name] = randomValue(random, p)
			}
		}
		if random.IntN(20) == 0 {
			value["other"] = 1.0
		}
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		read, err := strictJSON(string(raw))
		if err != nil {
			if len(raw) <= MaxArguments {
				t.Fatalf("%s: %v", raw, err)
			}
			continue
		}
		ours, theirs := mismatch("", read, d.schema), d.held.Validate(read)
		if (ours == nil) != (theirs == nil) {
			t.Fatalf("%s %s: this package says %v, the schema %v", d.name, raw, ours, theirs)
		}
		if ours == nil {
			taken++
		}
	}
	if taken < 500 {
		t.Errorf("only %d of the calls were right", taken)
	}
}

// randomValue returns a value that follows a schema, or nearly does.
func randomValue(random *rand.Rand, s *jsonschema.Schema) any {
	if random.IntN(12) == 0 {
		return []any{nil, true, "x", 3.0, -1.0, 0.5, []any{}, map[string]any{}, strings.Repeat("é", 2001)}[random.IntN(9)]
	}
	switch s.Type {
	case "string":
		n := []int{0, 1, 5, *s.MaxLength, *s.MaxLength + 1}[random.IntN(5)]
		return strings.Repeat([]string{"a", "é", "語"}[random.IntN(3)], n)
	case "integer":
		return []float64{*s.Minimum - 1, *s.Minimum, *s.Minimum + 0.5, *s.Maximum, *s.Maximum + 1}[random.IntN(5)]
	default:
		list := []any{}
		for i := range random.IntN(*s.MaxItems + 2) {
			if s.Items.Type == "integer" {
				list = append(list, float64(1+i-random.IntN(20)/19))
			} else {
				list = append(list, fmt.Sprint("n", i-random.IntN(20)/19))
			}
		}
		return list
	}
}

// TestKeys checks that equivalent calls have equal keys, whatever their spelling, and different
// calls have different keys.
func TestKeys(t *testing.T) {
	keys := map[string]string{}
	for _, c := range []struct{ same, tool, arguments string }{
		{"a", Search, `{"query":"x y"}`},
		{"a", Search, `{ "query": "X  Y" }`},
		{"b", GetDocument, `{"id":"d1"}`},
		{"b2", GetDocument, `{"id":"d1","page":2}`},
		{"c", Search, `{"query":"x y","filters":"a = 1"}`},
		{"c", Search, `{"query":"x y","filters":"a=1"}`},
		{"d", Summarise, `{"chunks":[1,2]}`},
		{"d", Summarise, `{"chunks":[2,1]}`},
		{"e", Extract, `{"chunks":[1,2],"entity_type":"person"}`},
		{"e", Extract, `{"chunks":[2,1],"entity_type":" Person"}`},
		{"f", Extract, `{"chunks":[1,2],"entity_type":"place"}`},
		{"g", Graph, `{"entities":["Alpha","beta"]}`},
		{"g", Graph, `{"entities":["Beta","alpha"]}`},
	} {
		call, err := Parse(c.tool, c.arguments)
		if err != nil {
			t.Fatal(err)
		}
		if before, ok := keys[c.same]; ok && before != call.Key() {
			t.Errorf("%s %s has the key %q, want %q", c.tool, c.arguments, call.Key(), before)
		}
		for same, key := range keys {
			if same != c.same && key == call.Key() {
				t.Errorf("%s %s has the key of %s", c.tool, c.arguments, same)
			}
		}
		keys[c.same] = call.Key()
	}
}

// FuzzParse checks that every accepted call follows the schema, and that its canonical form parses
// to an equal call.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"query":"x"}`, `{"query":"x","filters":"year >= 2024 and (type = \"a\" or not x has 1)"}`, `{"id":"d1","page":3}`, `{"chunks":[1,2]}`, `{"chunks":[1],"entity_type":"person"}`, `{"ids":["d1","d2"],"aspect":"x"}`, `{"entities":["İ","ß"]}`, `{"a":{"a":[]}}`, "\xff", `{"query":"\ud800"}`} {
		for i := range Names() {
			f.Add(i, seed)
		}
	}
	f.Fuzz(func(t *testing.T, i int, arguments string) {
		name := Names()[((i%6)+6)%6]
		call, err := Parse(name, arguments)
		if err != nil {
			if !errors.Is(err, assay.ErrInvalid) || !utf8.ValidString(err.Error()) {
				t.Fatalf("Parse(%s, %q): %v", name, arguments, err)
			}
			return
		}
		if utf8.RuneCountInString(call.search.Filters) > maxFilter {
			return // the canonical form is longer than the input
		}
		d, _ := define(name)
		var value any
		if err := json.Unmarshal(call.Arguments, &value); err != nil || d.held.Validate(value) != nil {
			t.Fatalf("Parse(%s, %q) = %s, which is not of the schema (%v)", name, arguments, call.Arguments, err)
		}
		again, err := Parse(name, string(call.Arguments))
		if err != nil || again.Key() != call.Key() {
			t.Fatalf("Parse(%s, %s) = %s, %v", name, call.Arguments, again.Arguments, err)
		}
	})
}
