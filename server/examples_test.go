package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/assay-rag/assay/identity"
)

// withoutExample are routes with a body of JSON that have no example: what they need is not on every
// machine, or another route has the same.
var withoutExample = map[string]string{
	"service.openapi": "the document itself", "jobs.show": "it needs a queue", "documents.fetch": "it needs a web page", "vectors.embed": "it needs an encoder",
	"reviews.release": "as reviews.claim", "reviews.approve": "as reviews.claim", "reviews.edit": "as reviews.claim", "reviews.check": "as reviews.claim", "reviews.reject": "as reviews.claim",
	"sources.remove": "a number", "service.ready": "as service.health", "openai.cancel": "as openai.response", "openai.embed": "it needs an encoder",
	"runs.resume": "the answer of ask", "runs.fork": "the answer of ask", "runs.export": "the answer of ask", "keys.rotate": "as keys.create",
}

// TestRouteExamples calls each route that answers with JSON as a caller who sees everything. The
// responses are the examples in testdata/examples, which -update writes; each must have the form that
// the OpenAPI document says.
func TestRouteExamples(t *testing.T) {
	x := openWorld(t)
	_, bob := x.key(t, nil, identity.KeySpec{Tenant: "acme", User: acmeWord + "-bob", Groups: []string{"board", "staff"}}, "admin")
	_, reviewer := x.key(t, nil, identity.KeySpec{Tenant: "acme", User: "ann", Groups: []string{"board"}}, "admin")
	for _, r := range Routes() {
		if r.Out == nil || withoutExample[r.Name] != "" {
			continue
		}
		file := filepath.Join("testdata", "examples", r.Name+".json")
		if !*update {
			checkExample(t, r, file)
			continue
		}
		c, err := callOf(r, x.acme)
		if err != nil {
			t.Fatal(err)
		}
		credential := bob
		if groupOf(r) == "reviews" {
			credential = reviewer
		}
		if strings.HasPrefix(r.Name, "documents.") || strings.HasPrefix(r.Name, "collections.") {
			c.path = strings.ReplaceAll(c.path, "/collections/probe", "/collections/"+x.acme.collection)
		}
		w := x.do(t, c, credential)
		if w.Code >= 300 {
			t.Logf("%s has no example: status %d: %.200s", r.Name, w.Code, w.Body)
			continue
		}
		writeExample(t, file, w.Body.Bytes())
	}
}

// Patterns of what differs between two runs of the tests.
var volatile = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "2026-01-01T12:00:00Z"},
	{regexp.MustCompile(`(["/ ]|chatcmpl-|resp_|msg_|fs_)[a-z2-7]{16}\b`), "${1}7nqy2ilgu34wcppt"},
	{regexp.MustCompile(`("created(?:_at)?": )\d{10}\b`), "${1}1767268800"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "2af86dc9a3b3c9f0b1ad0ee8a3f0b8d1"},
	{regexp.MustCompile(`("[a-z_]*(?:_ms|_ns|rate|bytes)": )[0-9.]+`), "${1}12"},
	{regexp.MustCompile(`/tmp/[^"/]*/\d+/`), "/srv/"},
	{regexp.MustCompile(acmeWord), "acme"},
	{regexp.MustCompile(boardWord), "bergen"},
	{regexp.MustCompile(`assay_[a-z2-7]{16}_[a-z2-7]{59}`), "assay_EXAMPLE"},
	{regexp.MustCompile(`"[A-Z2-7]{26}"`), `"5HQ2VZJ4RJ3T6WQY5SBA7K2MNE"`},
	{regexp.MustCompile(`"[A-Z2-7]{12}"`), `"VZJ4RJ3T6WQY"`},
	{regexp.MustCompile(`"[A-Za-z0-9+/]{43}="`), `"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="`},
}

func writeExample(t *testing.T, file string, data []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.by)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestExampleNames checks that no object of an example has two members of one name.
func TestExampleNames(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/examples/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if name := repeatedName(t, json.NewDecoder(bytes.NewReader(data))); name != "" {
			t.Errorf("%s has the name %q twice", file, name)
		}
	}
}

// repeatedName reads a value and returns a name that one of its objects has twice; empty: there is none.
func repeatedName(t *testing.T, d *json.Decoder) (repeated string) {
	t.Helper()
	token := func() json.Token {
		v, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	open := token()
	if _, ok := open.(json.Delim); !ok {
		return ""
	}
	seen := map[string]bool{}
	for d.More() {
		if open == json.Delim('{') {
			name := token().(string)
			if seen[name] {
				repeated = name
			}
			seen[name] = true
		}
		repeated = cmp.Or(repeatedName(t, d), repeated)
	}
	token()
	return repeated
}

// checkExample validates an example against the closed schema of its response.
func checkExample(t *testing.T, r Route, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("%s has no example: run go test ./server -run TestRouteExamples -update, or say why in withoutExample", r.Name)
		return
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	c, err := newChecker()
	if err != nil {
		t.Fatal(err)
	}
	responses := c.document.Paths.Value(plainPath(r.Path)).GetOperation(r.Method).Responses
	var failed error
	for _, status := range []string{"200", "201", "202"} {
		if response := responses.Value(status); response != nil && response.Value.Content.Get(typeJSON) != nil {
			if failed = response.Value.Content.Get(typeJSON).Schema.Value.VisitJSON(v, openapi3.EnableJSONSchema2020(), openapi3.VisitAsResponse()); failed == nil {
				return
			}
		}
	}
	t.Errorf("%s has not the form of the OpenAPI document: %v", file, failed)
}
