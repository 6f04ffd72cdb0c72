package vertex_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/internal/passage/passagetest"
	"github.com/assay-rag/assay/provider/vertex"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const serving = "projects/acme/locations/global/collections/default_collection/engines/handbook/servingConfigs/default_search"

func client() *http.Client { return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} }

func canary(context.Context) (secret.Secret, error) { return secret.New(llmtest.Canary), nil }

func service(s passagetest.Setup) vertex.Service {
	return vertex.Service{BaseURL: s.URL, Token: canary, Sharing: s.Sharing, Guard: s.Guard, HTTP: client()}
}

func throttled(w http.ResponseWriter) {
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = w.Write([]byte(`{"error":{"code":429,"message":"Quota exceeded for quota metric 'Search requests'","status":"RESOURCE_EXHAUSTED"}}`))
}

// chunks returns a reply in the form of "Method: servingConfigs.search" with chunks.
func chunks(docs []passagetest.Doc) any {
	results := []any{}
	for i, d := range docs {
		results = append(results, map[string]any{"id": fmt.Sprint("c", i), "chunk": map[string]any{
			"name": fmt.Sprint("projects/1/…/chunks/c", i), "id": fmt.Sprint("c", i), "content": d.Text, "relevanceScore": 0.9 - float64(i)/10,
			"documentMetadata": map[string]any{"uri": fmt.Sprintf("gs://handbook/%d.pdf", i), "title": "Handbook", "structData": d.Metadata},
			"pageSpan":         map[string]any{"pageStart": 3, "pageEnd": 4},
		}})
	}
	return map[string]any{"results": results, "totalSize": len(results), "attributionToken": "x", "summary": map[string]any{}}
}

// segments returns a reply with extractive segments of documents.
func segments(docs []passagetest.Doc) any {
	results := []any{}
	for i, d := range docs {
		results = append(results, map[string]any{"id": fmt.Sprint("d", i), "document": map[string]any{
			"id": fmt.Sprint("d", i), "structData": d.Metadata, "derivedStructData": map[string]any{
				"title": "Handbook", "link": fmt.Sprintf("gs://handbook/%d.pdf", i),
				"extractive_segments": []any{map[string]any{"content": d.Text, "pageNumber": "3", "relevanceScore": 0.5}},
			},
		}})
	}
	return map[string]any{"results": results}
}

func TestSearchContract(t *testing.T) {
	for name, reply := range map[string]func([]passagetest.Doc) any{"chunks": chunks, "segments": segments} {
		t.Run(name, func(t *testing.T) {
			passagetest.Run(t, passagetest.Subject{
				Open: func(t *testing.T, s passagetest.Setup) passagetest.Retriever {
					r, err := vertex.NewSearch(vertex.Search{Service: service(s), ServingConfig: serving, Segments: name == "segments"})
					if err != nil {
						t.Fatal(err)
					}
					return r
				},
				Reply: reply, Throttled: throttled,
				Asked: func(t *testing.T, r *http.Request, body []byte, words []string) {
					var in struct {
						Filter string
						Spec   struct {
							Mode string `json:"searchResultMode"`
						} `json:"contentSearchSpec"`
					}
					if err := json.Unmarshal(body, &in); err != nil || r.URL.Path != "/"+serving+":search" || r.Header.Get("Authorization") != "Bearer "+llmtest.Canary || (in.Spec.Mode == "CHUNKS") != (name == "chunks") {
						t.Errorf("%s: %s, %v", r.URL, body, err)
					}
					for _, w := range words {
						if !strings.Contains(in.Filter, w) {
							t.Errorf("the filter is %s, want %q in it", in.Filter, w)
						}
					}
				},
			})
		})
	}
}

// fixed is an embedder of one vector.
type fixed struct{}

func (fixed) Model() string { return "fixed" }
func (fixed) Embed(_ context.Context, _ llm.Purpose, texts []string) ([]llm.Vector, error) {
	return slices.Repeat([]llm.Vector{{0.6, 0.8}}, len(texts)), nil
}

func vectors(s passagetest.Setup, m vertex.Measure) vertex.Vectors {
	return vertex.Vectors{Service: service(s), IndexEndpoint: "projects/1/locations/europe-west1/indexEndpoints/2", DeployedIndex: "handbook_1", Measure: m, Embedder: fixed{}}
}

// neighbors returns a reply in the form of "Method: indexEndpoints.findNeighbors".
func neighbors(docs []passagetest.Doc) any {
	found := []any{}
	for i, d := range docs {
		strings, numbers := []any{}, []any{}
		for _, k := range slices.Sorted(maps.Keys(d.Metadata)) {
			switch v := d.Metadata[k].(type) {
			case string:
				strings = append(strings, map[string]any{"namespace": k, "allowList": []string{v}})
			case []string:
				strings = append(strings, map[string]any{"namespace": k, "allowList": v})
			case int:
				numbers = append(numbers, map[string]any{"namespace": k, "valueInt": fmt.Sprint(v)})
			}
		}
		found = append(found, map[string]any{"distance": 0.1 + float64(i)/10, "datapoint": map[string]any{
			"datapointId": fmt.Sprint("p", i), "featureVector": []any{}, "restricts": strings, "numericRestricts": numbers,
			"embeddingMetadata": map[string]any{"text": d.Text, "uri": fmt.Sprintf("gs://handbook/%d.md", i), "title": "Handbook"},
		}})
	}
	return map[string]any{"nearestNeighbors": []any{map[string]any{"id": "query", "neighbors": found}}}
}

func TestVectorContract(t *testing.T) {
	passagetest.Run(t, passagetest.Subject{
		OneKey: true,
		Open: func(t *testing.T, s passagetest.Setup) passagetest.Retriever {
			r, err := vertex.NewVectors(vectors(s, vertex.Cosine))
			if err != nil {
				t.Fatal(err)
			}
			return r
		},
		Reply: neighbors, Throttled: throttled,
		Asked: func(t *testing.T, r *http.Request, body []byte, words []string) {
			if r.URL.Path != "/v1/projects/1/locations/europe-west1/indexEndpoints/2:findNeighbors" || r.Header.Get("Authorization") != "Bearer "+llmtest.Canary || !strings.Contains(string(body), `"featureVector":[0.6,0.8]`) {
				t.Errorf("%s: %s", r.URL, body)
			}
			for _, w := range words {
				if !strings.Contains(string(body), `"`+w+`"`) {
					t.Errorf("the request is %s, want %q in it", body, w)
				}
			}
		},
	})
}

var staff = assay.Principal{User: "ann", Groups: []string{"staff"}}.Access()

// TestScores checks which score a distance is.
func TestScores(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(llmtest.JSON(neighbors([]passagetest.Doc{{Text: "days of leave"}})))
	}))
	defer server.Close()
	for m, want := range map[vertex.Measure]assay.Scores{
		vertex.Cosine: {Vector: new(0.9)}, vertex.DotProduct: {Managed: new(0.1)}, vertex.SquaredL2: {Managed: new(-0.1)}, vertex.L1: {Managed: new(-0.1)},
	} {
		r, err := vertex.NewVectors(vectors(passagetest.Setup{URL: server.URL, Sharing: vertex.Sharing{OpenTo: []string{"*"}}}, m))
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Search(t.Context(), staff, assay.Query{Text: "leave", Limit: 1})
		if err != nil || string(llmtest.JSON(got.Hits[0].Scores)) != string(llmtest.JSON(want)) {
			t.Errorf("%s: %+v, %v", m, got.Hits, err)
		}
	}
}

func filter(op assay.FilterOp, key string, v assay.Value) assay.Filter {
	return assay.Filter{Op: op, Key: key, Value: v}
}

func group(op assay.FilterOp, parts ...assay.Filter) assay.Filter {
	return assay.Filter{Op: op, Filters: parts}
}

// TestFilters checks the expression and the restricts of each operator; "" means ErrInvalid.
func TestFilters(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	year, team := filter(assay.OpEquals, "year", assay.NumberValue(2024)), filter(assay.OpEquals, "team", assay.StringValue(`a"b\`))
	for _, test := range []struct {
		filter            assay.Filter
		expression, limit string
	}{
		{year, `year = 2024`, `"numericRestricts":[{"namespace":"year","op":"EQUAL","valueDouble":2024}]`},
		{team, `team: ANY("a\"b\\")`, `"restricts":[{"namespace":"team","allowList":["a\"b\\"]}]`},
		{filter(assay.OpNotEquals, "team", assay.StringValue("a")), `NOT team: ANY("a")`, `"restricts":[{"namespace":"team","denyList":["a"]}]`},
		{filter(assay.OpNotEquals, "year", assay.NumberValue(1)), `NOT year = 1`, `{"namespace":"year","op":"NOT_EQUAL","valueDouble":1}`},
		{filter(assay.OpGreaterThan, "year", assay.NumberValue(1.5)), `year > 1.5`, `"op":"GREATER","valueDouble":1.5`},
		{filter(assay.OpGreaterThanOrEquals, "year", assay.NumberValue(1)), `year >= 1`, `"op":"GREATER_EQUAL"`},
		{filter(assay.OpLessThan, "year", assay.NumberValue(1)), `year < 1`, `"op":"LESS"`},
		{filter(assay.OpLessThanOrEquals, "year", assay.NumberValue(1)), `year <= 1`, `"op":"LESS_EQUAL"`},
		{filter(assay.OpGreaterThan, "seen", assay.TimeValue(now)), `seen > "2026-01-02T03:04:05Z"`, ``},
		{filter(assay.OpIn, "team", assay.ListValue("a", "b")), `team: ANY("a", "b")`, `"allowList":["a","b"]`},
		{filter(assay.OpNotIn, "team", assay.ListValue("a", "b")), `NOT team: ANY("a", "b")`, `"denyList":["a","b"]`},
		{filter(assay.OpListContains, "team", assay.StringValue("a")), `team: ANY("a")`, `"allowList":["a"]`},
		{group(assay.OpAndAll, year, team), `(year = 2024 AND team: ANY("a\"b\\"))`, `"restricts":[{"namespace":"team","allowList":["a\"b\\"]}],"numericRestricts":[{"namespace":"year","op":"EQUAL","valueDouble":2024}]`},
		{group(assay.OpOrAll, team, filter(assay.OpListContains, "team", assay.StringValue("c"))), `(team: ANY("a\"b\\") OR team: ANY("c"))`, `"allowList":["a\"b\\","c"]`},
		{group(assay.OpOrAll, year, team), `(year = 2024 OR team: ANY("a\"b\\"))`, ``},
		{group(assay.OpAndAll, team, team), `(team: ANY("a\"b\\") AND team: ANY("a\"b\\"))`, ``},
		{group(assay.OpNot, group(assay.OpOrAll, year, team)), `NOT ((year = 2024 OR team: ANY("a\"b\\")))`, `"denyList":["a\"b\\"]`},
		{filter(assay.OpStartsWith, "team", assay.StringValue("a")), ``, ``},
		{filter(assay.OpStringContains, "team", assay.StringValue("a")), ``, ``},
		{filter(assay.OpEquals, "draft", assay.BooleanValue(true)), ``, ``},
		{filter(assay.OpEquals, "tags", assay.ListValue("a")), ``, ``},
		{filter(assay.OpIn, "tags", assay.ListValue()), ``, ``},
		{filter(assay.OpEquals, `a: ANY("b") OR c`, assay.StringValue("a")), ``, `"namespace":"a: ANY(\"b\") OR c"`},
	} {
		for name, want := range map[string]string{"search": test.expression, "vectors": test.limit} {
			var body string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var in json.RawMessage
				_ = json.NewDecoder(r.Body).Decode(&in)
				body = string(in)
				_, _ = w.Write([]byte("{}"))
			}))
			s := passagetest.Setup{URL: server.URL, Sharing: vertex.Sharing{OpenTo: []string{"*"}}}
			var r passagetest.Retriever
			var err error
			if name == "search" {
				r, err = vertex.NewSearch(vertex.Search{Service: service(s), ServingConfig: serving})
				want = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(llmtest.JSON(want)))
			} else {
				r, err = vertex.NewVectors(vectors(s, vertex.Cosine))
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Retrieve(t.Context(), staff, assay.Query{Text: "leave", Limit: 1, Filter: test.filter})
			server.Close()
			if refused := want == "" || want == `""`; refused != errors.Is(err, assay.ErrInvalid) || !refused && (err != nil || !strings.Contains(body, want)) || refused && body != "" {
				t.Errorf("%s of %s: %s, %v, want %s", name, test.filter, body, err, want)
			}
		}
	}
}

// TestPages checks that a service which always has more is not asked for ever.
func TestPages(t *testing.T) {
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		out := chunks([]passagetest.Doc{{Text: fmt.Sprint("days of leave, part ", n)}}).(map[string]any)
		out["nextPageToken"] = "more"
		_, _ = w.Write(llmtest.JSON(out))
	}))
	defer server.Close()
	r, err := vertex.NewSearch(vertex.Search{Service: service(passagetest.Setup{URL: server.URL, Sharing: vertex.Sharing{OpenTo: []string{"*"}}}), ServingConfig: serving, Pages: 4})
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Retrieve(t.Context(), staff, assay.Query{Text: "leave", Limit: 50})
	if err != nil || len(got.Hits) != 4 || n != 4 || !strings.Contains(fmt.Sprint(got.Notes), "there are more results") {
		t.Errorf("%d hits, asked %d times, %v, %v", len(got.Hits), n, got.Notes, err)
	}
	n = 0
	got, err = r.Retrieve(t.Context(), staff, assay.Query{Text: "leave", Limit: 1})
	if err != nil || len(got.Hits) != 1 || n != 1 || got.Hits[0].Page != 3 {
		t.Errorf("%d hits, asked %d times, %v", len(got.Hits), n, err)
	}
}

func TestNew(t *testing.T) {
	s := passagetest.Setup{URL: "http://127.0.0.1:1"}
	for name, make := range map[string]func() error{
		"serving config": func() error {
			_, err := vertex.NewSearch(vertex.Search{Service: service(s), ServingConfig: "projects/a/locations/global/x"})
			return err
		},
		"a path": func() error {
			_, err := vertex.NewSearch(vertex.Search{Service: service(s), ServingConfig: serving + "/../x"})
			return err
		},
		"no token": func() error {
			_, err := vertex.NewSearch(vertex.Search{ServingConfig: serving})
			return err
		},
		"no address": func() error {
			v := vectors(s, vertex.Cosine)
			v.BaseURL = ""
			_, err := vertex.NewVectors(v)
			return err
		},
		"no measure": func() error { _, err := vertex.NewVectors(vectors(s, "")); return err },
		"no embedder": func() error {
			v := vectors(s, vertex.Cosine)
			v.Embedder = nil
			_, err := vertex.NewVectors(v)
			return err
		},
		"two keys": func() error {
			v := vectors(s, vertex.Cosine)
			v.Sharing = vertex.Sharing{UsersKey: "u", GroupsKey: "g"}
			_, err := vertex.NewVectors(v)
			return err
		},
	} {
		if err := make(); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

// TestCredentials checks the three sources of tokens, that tokens are kept, and that no error quotes a
// credential.
func TestCredentials(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pemKey := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	asked, refuse := 0, false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		_ = r.ParseForm()
		if refuse {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(llmtest.JSON(map[string]any{"error": "invalid_grant", "error_description": r.Form.Encode()}))
			return
		}
		ok := r.Form.Get("refresh_token") == llmtest.Canary || strings.Count(r.Form.Get("assertion"), ".") == 2 || r.Header.Get("Metadata-Flavor") == "Google"
		if !ok {
			t.Errorf("%s: %v", r.URL, r.Form)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"token-of-this-test","expires_in":3600,"token_type":"Bearer"}`))
	}))
	defer server.Close()
	for name, file := range map[string]map[string]any{
		"service account": {"type": "service_account", "client_email": "a@b", "private_key": pemKey, "private_key_id": "1", "token_uri": server.URL},
		"user":            {"type": "authorized_user", "client_id": "i", "client_secret": llmtest.Canary, "refresh_token": llmtest.Canary, "token_uri": server.URL},
		"metadata":        nil,
	} {
		path := ""
		if file != nil {
			path = filepath.Join(t.TempDir(), "key.json")
			if err := os.WriteFile(path, llmtest.JSON(file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		open := func() *vertex.Credentials {
			return &vertex.Credentials{Getenv: func(string) string { return path }, Home: t.TempDir(), HTTP: client(), Metadata: server.URL}
		}
		asked, refuse = 0, false
		c := open()
		for range 2 {
			if token, err := c.Token(t.Context()); err != nil || token.Reveal() != "token-of-this-test" {
				t.Errorf("%s: %v", name, err)
			}
		}
		if asked != 1 {
			t.Errorf("%s: asked %d times for a token that lasts an hour", name, asked)
		}
		refuse = true
		if _, err := open().Token(t.Context()); !errors.Is(err, assay.ErrUnavailable) || strings.Contains(err.Error(), llmtest.Canary) || strings.Contains(err.Error(), "assertion") {
			t.Errorf("%s, refused: %v", name, err)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.json")
	for _, text := range []string{"{", `{"type":"external_account","private_key":"` + llmtest.Canary + `"}`, strings.Repeat(" ", 1<<17)} {
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := &vertex.Credentials{Getenv: func(string) string { return bad }, HTTP: client()}
		if _, err := c.Token(t.Context()); !errors.Is(err, assay.ErrInvalid) || strings.Contains(err.Error(), llmtest.Canary) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}
