package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

func writtenSets(t *testing.T) Sets {
	t.Helper()
	w, err := Read("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// contents returns the contents of a file in the folder of the sets.
func contents(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWrittenStatements(t *testing.T) {
	kinds := map[string][]string{
		"false": {"role", "arm", "middle", "bound", "order", "subject", "scope", "condition", "number", "negation", "item", "cell"},
		"fair":  {"words", "voice", "split", "merge", "number", "short"},
	}
	count, seen := map[string]int{}, map[string]bool{}
	for i, s := range writtenSets(t).Statements {
		count[s.Label]++
		if !slices.Contains(kinds[s.Label], s.Kind) {
			t.Errorf("row %d: the label %q has no kind %q", i+1, s.Label, s.Kind)
		}
		if seen[s.Statement] {
			t.Errorf("row %d: %q is there twice", i+1, s.Statement)
		}
		seen[s.Statement] = true
		text := contents(t, "statements/"+s.Document+".md")
		if len(s.Source) == 0 {
			t.Errorf("row %d has no source", i+1)
		}
		for _, source := range s.Source {
			if !strings.Contains(text, source) {
				t.Errorf("row %d: %s does not hold %q", i+1, s.Document, source)
			}
		}
	}
	if count["false"] != 400 || count["fair"] != 400 {
		t.Errorf("%v", count)
	}
}

func TestWrittenNearMisses(t *testing.T) {
	paragraphs := map[string]string{}
	if root := os.Getenv("ASSAY_TESTDATA"); root != "" {
		set, err := testset.ReadSet(filepath.Join(root, "data", "retrieval", "xquad-en"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range set.Passages {
			paragraphs[p.ID] = p.Text
		}
	}
	answerable, of := 0, map[string]bool{}
	for i, q := range writtenSets(t).NearMisses {
		of[q.Paragraph] = true
		if q.Answerable != (q.Answer != nil) || q.Made == "" {
			t.Errorf("row %d: %+v", i+1, q)
		}
		text, known := paragraphs[q.Paragraph]
		if len(paragraphs) > 0 && !known {
			t.Errorf("row %d: there is no paragraph %s", i+1, q.Paragraph)
		}
		if q.Answer != nil {
			answerable++
			if known && !strings.Contains(text, *q.Answer) {
				t.Errorf("row %d: %s does not hold %q", i+1, q.Paragraph, *q.Answer)
			}
		}
	}
	if n := len(writtenSets(t).NearMisses); n != 600 || answerable != 300 || len(of) < 100 {
		t.Errorf("%d questions, %d answerable, over %d paragraphs", n, answerable, len(of))
	}
}

func TestWrittenConflicts(t *testing.T) {
	conflicts, titles := 0, map[string]bool{}
	for i, c := range writtenSets(t).Conflicts {
		if c.Conflict {
			conflicts++
		}
		for _, d := range []Text{c.A, c.B} {
			if sentences := strings.Count(d.Text, ". ") + 1; d.Title == "" || titles[d.Title] || sentences < 2 || sentences > 4 {
				t.Errorf("row %d: %q, %d sentences", i+1, d.Title, sentences)
			}
			titles[d.Title] = true
		}
	}
	if n := len(writtenSets(t).Conflicts); n != 200 || conflicts != 100 {
		t.Errorf("%d cases, %d of them conflicts", n, conflicts)
	}
}

// checkEveryday checks the labels of questions against the text of their section, if that is
// available.
func checkEveryday(t *testing.T, questions []EverydayQuestion, section func(EverydayQuestion) (text string, known bool)) (answerable, other, complete int) {
	t.Helper()
	for i, q := range questions {
		if !q.Answerable {
			if len(q.Answer)+len(q.Complete) > 0 || q.Section != "" {
				t.Errorf("row %d has an answer: %+v", i+1, q)
			}
			continue
		}
		answerable++
		if q.OtherWords {
			other++
		}
		if len(q.Complete) > 0 {
			complete++
		}
		text, known := section(q)
		if len(q.Answer) == 0 || q.Section == "" {
			t.Errorf("row %d has no answer or section: %+v", i+1, q)
		}
		text = strings.Join(strings.Fields(text), " ")
		for _, p := range slices.Concat(q.Answer, q.Complete) {
			re, err := regexp.Compile("(?i)" + p)
			if err != nil || known && !re.MatchString(text) {
				t.Errorf("row %d: %q is not in %s (%v)", i+1, p, q.Section, err)
			}
		}
	}
	return answerable, other, complete
}

func TestWrittenEveryday(t *testing.T) {
	w := writtenSets(t)
	texts := map[string]string{}
	root := os.Getenv("ASSAY_TESTDATA")
	for corpus, parts := range w.Parts {
		if root == "" {
			continue
		}
		f, err := os.Open(filepath.Join(root, "data", "corpora", corpus+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var d struct {
				ID   string `json:"_id"`
				Text string `json:"text"`
			}
			if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
				t.Fatal(err)
			}
			texts[corpus+" "+d.ID] = d.Text
		}
		for _, id := range parts {
			if texts[corpus+" "+id] == "" {
				t.Errorf("there is no document %s in %s", id, corpus)
			}
		}
	}
	answerable, other, complete := checkEveryday(t, w.Everyday, func(q EverydayQuestion) (string, bool) {
		if !slices.Contains(w.Parts[q.Corpus], q.Section) {
			t.Errorf("%s is no part of %s", q.Section, q.Corpus)
		}
		return texts[q.Corpus+" "+q.Section], root != ""
	})
	if n := len(w.Everyday); n != 80 || answerable != 60 || other < 20 || complete < 10 {
		t.Errorf("%d questions, %d answerable, %d in other words, %d lists", n, answerable, other, complete)
	}
}

func TestWrittenHandbook(t *testing.T) {
	w := writtenSets(t)
	answerable, other, complete := checkEveryday(t, w.Handbook, func(q EverydayQuestion) (string, bool) {
		text := contents(t, "everyday-docs/"+q.Document+".md")
		at := regexp.MustCompile(`(?m)^#+ ` + regexp.QuoteMeta(q.Section) + `$`).FindStringIndex(text)
		if at == nil {
			t.Errorf("%s has no heading %q", q.Document, q.Section)
			return "", true
		}
		section, _, _ := strings.Cut(text[at[1]:], "\n## ")
		return section, true
	})
	if n := len(w.Handbook); n != 60 || answerable != 40 || other < 15 || complete < 12 {
		t.Errorf("%d questions, %d answerable, %d in other words, %d lists", n, answerable, other, complete)
	}
}

func TestWrittenParaphrased(t *testing.T) {
	cited := regexp.MustCompile(`\[(\d+)\]`)
	w := writtenSets(t)
	for i, p := range w.Paraphrased {
		text := contents(t, p.Document)
		for _, source := range p.Sources {
			if !strings.Contains(text, source) {
				t.Errorf("row %d: %s does not hold %q", i+1, p.Document, source)
			}
		}
		numbers := map[string]bool{}
		for _, m := range cited.FindAllStringSubmatch(p.Answer, -1) {
			numbers[m[1]] = true
		}
		if len(numbers) != len(p.Sources) || !strings.HasSuffix(p.Answer, "].") {
			t.Errorf("row %d cites %d of %d sources: %s", i+1, len(numbers), len(p.Sources), p.Answer)
		}
	}
	if len(w.Paraphrased) != 120 {
		t.Errorf("%d answers", len(w.Paraphrased))
	}
}

// readerOfPorts opens a reader that compares words. It is certain of texts that share half of their
// words, and takes statements about different ports for contradictions.
func readerOfPorts() (llm.Reader, error) {
	ports := func(text, other string) bool {
		return strings.Contains(text, "8080") && strings.Contains(other, "9090")
	}
	return &llmtest.Reader{
		OnRead: func(question string, p llm.Excerpt) (llm.Reading, error) {
			r, err := llmtest.ReadByWords(question, p)
			if r.Answerable >= 0.5 {
				r.Answerable, r.Relevance = 0.99, 0.99
			}
			return r, err
		},
		OnEntail: func(p llm.ClaimPair) (llm.Entailment, error) {
			e, err := llmtest.EntailByWords(p)
			if ports(p.Claim, p.Passage.Text) || ports(p.Passage.Text, p.Claim) {
				e.Supported, e.Neutral, e.Contradicted = 0.02, 0.03, 0.95
			}
			return e, err
		},
	}, nil
}

// TestMeasureWritten checks the figures of small sets whose rows repeat the words of the document
// or change a number.
func TestMeasureWritten(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const rule = "Employees may carry over five days of leave into the next year."
	write("statements/leave.md", "# Leave\n\n"+rule+" The request goes to the team lead.\n")
	write("everyday-docs/travel.md", "# Travel\n\nTravel to a customer is approved by the head of the department.\n")
	answer := "five days"
	w := Sets{
		Dir: dir,
		Statements: []Statement{
			{Document: "leave", Kind: "words", Statement: rule, Label: "fair", Source: []string{rule}},
			{Document: "leave", Kind: "number", Statement: strings.Replace(rule, "five", "nine", 1), Label: "false", Source: []string{rule}},
		},
		NearMisses: []NearMiss{{Paragraph: "p", Question: "?", Answerable: true, Answer: &answer}},
		Conflicts: []ConflictCase{
			{
				Question: "Which port does the Falcon gateway listen on?", Conflict: true, Kind: "number",
				A: Text{Title: "Falcon gateway", Text: "The Falcon gateway listens on port 8080. It was released in March 2019."},
				B: Text{Title: "Falcon gateway, old notes", Text: "The Falcon gateway listens on port 9090."},
			},
			{
				Question: "Which port does the service listen on?", Kind: "thing",
				A: Text{Title: "Billing", Text: "The billing service listens on port 8080."},
				B: Text{Title: "Orders", Text: "Orders are shipped from warehouse 9090."},
			},
		},
		Handbook: []EverydayQuestion{
			{Document: "travel", Question: "Who approves travel to a customer?", Answer: []string{"HEAD of the department"}, Answerable: true, Kind: "fact"},
			{Document: "travel", Question: "How many members does the works council have?", Kind: "fact"},
		},
		Paraphrased: []ParaphrasedAnswer{{
			Document: "statements/leave.md", Question: "How many days of leave may employees carry over?",
			Answer: "Yes. Employees may carry over five days of leave into the next year [1].", Sources: []string{rule},
		}},
	}
	report, err := w.Measure(t.Context(), Options{Reader: readerOfPorts})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(report.LeftOut, []string{"nearmiss", "everyday"}) {
		t.Errorf("left out: %v", report.LeftOut)
	}
	got := map[string]Portion{}
	for _, f := range report.Figures {
		got[f.Set+": "+f.Name] = f.Portion
	}
	for figure, want := range map[string]Portion{
		"statements: false statements caught":              {Count: 1, Of: 1, Share: 1},
		"statements: fair statements refused":              {Of: 1},
		"conflicts: conflicts found":                       {Count: 1, Of: 1, Share: 1},
		"conflicts: false alarms":                          {Of: 1},
		"handbook: holds the answer":                       {Count: 1, Of: 1, Share: 1},
		"handbook: holds it in 60 words":                   {Count: 1, Of: 1, Share: 1},
		"handbook: falsely answered":                       {Of: 1},
		"paraphrased, local verifier: answers shown whole": {Count: 1, Of: 1, Share: 1},
		"paraphrased, model verifier: sentences shown":     {Count: 1, Of: 1, Share: 1},
	} {
		if got[figure] != want {
			t.Errorf("%s: %+v, want %+v", figure, got[figure], want)
		}
	}
	for _, o := range report.Outcomes {
		t.Logf("%s %d: %s: %s", o.Set, o.Row, o.Got, o.Answer)
	}
	if _, err := w.Measure(t.Context(), Options{Sets: []string{"statement"}}); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a set that does not exist: %v", err)
	}
}

func TestReadWrittenMissing(t *testing.T) {
	if _, err := Read(t.TempDir()); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("an empty folder: %v", err)
	}
}
