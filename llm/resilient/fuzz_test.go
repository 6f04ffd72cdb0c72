package resilient

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// FuzzModel checks that for anything that a model replies and streams, a guarded model keeps the
// contract and streams a text only once.
func FuzzModel(f *testing.F) {
	f.Add("Five days.", "Five| days|.", "call_1", "call_1", "search", "{}", "stop", 10, 3, 2)
	f.Add("a\xff", "a|\xff", "", "\xfe", "\x00", `{"q":`, "banana", -1, 1<<40, -7)
	f.Add("", "x|", "call_2", "", "", "", "", 0, 0, 0)
	f.Fuzz(func(t *testing.T, text, pieces, one, other, name, arguments, finish string, in, out, cached int) {
		inner := streamer(func(n int, stream func(llm.Delta)) (llm.Response, error) {
			for i, p := range strings.Split(pieces, "|") {
				if n == 0 && i > 1 {
					return llm.Response{}, &llm.Error{Model: name, Kind: llm.RateLimited, Message: text, RetryAfter: -1, Usage: assay.Usage{InputTokens: in, OutputTokens: out}}
				}
				stream(llm.Delta{Text: p})
			}
			return llm.Response{
				Text: text, Finish: llm.Finish(finish), Served: name, Cached: cached, Usage: assay.Usage{Calls: cached, InputTokens: in, OutputTokens: out, Searches: in},
				Calls: []llm.ToolCall{{ID: one, Name: name, Arguments: arguments}, {ID: other, Name: name, Arguments: arguments}, {}},
			}, nil
		})
		var told strings.Builder
		m := New(Config{Rand: func() float64 { return 0 }}).Model(inner, llm.Facts{Priced: true, Input: 5, Output: 7})
		r, err := m.Generate(context.Background(), request(2), func(d llm.Delta) { told.WriteString(d.Text) })
		calls := inner.(*streaming).n
		checkKept(t.Context(), t, r, err, calls)
		if e, _ := errors.AsType[*llm.Error](err); err != nil && e.Kind != llm.BadReply && e.Kind != llm.TooLarge {
			t.Errorf("%v", err)
		}
		if whole := valid(strings.ReplaceAll(pieces, "|", "")); calls == 1 && strings.ToValidUTF8(pieces, "") == pieces && !strings.HasPrefix(told.String(), whole) {
			t.Errorf("told %q of %q", told.String(), whole)
		}
	})
}
