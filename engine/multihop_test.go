package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/provider/embedded"
)

// madeUp are documents of a made-up company, its people, their home towns and a river. None of them
// answers a question below by itself.
var madeUp = map[string]string{
	"zephyr.md":   "# Zephyr\n\nThe Zephyr is a folding bicycle. The maker of the Zephyr is Brandvik Works. It weighs nine kilograms and folds in ten seconds.\n",
	"corvus.md":   "# Corvus\n\nThe Corvus is a racing bicycle. The maker of the Corvus is Halden Cycles. It weighs seven kilograms.\n",
	"brandvik.md": "# Brandvik Works\n\nBrandvik Works makes folding bicycles. The founder of Brandvik Works is Solveig Aarud, an engineer. The company has eighty employees.\n",
	"halden.md":   "# Halden Cycles\n\nHalden Cycles makes racing bicycles. The founder of Halden Cycles is Piet Maarsen, a former racer.\n",
	"aarud.md":    "# Solveig Aarud\n\nSolveig Aarud is an engineer. The birthplace of Solveig Aarud is Kestrel Bay. She studied in Trondheim.\n",
	"maarsen.md":  "# Piet Maarsen\n\nPiet Maarsen raced for six years. The birthplace of Piet Maarsen is Oldwyck.\n",
	"kestrel.md":  "# Kestrel Bay\n\nKestrel Bay is a town of nine thousand people. The river that flows through Kestrel Bay is the Ostra. The mayor of Kestrel Bay is Ines Calder.\n",
	"oldwyck.md":  "# Oldwyck\n\nOldwyck is a village. The river that flows through Oldwyck is the Meer.\n",
	"ostra.md":    "# Ostra\n\nThe Ostra is a river. The length of the Ostra is 212 kilometres. It rises in the hills of Tarn.\n",
	"meer.md":     "# Meer\n\nThe Meer is a river. The length of the Meer is 48 kilometres.\n",
}

// TestMultihopReadsItsHops follows chains of three and four hops over made-up documents, offline,
// with the local planner and with the answers of earlier hops read by the reader in the binary.
func TestMultihopReadsItsHops(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	dir := t.TempDir()
	for name, text := range madeUp {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := openConfig(t, Config{Dir: t.TempDir(), Encoders: embeddedEncoder{}, Reader: embedded.OpenReader, NoBackground: true, NoCache: true})
	ingestPaths(t, e, dir)
	if _, err := e.Embed(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		question string
		searched []string // on the way
		says     string
		cites    string
	}{
		{"What is the birthplace of the founder of the maker of the Zephyr?",
			[]string{"the founder of Brandvik Works", "What is the birthplace of Solveig Aarud?"}, "The birthplace of Solveig Aarud is Kestrel Bay.", "aarud.md"},
		{"What is the river that flows through the birthplace of the founder of the maker of the Zephyr?",
			[]string{"the founder of Brandvik Works", "the birthplace of Solveig Aarud", "the river that flows through Kestrel Bay"}, "The river that flows through Kestrel Bay is the Ostra.", "kestrel.md"},
		{"What is the river that flows through the birthplace of the founder of the maker of the Corvus?",
			[]string{"the founder of Halden Cycles", "the birthplace of Piet Maarsen"}, "The river that flows through Oldwyck is the Meer.", "oldwyck.md"},
	}
	for _, tt := range tests {
		a, err := e.Answer(t.Context(), assay.Local(), Request{Question: tt.question, Strategy: "multihop", Budget: assay.Budget{Wall: 10 * time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		searched := map[string]bool{}
		for _, s := range a.Searched {
			searched[s.Query] = true
		}
		for _, q := range tt.searched {
			if !searched[q] {
				t.Errorf("%s: searched %v, and not %q", tt.question, searched, q)
			}
		}
		if a.Status != assay.Answered || !strings.Contains(a.Text, tt.says) {
			t.Errorf("%s: %s: %q (%s), want %q", tt.question, a.Status, a.Text, a.Justification, tt.says)
		}
		cited := false
		for _, c := range a.Citations {
			checkQuote(t, e, c)
			cited = cited || strings.HasSuffix(c.URI, tt.cites) && strings.Contains(c.Quote, tt.says)
		}
		if !cited {
			t.Errorf("%s: %+v does not quote %s", tt.question, a.Citations, tt.cites)
		}
		_, steps, err := e.Run(t.Context(), assay.Local(), a.Run)
		if err != nil {
			t.Fatal(err)
		}
		revisions := 0 // one after each hop but the last
		for _, s := range steps {
			if s.Kind == assay.StepRole && strings.Contains(s.Summary, "keep the rest of the plan") {
				revisions++
			}
		}
		if revisions < len(tt.searched) {
			t.Errorf("%s: %d revisions of the plan in the trace", tt.question, revisions)
		}
		replays(t, e, a.Run)
	}
}
