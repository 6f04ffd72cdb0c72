package websearch

import (
	"errors"
	"testing"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/internal/wire"
)

func TestClean(t *testing.T) {
	tests := []struct {
		name string
		raw  []Result
		want []string // addresses
		fail bool
	}{
		{"none", nil, nil, false},
		{"one without an address", []Result{{Title: "No address"}, {URL: "https://example.org/a#b"}, {URL: " "}}, []string{"https://example.org/a"}, false},
		{"none has one", []Result{{Title: "No address"}, {Text: "Nor this"}}, nil, true},
		{"others than the web's", []Result{{URL: "javascript:alert(1)"}, {URL: "file:///etc/passwd"}, {URL: "https://user@example.org"}, {URL: "http://example.org"}}, []string{"http://example.org"}, false},
		{"twice", []Result{{URL: "https://example.org/a"}, {URL: "https://example.org/a#c"}}, []string{"https://example.org/a"}, false},
	}
	for _, test := range tests {
		got, err := clean(&wire.Client{}, test.raw, 5)
		if failed := (*llm.Error)(nil); test.fail != (errors.As(err, &failed) && failed.Kind == llm.BadReply) || len(got) != len(test.want) {
			t.Errorf("%s: %v, %v", test.name, got, err)
			continue
		}
		for i := range got {
			if got[i].URL != test.want[i] {
				t.Errorf("%s: %v", test.name, got)
			}
		}
	}
}
