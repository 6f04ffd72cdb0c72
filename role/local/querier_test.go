package local_test

import (
	"context"
	"testing"

	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
)

func TestNext(t *testing.T) {
	const walsh = "Who is the spouse of the director of Jump for Glory?"
	tests := []struct {
		name  string
		in    role.QueryInput
		query string
	}{
		{
			"a name beside what is asked", role.QueryInput{Question: walsh, History: []role.Asked{
				{Query: walsh, Brought: "Jump for Glory: Jump for Glory is a 1937 British comedy film starring Douglas Fairbanks Jr. and Valerie Hobson and directed by Raoul Walsh."},
			}},
			"raoul walsh spouse",
		},
		{
			"another name when that was searched", role.QueryInput{Question: walsh, History: []role.Asked{
				{Query: walsh, Brought: "Jump for Glory was directed by Raoul Walsh. It stars Valerie Hobson."},
				{Query: "raoul walsh spouse", Brought: "nothing"},
			}},
			"valerie hobson spouse",
		},
		{
			"what is missing", role.QueryInput{Question: "How long does the E1042 retry last?", Gaps: []string{"the retry interval"}, History: []role.Asked{
				{Query: "How long does the E1042 retry last?", Brought: "nothing"},
			}},
			"retry interval E1042",
		},
		{
			"nothing better is known", role.QueryInput{Question: "What is a slice?", History: []role.Asked{
				{Query: "What is a slice?", Brought: "A slice is a part of an array."},
			}},
			"",
		},
		{
			"a name beside nothing that the question names", role.QueryInput{Question: "What does GOGC control?", History: []role.Asked{
				{Query: "What does GOGC control?", Brought: "TLS: The RSA keys control access to os.Open.\nMaps: Aliases control nothing."},
			}},
			"",
		},
		{
			"a name beside half of what names nothing", role.QueryInput{Question: "who approves parental leave abroad", History: []role.Asked{
				{Query: "who approves parental leave abroad", Brought: "Travel: Trips abroad are paid by Acme.\nLeave: Parental leave is handled by the office of Ada Lovelace."},
			}},
			"ada lovelace approves abroad",
		},
		{"no question", role.QueryInput{}, ""},
		{"nothing was searched", role.QueryInput{Question: "What is a slice?"}, "slice"},
	}
	for _, tt := range tests {
		got, err := local.Querier{}.Next(context.Background(), nil, tt.in)
		if err != nil {
			t.Fatal(err)
		}
		if got.Query != tt.query || got.Reason == "" {
			t.Errorf("%s: Next = %+v, want %q", tt.name, got, tt.query)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (local.Querier{}).Next(ctx, nil, role.QueryInput{Question: walsh}); err == nil {
		t.Error("Next goes on when its context has ended")
	}
}
