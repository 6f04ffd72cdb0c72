package wire

import (
	"fmt"
	"slices"
	"testing"

	"github.com/assay-rag/assay/llm"
)

func TestDistinct(t *testing.T) {
	tests := []struct{ given, want []string }{
		{nil, nil},
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"", ""}, []string{"call_1", "call_2"}},
		{[]string{"a", "a", "a"}, []string{"a", "call_2", "call_3"}},
		{[]string{"call_2", "", "call_2"}, []string{"call_2", "call_3", "call_4"}},
	}
	for _, test := range tests {
		var calls []llm.ToolCall
		for _, id := range test.given {
			calls = append(calls, llm.ToolCall{ID: id})
		}
		var got []string
		for _, c := range Distinct(calls) {
			got = append(got, c.ID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("Distinct of %q = %q, want %q", test.given, got, test.want)
		}
	}
}

// TestDistinctOfMany checks that generating IDs is fast for any IDs of the service.
func TestDistinctOfMany(t *testing.T) {
	const n = 200_000
	calls := make([]llm.ToolCall, 2*n)
	for i := range n {
		calls[i].ID = fmt.Sprintf("call_%d", n+i)
	}
	seen := map[string]bool{}
	for _, c := range Distinct(calls) {
		seen[c.ID] = true
	}
	if len(seen) != 2*n || seen[""] {
		t.Errorf("%d IDs for %d calls", len(seen), 2*n)
	}
}

func TestCalls(t *testing.T) {
	c := Client{Secrets: []Secret{NewSecret("a-secret-of-length")}}
	got := c.Calls([]llm.ToolCall{{ID: "a-secret-of-length", Name: "n\xff", Arguments: `{"q":"a-secret-of-length"}`, Opaque: "a-secret-of-length"}, {}})
	want := []llm.ToolCall{{ID: "[secret]", Name: "n\uFFFD", Arguments: `{"q":"[secret]"}`, Opaque: "[secret]"}, {ID: "call_2"}}
	if !slices.Equal(got, want) {
		t.Errorf("Calls = %q, want %q", got, want)
	}
}
