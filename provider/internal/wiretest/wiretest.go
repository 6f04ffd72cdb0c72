// Package wiretest contains the common parts of the test servers of the adapters over HTTP.
package wiretest

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// Endpoint returns the configuration of an adapter with llmtest.Canary as its key and as the value
// of a header.
func Endpoint(s llmtest.Setup) wire.Endpoint {
	return wire.Endpoint{
		BaseURL: s.BaseURL, HTTP: s.HTTP, First: s.Idle, Idle: s.Idle, MaxBytes: s.MaxBytes,
		Key: secret.New(llmtest.Canary), Headers: map[string]string{"X-Gateway-Key": llmtest.Canary},
	}
}

// Open returns a function that opens an adapter, for llmtest's wires.
func Open[T any](open func(llmtest.Setup) (T, error)) func(testing.TB, llmtest.Setup) T {
	return func(t testing.TB, s llmtest.Setup) T {
		t.Helper()
		x, err := open(s)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// CheckGet checks that a request is a GET of path without a body, with the key in a header after a
// prefix.
func CheckGet(t testing.TB, r *http.Request, body []byte, path, header, prefix string) {
	t.Helper()
	if r.Method != http.MethodGet || r.URL.Path != path || len(body) > 0 ||
		r.Header.Get(header) != prefix+llmtest.Canary || r.Header.Get("X-Gateway-Key") != llmtest.Canary {
		t.Errorf("%s %s with the headers %v", r.Method, r.URL, r.Header)
	}
}

// A Code is a service's expression of a kind of failure.
type Code struct {
	Status int
	Words  string // a code or the beginning of the message, if the status is ambiguous
}

// Failures returns the Fail function of a wire. document makes the body from the code and the
// vendor's message.
func Failures(codes map[llm.ErrorKind]Code, document func(c Code, message string) any) func(llmtest.Failure) (llmtest.Body, bool) {
	return func(f llmtest.Failure) (llmtest.Body, bool) {
		c, ok := codes[f.Kind]
		if !ok {
			return llmtest.Body{}, false
		}
		return llmtest.Document(c.Status, document(c, f.Message)), true
	}
}

// Scores returns the list of a reranker's scores, each in the given field.
func Scores(scores []llmtest.Score, field string) []any {
	list := []any{}
	for _, s := range scores {
		list = append(list, map[string]any{"index": s.Index, field: json.RawMessage(s.Value)})
	}
	return list
}
