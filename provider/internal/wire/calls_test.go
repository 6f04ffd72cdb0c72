package wire

import (
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

func TestCalls(t *testing.T) {
	c := Client{Secrets: []Secret{NewSecret("a-secret-of-length")}}
	got := c.Calls([]llm.ToolCall{{ID: "a-secret-of-length", Name: "n\xff", Arguments: `{"q":"a-secret-of-length"}`, Opaque: "a-secret-of-length"}, {}})
	want := []llm.ToolCall{{ID: "[secret]", Name: "n\uFFFD", Arguments: `{"q":"[secret]"}`, Opaque: "[secret]"}, {ID: "call_2"}}
	if !slices.Equal(got, want) {
		t.Errorf("Calls = %q, want %q", got, want)
	}
}
