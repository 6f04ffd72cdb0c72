package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const committed = "testdata/openapi.json"

// checkCommitted compares the document with the committed one. A change that breaks clients needs the
// flag -breaking to be written.
func checkCommitted(t *testing.T, document *apiDocument) {
	t.Helper()
	data, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, '\n')
	old, err := os.ReadFile(committed)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if len(old) > 0 {
		for _, b := range breaks(t, old, data) {
			if !*update || !*breaking {
				t.Errorf("breaks clients: %s", b)
			}
		}
	}
	switch {
	case *update && !t.Failed():
		if err := os.WriteFile(committed, data, 0o644); err != nil {
			t.Fatal(err)
		}
	case string(old) != string(data):
		t.Errorf("%s differs; run go test ./server -run TestOpenAPI -update, with -breaking if clients must change (-old +new):\n%.4000s", committed, cmp.Diff(string(old), string(data)))
	}
}

// A contract is a document that is compared with another one.
type contract struct {
	root map[string]any
}

type object = map[string]any

// breaks returns the changes from one document to another that a client of the old one may not
// survive.
func breaks(t *testing.T, before, after []byte) []string {
	t.Helper()
	var old, now contract
	for c, data := range map[*contract][]byte{&old: before, &now: after} {
		if err := json.Unmarshal(data, &c.root); err != nil {
			t.Fatal(err)
		}
	}
	d := &comparison{old: old, now: now, seen: map[string]bool{}}
	d.paths()
	slices.Sort(d.found)
	return slices.Compact(d.found)
}

// A comparison collects the breaking changes between two documents.
type comparison struct {
	old, now contract
	found    []string
	seen     map[string]bool
}

func (d *comparison) add(where, format string, args ...any) {
	d.found = append(d.found, where+": "+fmt.Sprintf(format, args...))
}

// get returns the object at a path of keys; nil: there is none.
func get(from any, keys ...string) object {
	for _, key := range keys {
		o, _ := from.(object)
		from = o[key]
	}
	o, _ := from.(object)
	return o
}

// resolve follows references to a component.
func (c contract) resolve(o object) object {
	for o["$ref"] != nil {
		o = get(c.root, strings.Split(strings.TrimPrefix(o["$ref"].(string), "#/"), "/")...)
	}
	return o
}

func (d *comparison) paths() {
	for path, item := range get(d.old.root, "paths") {
		for method := range item.(object) {
			where := strings.ToUpper(method) + " " + path
			now := get(d.now.root, "paths", path, method)
			if now == nil {
				d.add(where, "removed")
				continue
			}
			d.operation(where, get(item, method), now)
		}
	}
}

func (d *comparison) operation(where string, old, now object) {
	if old["operationId"] != now["operationId"] {
		d.add(where, "its operationId %v is %v now", old["operationId"], now["operationId"])
	}
	if old["x-scope"] != now["x-scope"] {
		d.add(where, "its scope %v is %v now", old["x-scope"], now["x-scope"])
	}
	d.parameters(where, list(old["parameters"]), list(now["parameters"]))
	oldBody, nowBody := get(old, "requestBody", "content"), get(now, "requestBody", "content")
	if oldBody == nil && nowBody != nil {
		d.add(where, "it needs a body now")
	}
	for media := range oldBody {
		if nowBody[media] == nil {
			d.add(where, "it takes no body of %s any more", media)
			continue
		}
		d.request(where+" body", get(oldBody, media, "schema"), get(nowBody, media, "schema"))
	}
	for status, r := range get(old, "responses") {
		nowResponse := d.now.resolve(get(now, "responses", status))
		if nowResponse == nil {
			d.add(where, "it has no response %s any more", status)
			continue
		}
		for media, content := range get(d.old.resolve(r.(object)), "content") {
			if get(nowResponse, "content", media) == nil {
				d.add(where, "its response %s has no %s any more", status, media)
				continue
			}
			d.response(where+" "+status, get(content, "schema"), get(nowResponse, "content", media, "schema"))
		}
	}
}

// schemaOf returns a schema, which is an object, or true for an empty one.
func schemaOf(v any) object {
	if o, ok := v.(object); ok {
		return o
	}
	return object{}
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}

func (d *comparison) parameters(where string, old, now []any) {
	find := func(all []any, p object) object {
		for _, o := range all {
			if o := o.(object); o["name"] == p["name"] && o["in"] == p["in"] {
				return o
			}
		}
		return nil
	}
	for _, p := range old {
		p := p.(object)
		other := find(now, p)
		name := fmt.Sprintf("%s %s parameter %s", where, p["in"], p["name"])
		if other == nil {
			d.add(name, "removed")
			continue
		}
		if other["required"] == true && p["required"] != true {
			d.add(name, "it is required now")
		}
		d.request(name, get(p, "schema"), get(other, "schema"))
	}
	for _, p := range now {
		if p := p.(object); p["required"] == true && find(old, p) == nil {
			d.add(fmt.Sprintf("%s %s parameter %s", where, p["in"], p["name"]), "new and required")
		}
	}
}

// enter reports whether two schemas are compared for the first time in a direction.
func (d *comparison) enter(direction string, old, now object) bool {
	if old["$ref"] == nil || now["$ref"] == nil {
		return true
	}
	key := fmt.Sprint(direction, old["$ref"], now["$ref"])
	first := !d.seen[key]
	d.seen[key] = true
	return first
}

// request compares schemas of what clients send: the new one must accept all that the old one did.
func (d *comparison) request(where string, old, now object) {
	if !d.enter("request", old, now) {
		return
	}
	old, now = d.old.resolve(old), d.now.resolve(now)
	if missing := without(types(old), types(now)); len(missing) > 0 {
		d.add(where, "it may not be %s any more", strings.Join(missing, ", "))
	}
	if now["enum"] != nil {
		if old["enum"] == nil {
			d.add(where, "only some values are allowed now")
		} else if gone := without(texts(old["enum"]), texts(now["enum"])); len(gone) > 0 {
			d.add(where, "the values %s are not allowed any more", strings.Join(gone, ", "))
		}
	}
	d.bounds(where, old, now)
	for _, name := range without(texts(now["required"]), texts(old["required"])) {
		d.add(where+"."+name, "it is required now")
	}
	for name, p := range get(old, "properties") {
		if other := get(now, "properties")[name]; other != nil {
			d.request(where+"."+name, schemaOf(p), schemaOf(other))
		} else if now["additionalProperties"] == false {
			d.add(where+"."+name, "removed")
		}
	}
	d.inner(where, old, now, d.request)
}

// bounds finds limits that are narrower.
func (d *comparison) bounds(where string, old, now object) {
	for keyword, sign := range map[string]float64{"maximum": -1, "maxLength": -1, "maxItems": -1, "maxProperties": -1, "minimum": 1, "minLength": 1, "minItems": 1} {
		limit, set := now[keyword].(float64)
		before, wasSet := old[keyword].(float64)
		if set && (!wasSet || sign*limit > sign*before) {
			d.add(where, "its %s is %v now", keyword, limit)
		}
	}
}

// response compares schemas of what the server sends: the new one must promise all that the old one
// did.
func (d *comparison) response(where string, old, now object) {
	if !d.enter("response", old, now) {
		return
	}
	old, now = d.old.resolve(old), d.now.resolve(now)
	if added := without(types(now), types(old)); len(added) > 0 {
		d.add(where, "it may be %s now", strings.Join(added, ", "))
	}
	if old["enum"] != nil && now["enum"] == nil {
		d.add(where, "it may have any value now")
	}
	for _, name := range without(texts(old["required"]), texts(now["required"])) {
		d.add(where+"."+name, "it may be missing now")
	}
	for name, p := range get(old, "properties") {
		other := get(now, "properties")[name]
		if other == nil {
			d.add(where+"."+name, "removed")
			continue
		}
		d.response(where+"."+name, schemaOf(p), schemaOf(other))
	}
	d.inner(where, old, now, d.response)
}

// inner compares the schemas of elements, of the values of a map and of alternatives.
func (d *comparison) inner(where string, old, now object, compare func(string, object, object)) {
	for keyword, suffix := range map[string]string{"items": "[]", "additionalProperties": ".*"} {
		if a, b := old[keyword], now[keyword]; a != nil && a != false && b != nil {
			compare(where+suffix, schemaOf(a), schemaOf(b))
		}
	}
	a, b := list(old["anyOf"]), list(now["anyOf"])
	for i := range min(len(a), len(b)) {
		compare(where, schemaOf(a[i]), schemaOf(b[i]))
	}
	if len(a) != len(b) {
		d.add(where, "it has %d alternatives, had %d", len(b), len(a))
	}
}

// types returns the types of a schema; none: "anything".
func types(o object) []string {
	switch v := o["type"].(type) {
	case string:
		return []string{v}
	case []any:
		return texts(v)
	}
	return []string{"anything"}
}

func texts(v any) []string {
	var all []string
	for _, e := range list(v) {
		all = append(all, fmt.Sprint(e))
	}
	return all
}

// without returns the elements of a that are not in b, sorted. An integer is a number.
func without(a, b []string) []string {
	left := map[string]bool{}
	for _, e := range a {
		known := slices.Contains(b, e) || slices.Contains(b, "anything") || e == "integer" && slices.Contains(b, "number")
		if !known {
			left[e] = true
		}
	}
	return slices.Sorted(maps.Keys(left))
}

// TestBreaks checks which changes break clients.
func TestBreaks(t *testing.T) {
	t.Parallel()
	const base = `{"paths": {"/a": {"get": {"operationId": "a", "x-scope": "ask",
		"parameters": [{"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 10}}],
		"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/In"}}}},
		"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Out"}}}}}}}},
		"components": {"schemas": {
			"In": {"type": "object", "additionalProperties": false, "required": ["q"], "properties": {"q": {"type": "string"}, "n": {"type": "number"}, "mode": {"type": "string", "enum": ["x", "y"]}}},
			"Out": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}, "kind": {"type": "string", "enum": ["x", "y"]}, "list": {"type": "array", "items": {"$ref": "#/components/schemas/Out"}}}}}}}`
	for name, c := range map[string]struct{ from, to, want string }{
		"nothing":                  {``, ``, ``},
		"a route removed":          {`"/a"`, `"/b"`, `GET /a: removed`},
		"another method":           {`"get"`, `"put"`, `GET /a: removed`},
		"another scope":            {`"x-scope": "ask"`, `"x-scope": "admin"`, `its scope ask is admin now`},
		"another name":             {`"operationId": "a"`, `"operationId": "b"`, `operationId`},
		"a parameter removed":      {`{"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 10}}`, ``, `query parameter limit: removed`},
		"a parameter required":     {`"in": "query"`, `"in": "query", "required": true`, `it is required now`},
		"a new parameter":          {`"parameters": [`, `"parameters": [{"name": "x", "in": "query", "schema": {}}, `, ``},
		"a new required parameter": {`"parameters": [`, `"parameters": [{"name": "x", "in": "query", "required": true, "schema": {}}, `, `new and required`},
		"a narrower bound":         {`"maximum": 10`, `"maximum": 9`, `its maximum is 9 now`},
		"a wider bound":            {`"maximum": 10`, `"maximum": 11`, ``},
		"a field required":         {`"required": ["q"]`, `"required": ["q", "n"]`, `body.n: it is required now`},
		"a field not required":     {`"required": ["q"]`, `"required": []`, ``},
		"a request field removed":  {`, "n": {"type": "number"}`, ``, `body.n: removed`},
		"a request field narrowed": {`"n": {"type": "number"}`, `"n": {"type": "integer"}`, `may not be number`},
		"a request field widened":  {`"q": {"type": "string"}`, `"q": {"type": ["string", "null"]}`, ``},
		"a request value removed":  {`"mode": {"type": "string", "enum": ["x", "y"]}`, `"mode": {"type": "string", "enum": ["x"]}`, `the values y`},
		"a request value added":    {`"mode": {"type": "string", "enum": ["x", "y"]}`, `"mode": {"type": "string", "enum": ["x", "y", "z"]}`, ``},
		"a response field removed": {`"text": {"type": "string"}, `, ``, `text: removed`},
		"a response field added":   {`"text": {"type": "string"}, `, `"text": {"type": "string"}, "more": {}, `, ``},
		"a response field missing": {`"required": ["text"]`, `"required": []`, `text: it may be missing now`},
		"a response type widened":  {`"text": {"type": "string"}`, `"text": {"type": ["string", "null"]}`, `it may be null now`},
		"a response enum opened":   {`"kind": {"type": "string", "enum": ["x", "y"]}`, `"kind": {"type": "string"}`, `any value`},
		"a response value added":   {`"kind": {"type": "string", "enum": ["x", "y"]}`, `"kind": {"type": "string", "enum": ["x", "y", "z"]}`, ``},
		"an inner field changed":   {`"items": {"$ref": "#/components/schemas/Out"}`, `"items": {"type": "string"}`, `list[]`},
		"a response removed":       {`"200"`, `"201"`, `no response 200`},
		"another media type":       {`"200": {"content": {"application/json"`, `"200": {"content": {"text/plain"`, `no application/json`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(base, c.from) {
				t.Fatalf("the base lacks %s", c.from)
			}
			got := strings.Join(breaks(t, []byte(base), []byte(strings.Replace(base, c.from, c.to, 1))), "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("breaks = %q, want %q", got, c.want)
			}
		})
	}
}
