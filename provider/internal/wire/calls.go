package wire

import (
	"fmt"

	"github.com/assay-rag/assay/llm"
)

// Distinct gives each call an ID that no other of the reply has: the service's own
// where it has one, made up where it has none or the same one twice. It returns
// calls, changed.
func Distinct(calls []llm.ToolCall) []llm.ToolCall {
	taken := map[string]bool{"": true}
	for i := range calls {
		id := calls[i].ID
		for n := i + 1; taken[id]; n++ {
			id = fmt.Sprintf("call_%d", n)
		}
		calls[i].ID, taken[id] = id, true
	}
	return calls
}
