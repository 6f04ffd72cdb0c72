package config

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm/llmtest"
)

// servicesFile configures one service of each kind. All have the same passage.
const servicesFile = `
providers:
  bedrock:
    base_url: URL
models:
  bedrock/amazon.titan-embed-text-v2:0: {dimensions: 256}
services:
  base:
    knowledge_base: {id: ABCDEFGHIJ, search: hybrid, rerank: "arn:aws:bedrock:eu-west-1::foundation-model/cohere.rerank-v3-5:0", epoch_keys: [seen],
      implicit: {model: "arn:aws:bedrock:eu-west-1::foundation-model/amazon.nova-lite-v1:0", attributes: [{key: year, type: NUMBER, description: the year}]}}
    acl_key: acl
    tenant_key: tenant
    tenant: acme
    filter: year >= 2024
  kendra:
    kendra: {base_url: URL, index: 11111111-2222-3333-4444-555555555555, user_context: true}
    acl_key: acl
  vectors:
    s3_vectors: {base_url: URL, bucket: handbook, index: chunks, embedding: "bedrock/amazon.titan-embed-text-v2:0"}
    acl_key: acl
  azure:
    azure_search: {base_url: URL, index: handbook, key: !env AZURE_SEARCH_KEY, semantic: default, fields: {text: chunk, uri: url, title: title, metadata: [year]}}
    acl_key: acl
    lists: [tags]
  google:
    vertex_search: {base_url: URL, serving_config: projects/acme/locations/eu/collections/default_collection/engines/handbook/servingConfigs/default_search, key: !env GOOGLE_TOKEN}
    open_to: ["group:staff"]
  neighbors:
    vertex_vectors: {base_url: URL, index_endpoint: projects/1/locations/eu/indexEndpoints/2, deployed_index: handbook, measure: COSINE_DISTANCE,
      embedding: "bedrock/amazon.titan-embed-text-v2:0", key: !env GOOGLE_TOKEN}
    acl_key: acl
`

const thirty = "Everybody has thirty days of leave."

// everyService answers as each of the services does, by the path of the request.
func everyService(w http.ResponseWriter, r *http.Request) {
	meta := map[string]any{"acl": []string{"group:staff"}, "tenant": "acme", "year": 2024}
	var out any
	switch p := r.URL.Path; {
	case strings.HasPrefix(p, "/knowledgebases/"):
		out = map[string]any{"retrievalResults": []any{map[string]any{"content": map[string]any{"text": thirty}, "metadata": meta, "score": 0.5}}}
	case r.Header.Get("X-Amz-Target") != "":
		out = map[string]any{"ResultItems": []any{map[string]any{"Content": thirty, "DocumentId": "d", "ScoreAttributes": map[string]any{"ScoreConfidence": "HIGH"},
			"DocumentAttributes": []any{map[string]any{"Key": "acl", "Value": map[string]any{"StringListValue": []string{"group:staff"}}}}}}}
	case p == "/QueryVectors":
		meta["text"] = thirty
		out = map[string]any{"distanceMetric": "cosine", "vectors": []any{map[string]any{"key": "k", "distance": 0.5, "metadata": meta}}}
	case strings.HasSuffix(p, "/docs/search"):
		out = map[string]any{"value": []any{map[string]any{"@search.score": 1.5, "chunk": thirty, "url": "https://example.com/", "acl": []string{"group:staff"}}}}
	case strings.HasSuffix(p, ":search"):
		out = map[string]any{"results": []any{map[string]any{"chunk": map[string]any{"id": "c", "content": thirty}}}}
	case strings.HasSuffix(p, ":findNeighbors"):
		out = map[string]any{"nearestNeighbors": []any{map[string]any{"neighbors": []any{map[string]any{"distance": 0.5, "datapoint": map[string]any{
			"datapointId": "p", "restricts": []any{map[string]any{"namespace": "acl", "allowList": []string{"group:staff"}}}, "embeddingMetadata": map[string]any{"text": thirty}}}}}}}
	default: // an embedding model
		v := make([]float64, 256)
		v[0] = 1
		out = map[string]any{"embedding": v, "inputTextTokenCount": 1}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(llmtest.JSON(out))
}

// TestServices checks that each kind of service is opened as configured, and searched.
func TestServices(t *testing.T) {
	awsOfThisTest(t)
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		asked = append(asked, r.URL.Path+" "+r.Header.Get("api-key")+r.Header.Get("Authorization")+" "+string(body))
		mu.Unlock()
		everyService(w, r)
	}))
	defer server.Close()
	env := map[string]string{"AZURE_SEARCH_KEY": "key-of-azure-in-this-test", "GOOGLE_TOKEN": "token-of-google-in-this-test"}
	c := mustLoad(t, strings.ReplaceAll(servicesFile, "URL", server.URL), env)
	services, err := c.Open().Services(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	ann, eve := assay.Principal{User: "ann", Groups: []string{"staff"}}.Access(), assay.Principal{User: "eve"}.Access()
	for _, s := range services {
		names = append(names, s.Collection())
		got, err := s.Search(t.Context(), ann, assay.Query{Text: "days of leave", Limit: 5})
		if err != nil || len(got.Hits) != 1 || got.Hits[0].Text != thirty || got.Hits[0].Collection != s.Collection() {
			t.Errorf("%s: %+v, %v", s.Collection(), got.Hits, err)
		}
		if got, err := s.Search(t.Context(), eve, assay.Query{Text: "days of leave", Limit: 5}); err != nil || len(got.Hits) > 0 {
			t.Errorf("%s shows a stranger %+v, %v", s.Collection(), got.Hits, err)
		}
	}
	if fmt.Sprint(names) != "[azure base google kendra neighbors vectors]" {
		t.Errorf("services %v", names)
	}
	all := strings.Join(asked, "\n")
	for _, want := range []string{
		`"overrideSearchType":"HYBRID"`, `"tenant"`, `"year"`, "implicitFilterConfiguration", "cohere.rerank", `"UserContext":{"Groups":["staff"],"UserId":"ann"}`,
		"key-of-azure-in-this-test", `"semanticConfiguration":"default"`, "Bearer token-of-google-in-this-test", `"topK":5`, `"deployedIndexId":"handbook"`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no request has %s", want)
		}
	}
	if scrubbed := c.Secrets.Scrub("key-of-azure-in-this-test"); strings.Contains(scrubbed, "azure") {
		t.Errorf("the key is not a secret: %s", scrubbed)
	}
	found := false
	for _, d := range c.Destinations() {
		found = found || d.Name == "azure" && d.Address == server.URL
	}
	if !found {
		t.Error("the address of a service is no destination")
	}
}

// TestServicesRefused checks that an error names its place.
func TestServicesRefused(t *testing.T) {
	awsOfThisTest(t)
	for name, text := range map[string]string{
		"no kind":       "open_to: [\"*\"]",
		"two kinds":     "{knowledge_base: {id: ABCDEFGHIJ}, kendra: {index: i}, open_to: [\"*\"]}",
		"nobody":        "{knowledge_base: {id: ABCDEFGHIJ}}",
		"a filter":      "{knowledge_base: {id: ABCDEFGHIJ}, open_to: [\"*\"], filter: \"year ==\"}",
		"a provider":    "{knowledge_base: {provider: openai, id: ABCDEFGHIJ}, open_to: [\"*\"]}",
		"pages":         "{knowledge_base: {id: ABCDEFGHIJ}, open_to: [\"*\"], pages: -1}",
		"a key":         "{azure_search: {base_url: \"http://127.0.0.1:1\", index: i, key: abc, fields: {text: t}}, open_to: [\"*\"]}",
		"an unknown":    "{knowledge_base: {id: ABCDEFGHIJ, colour: red}, open_to: [\"*\"]}",
		"no index":      "{kendra: {}, open_to: [\"*\"]}",
		"no embedding":  "{s3_vectors: {bucket: b, index: i}, open_to: [\"*\"]}",
		"half a tenant": "{kendra: {index: i}, open_to: [\"*\"], tenant: acme}",
	} {
		c, err := load(t, "services:\n  wiki:\n    "+strings.TrimPrefix(text, " ")+"\n", nil)
		if err == nil {
			_, err = c.Open().Services(t.Context())
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Line == 0 {
			t.Errorf("%s: %v, want an error with its line", name, err)
		}
	}
}
