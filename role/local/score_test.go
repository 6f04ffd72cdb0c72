package local

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/role"
)

func TestRead(t *testing.T) {
	tests := []struct {
		text  string
		terms []string
		names []string
	}{
		{"How long is the notice period?", []string{"notice", "period"}, nil},
		{"Who wrote Hamlet in 1601?", []string{"wrote", "Hamlet", "1601"}, []string{"Hamlet", "1601"}},
		{"As said in [12], what is os.Open?", []string{"os.Open", "os", "Open"}, []string{"os.Open"}},
		{"What is it?", nil, nil},
	}
	for _, tt := range tests {
		q := read(tt.text, nil)
		var got []string
		for _, term := range q.terms {
			got = append(got, term.Text)
		}
		if diff := cmp.Diff(tt.terms, got); diff != "" {
			t.Errorf("read(%q): terms (-want +got):\n%s", tt.text, diff)
		}
		if diff := cmp.Diff(tt.names, q.names); diff != "" {
			t.Errorf("read(%q): names (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestDefines(t *testing.T) {
	tests := []struct {
		question, text string
		want           bool
	}{
		{"What is a data race?", "A data race is defined as two accesses.", true},
		{"What is a data race?", "A data race detector is a tool.", true},
		{"What is a data race?", "Programs that have a data race are wrong.", false},
		{"What is a data race?", "A data race is not a deadlock.", false},
		{"How do I find a data race?", "A data race is defined as two accesses.", false},
		{"What is it?", "It is a data race.", false},
	}
	for _, tt := range tests {
		if got := defines(read(tt.question, nil), tt.text, ""); got != tt.want {
			t.Errorf("defines(%q, %q) = %v, want %v", tt.question, tt.text, got, tt.want)
		}
	}
}

func TestFits(t *testing.T) {
	tests := []struct {
		question string
		yes, no  string
	}{
		{"How many days are there?", "There are 3 days.", "There are days."},
		{"How long is it?", "It lasts two weeks.", "It lasts for weeks."},
		{"When was it built?", "It was built in 1999.", "It was built of stone."},
		{"What happens if it fails?", "When it fails, it stops.", "It stops and fails."},
		{"Who approves travel?", "It is Ann Lee who approves it.", "It is approved."},
		{"Why is it slow?", "It is slow because it waits.", "It is slow."},
		{"How do I start it?", "To start it, run make.", "It starts well."},
		{"What is a lease?", "A lease is a right.", "Leases expire."},
	}
	for _, tt := range tests {
		if !fits(tt.question, tt.yes) {
			t.Errorf("fits(%q, %q) = false", tt.question, tt.yes)
		}
		if fits(tt.question, tt.no) {
			t.Errorf("fits(%q, %q) = true", tt.question, tt.no)
		}
	}
}

// A sentence that stands well by itself loses less than one that does not.
func TestFlaws(t *testing.T) {
	whole := flaws(candidate{unit: unit{text: "The lease ends in May."}, at: 1, words: 5})
	for name, c := range map[string]candidate{
		"a question":         {unit: unit{text: "When does the lease end?"}, at: 1},
		"an announcement":    {unit: unit{text: "The lease ends when:"}, at: 1},
		"a heading":          {unit: unit{text: "The end of the lease"}, at: 1},
		"a fragment":         {unit: unit{text: "ends in May."}, at: 1},
		"leans on the last":  {unit: unit{text: "It ends in May."}, at: 1},
		"more than 50 words": {unit: unit{text: "The lease ends in May."}, at: 1, words: 51},
	} {
		if got := flaws(c); got <= whole {
			t.Errorf("%s loses %v, a whole sentence %v", name, got, whole)
		}
	}
	if first := flaws(candidate{unit: unit{text: "The lease ends in May."}, words: 5}); first >= whole {
		t.Errorf("the first sentence loses %v, another %v", first, whole)
	}
}

// TestHostileSize gives the roles the longest question there is, of nothing but
// names, and a megabyte in one sentence; it passes by ending.
func TestHostileSize(t *testing.T) {
	var names, words strings.Builder
	for i := 0; names.Len() < 8<<10; i++ {
		fmt.Fprintf(&names, "X%d y ", i)
		fmt.Fprintf(&words, "X%d ", i)
	}
	h := assay.Hit{Text: strings.Repeat("alpha ", 1<<17) + strings.Repeat("filler ", 20) + strings.Repeat("beta ", 1<<17), Scores: assay.Scores{Relevance: 0.9}}
	for question, words := range map[string]string{
		names.String():               words.String(),
		"What is alpha and beta?":    "alpha beta",
		strings.Repeat("and ", 2048): "and",
	} {
		in := role.GradeInput{Question: question, Terms: read(words, nil).terms, Hits: []assay.Hit{h}, Floor: 0.5}
		if _, err := (Grader{}).Grade(t.Context(), nil, in); err != nil {
			t.Error(err)
		}
		if _, err := (Planner{}).Plan(t.Context(), nil, question); err != nil {
			t.Error(err)
		}
		part := role.Part{Question: question, Terms: in.Terms, Evidence: []int{1}}
		if _, err := (Generator{}).Generate(t.Context(), nil, role.GenerateInput{Question: question, Parts: []role.Part{part}, Evidence: []assay.Evidence{{Number: 1, Hit: h}}}); err != nil {
			t.Error(err)
		}
	}
}

func TestWithin(t *testing.T) {
	tests := []struct {
		a, b []int
		want bool
	}{
		{nil, nil, false},
		{[]int{1}, nil, false},
		{[]int{1}, []int{4}, true},
		{[]int{4}, []int{1}, true},
		{[]int{1}, []int{5}, false},
		{[]int{1, 20}, []int{10, 22, 40}, true},
		{[]int{1, 20}, []int{10, 30}, false},
	}
	for _, tt := range tests {
		if got := within(3, tt.a, tt.b); got != tt.want {
			t.Errorf("within(3, %v, %v) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}
