package eval

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func TestRewordings(t *testing.T) {
	const supported, contradicted, unsupported = assay.Supported, assay.Contradicted, assay.Unsupported
	for _, test := range []struct {
		text string // the last sentence is reworded
		want []reworded
	}{
		{"The minister claimed that the tax would fall in the spring.", []reworded{{"attribution dropped", "The tax would fall in the spring.", unsupported}}},
		{"Our results show that the drug reduces the pain of most patients.", []reworded{{"finding stated", "The drug reduces the pain of most patients.", supported}}},
		{"The results did not show that the drug reduces the pain of patients.", nil},
		{"If the light is red, the device must be restarted.", []reworded{{"clauses in the other order", "The device must be restarted if the light is red.", supported}, {"condition dropped", "The device must be restarted.", unsupported}}},
		{"Refunds are always paid within 14 days unless the goods were used.", []reworded{{"condition dropped", "Refunds are always paid within 14 days.", unsupported}}},
		{"Nobody could say even if the mill was open.", nil},
		{"The drug may cause headaches in older patients.", []reworded{{"hedge dropped", "The drug causes headaches in older patients.", unsupported}}},
		{"The bridge is thought to be the oldest of the valley.", []reworded{{"hedge dropped", "The bridge is the oldest of the valley.", unsupported}}},
		{"The bridge is also used by trains.", []reworded{{"adverb left out", "The bridge is used by trains.", supported}}},
		{"Most of the houses were built of stone.", []reworded{{"all for some", "All of the houses were built of stone.", unsupported}}},
		{"All patients were treated in the morning.", []reworded{{"not all for all", "Not all patients were treated in the morning.", contradicted}}},
		{"The valley is often flooded in spring.", []reworded{{"always for often", "The valley is always flooded in spring.", unsupported}}},
		{"The mill was sold by John Harker in 1912.", []reworded{{"active for passive", "John Harker sold the mill in 1912.", supported}, {"sides of a verb exchanged", "The mill sold John Harker in 1912.", contradicted}}},
		{"John Harker wrote the book in London.", []reworded{{"passive for active", "The book was written by John Harker in London.", supported}}},
		{"The mill closed because the river had run dry.", nil},
		{"The mill was closed because the river had run dry.", []reworded{{"clauses in the other order", "Because the river had run dry, the mill was closed.", supported}, {"clauses exchanged", "The river had run dry because the mill was closed.", contradicted}}},
		{"Ada Lindt, a merchant of Marlow, bought the mill.", []reworded{{"apposition stated", "Ada Lindt was a merchant of Marlow.", supported}, {"apposition left out", "Ada Lindt bought the mill.", supported}}},
		{"The harbour, which is closed in winter, has three piers of stone.", []reworded{{"apposition stated", "The harbour is closed in winter.", supported}, {"apposition left out", "The harbour has three piers of stone.", supported}, {"number in digits", "The harbour, which is closed in winter, has 3 piers of stone.", supported}}},
		{"It opened on March 3, 1912 in Marlow.", []reworded{{"date in another form", "It opened on 3 March 1912 in Marlow.", supported}}},
		{"It was built in the nineteenth century.", []reworded{{"date in another form", "It was built in the 19th century.", supported}}},
		{"About 12,500 people live there.", []reworded{{"number without separators", "About 12500 people live there.", supported}}},
		{"The World Health Organization (WHO) met. The WHO said nothing of it.", []reworded{{"long form for the abbreviation", "The World Health Organization said nothing of it.", supported}}},
		{"Ada Lindt was a merchant. She sold flour in Marlow.", []reworded{{"pronoun resolved", "Ada Lindt sold flour in Marlow.", supported}, {"two sentences in one", "Ada Lindt was a merchant, and she sold flour in Marlow.", supported}}},
		{"They came from farms, villages, and towns.", []reworded{{"list shortened", "They came from farms and villages.", supported}}},
		{"The museum is located in the old town.", []reworded{{"phrase in other words", "The museum lies in the old town.", supported}}},
		{"The pump is able to lift water.", []reworded{{"phrase in other words", "The pump can lift water.", supported}, {"phrase of the opposite", "The pump cannot lift water.", contradicted}}},
	} {
		text := &seedText{id: "a", sentences: tidySentences(test.text)}
		e := newEditor(&seedSet{name: "set", texts: []*seedText{text}})
		e.set.seeds = []seed{{claim: text.sentences[0], text: text}}
		var got []reworded
		for _, c := range e.rewordedCases() {
			got = append(got, reworded{c.Edits[0], c.Claim, c.Verdict})
		}
		for _, w := range test.want {
			if !slices.Contains(got, w) {
				t.Errorf("%q: %v has not %v", test.text, got, w)
			}
		}
		if test.want == nil && len(got) > 0 {
			t.Errorf("%q: got %v, want none", test.text, got)
		}
	}
}

// Every rewording is of a kind that its table names, so that there is a bound for it.
func TestRewordedKinds(t *testing.T) {
	known := map[string]bool{}
	for _, w := range rewordings {
		for _, k := range w.kinds {
			if known[k] {
				t.Errorf("two rewordings make %q", k)
			}
			known[k] = true
		}
	}
	dir := t.TempDir()
	writeSet(t, dir, "xquad-en", map[string]string{
		"corpus.jsonl":  `{"_id":"a","title":"A","text":"If the light is red, the device must be restarted. The mill was sold by John Harker in 1912. Most of the houses were built of stone. The drug may cause headaches in older patients. The pump is able to lift water."}` + "\n",
		"queries.jsonl": `{"_id":"1","text":"Who sold the mill?","metadata":{"answer":"John Harker"}}` + "\n",
		"qrels.tsv":     "query-id\tcorpus-id\tscore\n1\ta\t1\n",
	})
	first, err := MadeGrounding(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := MadeGrounding(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("made twice, the cases differ:\n%s", diff)
	}
	n := 0
	for _, c := range first {
		if strings.Contains(c.ID, "/reworded ") {
			n++
			if !known[c.Edits[0]] {
				t.Errorf("case %+v is of a kind that no table names", c)
			}
		}
	}
	if n < 6 {
		t.Errorf("%d cases are reworded, want 6 or more", n)
	}
}

// The passages of the answers held out are not among what is learned from.
func TestHeldOutAnswers(t *testing.T) {
	set, err := HeldOutAnswers(filepath.Join("..", "ground", "testdata"), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Cases) == 0 {
		t.Fatal("no passage is held out")
	}
	for _, c := range set.Cases {
		if len(c.Evidence) != 1 || c.Evidence[0] == "" {
			t.Errorf("case %+v is no passage", c)
		}
	}
}
