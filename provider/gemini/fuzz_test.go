package gemini

import (
	"bytes"
	"strings"
	"testing"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/internal/wire"
)

// FuzzReply parses the lines as events of a stream, and all of them as one reply. The result must
// keep the contract of a response for any input.
func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"candidates":[{"content":{"role":"model","parts":[{"text":"a","thought":true},{"text":"b"},{"functionCall":{"id":"1","name":"n","args":{"q":1}},"thoughtSignature":"c2ln"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"cachedContentTokenCount":-1,"candidatesTokenCount":2},"modelVersion":"m"}`))
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"hel"}]}}]}
{"candidates":[{"content":{"parts":[{"text":"lo"},{"functionCall":{"name":"n"}}]}}],"usageMetadata":{"promptTokenCount":5}}
{"candidates":[{"finishReason":"MAX_TOKENS"}]}`))
	f.Add([]byte(`{"promptFeedback":{"blockReason":"SAFETY"}}`))
	f.Add([]byte(`{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		check := func(events [][]byte, name string) {
			client := &wire.Client{Name: "test/m", Secrets: []wire.Secret{wire.NewSecret("secret-of-this-test")}}
			told := ""
			r := reader{client: client, scrub: client.Scrubber(), stream: func(d llm.Delta) { told += d.Text }}
			for _, e := range events {
				if r.event(name, e) != nil {
					break
				}
			}
			if !r.ended {
				return
			}
			res := r.response(llm.Request{MaxTokens: 10})
			llmtest.CheckResponse(t, res, told)
			if strings.Contains(res.Text, "secret-of-this-test") {
				t.Errorf("the text is %q", res.Text)
			}
		}
		check(bytes.Split(data, []byte("\n")), "")
		check([][]byte{data}, wire.Whole)
	})
}

func FuzzExplain(f *testing.F) {
	f.Add([]byte(`{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"3s"},{"violations":[{"quotaId":"PerDay"}]}]}}`))
	f.Fuzz(func(_ *testing.T, body []byte) { explain(400, nil, body) })
}
