package ambiguity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// hit returns a passage, given the collection and URI of its document, its title, heading and text.
func hit(at, title, heading, text string, relevance float64) assay.Hit {
	collection, uri, _ := strings.Cut(at, ":")
	h := assay.Hit{
		Chunk: assay.Chunk{ID: at + text, Document: assay.DocumentID(collection, uri)}, Collection: collection, URI: uri, Title: title, Text: text,
		Scores: assay.Scores{Relevance: relevance},
	}
	if heading != "" {
		h.Chunk.Headings = []string{heading}
	}
	return h
}

func names(senses []Meaning) []string {
	var out []string
	for _, s := range senses {
		out = append(out, s.Name)
	}
	return out
}

func TestAlike(t *testing.T) {
	one := "The timeout is 30 seconds."
	other := "The timeout is 60 seconds."
	const question = "What is the timeout?"
	tests := []struct {
		name, question string
		hits           []assay.Hit
		want           []string
	}{
		{"versions", question, []assay.Hit{hit("d:a.md", "Widget 1.0", "", one, 0.9), hit("d:b.md", "Widget 2.0", "", other, 0.9)}, []string{"Widget 2.0", "Widget 1.0"}},
		{"versions, the newest first", question, []assay.Hit{hit("d:a.md", "Widget 9.1", "", one, 0.9), hit("d:b.md", "Widget 10.0", "", other, 0.9)}, []string{"Widget 10.0", "Widget 9.1"}},
		{"products", question, []assay.Hit{hit("d:a.md", "Widget manual", "", one, 0.9), hit("d:b.md", "Gadget manual", "", other, 0.9)}, []string{"Widget manual", "Gadget manual"}},
		{"collections", question, []assay.Hit{hit("de:t.md", "Timeouts", "", one, 0.9), hit("us:t.md", "Timeouts", "", other, 0.8)}, []string{"Timeouts (de)", "Timeouts (us)"}},
		{"folders", question, []assay.Hit{hit("d:x/a/t.md", "Timeouts", "", one, 0.9), hit("d:x/b/t.md", "Timeouts", "", other, 0.9)}, []string{"Timeouts (x/a/t.md)", "Timeouts (x/b/t.md)"}},
		{"a heading", question, []assay.Hit{hit("d:a.md", "Widget 1.0", "Timeout", "Wait 30 s.", 0.9), hit("d:b.md", "Widget 2.0", "Timeout", "It gives up after a minute.", 0.9)}, []string{"Widget 2.0", "Widget 1.0"}},
		{"no titles", question, []assay.Hit{hit("d:widget-1.md", "", "", one, 0.9), hit("d:widget-2.md", "", "", other, 0.9)}, []string{"widget-2", "widget-1"}},

		{"neither has the question's name", "What is the timeout of Kestrel?", []assay.Hit{hit("d:a.md", "Widget 1.0", "", one, 0.9), hit("d:b.md", "Widget 2.0", "", other, 0.9)}, nil},
		{"one has not all of its words", "How is the timeout set?", []assay.Hit{hit("d:a.md", "Widget 1.0", "", one, 0.9), hit("d:b.md", "Widget 2.0", "", "The timeout is set to 60 seconds.", 0.9)}, nil},
		{"the title has them", "What is the timeout of the widget?", []assay.Hit{hit("d:a.md", "Widget 1.0", "", one, 0.9), hit("d:b.md", "Widget 2.0", "", other, 0.9)}, []string{"Widget 2.0", "Widget 1.0"}},
		{"in capitals", "WHAT IS THE TIMEOUT?", []assay.Hit{hit("d:a.md", "Widget 1.0", "", one, 0.9), hit("d:b.md", "Widget 2.0", "", other, 0.9)}, []string{"Widget 2.0", "Widget 1.0"}},

		{"the question says which", "What is the timeout of 2.0?", []assay.Hit{hit("d:a.md", "Widget 1.0", "", one, 0.9), hit("d:b.md", "Widget 2.0", "", other, 0.9)}, nil},
		{"it asks for each", "What is the timeout of each?", []assay.Hit{hit("d:a.md", "Widget 1.0", "", one, 0.9), hit("d:b.md", "Widget 2.0", "", other, 0.9)}, nil},
		{"it compares", "How do the timeouts differ?", []assay.Hit{hit("d:a.md", "Widget 1.0", "", one, 0.9), hit("d:b.md", "Widget 2.0", "", other, 0.9)}, nil},
		{"the same is said", question, []assay.Hit{hit("d:a.md", "Widget 1.0", "", one, 0.9), hit("d:b.md", "Widget 2.0", "", one, 0.9)}, nil},
		{"something else is said", question, []assay.Hit{hit("d:a.md", "Widget 1.0", "", one, 0.9), hit("d:b.md", "Widget 2.0", "", "Blue paint dries slowly in winter and at night.", 0.9)}, nil},
		{"one answers badly", question, []assay.Hit{hit("d:a.md", "Widget 1.0", "", one, 0.9), hit("d:b.md", "Widget 2.0", "", other, 0.6)}, nil},
		{"both answer badly", question, []assay.Hit{hit("d:a.md", "Widget 1.0", "", one, 0.4), hit("d:b.md", "Widget 2.0", "", other, 0.4)}, nil},
		{"other titles", question, []assay.Hit{hit("d:a.md", "Widget manual", "", one, 0.9), hit("d:b.md", "How engines work", "", other, 0.9)}, nil},
		{"titles of one word", question, []assay.Hit{hit("d:a.md", "Widget", "", one, 0.9), hit("d:b.md", "Gadget", "", other, 0.9)}, nil},
		{"one document", question, []assay.Hit{hit("d:a.md", "Widget 1.0", "", one, 0.9), hit("d:a.md", "Widget 1.0", "", other, 0.9)}, nil},
		{"nothing", question, nil, nil},
	}
	for _, test := range tests {
		if got := names(Alike(test.question, test.hits)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestAlikeOfTheWeb checks that web pages are not separate meanings.
func TestAlikeOfTheWeb(t *testing.T) {
	web := hit("d:b.md", "Widget 2.0", "", "The timeout is 60 seconds.", 0.9)
	web.Origin = assay.FromWeb
	if got := Alike("What is the timeout?", []assay.Hit{hit("d:a.md", "Widget 1.0", "", "The timeout is 30 seconds.", 0.9), web}); got != nil {
		t.Errorf("%q", names(got))
	}
}

func TestTopics(t *testing.T) {
	got := Topics([]assay.Hit{
		hit("d:a.md", "A", "", "1", 0.9), hit("d:b.md", "B\u202e\n", "", "2", 0.8), hit("d:a.md", "A", "", "3", 0.7), hit("e:a.md", "a", "", "4", 0.6), hit("d:x/c.txt", "", "", "5", 0.5),
	})
	if want := "[{A (d) [0 2] } {B [1] } {a (e) [3] } {c [4] }]"; fmt.Sprint(got) != want {
		t.Errorf("topics %v, want %s", got, want)
	}
}

func TestSubjects(t *testing.T) {
	north := hit("c:north.md", "Agreement with Northwind", "Term", "This contract ends in March.", 0.99)
	south := hit("c:south.md", "Agreement with Southgate", "Duration", "The contract ends in June.", 0.98)
	lease := hit("c:lease.md", "Lease of the office", "Term", "The lease ends in May.", 0.97)
	later := hit("c:lease.md", "Lease of the office", "Rent", "The rent of the contract is due.", 0.2)
	poor := hit("c:poor.md", "Notes", "Ends", "A contract ends.", 0.4)
	web := hit("c:web.md", "Agreement of others", "Term", "This contract ends in July.", 0.99)
	web.Origin = assay.FromWeb
	const question = "When does the contract end?"
	for _, tt := range []struct {
		name, question string
		hits           []assay.Hit
		want           []string
	}{
		{"two", question, []assay.Hit{north, south}, []string{"Agreement with Northwind", "Agreement with Southgate"}},
		{"one lacks a word", question, []assay.Hit{north, south, lease}, []string{"Agreement with Northwind", "Agreement with Southgate"}},
		{"another passage has the word", question, []assay.Hit{north, lease, later}, []string{"Agreement with Northwind", "Lease of the office"}},
		{"one alone has a word", "When does the lease end?", []assay.Hit{north, lease}, nil},
		{"none has the word", "When does the deal end?", []assay.Hit{north, south}, []string{"Agreement with Northwind", "Agreement with Southgate"}},
		{"none has the name", "When does the Kestrel contract end?", []assay.Hit{north, south}, nil},
		{"a title has the name", "When does the contract with Southgate end?", []assay.Hit{north, south}, nil},
		{"several are meant", "When does each contract end?", []assay.Hit{north, south}, nil},
		{"irrelevant", question, []assay.Hit{north, poor}, nil},
		{"from the web", question, []assay.Hit{north, web}, nil},
		{"one document", question, []assay.Hit{lease, later}, nil},
		{"no hits", question, nil, nil},
	} {
		if got := names(Subjects(tt.question, tt.hits)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestSubjectsOfALongQuestion checks that the words of hits are not read again for each word of a
// question.
func TestSubjectsOfALongQuestion(t *testing.T) {
	var question strings.Builder
	for i := range 300 {
		fmt.Fprintf(&question, "zorb%c%c ", 'a'+i%26, 'a'+i/26)
	}
	allocations := func(sentences int) float64 {
		var hits []assay.Hit
		text := ""
		for i := range sentences {
			text += fmt.Sprintf("The Contract%c%c Ends. ", 'a'+i%26, 'a'+i/26)
		}
		for i := range 5 {
			hits = append(hits, hit(fmt.Sprintf("c:%d.md", i), fmt.Sprint("Contract ", i), "", text, 0.9))
		}
		return testing.AllocsPerRun(1, func() { Subjects(question.String(), hits) })
	}
	if short, long := allocations(1), allocations(50); long > 2*short {
		t.Errorf("%.0f allocations for texts of one sentence, %.0f for texts of 50", short, long)
	}
}
