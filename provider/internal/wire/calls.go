package wire

import (
	"fmt"
	"strings"

	"github.com/assay-rag/assay/llm"
)

// Distinct gives each call an ID that no other of the reply has: the service's own
// where it has one, made up where it has none or the same one twice. It returns
// calls, changed.
func Distinct(calls []llm.ToolCall) []llm.ToolCall {
	taken, next := map[string]bool{"": true}, 1
	for i := range calls {
		id := calls[i].ID
		for next = max(next, i+1); taken[id]; next++ {
			id = fmt.Sprintf("call_%d", next)
		}
		calls[i].ID, taken[id] = id, true
	}
	return calls
}

// Calls returns the calls of a reply as a Response has them: with distinct IDs,
// without the client's credentials, and as UTF-8.
func (c *Client) Calls(calls []llm.ToolCall) []llm.ToolCall {
	for i := range calls {
		for _, text := range []*string{&calls[i].ID, &calls[i].Name, &calls[i].Arguments, &calls[i].Opaque} {
			*text = strings.ToValidUTF8(c.Scrub(*text), "\uFFFD")
		}
	}
	return Distinct(calls)
}
