package anthropic

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
	f.Add([]byte(`{"type":"message","model":"m","content":[{"type":"thinking","thinking":"a","signature":"b"},{"type":"tool_use","id":"t","name":"n","input":{}},{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"cache_read_input_tokens":-1,"output_tokens":2}}`))
	f.Add([]byte(`{"type":"message_start","message":{"usage":{"input_tokens":3}}}
{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}
{"type":"content_block_start","index":7,"content_block":{"type":"tool_use","id":"","name":"n","input":{}}}
{"type":"content_block_delta","index":7,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}
{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"explanation":"no"}},"usage":{"output_tokens":9}}
{"type":"message_stop"}`))
	f.Add([]byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
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
	f.Add([]byte(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 2 tokens > 1 maximum"}}`))
	f.Fuzz(func(_ *testing.T, body []byte) { explain(400, nil, body) })
}
