package local_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
)

func hit(id, text string, relevance float64) assay.Hit {
	return assay.Hit{
		Chunk: assay.Chunk{ID: id, Kind: assay.ChunkProse, End: len(text)},
		Text:  text, Title: "Guide", Scores: assay.Scores{Relevance: relevance},
	}
}

// similar is a hit whose similarity to the question is known.
func similar(h assay.Hit) assay.Hit {
	cosine := 0.9
	h.Scores.Vector = &cosine
	return h
}

// terms are those of a search: each word and in how many chunks it is.
func terms(words ...string) []assay.Term {
	var out []assay.Term
	for _, w := range words {
		text, unknown := strings.CutSuffix(w, "?")
		t := assay.Term{Text: text, Stem: strings.ToLower(text), Chunks: 3, Weight: 0.5}
		if unknown {
			t.Chunks, t.Weight = 0, 1
		}
		out = append(out, t)
	}
	return out
}

func TestGrade(t *testing.T) {
	tests := []struct {
		name     string
		in       role.GradeInput
		verdict  assay.GradeVerdict
		relevant []string
		missing  []string
	}{
		{
			"relevant and covered",
			role.GradeInput{Question: "which port does the server open", Terms: terms("port", "server", "open"),
				Hits: []assay.Hit{hit("a", "The server will open port 80.", 0.9), hit("b", "A server.", 0.4)}},
			assay.Sufficient, []string{"a"}, nil,
		},
		{
			"under the floor",
			role.GradeInput{Question: "which port does the server open", Terms: terms("port", "server", "open"),
				Hits: []assay.Hit{hit("a", "The server will open port 80.", 0.49)}},
			assay.Insufficient, nil, []string{"which port does the server open"},
		},
		{
			"nothing found",
			role.GradeInput{Question: "which port does the server open", Terms: terms("port", "server", "open")},
			assay.Insufficient, nil, []string{"which port does the server open"},
		},
		{
			"a name that relevant hits lack",
			role.GradeInput{Question: "which port does the server in Berlin open", Terms: terms("port", "server", "Berlin", "open"),
				Hits: []assay.Hit{hit("a", "The server will open port 80.", 0.9)}},
			assay.Partly, []string{"a"}, []string{"Berlin"},
		},
		{
			"a name that no document has",
			role.GradeInput{Question: "which port does the server in Berlin open", Terms: terms("port", "server", "Berlin?", "open"),
				Hits: []assay.Hit{hit("a", "The server will open port 80.", 0.9)}},
			assay.Insufficient, nil, []string{"Berlin"},
		},
		{
			"a fourth of it",
			role.GradeInput{Question: "which gate does the machine unlock for visitors", Terms: terms("gate", "machine", "unlock", "visitors"),
				Hits: []assay.Hit{hit("a", "It is by this gate.", 0.9)}},
			assay.Partly, []string{"a"}, []string{"machine", "unlock", "visitors"},
		},
		{
			"a fourth of it, similar",
			role.GradeInput{Question: "which gate does the machine unlock for visitors", Terms: terms("gate", "machine", "unlock", "visitors"),
				Hits: []assay.Hit{similar(hit("a", "It is by this gate.", 0.9))}},
			assay.Partly, []string{"a"}, []string{"machine", "unlock", "visitors"},
		},
		{
			"a third of it, similar",
			role.GradeInput{Question: "which gate does the machine unlock", Terms: terms("gate", "machine", "unlock"),
				Hits: []assay.Hit{similar(hit("a", "It is by this gate.", 0.9))}},
			assay.Sufficient, []string{"a"}, []string{"machine", "unlock"},
		},
		{
			"a third of it, similar, but not that relevant",
			role.GradeInput{Question: "which gate does the machine unlock", Terms: terms("gate", "machine", "unlock"),
				Hits: []assay.Hit{similar(hit("a", "It is by this gate.", 0.55))}},
			assay.Partly, []string{"a"}, []string{"machine", "unlock"},
		},
		{
			"words that no document has",
			role.GradeInput{Question: "which effects has ibuprofen", Terms: terms("effects", "ibuprofen?"),
				Hits: []assay.Hit{hit("a", "It has effects.", 0.9)}},
			assay.Insufficient, nil, []string{"ibuprofen"},
		},
		{
			"half of it is not there",
			role.GradeInput{Question: "which port, protocol and user does it open", Terms: terms("port", "protocol", "user", "open"),
				Hits: []assay.Hit{hit("a", "The port is 80.", 0.9)}},
			assay.Partly, []string{"a"}, []string{"protocol", "user", "open"},
		},
		{
			"a number that no document has",
			role.GradeInput{Question: "how many fish does walrus 4 eat", Terms: terms("fish", "walrus", "4?", "eat"),
				Hits: []assay.Hit{hit("a", "The walrus 1 will eat 3 fish.", 0.9)}},
			assay.Insufficient, nil, []string{"4"},
		},
		{
			"a measure of one thing",
			role.GradeInput{Question: "how large is the fee", Terms: terms("large?", "fee"),
				Hits: []assay.Hit{hit("a", "The fee is two euros.", 0.9)}},
			assay.Sufficient, []string{"a"}, []string{},
		},
		{
			"a date that is not given",
			role.GradeInput{Question: "When was the server released?", Terms: terms("server", "released"),
				Hits: []assay.Hit{hit("a", "The server was released with version 1.22.", 0.9)}},
			assay.Insufficient, nil, []string{"When was the server released?"},
		},
		{
			"a date",
			role.GradeInput{Question: "When was the server open?", Terms: terms("server", "open"),
				Hits: []assay.Hit{hit("a", "The server was open in May 1998.", 0.9)}},
			assay.Sufficient, []string{"a"}, nil,
		},
		{
			"a measure that is not given",
			role.GradeInput{Question: "how large is the fee", Terms: terms("large?", "fee"),
				Hits: []assay.Hit{hit("a", "The fee is due. It was made in 1999.", 0.9)}},
			assay.Partly, []string{"a"}, nil,
		},
		{
			"no content word",
			role.GradeInput{Question: "what is it", Terms: terms("what", "it"), Hits: []assay.Hit{hit("a", "It is.", 0.9)}},
			assay.Insufficient, []string{"a"}, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.in.Floor = 0.5
			g, err := local.Grader{}.Grade(context.Background(), nil, tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if g.Verdict != tt.verdict || !slices.Equal(g.Relevant, tt.relevant) || (len(g.Missing) > 0 || len(tt.missing) > 0) && !slices.Equal(g.Missing, tt.missing) {
				t.Errorf("%s, relevant %q, missing %q (%s); want %s, %q, %q", g.Verdict, g.Relevant, g.Missing, g.Reason, tt.verdict, tt.relevant, tt.missing)
			}
			if g.Reason == "" {
				t.Errorf("no reason")
			}
		})
	}
}

// Each reformulation differs from all queries before it, and they end.
func TestReformulationsEnd(t *testing.T) {
	in := role.GradeInput{
		Question: "How does the server in Berlin open a port?",
		Terms:    terms("server", "Berlin", "open", "port"),
		Hits:     []assay.Hit{hit("a", "A server.", 0.3)},
		Tried:    []string{"How does the server in Berlin open a port?"},
		Floor:    0.5,
	}
	for range 10 {
		g, err := local.Grader{}.Grade(context.Background(), nil, in)
		if err != nil {
			t.Fatal(err)
		}
		if g.Query == "" {
			if len(in.Tried) < 3 {
				t.Errorf("only %q were proposed", in.Tried)
			}
			return
		}
		if slices.Contains(in.Tried, g.Query) {
			t.Fatalf("%q is proposed again after %q", g.Query, in.Tried)
		}
		in.Tried = append(in.Tried, g.Query)
	}
	t.Errorf("still going on after %q", in.Tried)
}

// What others do is no answer to what somebody does of whom no document speaks.
func TestGradeUnknownActor(t *testing.T) {
	hits := []assay.Hit{hit("1", "Every employee has 28 days of annual leave.", 0.9)}
	for question, want := range map[string]assay.GradeVerdict{
		"How many days of annual leave do interns have?":    assay.Insufficient,
		"How many days of annual leave does an intern have": assay.Insufficient,
		"How many days of annual leave do employees have?":  assay.Sufficient,
		"How many days of annual leave do I have?":          assay.Sufficient,
	} {
		words := []string{"days", "annual", "leave"}
		switch {
		case strings.Contains(question, "interns"):
			words = append(words, "interns?")
		case strings.Contains(question, "intern"):
			words = append(words, "intern?")
		case strings.Contains(question, "employees"):
			words = append(words, "employees")
		}
		held := terms(words...)
		for i := range held {
			held[i].Stem = analysis.Stem(held[i].Text, "")
		}
		g, err := local.Grader{}.Grade(context.Background(), nil, role.GradeInput{Question: question, Hits: hits, Terms: held, Floor: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		if (g.Verdict == assay.Sufficient) != (want == assay.Sufficient) || want != assay.Sufficient && len(g.Relevant) > 0 {
			t.Errorf("%q: %s: %s", question, g.Verdict, g.Reason)
		}
	}
}
