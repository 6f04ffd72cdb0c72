package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/assay-rag/assay/identity"
)

// absurdTexts are values of parameters, not yet escaped.
var absurdTexts = []string{
	"", "-1", "-9223372036854775808", "9223372036854775807", "99999999999999999999", "NaN", "Inf", "1e308", "0x10", "true", "null", "..", "../../etc/passwd",
	"a\x00b", "a\r\nSet-Cookie: x=1", "\xff\xfe", "\u202egnp", "%s%n", "{{.}}", "' OR 1=1 --", "<script>", strings.Repeat("ä", 50_000), "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
}

// absurdValues are values of members in JSON.
func absurdValues() []string {
	return []string{
		`null`, `-1`, `1e308`, `-1e308`, `1e999`, `9223372036854775807`, `-9223372036854775808`, `0.5`, `NaN`, `true`, `""`, `"a\u0000b"`, `"\ud800"`, `[]`, `{}`, `[null]`, `[[]]`, `{"": null}`,
		`"` + strings.Repeat("ü", 300_000) + `"`, `[` + strings.Repeat(`"x",`, 50_000) + `"x"]`, strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
		strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), "\"\xff\xfe\"",
	}
}

// absurdBodies are whole bodies.
func absurdBodies() []string {
	return append(absurdValues(), ``, ` `, `{`, `{"`, `{}{}`, `{} x`, "\xef\xbb\xbf{}", `{"a": 1, "a": 2}`, `{"`+strings.Repeat("k", 1_000_000)+`": 1}`,
		`{"question": "`+strings.Repeat("x", 10<<20)+`"}`, strings.Repeat(`{"not":`, 100_000))
}

// TestAbsurdValues sends absurd values to every route with all rights. No response is a failure of the
// server, and a body over the limit of its route is refused.
func TestAbsurdValues(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of requests: not in -short")
	}
	x := openWorld(t)
	x.handler = checkedIf(t, x.server, false) // null is taken for any member, which the document does not say
	_, admin := x.key(t, nil, identity.KeySpec{Tenant: "acme", User: "ann", Groups: []string{"staff", "board"}}, "admin")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	sent, statuses := 0, map[int]int{}
	send := func(c call) {
		t.Helper()
		sent++
		w := x.do(t, c, admin)
		status := statusOf(w)
		statuses[status]++
		if status >= 500 && status != 502 && status != 503 && status != 504 {
			t.Errorf("%s %.200s with the body %.200q: status %d: %.300s", c.route.Method, c.path, c.body, status, w.Body)
		}
		if len(c.body) > int(c.route.BodyLimit()) && status < 400 {
			t.Errorf("%s takes a body of %d bytes: status %d", c.route.Name, len(c.body), status)
		}
		if c.route.Name == "stops.stop" && status < 300 {
			x.start(t)
		}
	}
	for _, r := range Routes() {
		for _, c := range absurdCalls(t, r, x.acme) {
			send(c)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	const most = 64 << 20
	if grown > most {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	t.Logf("%d requests to %d routes, by status: %v; the heap has grown by %d KiB", sent, len(Routes()), statuses, grown>>10)
}

// start lifts a stop of acme.
func (x *world) start(t *testing.T) {
	t.Helper()
	if err := x.session(t, "acme", "root").Start(t.Context(), "a test"); err != nil {
		t.Fatal(err)
	}
}

// absurdCalls returns the calls of a route with one absurd value each.
func absurdCalls(t *testing.T, r Route, o objects) []call {
	t.Helper()
	plain, err := callOf(r, o)
	if err != nil {
		t.Fatal(err)
	}
	var calls []call
	add := func(change func(*call)) {
		c := plain
		change(&c)
		calls = append(calls, c)
	}
	for i := range r.In.NumField() {
		f := r.In.Field(i)
		for _, text := range absurdTexts {
			if name := f.Tag.Get("query"); name != "" {
				add(func(c *call) {
					path, _, _ := strings.Cut(c.path, "?")
					c.path = path + "?" + url.Values{name: {text}}.Encode()
				})
			}
			if name := f.Tag.Get("path"); name != "" && text != "" && text != ".." {
				value, _ := o.parameter(r, name)
				add(func(c *call) { c.path = strings.Replace(c.path, "/"+value, "/"+url.PathEscape(text), 1) })
			}
		}
		if f.Tag.Get("body") == "" {
			continue
		}
		for _, body := range absurdBodies() {
			add(func(c *call) { c.body = body })
		}
		if f.Tag.Get("body") == typeJSON {
			for _, body := range absurdMembers(t, r, plain.body) {
				add(func(c *call) { c.body = body })
			}
		}
	}
	return calls
}

// absurdMembers returns a body with one member changed, for each member that its schema lists, down to
// the third level.
func absurdMembers(t *testing.T, r Route, body string) []string {
	t.Helper()
	var bodies []string
	docs, err := readTypeDocs()
	if err != nil {
		t.Fatal(err)
	}
	schemas := newSchemaSet(docs, false)
	field := slices.IndexFunc(slices.Collect(fieldTags(r)), func(tag string) bool { return tag == typeJSON })
	root, err := schemas.of(r.In.Field(field).Type, true)
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(s *jsonschema.Schema) *jsonschema.Schema {
		if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
			return schemas.defs[name]
		}
		return s
	}
	var visit func(s *jsonschema.Schema, depth int, wrap func(string) string)
	visit = func(s *jsonschema.Schema, depth int, wrap func(string) string) {
		s = resolve(s)
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			inner := func(value string) string { return wrap(fmt.Sprintf("{%q:%s}", name, value)) }
			for _, value := range absurdValues() {
				bodies = append(bodies, inner(value))
			}
			if depth < 3 {
				visit(s.Properties[name], depth+1, inner)
			}
		}
	}
	visit(root, 1, func(changed string) string { return mergeJSON(body, changed) })
	return bodies
}

// fieldTags yields the tags body of the fields of a route's input.
func fieldTags(r Route) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i := range r.In.NumField() {
			if !yield(r.In.Field(i).Tag.Get("body")) {
				return
			}
		}
	}
}

// mergeJSON returns an object with the members of another in place of its own. The change may be
// invalid, so it is added as text.
func mergeJSON(object, change string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(object), &members) != nil {
		return change
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(change, `{"`), `":`)
	delete(members, name)
	if len(members) == 0 {
		return change
	}
	rest, err := json.Marshal(members)
	if err != nil {
		return change
	}
	return strings.TrimSuffix(change, "}") + "," + strings.TrimPrefix(string(rest), "{")
}
