package bedrocktest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/bedrock"
)

// A Base is a knowledge base with its own server. It applies the filter of a request and pages its
// results.
//
// Source: AWS, Amazon Bedrock API Reference, Retrieve, request and response syntax.
type Base struct {
	Passages   []Passage // best first
	Deaf       bool      // ignores filters
	PageSize   int       // 0: all in one page
	AlwaysMore bool      // has no last page
	Intervenes bool      // a guardrail intervenes
	Refuse     func(w http.ResponseWriter) bool
	mu         sync.Mutex
	requests   []RetrieveRequest
	Provider   *bedrock.Provider // connected to the Base
	URL        string
}

// A Passage is an indexed passage of a knowledge base. Location is in Bedrock's form: {"type":
// "S3", "s3Location": {"uri": …}}.
type Passage struct {
	Text     string
	Content  map[string]any // replaces Text, in Bedrock's form
	Location map[string]any
	Metadata map[string]any
	Score    any // a number; nil: none
}

// S3 returns the location of an object.
func S3(uri string) map[string]any {
	return map[string]any{"type": "S3", "s3Location": map[string]any{"uri": uri}}
}

// A RetrieveRequest is a request of Retrieve.
type RetrieveRequest struct {
	Path  string
	Query struct {
		Text string `json:"text"`
	} `json:"retrievalQuery"`
	Config struct {
		Vector VectorSearch `json:"vectorSearchConfiguration"`
	} `json:"retrievalConfiguration"`
	Guardrail map[string]string `json:"guardrailConfiguration"`
	NextToken string            `json:"nextToken"`
}

// A VectorSearch is the configuration of a vector search.
type VectorSearch struct {
	Filter    json.RawMessage `json:"filter"`
	Results   int             `json:"numberOfResults"`
	Override  string          `json:"overrideSearchType"`
	Implicit  json.RawMessage `json:"implicitFilterConfiguration"`
	Reranking json.RawMessage `json:"rerankingConfiguration"`
}

// Serve starts the knowledge base's server, which stops when the test ends.
func (b *Base) Serve(t testing.TB) {
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.URL, b.Provider = server.URL, Open(t, server.URL)
}

// Open returns a provider for a server, with the canary as each of its credentials.
func Open(t testing.TB, url string) *bedrock.Provider {
	c := Config(llmtest.Setup{BaseURL: url})
	p, err := bedrock.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Bare returns a configuration with only credentials and a region.
func Bare() bedrock.Config {
	return bedrock.Config{Region: "eu-west-1", AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: secret.New(llmtest.Canary), SessionToken: secret.New(llmtest.Canary)}
}

// Requests returns the requests so far.
func (b *Base) Requests() []RetrieveRequest {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

// ServeHTTP implements http.Handler.
func (b *Base) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in RetrieveRequest
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || !strings.HasPrefix(r.URL.Path, "/knowledgebases/") {
		http.Error(w, "not a request of Retrieve", http.StatusBadRequest)
		return
	}
	in.Path = r.URL.Path
	b.mu.Lock()
	b.requests = append(b.requests, in)
	b.mu.Unlock()
	if b.Refuse != nil && b.Refuse(w) {
		return
	}
	var filter assay.Filter
	if len(in.Config.Vector.Filter) > 0 {
		if err := json.Unmarshal(in.Config.Vector.Filter, &filter); err != nil {
			Refuse(w, http.StatusBadRequest, "ValidationException", err.Error())
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(llmtest.JSON(b.reply(in, filter)))
}

// Refuse sends an error.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Amzn-Errortype", code)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(llmtest.JSON(map[string]string{"message": message}))
}

func (b *Base) reply(in RetrieveRequest, filter assay.Filter) map[string]any {
	found := []any{}
	for _, p := range b.Passages {
		if !b.Deaf && !filter.Match(p.metadata()) {
			continue
		}
		found = append(found, p.result())
	}
	out := map[string]any{"retrievalResults": found}
	if b.PageSize > 0 {
		from := len(in.NextToken) // the length of a token is the number of preceding results
		to := min(len(found), from+b.PageSize)
		out["retrievalResults"] = found[min(from, len(found)):to]
		if to < len(found) || b.AlwaysMore {
			out["nextToken"] = strings.Repeat("x", max(to, 1))
		}
	}
	if b.Intervenes {
		out["guardrailAction"] = "INTERVENED"
	}
	return out
}

func (p Passage) result() map[string]any {
	content := p.Content
	if content == nil {
		content = map[string]any{"text": p.Text, "type": "TEXT"}
	}
	out := map[string]any{"content": content}
	if p.Location != nil {
		out["location"] = p.Location
	}
	if p.Metadata != nil {
		out["metadata"] = p.Metadata
	}
	if p.Score != nil {
		out["score"] = p.Score
	}
	return out
}

func (p Passage) metadata() assay.Metadata {
	m := assay.Metadata{}
	for key, v := range p.Metadata {
		var value assay.Value
		if value.UnmarshalJSON(llmtest.JSON(v)) == nil {
			m[key] = value
		}
	}
	return m
}
