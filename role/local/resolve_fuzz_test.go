package local_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/surface"
)

// A question may be made of nothing but the conversation's words.
func inventsNothing(t *testing.T, got, question string, history []assay.Turn) {
	t.Helper()
	var said strings.Builder
	said.WriteString(question)
	for _, turn := range history {
		said.WriteString("\n" + turn.Question + "\n" + turn.Answer)
	}
	known := map[string]bool{"in": true, "and": true}
	bare := func(w string) string {
		return strings.TrimRight(strings.TrimSuffix(strings.ToLower(w), "'s"), "'’.-_")
	}
	for _, w := range surface.Words(said.String()) {
		known[bare(w)] = true
	}
	for _, w := range surface.Words(got) {
		if !known[bare(w)] && !strings.Contains(said.String(), w) {
			t.Errorf("%q became %q: %q was not said", question, got, w)
		}
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("How do I configure it?", "What is the gateway?", "A server.")
	f.Add("And in Germany?", "How long is parental leave in France?", "16 weeks")
	f.Add("the second one", "How do I stop it?", "What is meant: A, B or C?")
	f.Add("its 'its' (their)?", "the the of of in", "[1] [2]")
	f.Add("Why?", "Who is he, or is she İstanbul's?", "I'm \x00\xff")
	f.Fuzz(func(t *testing.T, question, before, answer string) {
		history := talk(before, answer, "What about the other one?", answer)
		got := resolved(t, question, history)
		if strings.ContainsAny(got, "\n\x00") {
			t.Errorf("%q is not one line of text", got)
		}
	})
}

// Real conversations: mtrag's, whose follow-ups are of people.
func TestResolveConversations(t *testing.T) {
	data := os.Getenv("ASSAY_TESTDATA")
	if data == "" {
		t.Skip("ASSAY_TESTDATA is not set: it names the folder of the shared data sets")
	}
	file, err := os.Open(filepath.Join(data, "data", "retrieval", "mtrag-un-reference", "queries.jsonl"))
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	first, later, changed := 0, 0, 0
	for lines.Scan() {
		var q struct {
			Text     string
			Metadata struct {
				Conversation []struct{ Speaker, Text string }
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		var history []assay.Turn
		said := q.Metadata.Conversation
		for i := 0; i+1 < len(said); i++ {
			if said[i].Speaker == "user" && said[i+1].Speaker == "agent" {
				history = append(history, assay.Turn{Question: said[i].Text, Answer: said[i+1].Text})
			}
		}
		got := resolved(t, q.Text, history)
		switch {
		case len(history) == 0 && got != "":
			t.Errorf("%q became %q without a conversation", q.Text, got)
		case len(history) == 0:
			first++
		default:
			later++
		}
		if got != "" {
			changed++
			inventsNothing(t, got, q.Text, history)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d first questions; of %d later ones %d are said in full", first, later, changed)
	if share := float64(changed) / float64(max(later, 1)); share < 0.1 || share > 0.25 {
		t.Errorf("%.2f of the later questions are filled in, want 0.1 to 0.25: most stand for themselves", share)
	}
}
