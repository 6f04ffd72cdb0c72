package local_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/internal/analysis"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/role"
)

// finds returns a reader that finds words in passages: each with the probability that a
// passage which has them answers, of several in one passage the first is the likeliest.
func finds(answers map[string]float64) *llmtest.Reader {
	return &llmtest.Reader{OnRead: func(_ string, p llm.Excerpt) (llm.Reading, error) {
		var r llm.Reading
		for words, probability := range answers {
			if at := strings.Index(p.Text, words); at >= 0 {
				r.Answerable = max(r.Answerable, probability)
				r.Spans = append(r.Spans, llm.Extract{Start: at, End: at + len(words), Score: probability})
			}
		}
		slices.SortFunc(r.Spans, func(a, b llm.Extract) int { return int(math.Copysign(1, b.Score-a.Score)) })
		r.Relevance = r.Answerable
		return r, nil
	}}
}

var broken = &llmtest.Reader{OnRead: func(string, llm.Excerpt) (llm.Reading, error) { return llm.Reading{}, errors.New("out of order") }}

// hit is a passage of a document of its own.
func hit(id, text string, relevance float64) assay.Hit {
	return assay.Hit{
		Chunk: assay.Chunk{ID: id, Document: "d" + id, Kind: assay.ChunkProse, End: len(text)},
		Text:  text, Title: "Guide", URI: "/docs/" + id + ".md", Scores: assay.Scores{Relevance: relevance},
	}
}

// terms are those of a search for words.
func terms(words ...string) []assay.Term {
	var out []assay.Term
	for _, w := range words {
		out = append(out, assay.Term{Text: w, Stem: analysis.Stem(strings.ToLower(w), ""), Chunks: 3, Weight: 0.5})
	}
	return out
}

func evidenceOf(hits ...assay.Hit) []assay.Evidence {
	var out []assay.Evidence
	for i, h := range hits {
		out = append(out, assay.Evidence{Number: i + 1, Hit: h})
	}
	return out
}

// generated is what a generator writes for one question, each statement with the number that
// it cites.
func generated(t *testing.T, r llm.Reader, question string, hits ...assay.Hit) role.Draft {
	t.Helper()
	var numbers []int
	for i := range hits {
		numbers = append(numbers, i+1)
	}
	d, err := local.Generator{Reader: r}.Generate(t.Context(), nil, role.GenerateInput{
		Question: question, Parts: []role.Part{{Question: question, Evidence: append(numbers, 0, 99)}}, Evidence: evidenceOf(hits...),
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func texts(d role.Draft) []string {
	out := []string{}
	for _, st := range d.Statements {
		out = append(out, st.Text)
	}
	return out
}

func TestGenerate(t *testing.T) {
	port := hit("a", "The server opens port 80. It waits for requests.", 0.9)
	news := hit("b", "In release 2 the server opens port 8080.", 0.9)
	news.Title = "Release notes"
	changed := hit("e", "The server now opens port 8080.", 0.9)
	changed.Chunk.Headings = []string{"Changes in 2.0"}
	leave := hit("c", "Leave is granted for:\n\n- moving (one day)\n- weddings (two days)\n- strikes\n\nAsk early.", 0.9)
	plans := hit("d", "Plan | Price\nSmall | 10 euros\nLarge | 40 euros", 0.9)
	plans.Chunk.Kind = assay.ChunkTable
	for _, tt := range []struct {
		name   string
		reader llm.Reader
		hits   []assay.Hit
		want   []string
	}{
		{"the sentence", finds(map[string]float64{"80": 0.9}), []assay.Hit{port}, []string{"The server opens port 80."}},
		{"of the likelier passage", finds(map[string]float64{"80.": 0.9, "strikes": 0.2}), []assay.Hit{leave, port}, []string{"The server opens port 80."}},
		{"the page before its release notes", finds(map[string]float64{" 80.": 0.85, "8080": 0.9}), []assay.Hit{news, port}, []string{"The server opens port 80."}},
		{"the page before its list of changes", finds(map[string]float64{" 80.": 0.85, "8080": 0.9}), []assay.Hit{changed, port}, []string{"The server opens port 80."}},
		{"release notes, where nothing else answers", finds(map[string]float64{" 80.": 0.1, "8080": 0.9}), []assay.Hit{news, port}, []string{"In release 2 the server opens port 8080."}},
		{"the list", finds(map[string]float64{"granted for": 0.9}), []assay.Hit{leave}, []string{"Leave is granted for:", "moving (one day)", "weddings (two days)", "strikes"}},
		{"an item", finds(map[string]float64{"two days": 0.9}), []assay.Hit{leave}, []string{"Leave is granted for:", "weddings (two days)"}},
		{"items", finds(map[string]float64{"two days": 0.9, "one day": 0.8}), []assay.Hit{leave}, []string{"Leave is granted for:", "moving (one day)", "weddings (two days)", "strikes"}},
		{"an item, and hardly another", finds(map[string]float64{"two days": 0.9, "one day": 0.01}), []assay.Hit{leave}, []string{"Leave is granted for:", "weddings (two days)"}},
		{"a row", finds(map[string]float64{"40 euros": 0.9}), []assay.Hit{plans}, []string{"Large | 40 euros"}},
		{"rows", finds(map[string]float64{"40 euros": 0.9, "10 euros": 0.8}), []assay.Hit{plans}, []string{"Small | 10 euros", "Large | 40 euros"}},
		{"nothing", finds(nil), []assay.Hit{port, leave}, []string{}},
		{"no evidence", finds(nil), nil, []string{}},
	} {
		if diff := cmp.Diff(tt.want, texts(generated(t, tt.reader, "What?", tt.hits...))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A row of a table has its cells under their heads; an item stands on a line of its own.
func TestGenerateForms(t *testing.T) {
	plans := hit("a", "Plan | Price\nSmall | 10 euros\nLarge | 40 euros", 0.9)
	d := generated(t, finds(map[string]float64{"40 euros": 0.9}), "What does Large cost?", plans)
	if diff := cmp.Diff([]string{"Plan", "Price"}, d.Columns); diff != "" || !slices.Equal(d.Statements[0].Cells, []string{"Large", "40 euros"}) {
		t.Errorf("columns %q, statement %+v", d.Columns, d.Statements[0])
	}
	d = generated(t, finds(map[string]float64{"granted for": 0.9}), "For what?", hit("a", "Leave is granted for:\n\n- moving\n- weddings", 0.9))
	if len(d.Statements) != 3 || d.Statements[0].Item || !d.Statements[1].Item || !slices.Equal(d.Statements[2].Evidence, []int{1}) {
		t.Errorf("%+v", d.Statements)
	}
}

// A question that speaks of what stands over a list, and of nothing that tells its items
// apart, is answered by all of it.
func TestGenerateAll(t *testing.T) {
	leave := hit("a", "Special leave is granted for:\n\n- moving (one day)\n- weddings (two days)\n- strikes", 0.9)
	fees := hit("b", "Plan | Yearly fee\nSmall | 10 euros\nLarge | 40 euros", 0.9)
	fees.Chunk.Kind = assay.ChunkTable
	officers := hit("c", "Secretary\n:   keeps the forms.\n\nTreasurer\n:   pays the bills.", 0.9)
	officers.Chunk.Headings = []string{"Officers"}
	kitchen := hit("d", "The kitchen has:\n\n- cooking:\n    - four hobs\n- cooling:\n    - two refrigerators\n    - an ice chest\n- a dishwasher", 0.9)
	for _, tt := range []struct {
		question, answer string
		hit              assay.Hit
		want             []string
	}{
		{"What is special leave granted for?", "two days", leave, []string{"Special leave is granted for:", "moving (one day)", "weddings (two days)", "strikes"}},
		{"How much special leave is granted for weddings?", "two days", leave, []string{"Special leave is granted for:", "weddings (two days)"}},
		{"What are the yearly fees?", "40 euros", fees, []string{"Small | 10 euros", "Large | 40 euros"}},
		{"What is the yearly fee of the large plan?", "40 euros", fees, []string{"Large | 40 euros"}},
		{"Which officers are there?", "Secretary", officers, []string{"Secretary : keeps the forms.", "Treasurer : pays the bills."}},
		{"Which officer pays bills?", "Treasurer", officers, []string{"Treasurer : pays the bills."}},
		{"What cooling is there?", "an ice chest", kitchen, []string{"The kitchen has:", "cooling:", "two refrigerators", "an ice chest"}},
		{"What ice is there?", "an ice chest", kitchen, []string{"The kitchen has:", "cooling:", "an ice chest"}},
		{"For how long am I away?", "two days", leave, []string{"Special leave is granted for:", "weddings (two days)"}},
	} {
		if diff := cmp.Diff(tt.want, texts(generated(t, finds(map[string]float64{tt.answer: 0.9}), tt.question, tt.hit))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.question, diff)
		}
	}
}

// Of several likely places the one is quoted whose quotation answers by itself.
func TestGenerateRereads(t *testing.T) {
	h := hit("a", "The recorder writes files.\n\nTo record a concert:\n\n1. Insert a stick.\n2. Press REC.", 0.9)
	r := &llmtest.Reader{OnRead: func(_ string, p llm.Excerpt) (llm.Reading, error) {
		switch writes, steps := strings.Contains(p.Text, "writes"), strings.Contains(p.Text, "Press REC"); {
		case writes && steps:
			at := strings.Index(p.Text, "To record")
			return llm.Reading{Answerable: 0.9, Spans: []llm.Extract{{Start: 4, End: 12, Score: 0.6}, {Start: at, End: at + 9, Score: 0.2}}}, nil
		case steps:
			return llm.Reading{Answerable: 0.9}, nil
		}
		return llm.Reading{Answerable: 0.03}, nil
	}}
	if diff := cmp.Diff([]string{"To record a concert:", "Insert a stick.", "Press REC."}, texts(generated(t, r, "How do I do it?", h))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Code beside prose is quoted only where it is much likelier to answer, however well it
// answers by itself.
func TestGenerateProseBeforeCode(t *testing.T) {
	h := hit("a", "Peek returns the next bytes without reading them.\n\n```\nfunc (b *Reader) Peek(n int) []byte {\n\treturn b.buf[b.r : b.r+n]\n}\n```", 0.9)
	for code, want := range map[float64]string{0.5: "Peek returns the next bytes without reading them.", 0.9: "func (b *Reader)"} {
		r := &llmtest.Reader{OnRead: func(_ string, p llm.Excerpt) (llm.Reading, error) {
			reading := llm.Reading{Answerable: 0.2, Relevance: 0.9}
			if at := strings.Index(p.Text, "return b.buf"); at >= 0 {
				reading = llm.Reading{Answerable: 0.9, Relevance: 0.9, Spans: []llm.Extract{{Start: at, End: at + 6, Score: code}, {Start: 0, End: 12, Score: 0.2}}}
			}
			return reading, nil
		}}
		if got := texts(generated(t, r, "How do I look ahead?", h)); len(got) == 0 || !strings.Contains(got[0], want) {
			t.Errorf("code with %v: %q, want %q", code, got, want)
		}
	}
}

// Each row of a table is read behind its heads, and is quoted where it answers, whatever
// the reader makes of the table.
func TestReadRows(t *testing.T) {
	h := hit("a", "Everybody pays.\n\nPlan | Fee\nSmall | 10 euros\nLarge | 40 euros", 0.9)
	r := &llmtest.Reader{OnRead: func(_ string, p llm.Excerpt) (llm.Reading, error) {
		if at := strings.Index(p.Text, "10 euros\nLarge"); at >= 0 {
			return llm.Reading{Answerable: 0.3, Relevance: 0.3, Spans: []llm.Extract{{Start: at, End: at + 2, Score: 0.9}, {Start: 0, End: 9, Score: 0.1}}}, nil
		}
		if at := strings.Index(p.Text, "Plan: Large; Fee: 40"); at >= 0 {
			return llm.Reading{Answerable: 0.8, Relevance: 0.7, Spans: []llm.Extract{{Start: 18, End: 26, Score: 0.9}}}, nil
		}
		return llm.Reading{Answerable: 0.01}, nil
	}}
	if got := texts(generated(t, r, "Who pays 40?", h)); !slices.Equal(got, []string{"Large | 40 euros"}) {
		t.Errorf("%q", got)
	}
	got, err := local.ReadHits(t.Context(), r, "Who pays 40?", []assay.Hit{h})
	if err != nil || len(got) != 1 || got[0].Answerable != 0.8 || got[0].Relevance != 0.7 || len(got[0].Spans) != 3 || h.Text[got[0].Spans[0].Start:got[0].Spans[0].End] != "40 euros" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A question that asks openly for what stands under a heading is answered by its section,
// which suffices for it; one that asks for something in particular is not.
func TestSection(t *testing.T) {
	vacation := hit("a", "Employees have 27 days a year. Ask the team lead two weeks before.", 0.9)
	vacation.Title, vacation.Chunk.Headings = "Handbook", []string{"Work", "Vacation"}
	other := hit("b", "The policy of the firm is on the first page.", 0.9)
	r := finds(map[string]float64{"two weeks": 0.01, "first page": 0.02})
	for question, want := range map[string]bool{
		"What is the vacation policy?": true, "vacation": true, "Which vacation is there?": true, "Which day of vacation is paid?": false, "Tell me about vacation.": true, "What is the handbook's policy on vacation?": true,
		"What is the vacation bonus?": false, "How long is vacation?": false, "Who approves vacation?": false, "Is there vacation?": false, "What is work?": false,
	} {
		g, err := local.Grader{Reader: r}.Grade(t.Context(), nil, role.GradeInput{Question: question, Hits: []assay.Hit{other, vacation}, Terms: terms(strings.Fields(question)...), Floor: 0.5, MinAnswerability: 0.5})
		if err != nil || (g.Verdict == assay.Sufficient) != want {
			t.Errorf("%s: %s: %s, %v; want sufficient: %v", question, g.Verdict, g.Reason, err, want)
		}
		got := texts(generated(t, r, question, other, vacation))
		if section := len(got) > 0 && got[0] == vacation.Text; section != want {
			t.Errorf("%s: %q, want the section: %v", question, got, want)
		}
		under := []string{"Handbook", "Work", "Vacation"}
		a, err := local.Judge{Reader: r}.GradeAnswer(t.Context(), nil, role.AnswerInput{Question: question, Quoted: true,
			Statements: []role.ShownStatement{{Text: vacation.Text, Under: under, Quotes: []string{vacation.Text}}}})
		if err != nil || a.Relevance == nil || (*a.Relevance >= 0.1) != want {
			t.Errorf("%s: %+v, %v; want a relevant answer: %v", question, a, err, want)
		}
	}
}

// A question for yes or no gets its word where the reader is sure of it.
func TestGenerateYesNo(t *testing.T) {
	guests := hit("a", "Guests row only with a member.", 0.9)
	for _, tt := range []struct {
		question string
		said     llm.Entailment
		claim    string
		want     role.YesNo
	}{
		{"Can guests row alone?", llm.Entailment{Contradicted: 0.9, Neutral: 0.1}, "guests row alone.", role.No},
		{"Do guests row with a member?", llm.Entailment{Supported: 0.9, Neutral: 0.1}, "guests row with a member.", role.Yes},
		{"Can guests row at night?", llm.Entailment{Supported: 0.3, Neutral: 0.7}, "guests row at night.", ""},
		{"Who rows with guests?", llm.Entailment{Supported: 1}, "", ""},
		{"Do guests row or swim?", llm.Entailment{Supported: 1}, "", ""},
		{"Can guests not row?", llm.Entailment{Supported: 1}, "", ""},
	} {
		claim := ""
		r := finds(map[string]float64{"only with a member": 0.9})
		r.OnEntail = func(p llm.ClaimPair) (llm.Entailment, error) {
			claim = p.Claim
			return tt.said, nil
		}
		d := generated(t, r, tt.question, guests)
		if len(d.Statements) != 1 || d.Statements[0].Decides != tt.want || claim != tt.claim {
			t.Errorf("%s: %+v by %q, want %q by %q", tt.question, d.Statements, claim, tt.want, tt.claim)
		}
	}
}

// A second sentence is quoted only where it makes the answer likelier, and before the first
// where it stands there.
func TestGenerateSecond(t *testing.T) {
	likelier := func(both float64) *llmtest.Reader {
		return &llmtest.Reader{OnRead: func(_ string, p llm.Excerpt) (llm.Reading, error) {
			r := llm.Reading{Answerable: 0.5}
			if strings.Contains(p.Text, "Kestrel") && strings.Contains(p.Text, "2019") {
				r.Answerable = both
			}
			if at := strings.Index(p.Text, "2019"); at >= 0 {
				r.Spans = []llm.Extract{{Start: at, End: at + 4, Score: 0.9}}
			}
			return r, nil
		}}
	}
	router := hit("a", "It is a router. The Kestrel is the smallest model. It was released in 2019. It is red.", 0.9)
	for both, want := range map[float64][]string{
		0.9:  {"The Kestrel is the smallest model.", "It was released in 2019."},
		0.52: {"It was released in 2019."},
	} {
		if diff := cmp.Diff(want, texts(generated(t, likelier(both), "When was the Kestrel released?", router))); diff != "" {
			t.Errorf("where both answer with %v (-want +got):\n%s", both, diff)
		}
	}
	reset := hit("b", "The Kestrel is red.", 0.9)
	year := hit("c", "Routers were released in 2019.", 0.9)
	r := &llmtest.Reader{OnRead: func(_ string, p llm.Excerpt) (llm.Reading, error) {
		red, released := strings.Index(p.Text, "red."), strings.Index(p.Text, "2019")
		x := llm.Reading{Answerable: 0.6}
		for _, at := range []int{red, released} {
			if at >= 0 {
				x.Spans = append(x.Spans, llm.Extract{Start: at, End: at + 3, Score: 0.8})
			}
		}
		if red >= 0 && released >= 0 {
			x.Answerable = 0.9
		}
		return x, nil
	}}
	d := generated(t, r, "When was it released, and is it red?", reset, year)
	if diff := cmp.Diff([]string{"The Kestrel is red.", "Routers were released in 2019."}, texts(d)); diff != "" || !slices.Equal(d.Statements[1].Evidence, []int{2}) {
		t.Errorf("of two passages: %+v", d.Statements)
	}
}

// Each part is answered from its own evidence, and what answers two is said once.
func TestGenerateParts(t *testing.T) {
	in := role.GenerateInput{Evidence: evidenceOf(hit("a", "The port is 80.", 0.9), hit("b", "The user is root.", 0.9)), Parts: []role.Part{
		{Question: "Which port?", Evidence: []int{1}}, {Question: "Which user?", Evidence: []int{2}}, {Question: "Which port again?", Evidence: []int{1}},
	}}
	d, err := local.Generator{Reader: finds(map[string]float64{"80": 0.9, "root": 0.9})}.Generate(t.Context(), nil, in)
	if diff := cmp.Diff([]string{"The port is 80.", "The user is root."}, texts(d)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Without a reader the words decide; one that fails is told of.
func TestGenerateByWords(t *testing.T) {
	a, b := hit("a", "Do you like ports? The server opens\nport 80. It then waits.\n\nfunc open() {\n\treturn port\n}", 0.9), hit("b", "Bananas are yellow.", 0.9)
	for _, r := range []llm.Reader{nil, broken} {
		d := generated(t, r, "Which port does the server open?", b, a)
		if got := texts(d); len(got) == 0 || got[0] != "The server opens port 80." {
			t.Errorf("%q", got)
		}
		if (len(d.Notes) > 0) != (r != nil) {
			t.Errorf("notes %q", d.Notes)
		}
	}
	if d := generated(t, nil, "Where do zebras live?", a, b); len(d.Statements) > 0 {
		t.Errorf("%+v shares no word with the question", d.Statements)
	}
}

func FuzzGenerate(f *testing.F) {
	f.Add("Which port?", "The port is 80. \xff x\n\n- a\n- b", "Head ing")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, question, text, heading string) {
		h := hit("a", text, 0.9)
		h.Chunk.Headings = []string{heading}
		for _, r := range []llm.Reader{nil, &llmtest.Reader{}} {
			for _, s := range generated(t, r, question, h).Statements {
				if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(s.Text), " ")) {
					t.Errorf("%q is not in the evidence %q", s.Text, text)
				}
			}
		}
	})
}

func TestGradeByReading(t *testing.T) {
	sure, near, none := hit("a", "The port is 80.", 0.9), hit("b", "The port is near.", 0.58), hit("c", "Bananas.", 0.1)
	r := finds(map[string]float64{"80": 0.99, "near": 0.55, "Bananas": 0.05})
	for _, tt := range []struct {
		name     string
		hits     []assay.Hit
		floor    float64
		verdict  assay.GradeVerdict
		relevant []string
		reason   string
	}{
		{"answered", []assay.Hit{none, near, sure}, 0.5, assay.Sufficient, []string{"a", "b"}, "probability 0."},
		{"nearly", []assay.Hit{none, near}, 0.5, assay.Partly, []string{"b"}, "closest passage"},
		{"not", []assay.Hit{none}, 0.5, assay.Insufficient, []string{}, "no passage is likely"},
		{"under a floor that was set", []assay.Hit{near}, 0.6, assay.Insufficient, []string{}, "relevance floor"},
		{"over it", []assay.Hit{sure, near}, 0.6, assay.Sufficient, []string{"a"}, "probability 0."},
		{"nothing found", nil, 0.5, assay.Insufficient, []string{}, "nothing was found"},
	} {
		in := role.GradeInput{Question: "Which port is it?", Hits: tt.hits, Terms: terms("port"), Floor: tt.floor, MinAnswerability: 0.5}
		g, err := local.Grader{Reader: r}.Grade(t.Context(), nil, in)
		if err != nil {
			t.Fatal(err)
		}
		if g.Verdict != tt.verdict || !slices.Equal(g.Relevant, tt.relevant) || !strings.Contains(g.Reason, tt.reason) {
			t.Errorf("%s: %s, %q: %s; want %s, %q", tt.name, g.Verdict, g.Relevant, g.Reason, tt.verdict, tt.relevant)
		}
		if (g.Verdict == assay.Sufficient) != (len(g.Missing) == 0) || (g.Answerability == nil) != (len(tt.hits) == 0) || g.Verdict == assay.Sufficient && g.Query != "" {
			t.Errorf("%s: %+v", tt.name, g)
		}
	}
	g, err := local.Grader{Reader: r}.Grade(t.Context(), nil, role.GradeInput{Question: "Which port is it?", Hits: []assay.Hit{sure, near}, Terms: terms("port")})
	if err != nil || g.Answerability != nil || g.Verdict != assay.Sufficient || len(g.Answers) != 2 || g.Answers[0].Text != "80" || g.Answers[0].Chunk != "a" {
		t.Errorf("a step to another question: %+v, %v", g, err)
	}
}

// What is no probability is none: a reader that returns it answers nothing.
func TestGradeFailsClosed(t *testing.T) {
	for _, p := range []float64{math.NaN(), math.Inf(1), -1, 2} {
		r := &llmtest.Reader{OnRead: func(string, llm.Excerpt) (llm.Reading, error) {
			return llm.Reading{Answerable: p, Relevance: p, Spans: []llm.Extract{{Start: 0, End: 1 << 20, Score: p}}}, nil
		}}
		g, err := local.Grader{Reader: r}.Grade(t.Context(), nil, role.GradeInput{Question: "Which port?", Hits: []assay.Hit{hit("a", "Port 80.", 0.9)}, Terms: terms("port"), MinAnswerability: 0.5})
		if err != nil || g.Verdict != assay.Insufficient {
			t.Errorf("with %v: %s: %s, %v", p, g.Verdict, g.Reason, err)
		}
		if d := generated(t, r, "Which port?", hit("a", "Port 80.", 0.9)); len(d.Statements) > 0 {
			t.Errorf("with %v: %+v", p, d.Statements)
		}
	}
}

func TestGradeByWords(t *testing.T) {
	const question = "which port does the server open"
	for _, tt := range []struct {
		name     string
		hits     []assay.Hit
		verdict  assay.GradeVerdict
		relevant []string
		missing  []string
	}{
		{"relevant and covered", []assay.Hit{hit("a", "The server will open port 80.", 0.9), hit("b", "A server.", 0.4)}, assay.Sufficient, []string{"a"}, []string{}},
		{"under the floor", []assay.Hit{hit("a", "The server will open port 80.", 0.49)}, assay.Insufficient, []string{}, []string{question}},
		{"a third of it", []assay.Hit{hit("a", "It is by this port.", 0.9)}, assay.Partly, []string{"a"}, []string{"server", "open"}},
	} {
		for _, r := range []llm.Reader{nil, broken} {
			g, err := local.Grader{Reader: r}.Grade(t.Context(), nil, role.GradeInput{Question: question, Terms: terms("port", "server", "open"), Hits: tt.hits, Floor: 0.5, MinAnswerability: 0.5})
			if err != nil || g.Verdict != tt.verdict || !slices.Equal(g.Relevant, tt.relevant) || !slices.Equal(g.Missing, tt.missing) || (len(g.Notes) > 0) != (r != nil) {
				t.Errorf("%s: %+v, %v", tt.name, g, err)
			}
		}
	}
}

// A reader that was not made for the language of the passages reads none.
func TestForeign(t *testing.T) {
	h := hit("a", "Der Server öffnet Port 80.", 0.9)
	h.Language = "de"
	r := llm.CacheReadings(english{&llmtest.Reader{OnRead: func(string, llm.Excerpt) (llm.Reading, error) {
		t.Error("it was read")
		return llm.Reading{}, nil
	}}}, 10)
	if got := texts(generated(t, r, "Welchen Port öffnet der Server?", h)); len(got) != 1 || got[0] != h.Text {
		t.Errorf("%q", got)
	}
}

type english struct{ llm.Reader }

func (english) Languages() []string { return []string{"en"} }

// Each reformulation differs from all queries before it, and they end.
func TestReformulationsEnd(t *testing.T) {
	in := role.GradeInput{Question: "How does the server in Berlin open a port?", Terms: terms("server", "Berlin", "open", "port"), Hits: []assay.Hit{hit("a", "A server.", 0.3)}, Floor: 0.5}
	for range 10 {
		g, err := local.Grader{}.Grade(t.Context(), nil, in)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(in.Tried, g.Query) {
			t.Fatalf("%q is proposed again after %q", g.Query, in.Tried)
		}
		if g.Query == "" {
			return
		}
		in.Tried = append(in.Tried, g.Query)
	}
	t.Errorf("still going on after %q", in.Tried)
}

// The probability that evidence answers a question grows with what the reader says of the
// passages, whatever their order.
func TestHeld(t *testing.T) {
	hits := []assay.Hit{hit("a", "Port 80.", 0.5), hit("b", "Port maybe.", 0.5)}
	held := func(first, second float64, hits ...assay.Hit) float64 {
		t.Helper()
		g := local.Grader{Reader: finds(map[string]float64{"80": first, "maybe": second})}
		grade, err := g.Grade(t.Context(), nil, role.GradeInput{Question: "Which port?", Hits: hits, MinAnswerability: 0.5})
		if err != nil || grade.Answerability == nil || *grade.Answerability < 0 || *grade.Answerability > 1 {
			t.Fatalf("%+v, %v", grade, err)
		}
		return *grade.Answerability
	}
	for _, tt := range []struct{ less, more [2]float64 }{
		{[2]float64{0.1, 0.1}, [2]float64{0.9, 0.1}}, {[2]float64{0.2, 0.2}, [2]float64{0.2, 0.9}}, {[2]float64{0.01, 0}, [2]float64{0.1, 0}},
	} {
		if less, more := held(tt.less[0], tt.less[1], hits...), held(tt.more[0], tt.more[1], hits...); less >= more {
			t.Errorf("%v has %v, and %v has %v", tt.less, less, tt.more, more)
		}
	}
	if a, b := held(0.9, 0.1, hits...), held(0.9, 0.1, hits[1], hits[0]); a != b {
		t.Errorf("%v and %v by the order of the passages", a, b)
	}
}

func TestHits(t *testing.T) {
	hits := []assay.Hit{hit("a", "Port 80.", 0.05), hit("b", "Port maybe.", 0.9), hit("c", "Bananas.", math.NaN())}
	r := finds(map[string]float64{"80": 0.8, "maybe": 0.3})
	scores, err := local.Judge{Reader: r}.Score(t.Context(), nil, "Which port?", hits)
	if err != nil || !slices.Equal(scores.Scores, []float64{0.8, 0.3, 0}) {
		t.Errorf("scores %v, %v", scores.Scores, err)
	}
	grades, err := local.Judge{Reader: r}.GradeRetrieval(t.Context(), nil, "Which port?", hits)
	if err != nil || !slices.Equal(grades.Grades, []role.Relevance{role.Relevant, role.PartlyRelevant, role.NotRelevant}) {
		t.Errorf("grades %v, %v", grades.Grades, err)
	}
	for _, r := range []llm.Reader{nil, broken} {
		scores, err := local.Judge{Reader: r}.Score(t.Context(), nil, "Which port?", hits)
		if err != nil || !slices.Equal(scores.Scores, []float64{0.05, 0.9, 0}) || (len(scores.Notes) > 0) != (r != nil) {
			t.Errorf("unread: %+v, %v", scores, err)
		}
		grades, err := local.Judge{Reader: r}.GradeRetrieval(t.Context(), nil, "Which port?", hits[:2])
		if err != nil || !slices.Equal(grades.Grades, []role.Relevance{role.NotRelevant, role.Relevant}) || (len(grades.Notes) > 0) != (r != nil) {
			t.Errorf("unread: %+v, %v", grades, err)
		}
	}
}

func TestAnswerGrader(t *testing.T) {
	answer := func(text string, quoted bool) role.AnswerInput {
		return role.AnswerInput{Question: "Which port does the server open?", Quoted: quoted, Statements: []role.ShownStatement{{Text: text, Under: []string{"Server"}}}}
	}
	for _, tt := range []struct {
		reader    llm.Reader
		in        role.AnswerInput
		relevance float64
	}{
		{finds(map[string]float64{"80": 0.8}), answer("It is 80.", false), 0.8},
		{finds(map[string]float64{"80": 0.8}), answer("The crane in Porto was installed in 1932.", false), 0},
		{nil, answer("It opens port 80.", true), 1},
		{nil, answer("Bananas are yellow.", false), 1.0 / 3}, // its headings count
	} {
		g, err := local.Judge{Reader: tt.reader}.GradeAnswer(t.Context(), nil, tt.in)
		if err != nil || g.Relevance == nil || math.Abs(*g.Relevance-tt.relevance) > 1e-9 || g.OffTopic {
			t.Errorf("%q: %+v, %v; want %v", tt.in.Statements[0].Text, g, err, tt.relevance)
		}
	}
	in := answer("It waits.", true)
	in.Statements[0].Quotes, in.Statements[0].Passages = []string{"It waits."}, []string{"It opens port 80. It waits."}
	for text, tt := range map[string]struct{ waits, relevance float64 }{ // 80 has the other answers
		"the likeliest answer":     {0.15, 0.15 * 0.6},
		"not the likeliest answer": {0.05, 0},
		"an answer in its passage": {0.45, 0.45 * 0.45 / 0.55},
	} {
		r := &llmtest.Reader{OnRead: func(_ string, p llm.Excerpt) (llm.Reading, error) {
			at := strings.Index(p.Text, "80. It ")
			if at < 0 {
				return llm.Reading{}, nil // by itself it says nothing
			}
			spans := []llm.Extract{{Start: at + 4, End: at + 9, Score: tt.waits}, {Start: at, End: at + 2, Score: 0.1}}
			slices.SortFunc(spans, func(a, b llm.Extract) int { return int(math.Copysign(1, b.Score-a.Score)) })
			return llm.Reading{Answerable: tt.waits, Relevance: tt.waits, Spans: spans}, nil
		}}
		g, err := local.Judge{Reader: r}.GradeAnswer(t.Context(), nil, in)
		if err != nil || g.Relevance == nil || math.Abs(*g.Relevance-tt.relevance) > 1e-9 || g.OffTopic {
			t.Errorf("%s: %+v, %v; want %v", text, g, err, tt.relevance)
		}
	}
	in = answer("Bananas are yellow.", false)
	in.Statements[0].Under = nil
	if g, err := (local.Judge{}).GradeAnswer(t.Context(), nil, in); err != nil || g.Relevance != nil || g.Failure != "" {
		t.Errorf("other words without a reader: %+v, %v; want an unknown relevance", g, err)
	}
	in.Quoted = true
	if g, err := (local.Judge{}).GradeAnswer(t.Context(), nil, in); err != nil || g.Relevance == nil || *g.Relevance != 0 {
		t.Errorf("a quotation without a reader: %+v, %v; want no relevance", g, err)
	}
	g, err := local.Judge{Reader: broken}.GradeAnswer(t.Context(), nil, answer("It opens port 80.", true))
	if err != nil || g.Failure == "" || g.Relevance != nil {
		t.Errorf("a reader that fails: %+v, %v; want a failure", g, err)
	}
}

// says is a verifier with a verdict for each claim.
type says map[string]assay.Verdict

func (v says) Verify(_ context.Context, claim string, _ []ground.Passage) (ground.Judgement, error) {
	if v[claim] == "" {
		return ground.Judgement{}, errors.New("out of order")
	}
	return ground.Judgement{Verdict: v[claim], Reason: "why"}, nil
}

func draftOf(question string, statements ...string) role.DraftInput {
	in := role.DraftInput{Reading: role.Reading{Question: question, Evidence: evidenceOf(hit("a", "The port is 80.", 0.9))}}
	for _, text := range statements {
		in.Draft.Statements = append(in.Draft.Statements, role.Statement{Text: text, Evidence: []int{1}})
	}
	return in
}

func TestReview(t *testing.T) {
	v := says{"The port is 80.": assay.Supported, "The port is 90.": assay.Contradicted, "It is red.": assay.Unsupported}
	r := finds(map[string]float64{"80": 0.9})
	for _, tt := range []struct {
		statements []string
		accept     bool
		grounded   role.Rating
		complete   role.Rating
		support    []role.Support
	}{
		{[]string{"The port is 80."}, true, role.Good, role.Good, []role.Support{role.FullySupported}},
		{[]string{"The port is 80.", "It is red."}, false, role.Fair, role.Good, []role.Support{role.FullySupported, role.PartlySupported}},
		{[]string{"The port is 90."}, false, role.Poor, role.Poor, []role.Support{role.NotSupported}},
		{[]string{"It is broken."}, false, role.Poor, role.Poor, []role.Support{role.PartlySupported}},
		{nil, false, role.Poor, role.Poor, []role.Support{}},
	} {
		in := draftOf("Which port?", tt.statements...)
		j, err := local.Judge{Reader: r, Verifier: v}.JudgeDraft(t.Context(), nil, in)
		if err != nil || (j.Verdict == role.Accept) != tt.accept || tt.accept != (len(j.Revise) == 0) || j.Reason == "" {
			t.Errorf("%q is judged %+v, %v", tt.statements, j, err)
		}
		k, err := local.Judge{Reader: r, Verifier: v}.Criticise(t.Context(), nil, in)
		if err != nil || k.Grounded != tt.grounded || k.Complete != tt.complete || tt.accept != (len(k.Remarks) == 0) {
			t.Errorf("%q is criticised %+v, %v", tt.statements, k, err)
		}
		s, err := local.Judge{Verifier: v}.GradeSupport(t.Context(), nil, in)
		if err != nil || !slices.Equal(s.Grades, tt.support) {
			t.Errorf("%q is graded %+v, %v", tt.statements, s, err)
		}
		in.Critique = &role.Critique{Complete: role.Poor, Remarks: []role.Remark{{Advice: "more"}}}
		if j, err := (local.Judge{Reader: r, Verifier: v}).JudgeDraft(t.Context(), nil, in); err != nil || j.Verdict != role.Revise || tt.accept && !slices.Equal(j.Revise, []string{"more"}) {
			t.Errorf("%q is judged %+v after a critic, %v", tt.statements, j, err)
		}
	}
	verbatim, err := local.Judge{}.GradeSupport(t.Context(), nil, draftOf("Which port?", "The port is 80.", "The port may be 80."))
	if err != nil || !slices.Equal(verbatim.Grades, []role.Support{role.FullySupported, role.PartlySupported}) {
		t.Errorf("without a verifier %+v, %v", verbatim, err)
	}
}

func TestReflect(t *testing.T) {
	r := finds(map[string]float64{"80": 0.9, "maybe": 0.4})
	for _, tt := range []struct {
		known     []string
		threshold float64
		status    role.ReflectionStatus
	}{
		{[]string{"The port is 80."}, 0, role.CompletedStatus},
		{[]string{"The port is maybe open."}, 0, role.IncompleteStatus},
		{[]string{"The port is maybe open."}, 0.3, role.CompletedStatus},
		{nil, 0.1, role.IncompleteStatus},
	} {
		got, err := local.Judge{Reader: r}.Reflect(t.Context(), nil, role.ReflectInput{Question: "Which port?", Known: tt.known, Threshold: tt.threshold})
		if err != nil || got.Status != tt.status || got.Status == role.CompletedStatus && got.Coverage < got.Threshold {
			t.Errorf("%q at %v: %+v, %v", tt.known, tt.threshold, got, err)
		}
	}
}

func TestSources(t *testing.T) {
	a, b, c := hit("a", "The port is 80. Bananas are yellow.", 0.9), hit("b", "The port is 90.", 0.9), hit("c", "func f() {}\n\nThe user is root.", 0.9)
	a.Chunk.Headings = []string{"Ports"}
	in := role.Reading{Question: "Which port?", Evidence: evidenceOf(a, b, c)}
	r := finds(map[string]float64{"80": 0.9, "90": 0.8, "root": 0.1})
	r.OnEntail = func(p llm.ClaimPair) (llm.Entailment, error) {
		return llm.Entailment{Contradicted: 0.9, Neutral: 0.1}, nil
	}
	summary, err := local.Actor{Reader: r}.Summarise(t.Context(), nil, in)
	want := []role.Statement{{Text: "The port is 80.", Evidence: []int{1}}, {Text: "The port is 90.", Evidence: []int{2}}}
	if diff := cmp.Diff(want, summary.Statements); diff != "" || err != nil {
		t.Errorf("summary (-want +got):\n%s, %v", diff, err)
	}
	analysis, err := local.Judge{Reader: r}.Analyse(t.Context(), nil, in)
	if err != nil || len(analysis.Categories) != 2 || analysis.Categories[0].Name != "Ports" || !slices.Equal(analysis.Answered, []string{"Which port?"}) || len(analysis.Open) > 0 {
		t.Errorf("analysis %+v, %v", analysis, err)
	}
	contrast, err := local.Actor{Reader: r}.Compare(t.Context(), nil, in)
	if err != nil || len(contrast.Points) != 0 { // "port" alone is not what they share
		t.Errorf("contrast %+v, %v", contrast, err)
	}
	a.Text, b.Text = "The default port is 80.", "The default port is 90."
	contrast, err = local.Actor{Reader: r}.Compare(t.Context(), nil, role.Reading{Question: "Which port?", Evidence: evidenceOf(a, b)})
	if err != nil || len(contrast.Points) != 1 || contrast.Points[0].Relation != role.Conflict || contrast.Points[0].Aspect != "default port" {
		t.Errorf("contrast %+v, %v", contrast, err)
	}
	contrast, err = local.Actor{}.Compare(t.Context(), nil, role.Reading{Question: "Which port is the default?", Evidence: evidenceOf(a, b)})
	if err != nil || len(contrast.Points) != 1 || contrast.Points[0].Relation != role.Differ {
		t.Errorf("contrast by words %+v, %v", contrast, err)
	}
	in.Question = ""
	gateway := role.ExtractInput{Reading: role.Reading{Evidence: evidenceOf(hit("a", "The gateway Heron takes 30 seconds. See os.Open.", 0.9), hit("b", "It is called Heron.", 0.9))}}
	extraction, err := local.Actor{}.Extract(t.Context(), nil, gateway)
	if err != nil || len(extraction.Facts) != 2 {
		t.Errorf("facts %+v, %v", extraction.Facts, err)
	}
	entities := []role.Entity{{Name: "Heron", Kind: "name", Evidence: []int{1, 2}}, {Name: "os.Open", Kind: "identifier", Evidence: []int{1}}, {Name: "30 seconds", Kind: "number", Evidence: []int{1}}}
	if diff := cmp.Diff(entities, extraction.Entities); diff != "" {
		t.Errorf("entities (-want +got):\n%s", diff)
	}
	for entityType, want := range map[string][]string{
		role.AnyEntity: {"Heron", "os.Open", "30 seconds"}, "gateways": {"Heron", "os.Open", "30 seconds"}, role.Organisation: {"Heron"},
		role.Product: {"Heron", "os.Open"}, role.Identifier: {"os.Open"}, role.Amount: {"30 seconds"}, role.Date: {"30 seconds"},
	} {
		gateway.EntityType = entityType
		extraction, err := local.Actor{}.Extract(t.Context(), nil, gateway)
		var names []string
		for _, e := range extraction.Entities {
			names = append(names, e.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" || err != nil {
			t.Errorf("entities of the type %s, %v (-want +got):\n%s", entityType, err, diff)
		}
	}
}

// No role makes anything of a context that has ended, and none fails on what is not there.
func TestEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	reading := role.Reading{Question: "Which port?", Evidence: evidenceOf(hit("a", "Port 80.", 0.9))}
	for name, do := range map[string]func(context.Context, llm.Reader, role.Reading) error{
		"generator": func(ctx context.Context, r llm.Reader, in role.Reading) error {
			_, err := local.Generator{Reader: r}.Generate(ctx, nil, role.GenerateInput{Question: in.Question, Parts: []role.Part{{Question: in.Question, Evidence: []int{1}}}, Evidence: in.Evidence})
			return err
		},
		"grader": func(ctx context.Context, r llm.Reader, in role.Reading) error {
			_, err := local.Grader{Reader: r}.Grade(ctx, nil, role.GradeInput{Question: in.Question})
			return err
		},
		"summariser": func(ctx context.Context, r llm.Reader, in role.Reading) error {
			_, err := local.Actor{Reader: r}.Summarise(ctx, nil, in)
			return err
		},
		"analyst": func(ctx context.Context, r llm.Reader, in role.Reading) error {
			_, err := local.Judge{Reader: r}.Analyse(ctx, nil, in)
			return err
		},
		"comparer": func(ctx context.Context, r llm.Reader, in role.Reading) error {
			_, err := local.Actor{Reader: r}.Compare(ctx, nil, in)
			return err
		},
		"extractor": func(ctx context.Context, r llm.Reader, in role.Reading) error {
			_, err := local.Actor{Reader: r}.Extract(ctx, nil, role.ExtractInput{Reading: in})
			return err
		},
		"reflector": func(ctx context.Context, r llm.Reader, in role.Reading) error {
			_, err := local.Judge{Reader: r}.Reflect(ctx, nil, role.ReflectInput{Question: in.Question, Known: []string{"x"}})
			return err
		},
		"planner": func(ctx context.Context, _ llm.Reader, in role.Reading) error {
			_, err := local.Planner{}.Plan(ctx, nil, in.Question)
			return err
		},
	} {
		for _, r := range []llm.Reader{nil, &llmtest.Reader{}} {
			if err := do(ctx, r, reading); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want that it was cancelled", name, err)
			}
			for _, in := range []role.Reading{{}, reading, {Question: "\x00", Evidence: evidenceOf(hit("a", "", 0), hit("b", "\xff\n\n|\n", 1))}} {
				if err := do(t.Context(), r, in); err != nil {
					t.Errorf("%s of %+v: %v", name, in, err)
				}
			}
		}
	}
}

// FuzzRefine checks that the parts of a hit are ascending spans of its text that hold whole
// characters, and that some part is kept if the text has a word of the question.
func FuzzRefine(f *testing.F) {
	f.Add("A cache holds keys. Bananas are yellow. They grow. They ripen. The cache is on disk.", "cache keys")
	f.Add("", "cache")
	f.Add("x", "x")
	f.Add("日本語の文。キャッシュは鍵を持つ。", "キャッシュ")
	f.Add("a.\n\nb. cache\n\n```\ncode\n```\n", "cache code")
	f.Fuzz(func(t *testing.T, text, question string) {
		if !utf8.ValidString(text) || !utf8.ValidString(question) {
			return
		}
		out, err := local.Judge{}.Refine(t.Context(), nil, question, []assay.Hit{hit("a", text, 0.5)})
		if err != nil || len(out.Parts) != 1 {
			t.Fatalf("%+v, %v", out, err)
		}
		last := 0
		for _, p := range out.Parts[0] {
			if p.Start < last || p.End <= p.Start || p.End > len(text) || !utf8.ValidString(text[p.Start:p.End]) {
				t.Fatalf("[%d, %d) after %d of %q", p.Start, p.End, last, text)
			}
			last = p.End
		}
	})
}

func TestRefine(t *testing.T) {
	const filler = "Bananas are yellow. They grow in warm places. They ripen late. "
	text := filler + "The port is 80. It is open. " + filler
	hits := []assay.Hit{hit("a", text, 0.5), hit("b", filler, 0.5)}
	for name, r := range map[string]llm.Reader{"reader": finds(map[string]float64{"80": 0.8}), "words": nil, "broken": broken} {
		out, err := local.Judge{Reader: r}.Refine(t.Context(), nil, "Which port?", hits)
		if err != nil || (len(out.Notes) > 0) != (name == "broken") {
			t.Fatalf("%s: %+v, %v", name, out, err)
		}
		if len(out.Parts[0]) != 1 || len(out.Parts[1]) != 0 {
			t.Fatalf("%s: parts %v, want one of the first hit and none of the second", name, out.Parts)
		}
		if got := text[out.Parts[0][0].Start:out.Parts[0][0].End]; got != "They ripen late. The port is 80. It is open." {
			t.Errorf("%s: %q is left", name, got)
		}
	}
}

// TestGenerateJoinsSubAnswers checks that sub-answers are joined without repetition and with one
// table, and that a part without a sub-answer is answered after them.
func TestGenerateJoinsSubAnswers(t *testing.T) {
	say := func(text string, cells ...string) role.Statement {
		return role.Statement{Text: text, Evidence: []int{1}, Cells: cells}
	}
	h := assay.Hit{Chunk: assay.Chunk{ID: "c", Kind: assay.ChunkProse}, Text: "The gamma weighs 7 kg.", Scores: assay.Scores{Relevance: 0.9}}
	part := func(question string) role.Part {
		return role.Part{Question: question, Evidence: []int{1}, Terms: []assay.Term{{Text: "gamma", Stem: "gamma", Weight: 1}}}
	}
	d, err := local.Generator{}.Generate(t.Context(), nil, role.GenerateInput{
		Question: "Which is heaviest?", Evidence: []assay.Evidence{{Number: 1, Hit: h}}, Parts: []role.Part{part("alpha?"), part("gamma weighs?")},
		SubAnswers: []role.SubAnswer{
			{Question: "alpha?", Statements: []role.Statement{say("The alpha weighs 3 kg."), say("It is old.")}},
			{Question: "beta?", Columns: []string{"Name", "Weight"}, Statements: []role.Statement{say("the  ALPHA weighs 3 kg."), say("beta | 5 kg", "beta", "5 kg")}},
			{Question: "delta?", Columns: []string{"Name", "Colour"}, Statements: []role.Statement{say("delta | red", "delta", "red")}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, st := range d.Statements {
		got = append(got, fmt.Sprintf("%s %q", st.Text, st.Cells))
	}
	want := []string{`The alpha weighs 3 kg. []`, `It is old. []`, `beta | 5 kg ["beta" "5 kg"]`, `delta | red []`, `The gamma weighs 7 kg. []`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
}
