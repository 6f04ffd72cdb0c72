package eval

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func TestSwap(t *testing.T) {
	for _, test := range []struct {
		table      *wordTable
		text, want string
	}{
		{unlike, "Increased traffic", "Decreased traffic|Declined traffic|Reduced traffic|Shrank traffic"},
		{unlike, "It opens at nine.", "It closes at nine."},
		{unlike, "The cost is known.", "The cost is known."},
		{alike, "They are purchasing it.", "They are buying it.|They are acquiring it."},
		{alike, "The companies left.", "The companies left.|The companies departed."},
	} {
		got, _ := test.table.swap(rand.New(rand.NewPCG(1, 1)), test.text, 1)
		if !strings.Contains("|"+test.want+"|", "|"+got+"|") {
			t.Errorf("swap(%q) = %q, want one of %q", test.text, got, test.want)
		}
	}
}

// writeSeeds makes a folder with one set of two texts and one question.
func writeSeeds(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writeSet(t, dir, "clapnq-answerable", map[string]string{
		"corpus.jsonl": `{"_id":"a","title":"","text":"The mill was built by John Harker in 1890 . It has two stones and increases output by 30 percent . The mill closed in May 1950 after a fire . Flour was sold in Marlow during the summer ."}
{"_id":"b","title":"","text":"The harbour was opened by Ada Lindt in 1910. Ships bring grain from the islands. It freezes in January. The lighthouse was repaired by the town after a storm."}
`,
		"queries.jsonl": `{"_id":"q","text":"Who built the mill?","metadata":{"answers":["John Harker built the mill with two stones in 1890. It closed in May 1950 because of a large fire."]}}
`,
		"qrels.tsv": "query-id\tcorpus-id\tscore\nq\ta\t1\n",
	})
	return dir
}

// writeSet writes the files of a set.
func writeSet(t *testing.T, dir, set string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, set, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMadeGrounding(t *testing.T) {
	dir := writeSeeds(t)
	cases, err := MadeGrounding(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := MadeGrounding(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cases, again); diff != "" {
		t.Errorf("made twice, the cases differ:\n%s", diff)
	}
	verdicts := map[assay.Verdict]int{}
	for _, c := range cases {
		verdicts[c.Verdict]++
		if c.Claim == "" || len(c.Evidence) == 0 || len(c.Edits) != 1 {
			t.Errorf("case %+v is not whole", c)
		}
		if c.Edits[0] == "as it is" && c.Verdict != assay.Supported {
			t.Errorf("case %+v is what an answer says", c)
		}
	}
	for _, v := range []assay.Verdict{assay.Supported, assay.Contradicted, assay.Unsupported} {
		if verdicts[v] == 0 {
			t.Errorf("none of %d cases is %s", len(cases), v)
		}
	}
}

func TestMadeGroundingLeavesOutWhatIsJudged(t *testing.T) {
	dir := writeSeeds(t)
	judged := []GroundingSet{{Name: "judged", Cases: []GroundingCase{{Claim: "It closed.", Evidence: []string{"The mill was built by John Harker in 1890.", "It has two stones and increases output by 30 percent."}}}}}
	cases, err := MadeGrounding(dir, judged)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if strings.Contains(strings.Join(c.Evidence, " "), "Harker") {
			t.Errorf("case %+v rests on a text that a set has", c)
		}
	}
}

func TestMadeGroundingWithoutSets(t *testing.T) {
	if _, err := MadeGrounding(t.TempDir(), nil); err == nil {
		t.Error("MadeGrounding of an empty folder gives no error")
	}
}
