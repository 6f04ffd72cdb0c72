package starter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/starter"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/store"
)

// entries returns documents of one passage each, given as alternating titles and texts.
func entries(texts ...string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for i := 0; i < len(texts); i += 2 {
			uri := fmt.Sprintf("/docs/%d.md", i/2)
			d := assay.Document{ID: fmt.Sprint(i), URI: uri, Title: texts[i], Text: texts[i+1]}
			c := assay.Chunk{ID: fmt.Sprint(i), Document: d.ID, Kind: assay.ChunkProse, End: len(d.Text)}
			if !yield(store.Entry{Document: d, Chunks: []assay.Chunk{c}}, nil) {
				return
			}
		}
	}
}

func made(t *testing.T, opts starter.Options, texts ...string) []testset.Case {
	t.Helper()
	cases, err := starter.Make(t.Context(), entries(texts...), opts)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// TestQuestions checks the questions made from single sentences. An empty question means that none
// is expected.
func TestQuestions(t *testing.T) {
	tests := []struct{ text, question, answer string }{
		{"A weak pointer is a special kind of pointer that the collector ignores.", "What is a weak pointer?", "a special kind of pointer that the collector ignores"},
		{"William Farel was a student of Lefevre who went to Geneva.", "Who was William Farel?", "a student of Lefevre who went to Geneva"},
		{"Travel to a customer is approved by the head of the department.", "Who is travel to a customer approved by?", "the head of the department"},
		{"Receipts of journeys are handed in within 30 days.", "Within how many days are receipts of journeys handed in?", "30 days"},
		{"Warsaw's first stock exchange was established in 1817 and grew.", "When was Warsaw's first stock exchange established?", "in 1817"},
		{"In 1973, Nixon named William Simon as the head of an office.", "When did Nixon name William Simon as the head of an office?", "in 1973"},
		{"Polonia's home venue is located at Konwiktorska Street, which is long.", "Where is Polonia's home venue located?", "at Konwiktorska Street"},
		{"The SELECT statement is used to query the database for rows.", "What is the SELECT statement used for?", "to query the database for rows"},
		{"The SELECT statement is the most complicated command in SQL.", "What is the most complicated command in SQL?", "the SELECT statement"},
		{"Go 1.26 introduces two significant refinements to the language.", "How many significant refinements does Go 1.26 introduce to the language?", "two significant refinements"},
		{"Peyton Manning became the first quarterback to lead two teams.", "Who became the first quarterback to lead two teams?", "Peyton Manning"},
		{"To create a branch in Git, use the branch command.", "How do you create a branch in Git?", "use the branch command"},
		{"Transaction speed of SQLite is limited because disks are slow.", "Why is transaction speed of SQLite limited?", "disks are slow"},
		{"Visitors of the office must wear a yellow badge at all times.", "What must visitors of the office do?", "wear a yellow badge at all times"},
		{"A recovery file can be deleted after the transaction has ended.", "When can a recovery file be deleted?", "after the transaction has ended"},
		{"Kenya has a population of approximately 45 million people.", "What is the population of Kenya?", "approximately 45 million people"},
		{"The company was founded in Ghent in 1987 by Anna Peeters.", "According to “T”, when was the company founded in Ghent?", "in 1987"},
		{"It is a special kind of pointer that nobody knows about.", "", ""},
		{"However, the value is a special kind of pointer as well.", "", ""},
		{"If the flag is set, the file is a special kind of file.", "", ""},
		{"See https://example.com/x for what the value of it is.", "", ""},
		// A word is missing because markup was dropped.
		{"A parameter specifying a of the profile may be placed before the name.", "", ""},
		// They refer to an earlier antecedent.
		{"The number is a special kind of value that nobody knows about.", "", ""},
		{"Beside static is a strategy that asks in several rounds at once.", "", ""},
		{"Absence indicates the end of the list of all the parameters.", "", ""},
		{"Subsequent revisions were released in 1994 by the same people.", "", ""},
		{"T is called the receiver base type of the method in question.", "", ""},
		{"The component describes the value of all other fields there are.", "", ""},
		{"Maintainers should follow the rules of the policy in their work.", "", ""},
		// An answer is not cut off and does not run into another statement.
		{"The manual was released on October 9, 1994 and March 28, 1995 in Paris.", "", ""},
		{"The Step package is provided by the package system based on files of text.", "", ""},
		{"Old names are kept because of considerable precedent in the field.", "Why are old names kept?", "considerable precedent in the field"},
		{"Master keys of servers are kept in the vault and must be changed every year.", "Where are master keys of servers kept?", "in the vault"},
		{"Step values of a range can be used in conjunction with ranges of hours.", "", ""},
		{"Travel outside Europe is approved by the board as well.", "Who is travel outside Europe approved by?", "the board"},
		{"NAME | VALUE | the table is a row of cells and no prose.", "", ""},
	}
	for _, tt := range tests {
		cases := made(t, starter.Options{Questions: 1, Unanswerable: -1}, "T", tt.text)
		if tt.question == "" {
			if len(cases) > 0 {
				t.Errorf("%q became %q", tt.text, cases[0].Question)
			}
			continue
		}
		if len(cases) != 1 || cases[0].Question != tt.question || !slices.Equal(cases[0].Answers, []string{tt.answer}) {
			t.Errorf("%q became %+v, want %q and %q", tt.text, cases, tt.question, tt.answer)
			continue
		}
		if g := cases[0].Gold[0]; g.Quote != tt.text || tt.text[g.Start:g.End] != g.Quote || g.Document != "0.md" {
			t.Errorf("%q: gold %+v", tt.text, g)
		}
	}
}

// TestMake checks that a set has questions from all documents, no duplicates, the same content each
// time, and some questions that no document answers.
func TestMake(t *testing.T) {
	var texts []string
	for i, city := range []string{"Ghent", "Bruges", "Namur", "Leuven", "Mechelen", "Ostend"} {
		texts = append(texts, city, fmt.Sprintf("People say that %s is old. %s is a city in Belgium with a long history. %s has a population of %d people. "+
			"%s Station was opened in %d near the centre. The tower of %s is used to keep the archives dry.", city, city, city, 50_000+i, city, 1850+i, city))
	}
	cases := made(t, starter.Options{Questions: 10}, texts...)
	if len(cases) != 10 {
		t.Fatalf("%d cases: %+v", len(cases), cases)
	}
	documents, questions, unanswerable := map[string]int{}, map[string]bool{}, 0
	for i, c := range cases {
		if c.ID != fmt.Sprintf("q%03d", i+1) || questions[c.Question] || !strings.HasSuffix(c.Question, "?") || !c.Labelled() {
			t.Errorf("case %+v", c)
		}
		questions[c.Question] = true
		if c.Unanswerable {
			unanswerable++
			continue
		}
		documents[c.Gold[0].Document]++
	}
	if unanswerable != 2 || len(documents) != 6 {
		t.Errorf("%d unanswerable, want 2; of documents %v, want all six", unanswerable, documents)
	}
	if diff := cmp.Diff(cases, made(t, starter.Options{Questions: 10}, texts...), cmp.AllowUnexported(testset.Case{})); diff != "" {
		t.Errorf("made again: %s", diff)
	}
	if none := made(t, starter.Options{}, "T", "", "U", "| a | b |"); len(none) != 0 {
		t.Errorf("of nothing: %+v", none)
	}
}

// TestMakeInProportion checks that a small set has proportionally few unanswerable questions, and
// that these make sense. A language is not sold, and a phrase is not a name.
func TestMakeInProportion(t *testing.T) {
	texts := []string{"Keys", "People say that the Antwerp Office is old. The Antwerp Office was opened in 1994 near the harbour. " +
		"The colour of the golden badge is known. A weak pointer is a special kind of pointer that the collector ignores. " +
		"Travel to a customer is approved by the head of the department. Receipts of journeys are handed in within 30 days."}
	cases := made(t, starter.Options{Questions: 50, Unanswerable: 0.2}, texts...)
	unanswerable := 0
	for _, c := range cases {
		if c.Unanswerable {
			unanswerable++
			if !strings.Contains(c.Question, "the Antwerp Office") {
				t.Errorf("asked in vain: %q", c.Question)
			}
		}
	}
	if len(cases) < 4 || len(cases) > 7 || unanswerable != 1 {
		t.Errorf("%d of %d are unanswerable, want one of about five", unanswerable, len(cases))
	}
	for _, c := range made(t, starter.Options{Questions: 4, Unanswerable: 0.5}, "Code", "Each RecvExpr is seen by the RecvExpr reader. RecvExpr is a special kind of value that is sent. Kenya has a population of approximately 45 million people.") {
		if strings.Contains(c.Question, "RecvExpr") && c.Unanswerable {
			t.Errorf("asked in vain of a program's text: %q", c.Question)
		}
	}
}

// TestWritten checks that a model writes questions, and that one whose quote is not in the passage
// is left out.
func TestWritten(t *testing.T) {
	long := strings.Repeat("The harbour of Ostend was enlarged in 1870 for ferries to Dover. ", 5)
	n := 0
	model := &llmtest.Scripted{Reply: func(req llm.Request) (llm.Response, error) {
		n++
		reply := map[string]any{"usable": true, "question": fmt.Sprintf("Which harbour number %d was enlarged for ferries?", n), "answer": "that of Ostend", "quote": "The harbour of Ostend was enlarged in 1870"}
		switch {
		case strings.Contains(req.Messages[0].Text, "a quote that is not there"):
			reply["quote"] = "The harbour of Bruges was enlarged"
		case strings.Contains(req.Messages[0].Text, "a menu"):
			reply = map[string]any{"usable": false, "question": "", "answer": "", "quote": ""}
		}
		data, err := json.Marshal(reply)
		return llm.Response{Text: string(data)}, err
	}}
	cases := made(t, starter.Options{Questions: 3, Unanswerable: -1, Writer: starter.Prompted{Model: model}},
		"Ostend", long, "Other", long+"a quote that is not there", "Menu", long+"a menu")
	if len(cases) != 1 || cases[0].Question != "Which harbour number 1 was enlarged for ferries?" || cases[0].Gold[0].Quote != "The harbour of Ostend was enlarged in 1870" || cases[0].Gold[0].Document != "0.md" {
		t.Errorf("%+v", cases)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := starter.Make(ctx, entries("Ostend", long), starter.Options{Writer: starter.Prompted{Model: model}}); err == nil {
		t.Error("the end of the context is no error")
	}
}

// FuzzMake checks that every quote of a case occurs in its document.
func FuzzMake(f *testing.F) {
	f.Add("A weak pointer is a special kind of pointer that the collector ignores.")
	f.Add("In 1973, Nixon named William Simon as the head of an office. Ghent has a population of 260,000 people.")
	f.Add("To create a branch in Git, use the branch command. \xff Ünïcode’s first rule is a rule of 3 bytes.")
	f.Fuzz(func(t *testing.T, text string) {
		cases, err := starter.Make(t.Context(), entries("T", text), starter.Options{Questions: 5})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			for _, g := range c.Gold {
				if text[g.Start:g.End] != g.Quote {
					t.Errorf("%q is not at %d", g.Quote, g.Start)
				}
			}
		}
	})
}

// TestHeadings checks that a heading that is a question or names a task yields a question about its
// section.
func TestHeadings(t *testing.T) {
	const text = "An agent is put on the machine with the installer, which asks for the key, and then begins to send what it measures."
	for heading, want := range map[string]string{
		"Installing the agent":             "How do you install the agent?",
		"Building from source":             "How do you build from source?",
		"Setting the time zone":            "How do you set the time zone?",
		"How to connect a second gateway":  "How do you connect a second gateway?",
		"What happens when a key is lost?": "What happens when a key is lost?",
		"Opening hours":                    "",
		"Understanding the agent":          "",
		"Operating system requirements":    "",
		"Installing it":                    "",
		"Overview":                         "",
	} {
		d := assay.Document{ID: "d", URI: "/docs/a.md", Title: "T", Text: text}
		c := assay.Chunk{ID: "c", Document: "d", Kind: assay.ChunkProse, End: len(text), Headings: []string{"T", heading}}
		all := func(yield func(store.Entry, error) bool) {
			yield(store.Entry{Document: d, Chunks: []assay.Chunk{c}}, nil)
		}
		cases, err := starter.Make(t.Context(), all, starter.Options{Questions: 9, Unanswerable: -1})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range cases {
			if c.Slices["type"] == "section" {
				got = c.Question
				if diff := cmp.Diff([]testset.Gold{{Document: "a.md", Section: heading}}, c.Gold); diff != "" {
					t.Error(diff)
				}
			}
		}
		if got != want {
			t.Errorf("%q became %q, want %q", heading, got, want)
		}
	}
}
