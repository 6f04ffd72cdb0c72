package local_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/role/local"
)

// questionsOf reads the questions of a shared retrieval set.
func questionsOf(t *testing.T, set string) []string {
	t.Helper()
	dir := os.Getenv("ASSAY_TESTDATA")
	if dir == "" {
		t.Skip("ASSAY_TESTDATA does not say where the shared data is")
	}
	file, err := os.Open(filepath.Join(dir, "data", "retrieval", set, "queries.jsonl"))
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	var questions []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var q struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		questions = append(questions, q.Text)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return questions
}

func TestRoute(t *testing.T) {
	tests := []struct {
		question string
		want     role.Complexity
	}{
		{"What is the zero value of a pointer?", role.Simple},
		{"How do I close an os.File?", role.Simple},
		{"Who is the director of Jump for Glory?", role.Simple},
		{"What is the system that Sky+HD uses?", role.Simple},
		{"Who is the spouse of the director of Jump for Glory?", role.Complex},
		{"When was Izgoy's performer born?", role.Complex},
		{"When did the city where Karel Purkyně died get its clock?", role.Complex},
		{"What river flows through the city Kevin Durant played for?", role.Complex},
		{"When did the country containing Nugegoda leave the British Empire?", role.Complex},
		{"What is a slice and how do I copy one?", role.Complex},
		{"What is the difference between new and make?", role.Complex},
		{"Which city has the largest population?", role.Moderate},
		{"List all flags of the go command.", role.Moderate},
		{"How does it work?", role.Moderate},
		{"", role.Moderate},
	}
	for _, tt := range tests {
		got, err := local.Router{}.Route(context.Background(), nil, tt.question)
		if err != nil {
			t.Fatal(err)
		}
		if got.Complexity != tt.want || got.Reason == "" {
			t.Errorf("Route(%q) = %s (%s), want %s", tt.question, got.Complexity, got.Reason, tt.want)
		}
	}
}

// What the router's doc comment says of it is held to here, with room for a few
// questions.
func TestRouteOnSets(t *testing.T) {
	for _, tt := range []struct {
		set                    string
		leastComplex, mostPart float64 // complex, as shares of all
	}{
		{"musique-train100", 0.85, 1},
		{"hotpotqa-train100", 0.4, 1},
		{"clapnq-answerable", 0, 0.08},
		{"xquad-en", 0, 0.08},
	} {
		count := map[role.Complexity]float64{}
		questions := questionsOf(t, tt.set)
		for _, q := range questions {
			r, err := local.Router{}.Route(context.Background(), nil, q)
			if err != nil {
				t.Fatal(err)
			}
			count[r.Complexity]++
		}
		t.Logf("%s: %d questions: %v", tt.set, len(questions), count)
		if share := count[role.Complex] / float64(len(questions)); share < tt.leastComplex || share > tt.mostPart {
			t.Errorf("%s: %.2f are complex, want between %.2f and %.2f", tt.set, share, tt.leastComplex, tt.mostPart)
		}
	}
}
