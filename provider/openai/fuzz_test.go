package openai_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/openai"
)

// canned is a transport that sends the same reply to every request.
type canned struct{ kind, text string }

// RoundTrip implements http.RoundTripper.
func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {c.kind}}, Body: &body{strings.NewReader(c.text)}, Request: r}, nil
}

// FuzzReply checks that for any reply of a server the outcome is an *llm.Error or a response that
// keeps the contract.
func FuzzReply(f *testing.F) {
	files, err := filepath.Glob("testdata/llamacpp/*.http")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		_, text, _ := strings.Cut(string(data), "\r\n\r\n")
		f.Add(text[:min(len(text), 1500)], strings.Contains(file, "stream"), strings.Contains(file, "responses"))
	}
	f.Add(stream(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":7,"function":{"name":"a","arguments":{}}},{"function":{"arguments":"{"}}]},"finish_reason":"stop"}]}`, `[DONE]`), true, false)
	f.Add(stream(`{"type":"response.output_item.done","item":{"type":"function_call"}}`, `{"type":"response.incomplete","response":{"status":"incomplete","output":[]}}`), true, true)
	f.Fuzz(func(t *testing.T, text string, streams, responses bool) {
		c := openai.Config{BaseURL: "http://localhost/v1", API: openai.Chat, Stream: streams, HTTP: &http.Client{Transport: canned{"application/json", text}}}
		if streams {
			c.HTTP.Transport = canned{"text/event-stream", text}
		}
		if responses {
			c.API = openai.Responses
		}
		var told strings.Builder
		r, err := provider(t, c).Model("m").Generate(t.Context(), request(), func(d llm.Delta) { told.WriteString(d.Text) })
		if err != nil {
			if e, ok := errors.AsType[*llm.Error](err); !ok || !utf8.ValidString(e.Message) || len(e.Message) > 500 {
				t.Errorf("%v", err)
			}
			return
		}
		llmtest.CheckResponse(t, r, told.String())
	})
}
