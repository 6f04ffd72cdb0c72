package ground_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
)

func TestCut(t *testing.T) {
	got := ground.Cut("Shutdown waits. It takes 1.5 s (e.g. on Linux). --", []int{2})
	want := []ground.Claim{
		{Text: "Shutdown waits.", Start: 0, End: 15, Evidence: []int{2}},
		{Text: "It takes 1.5 s (e.g. on Linux). --", Start: 16, End: 50, Evidence: []int{2}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Cut (-want +got):\n%s", diff)
	}
	code := "if x {\n\treturn 1. \n}"
	if got := ground.Cut(code, nil); len(got) != 1 || got[0].Text != code {
		t.Errorf("Cut(code) = %v, want it whole", got)
	}
}

func TestLocate(t *testing.T) {
	const text = "Shutdown gracefully shuts\ndown the server.  It works by first\n\tclosing all open listeners. Then it waits — für immer. A byte � was\nlost here."
	tests := []struct{ claim, want string }{
		{"Shutdown gracefully shuts down the server.", "Shutdown gracefully shuts\ndown the server."},
		{"It works by first closing all open listeners.", "It works by first\n\tclosing all open listeners."},
		{"Then it waits — für immer.", "Then it waits — für immer."},
		{"first closing all open", "It works by first\n\tclosing all open listeners."},
		{"the server. It works", "Shutdown gracefully shuts\ndown the server.  It works by first\n\tclosing all open listeners."},
		{"listeners that are open get closed", "It works by first\n\tclosing all open listeners."},
		{"bananas", ""},
		{"", ""},
		{"A byte � was lost here.", "A byte � was\nlost here."},
	}
	for _, tt := range tests {
		start, end := ground.Locate(tt.claim, text)
		if got := text[start:end]; got != tt.want {
			t.Errorf("Locate(%q) = %q, want %q", tt.claim, got, tt.want)
		}
	}
}

func TestLocal(t *testing.T) {
	const source = "Shutdown does not interrupt active connections. The default timeout is 30 seconds. Water boils at 100 degrees in Berlin."
	tests := []struct {
		name, claim, quote string
		want               assay.Verdict
	}{
		{"verbatim", "The default timeout is 30 seconds.", source, assay.Supported},
		{"verbatim over a line break", "The default timeout is 30 seconds.", "The default\ntimeout is 30 seconds.", assay.Supported},
		{"other word order", "30 seconds is the default timeout.", "The default timeout is 30 seconds.", assay.Supported},
		{"part of a negated sentence", "Water boils at 50 degrees.", "It is not true that Water boils at 50 degrees.", assay.Contradicted},
		{"other number", "The default timeout is 60 seconds.", "The default timeout is 30 seconds.", assay.Contradicted},
		{"number not there", "The default timeout is 60 seconds.", "The default timeout is some seconds.", assay.Unsupported},
		{"negation dropped", "Shutdown does interrupt active connections.", "Shutdown does not interrupt active connections.", assay.Contradicted},
		{"negation added", "The default timeout is never 30 seconds.", "The default timeout is 30 seconds.", assay.Contradicted},
		{"other name", "In Munich water boils at 100 degrees.", "Water boils at 100 degrees in Berlin.", assay.Unsupported},
		{"other topic", "Bananas are yellow.", source, assay.Unsupported},
		{"nothing to check", "It is.", source, assay.Unsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j, err := ground.Local{}.Verify(context.Background(), tt.claim, []ground.Passage{{Quote: tt.quote, Context: tt.quote}})
			if err != nil {
				t.Fatal(err)
			}
			if j.Verdict != tt.want {
				t.Errorf("Verify(%q, %q) = %s (%s), want %s", tt.claim, tt.quote, j.Verdict, j.Reason, tt.want)
			}
			if j.Score < 0 || j.Score > 1 || (j.Verdict == assay.Supported) != (j.Score > 0.5) {
				t.Errorf("score %v with verdict %s", j.Score, j.Verdict)
			}
		})
	}
}

// What a source says is wrong does not become right by being cut out of its sentence.
func TestPartOfASentence(t *testing.T) {
	const text = "Pets are welcome. It is not true that dogs may enter the laboratory. Cats sleep."
	const claim = "dogs may enter the laboratory"
	start, end := ground.Locate(claim, text)
	j, err := ground.Local{}.Verify(t.Context(), claim, []ground.Passage{{Quote: text[start:end], Context: text}})
	if err != nil || j.Verdict == assay.Supported {
		t.Errorf("%q is %s by %q, %v", claim, j.Verdict, text[start:end], err)
	}
}

func TestLocalCitesNothing(t *testing.T) {
	j, err := ground.Local{}.Verify(context.Background(), "The default timeout is 30 seconds.", nil)
	if err != nil || j.Verdict != assay.Unsupported {
		t.Errorf("Verify without citations = %v, %v; want unsupported", j, err)
	}
}

func TestOpposed(t *testing.T) {
	tests := []struct {
		a, b  string
		about []string
		want  bool
	}{
		{"The default timeout is 30 seconds.", "The default timeout is 60 seconds.", nil, true},
		{"The default timeout is 30 seconds.", "The timeout's default is thirty seconds.", nil, false},
		{"The gateway supports compression.", "The gateway does not support compression.", nil, true},
		{"The gateway supports compression.", "The proxy does not support compression.", nil, false},
		{"The gateway in Berlin has 3 doors.", "The gateway in Munich has 4 doors.", nil, false},
		{"Version 1.2 was released in 2019.", "Version 1.3 was released in 2020.", nil, false},
		{"Chapter 3 has ten pages.", "Chapter 4 has ten pages.", []string{"3"}, false},
		{"The warehouse at site 1 opens at 8 and closes at 20.", "The warehouse at site 21 opens at 8 and closes at 20.", nil, false},
		{"The warehouse at site 1 opens at 8 and closes at 20.", "The warehouse at site 1 opens at 9 and closes at 20.", nil, true},
		{"The warehouse at site 6 opens at 8:00 and closes at 18:30.", "The warehouse at site 8 opens at 6:00 and closes at 20:30.", nil, false},
		{"The warehouse at site 6 opens at 8 and closes at 18.", "The warehouse at site 8 opens at 6 and closes at 20.", nil, false},
		{"Room 12 has two doors.", "Room 14 has two doors.", nil, false},
		{"The Basic plan costs 12 euros.", "The Basic plan costs 15 euros.", nil, true},
		{"The default timeout is 30 seconds.", "Bananas are yellow.", nil, false},
		{"Beta is a battery with a capacity of 10 kWh.", "Alpha is a battery with a capacity of 5 kWh.", nil, false},
		{"Beta is a battery with a capacity of 10 kWh.", "Beta is a battery with a capacity of 5 kWh.", nil, true},
		{"It is 3.", "It is 4.", nil, false},
		{"", "", nil, false},
	}
	for _, tt := range tests {
		if got := ground.Opposed(tt.a, tt.b, tt.about); got != tt.want {
			t.Errorf("Opposed(%q, %q, %q) = %v, want %v", tt.a, tt.b, tt.about, got, tt.want)
		}
		if got := ground.Opposed(tt.b, tt.a, tt.about); got != tt.want {
			t.Errorf("Opposed(%q, %q, %q) = %v, want %v", tt.b, tt.a, tt.about, got, tt.want)
		}
	}
}

func TestOpposing(t *testing.T) {
	const text = "Bananas are yellow. The default timeout is 60 seconds. The default timeout is 90 seconds."
	tests := []struct {
		claim string
		about []string
		want  string
	}{
		{"The default timeout is 30 seconds.", nil, "The default timeout is 60 seconds."},
		{"The default timeout is 60 seconds.", nil, "The default timeout is 90 seconds."},
		{"The default timeout is 60 seconds.", []string{"60"}, ""},
		{"The default timeout is not 60 seconds.", nil, "The default timeout is 60 seconds."},
		{"Apples are red.", nil, ""},
		{"", nil, ""},
	}
	for _, tt := range tests {
		start, end := ground.Opposing(text, func(s string) bool { return ground.Opposed(tt.claim, s, tt.about) })
		if got := text[start:end]; got != tt.want {
			t.Errorf("Opposing(%q, %q) = %q, want %q", tt.claim, tt.about, got, tt.want)
		}
	}
}

// TestHostileSize verifies and locates in a megabyte that a careless comparison
// of all with all would not come to the end of; it passes by ending.
func TestHostileSize(t *testing.T) {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "%d ", i)
	}
	numbers := b.String()
	claim := "0 " + numbers
	j, err := ground.Local{}.Verify(context.Background(), claim, []ground.Passage{{Quote: numbers, Context: numbers}})
	if err != nil || j.Verdict == assay.Supported {
		t.Errorf("numbers: %s (%s), %v; want it refused", j.Verdict, j.Reason, err)
	}
	for _, text := range []string{numbers, strings.Repeat("a. ", 1<<18), strings.Repeat("not x, ", 1<<17)} {
		ground.Locate("The default timeout is 30 seconds.", text)
		ground.Opposing(text, func(s string) bool { return ground.Opposed("The default timeout is 30 seconds.", s, nil) })
		ground.Opposed(text, text+" 7", nil)
	}
}

func FuzzLocate(f *testing.F) {
	f.Add("a b", "x a\n b. c")
	f.Add("für", "f f\u00fcr\xff für")
	f.Add("a � b", "x. a �\nb. \xff")
	f.Fuzz(func(t *testing.T, claim, text string) {
		start, end := ground.Locate(claim, text)
		if start < 0 || start > end || end > len(text) {
			t.Fatalf("Locate(%q, %q) = %d, %d", claim, text, start, end)
		}
		fold := func(s string) string { return strings.Join(strings.Fields(s), " ") }
		if want := fold(claim); want != "" && strings.Contains(fold(text), want) && !strings.Contains(fold(text[start:end]), want) {
			t.Errorf("Locate(%q, %q) = %q, want the claim in it", claim, text, text[start:end])
		}
	})
}

func FuzzVerify(f *testing.F) {
	f.Add("The default timeout is 30 seconds.", "It is so. The default timeout is 30 seconds.")
	f.Add("It isn’t 1,000 in Berlin.", "It is 1000\nin Berlin, not \xff�.")
	f.Add("`a_b` = 3", "a_b = 3\n")
	f.Fuzz(func(t *testing.T, claim, quote string) {
		j, err := ground.Local{}.Verify(t.Context(), claim, []ground.Passage{{Quote: quote, Context: quote}})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case j.Verdict != assay.Supported && j.Verdict != assay.Contradicted && j.Verdict != assay.Unsupported:
			t.Errorf("Verify(%q, %q) = %+v", claim, quote, j)
		case j.Score < 0 || j.Score > 1 || j.Reason == "":
			t.Errorf("Verify(%q, %q) = %+v", claim, quote, j)
		}
		whole, err := ground.Local{}.Verify(t.Context(), quote, []ground.Passage{{Quote: quote, Context: quote}})
		if err != nil || strings.TrimSpace(quote) != "" && whole.Verdict != assay.Supported {
			t.Errorf("Verify(%q) against itself = %+v, %v", quote, whole, err)
		}
		start, end := ground.Opposing(quote, func(s string) bool { return ground.Opposed(claim, s, nil) })
		if start < 0 || start > end || end > len(quote) {
			t.Errorf("Opposing(%q, %q) = %d, %d", claim, quote, start, end)
		}
	})
}
