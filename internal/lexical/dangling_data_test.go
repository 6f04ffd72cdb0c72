package lexical

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestDanglingOnStandaloneQuestions checks that hardly any standalone question is reported as
// dangling. Of 4,945 in the shared retrieval sets and in eval/testdata none is. Those of mtrag are
// the last turns of conversations, of which 6 in 507 have only words that refer back.
func TestDanglingOnStandaloneQuestions(t *testing.T) {
	files, err := filepath.Glob("../../eval/testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("golden questions: %q, %v", files, err)
	}
	if data := os.Getenv("ASSAY_TESTDATA"); data == "" {
		t.Log("ASSAY_TESTDATA is not set: the golden questions alone")
	} else {
		more, err := filepath.Glob(filepath.Join(data, "data", "retrieval", "*", "queries.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	questions, taken := 0, 0
	for _, file := range files {
		n, dangling := countDangling(t, file)
		if filepath.Base(filepath.Dir(file)) == "mtrag-un-reference" {
			t.Logf("%s: %d of %d", file, len(dangling), n)
			continue
		}
		questions, taken = questions+n, taken+len(dangling)
		for _, q := range dangling {
			t.Logf("%s: %q is taken for a question without a subject", file, q)
		}
	}
	if taken*100 >= questions {
		t.Errorf("%d of %d questions are taken for such without a subject, want less than 1 %%", taken, questions)
	}
}

// countDangling returns the number of questions in a file, and those that dangle.
func countDangling(t *testing.T, file string) (n int, dangling []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var q struct{ Text, Question string }
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		n++
		if words, _ := Dangling(q.Text + q.Question); words != "" {
			dangling = append(dangling, q.Text+q.Question)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return n, dangling
}
