package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/assay-rag/assay/llm"
)

// testHostile checks that for any bytes that a server sends, the outcome is a reply or an error
// that keeps the contract. Most of the checks are in ask.
func (s suite) testHostile(t *testing.T) {
	t.Run("cut", s.testCut)
	t.Run("garbage", s.testGarbage)
	t.Run("mutated", s.testMutated)
	t.Run("bytes", s.testBytes)
}

// served is the number of bytes between cuts made by a real server.
const served = 41

// sample returns which of many similar cases are tested: each, or with -short each n-th.
func sample(n int) int {
	if testing.Short() {
		return n
	}
	return 1
}

// testCut cuts replies off at every byte, by breaking the connection or by ending the body
// normally.
func (s suite) testCut(t *testing.T) {
	for name, script := range map[string]Script{"text": story(), "calls": errands()} {
		body := s.Reply(script, s.stream)
		all, want := body.Bytes(), s.want(script)
		for how, cut := range map[string]error{"connection": io.ErrUnexpectedEOF, "body": nil} {
			t.Run(name+", "+how, func(t *testing.T) {
				wireless := &canned{err: cut}
				setup, ctx := wireless.at(t), bounded(t)
				setup.Stream = s.stream
				var next atomic.Int64
				h := serve(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
					body.begin(w)
					send(w, all[:next.Load()])
					if cut != nil {
						panic(http.ErrAbortHandler)
					}
				})
				quick, real := s.Open(t, setup), s.open(t, h, Setup{})
				step := sample(6)
				for at := 0; at < len(all); at += step {
					next.Store(int64(at))
					wireless.reply = fixed(body.with(all[:at]))
					outcomes := []outcome{ask(ctx, t, quick, conversation())}
					if at%served < step {
						outcomes = append(outcomes, ask(ctx, t, real, conversation()))
					}
					for _, o := range outcomes {
						if !s.mayBeCut(o, want, at, cut != nil) {
							t.Fatalf("cut after %d of %d bytes (…%q): %v", at, len(all), all[max(0, at-40):at], o)
						}
					}
				}
			})
		}
	}
}

// mayBeCut reports whether an outcome is correct for a reply that was cut off. It may be an error,
// or the whole reply if the missing part carried no information.
func (s suite) mayBeCut(o outcome, want llm.Response, at int, broke bool) bool {
	if !strings.HasPrefix(want.Text, strings.Join(o.told, "")) {
		return false
	}
	if o.err == nil {
		got := o.response
		if got.Estimated {
			want.Usage, want.Cached, want.Estimated = got.Usage, got.Cached, true
		}
		return s.differs(want, got) == ""
	}
	switch o.kind() {
	case llm.BrokeOff:
		return true
	case llm.Unreachable:
		return at == 0 && broke
	case llm.BadReply:
		return !broke && (!s.stream || at == 0)
	}
	return false
}

// testGarbage checks bodies that are no reply.
func (s suite) testGarbage(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 20_000)
	bodies := []string{
		"", " ", "\n\n\n", "null", "[]", "{}", "0", `"text"`, "true", "not JSON", "<html>\n<body>hello</body></html>", "\x00\xff\xfe\x00\x00\x00\x10", deep, "{" + strings.Repeat(" ", 1<<16),
		`{"choices":[]}`, `{"choices":null}`, `{"choices":[null]}`, `{"choices":[{}]}`, `{"content":[null]}`, `{"candidates":[{"content":{"parts":[null]}}]}`, `{"output":null}`, `{"output":[null,{}]}`,
	}
	events := []string{
		"data", "data:", "data: \n\n", "data: null\n\n", "data: {}\n\n", "data: [DONE]\n\n", "data: []\n\ndata: [DONE]\n\n", "data: {\n\n", "event: ping\n\n", ": nothing\n\n", "data: " + deep + "\n\n",
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", "data: {\"choices\":[{}]}\n\ndata: [DONE]\n\n", "data: {\"error\":\"no\"}\n\n", "data: {\"error\":{\"message\":\"no\",\"code\":{}}}\n\n",
	}
	call := s.quick(t)
	for _, text := range append(bodies, events...) {
		for _, kind := range []string{"application/json", "text/event-stream", s.Reply(story(), s.stream).Type} {
			body := Body{Type: kind, Parts: [][]byte{[]byte(text)}}
			o := call(t, fixed(body), question())
			if o.kind() == "" {
				t.Errorf("%s of %.60q: %v, want an *llm.Error", kind, text, o)
			}
		}
	}
}

// testMutated replaces each value of a reply's JSON with values of other types, and leaves it out.
// It mutates only the first of several parts with the same shape.
func (s suite) testMutated(t *testing.T) {
	for name, script := range map[string]Script{"text": story(), "calls": errands()} {
		body := s.Reply(script, s.stream)
		if s.stream && !strings.HasPrefix(body.Type, "text/event-stream") {
			t.Skip("the events are not of text")
		}
		t.Run(name, func(t *testing.T) {
			call := s.quick(t)
			shapes := map[string]bool{}
			for i, part := range body.Parts {
				shape := shapeOf(part)
				if shapes[shape] {
					continue // same shape as an earlier part
				}
				shapes[shape] = true
				for _, mutant := range mutants(part) {
					mutated := body.with(slices.Clone(body.Parts)...)
					mutated.Parts[i] = mutant
					o := call(t, fixed(mutated), conversation())
					if t.Failed() {
						t.Fatalf("after part %d was %q: %v", i, mutant, o)
					}
				}
			}
		})
	}
}

// shapeOf returns the JSON document of a part, with strings and numbers reduced to their types.
func shapeOf(part []byte) string {
	_, doc, _ := document(part)
	return marshal(within(doc, func(v any) any { return fmt.Sprintf("%T", v) }))
}

// document returns the JSON document of a part, and the bytes around it.
func document(part []byte) (before []byte, doc any, after []byte) {
	start, end := bytes.IndexByte(part, '{'), bytes.LastIndexByte(part, '}')
	if start < 0 || end < start || json.Unmarshal(part[start:end+1], &doc) != nil {
		return part, nil, nil
	}
	return part[:start], doc, part[end+1:]
}

// mutants returns copies of a part, each with one value of its JSON document replaced or left out.
// With -short it returns a third of them.
func mutants(part []byte) [][]byte {
	before, doc, after := document(part)
	var out [][]byte
	n, step := 0, sample(3)
	emit := func() {
		if n++; n%step != 0 {
			return
		}
		data, err := json.Marshal(doc)
		if err == nil {
			out = append(out, slices.Concat(before, data, after))
		}
	}
	Mutate(doc, emit)
	return out
}

// strange lists replacement values.
var strange = []any{nil, true, -7, 1e18, 1e300, json.RawMessage("1e999"), "", "strange", "\x00\u202e", []any{}, []any{nil}, map[string]any{}}

// Mutate calls emit once for each mutation of doc: each value within it replaced by each of the
// strange ones, or left out. doc is JSON as encoding/json decodes it into an any. Mutate restores
// doc before it returns.
func Mutate(doc any, emit func()) {
	switch v := doc.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			old := v[key]
			for _, value := range strange {
				v[key] = value
				emit()
			}
			delete(v, key)
			emit()
			v[key] = old
			Mutate(old, emit)
		}
	case []any:
		for i, old := range v {
			for _, value := range strange {
				v[i] = value
				emit()
			}
			v[i] = old
			Mutate(old, emit)
		}
	}
}

// testBytes inserts invalid UTF-8 and unwanted characters into the text fields of a reply.
func (s suite) testBytes(t *testing.T) {
	script := story()
	script.Pieces = []string{"before ", "MARK", " after"}
	calls := errands()
	calls.Calls[0].Arguments, calls.Calls[0].Name, calls.Calls[0].ID = `{"query":"MARK"}`, "MARK", "MARK"
	call := s.quick(t)
	for _, insert := range []string{"\xff\xfe", "\xc3", "\xed\xa0\x80", "\x00", "\x1b[2J", `\ud800`, `\udc00\ud800`, `\u0000`, "\ufeff", "\u202e", `\x`, "\xf0\x9f\x98"} {
		for _, script := range []Script{script, calls} {
			t.Run(fmt.Sprintf("%q in %s", insert, script.Finish), func(t *testing.T) {
				call(t, func(r *http.Request, body []byte) Body {
					return s.Reply(script, s.Streams(r, body)).replaced("MARK", insert)
				}, conversation())
			})
		}
	}
}
