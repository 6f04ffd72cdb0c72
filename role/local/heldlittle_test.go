package local

import (
	"strings"
	"testing"

	"github.com/assay-rag/assay"
)

// TestBeside asks a page about one thing of what it does not say, and of what it does.
func TestBeside(t *testing.T) {
	const page = "The Falcon gateway, made in Leeds, listens on port 8080. It was released in March 2019 and replaced the Kestrel router. The warranty lasts two years."
	const people = "Anna Meier joined Aldersoft in 2004. She became head of research. Peter Voss moved to Boston."
	for question, want := range map[string]string{
		"When was the Kestrel router released?":  "Kestrel is named in passing, in what is said of something else",
		"Where did Anna Meier study?":            `no document says that anybody or anything does "study"`,
		"How heavy is the Falcon gateway?":       "no passage says how heavy anything is",
		"How fast is the Falcon gateway?":        "no passage says how fast anything is",
		"What replaced the Kestrel router?":      "",
		"When was the Falcon gateway released?":  "",
		"When did Anna Meier join Aldersoft?":    "",
		"How long is the warranty?":              "",
		"Where did Peter Voss move?":             "",
		"Did the Falcon replace another router?": "",
	} {
		in := heldInput(question, page, people)
		in.Terms = termsOf(question, page, people)
		if got := beside(read(question, in.Terms), in); got != want {
			t.Errorf("%s: %q, want %q", question, got, want)
		}
	}
}

// TestBesideOfMuch leaves alone what is of a collection of some size.
func TestBesideOfMuch(t *testing.T) {
	in := heldInput("Where did Anna Meier study?", "Anna Meier joined Aldersoft in 2004.")
	in.Terms = nil // what is not known is as of a collection that is not little
	if got := beside(read(in.Question, nil), in); got != "" {
		t.Errorf("refused: %s", got)
	}
}

// termsOf are the terms of a question as a search over a few chunks has them.
func termsOf(question string, chunks ...string) []assay.Term {
	terms := read(question, nil).terms
	for i := range terms {
		for _, text := range chunks {
			if holdsTerm(stems("", text), terms[i]) {
				terms[i].Chunks++
			}
		}
		terms[i].Weight = 1
		if terms[i].Chunks > 0 {
			terms[i].Weight = 0.85 // of 2 chunks and the background
		}
	}
	return terms
}

// TestGradeBeside refuses what is beside the question, however likely it looks.
func TestGradeBeside(t *testing.T) {
	const question, page = "Where did Anna Meier study?", "Anna Meier joined Aldersoft in 2004. She became head of research."
	in := heldInput(question, page)
	in.Terms, in.Held = termsOf(question, page), 1e-6
	g, err := Grader{}.Grade(t.Context(), nil, in)
	if err != nil || g.Verdict != assay.Insufficient || len(g.Relevant) > 0 || !strings.Contains(g.Reason, "study") {
		t.Errorf("grade %+v, %v", g, err)
	}
}
