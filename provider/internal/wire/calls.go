package wire

import (
	"fmt"
	"strings"

	"github.com/assay-rag/assay/llm"
)

// Distinct ensures that each call has a unique ID. It keeps the service's IDs, and generates one
// for a call whose ID is missing or a duplicate. It modifies and returns calls.
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

// Calls returns the calls of a reply as a Response requires them: with distinct IDs, without the
// client's credentials, and as valid UTF-8.
func (c *Client) Calls(calls []llm.ToolCall) []llm.ToolCall {
	for i := range calls {
		for _, text := range []*string{&calls[i].ID, &calls[i].Name, &calls[i].Arguments, &calls[i].Opaque} {
			*text = strings.ToValidUTF8(c.Scrub(*text), "\uFFFD")
		}
	}
	return Distinct(calls)
}
