package strategy

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-rag/assay"
)

// FuzzDelegated checks that statements taken from a service's answer are pieces of its text,
// whatever spans it reports.
func FuzzDelegated(f *testing.F) {
	f.Add("The cache holds keys. More.", 0, 21, 5, 3)
	f.Add("", -1, 1, 0, 0)
	f.Add("日本", 0, 1, 3, 6)
	f.Fuzz(func(t *testing.T, text string, a, b, c, d int) {
		hit := assay.Hit{Text: "words", Chunk: assay.Chunk{ID: "x"}}
		got := splitManagedAnswer(ManagedAnswer{Text: text, Parts: []ManagedPart{{a, b, []assay.Hit{hit}}, {c, d, []assay.Hit{hit, {}}}, {a, d, nil}}})
		end := 0
		for _, p := range got.answer.Parts {
			if p.Start < end || p.End <= p.Start || p.End > len(text) || len(p.Hits) != 1 || p.Hits[0].Origin != assay.FromService {
				t.Fatalf("%q: part %+v after %d", text, p, end)
			}
			end = p.End
		}
		if len(got.hits) > 1 {
			t.Errorf("%d hits of one", len(got.hits))
		}
	})
}

func TestWebQuery(t *testing.T) {
	long := strings.Repeat("what is the cache ", 60)
	for question, cut := range map[string]bool{"": false, "How long may\n a cache hold a key?": false, long: true, strings.Repeat("x", 3000): true, strings.Repeat("ab ", 50): false, strings.Repeat("ab ", 51): true} {
		query, was := webQuery(question)
		if was != cut || len(strings.Fields(query)) > maxWebWords || utf8.RuneCountInString(query) > maxWebRunes || strings.ContainsAny(query, "\n\t") {
			t.Errorf("%.40q: %d words, %d characters, cut %v", question, len(strings.Fields(query)), utf8.RuneCountInString(query), was)
		}
		if cut && question == long && !strings.HasPrefix(query, "cache cache") {
			t.Errorf("%.60q is left of the long question", query)
		}
	}
}

// TestElsewhere checks that the notice is before the text and that claims keep their words.
func TestElsewhere(t *testing.T) {
	a := assay.Answer{Text: "One. [2] Two. [11]", Claims: []assay.Claim{{Start: 0, End: 4}, {Start: 9, End: 13}}, Citations: []assay.Citation{
		{Number: 11, Origin: assay.FromWeb}, {Number: 2, Origin: assay.FromWeb}, {Number: 2, Origin: assay.FromWeb}, {Number: 3}, {Number: 4, Origin: assay.FromService},
	}}
	markExternal(&a)
	const want = "Statements citing [2], [11] are from the web, not from your documents.\n\nStatements citing [4] are from a managed service, not from your documents.\n\nOne. [2] Two. [11]"
	if a.Text != want || a.Text[a.Claims[0].Start:a.Claims[0].End] != "One." || a.Text[a.Claims[1].Start:a.Claims[1].End] != "Two." {
		t.Errorf("%q, %+v", a.Text, a.Claims)
	}
	b := assay.Answer{Text: "One. [1]", Citations: []assay.Citation{{Number: 1}}}
	if markExternal(&b); b.Text != "One. [1]" {
		t.Errorf("%q", b.Text)
	}
}

// TestOwnWords checks that only the caller's own words are searched for on the web.
func TestOwnWords(t *testing.T) {
	const asked = "How long may Falcon's cache hold a key, and who runs it?"
	tests := []struct{ asked, question, sub, want string }{
		{"", asked, "How long may Falcon's cache hold a key?", "How long may Falcon's cache hold a key?"},
		{"", asked, "who runs it?", "who runs it?"}, {"", asked, "cache KEY", "cache KEY"},
		{"", asked, "How long may the cache of project Osprey hold a key?", asked},
		{asked, asked, "Falcon password hunter2", asked},
		{"And who runs the other one?", "Who runs the Osprey cache?", "Who runs the Osprey cache?", ""}, // as rewritten from a conversation
		{"And who runs the other one?", "Who runs the other one?", "Who runs the other Osprey?", "Who runs the other one?"},
	}
	for _, test := range tests {
		got, ok := Env{Request: Request{Question: test.question}, state: state{asked: test.asked}}.publicWords(test.sub)
		if got != test.want || ok != (test.want != "") {
			t.Errorf("%q, asked as %q, understood as %q, goes to the web as %q, %v", test.sub, test.asked, test.question, got, ok)
		}
	}
}
