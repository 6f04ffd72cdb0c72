package main

import (
	"flag"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/provider/embedded"
	"github.com/assay-rag/assay/role"
)

var measureRelevance = flag.Bool("measure-relevance", false, "measure thresholds of the relevance of an answer")

// An answerCase is a question with an answer to it, or to another question about the same document.
type answerCase struct {
	set, kind string // kind "right", or where the other question's answer is from
	role.AnswerInput
	held float64 // probability by the reader that the passage of a right answer answers
}

// TestMeasureRelevance measures how many right answers thresholds of strategy.VerifySettings block,
// and how many answers that were exchanged between questions about one document they catch:
//
//	go test ./train/fit -run MeasureRelevance -measure-relevance -v
//
// The answers are sentences of the written documents that were held out from the reader's training,
// and the paraphrased answers of eval/testdata. It takes a few minutes.
func TestMeasureRelevance(t *testing.T) {
	if !*measureRelevance {
		t.Skip("it takes minutes: with -measure-relevance")
	}
	reader, err := embedded.OpenReader()
	if err != nil {
		t.Fatal(err)
	}
	scores := map[string][]float64{} // by set and kind
	grader := local.Judge{Reader: reader}
	for _, c := range slices.Concat(writtenAnswers(t, reader), paraphrasedAnswers(t)) {
		g, err := grader.GradeAnswer(t.Context(), nil, c.AnswerInput)
		if err != nil || g.Relevance == nil {
			t.Fatalf("%q: %+v, %v", c.Question, g, err)
		}
		key := c.set + ", " + c.kind
		scores[key] = append(scores[key], *g.Relevance)
		if c.held >= 0.6 {
			scores[key+", held"] = append(scores[key+", held"], *g.Relevance)
		}
	}
	thresholds := []float64{0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5}
	for _, key := range slices.Sorted(maps.Keys(scores)) {
		line := fmt.Sprintf("%-32s %4d, blocked:", key, len(scores[key]))
		for _, least := range thresholds {
			blocked := 0
			for _, s := range scores[key] {
				if s < least {
					blocked++
				}
			}
			line += fmt.Sprintf("  %.2f %5.1f%%", least, 100*float64(blocked)/float64(len(scores[key])))
		}
		t.Log(line)
	}
}

// handwritten is the folder of the handwritten sets.
const handwritten = "../../eval/testdata"

// A paraphrasedAnswer is a right answer as a language model would write it.
type paraphrasedAnswer struct {
	Document, Question, Answer string
	Sources                    []string
}

// A writtenSection is a section of a written document with its questions and their answers.
type writtenSection struct {
	Document, Heading, Text string
	Answerable              []struct{ Q, A string }
}

// answer returns the statement that quotes the sentence of an answer.
func (s writtenSection) answer(a string) role.ShownStatement {
	quote, at := a, strings.Index(s.Text, a)
	for _, sp := range sentence.Spans(s.Text) {
		if sp.Start <= at && at < sp.End {
			quote = s.Text[sp.Start:sp.End]
		}
	}
	return role.ShownStatement{Text: quote, Under: []string{s.Document, s.Heading}, Quotes: []string{quote}, Passages: []string{s.Text}}
}

// writtenAnswers returns a sixth of the questions about the documents that were held out, each with
// its answer, one from the next section and another one from its own section.
func writtenAnswers(t *testing.T, reader llm.Reader) []answerCase {
	t.Helper()
	files, err := filepath.Glob("../written/sections-*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no written documents: %v", err)
	}
	documents, order := map[string][]writtenSection{}, []string{}
	for _, file := range files {
		eachLine(t, file, func(s writtenSection) {
			if !writtenAside(s.Document) {
				return
			}
			if documents[s.Document] == nil {
				order = append(order, s.Document)
			}
			documents[s.Document] = append(documents[s.Document], s)
		})
	}
	var cases []answerCase
	for _, d := range order {
		for i, s := range documents[d] {
			next := documents[d][(i+1)%len(documents[d])]
			for k, q := range s.Answerable {
				if crc32.ChecksumIEEE([]byte(q.Q))%6 != 0 {
					continue
				}
				add := func(kind string, st role.ShownStatement, held float64) {
					in := role.AnswerInput{Question: q.Q, Quoted: true, Statements: []role.ShownStatement{st}}
					cases = append(cases, answerCase{"written", kind, in, held})
				}
				read, err := reader.Read(t.Context(), q.Q, []llm.Excerpt{{Heading: s.Document + " > " + s.Heading, Text: s.Text}})
				if err != nil {
					t.Fatal(err)
				}
				right := s.answer(q.A)
				add("right", right, read[0].Answerable)
				if next.Heading != s.Heading && len(next.Answerable) > 0 {
					add("another section's", next.answer(next.Answerable[k%len(next.Answerable)].A), 0)
				}
				for j := 1; j < len(s.Answerable); j++ {
					if other := s.answer(s.Answerable[(k+j)%len(s.Answerable)].A); other.Text != right.Text {
						add("its section's", other, 0)
						break
					}
				}
			}
		}
	}
	return cases
}

var (
	citationMark = regexp.MustCompile(` ?\[(\d+)\]`)
	titleLine    = regexp.MustCompile(`(?m)^# (.*)$`)
)

// paraphrasedAnswers returns the answers in eval/testdata, each with its question and with those of
// two other answers from the same document.
func paraphrasedAnswers(t *testing.T) []answerCase {
	t.Helper()
	by := map[string][]paraphrasedAnswer{}
	eachLine(t, filepath.Join(handwritten, "paraphrased.jsonl"), func(p paraphrasedAnswer) { by[p.Document] = append(by[p.Document], p) })
	var cases []answerCase
	for _, d := range slices.Sorted(maps.Keys(by)) {
		data, err := os.ReadFile(filepath.Join(handwritten, d))
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range by[d] {
			for j, kind := range []string{"right", "another question's", "another question's"} {
				in := role.AnswerInput{Question: p.Question, Statements: by[d][(i+j)%len(by[d])].statements(string(data))}
				cases = append(cases, answerCase{set: "paraphrased", kind: kind, AnswerInput: in})
			}
		}
	}
	return cases
}

// statements returns the sentences of an answer with the words that they cite and the paragraphs of
// these.
func (p paraphrasedAnswer) statements(document string) []role.ShownStatement {
	var under []string
	if m := titleLine.FindStringSubmatch(document); m != nil {
		under = m[1:2]
	}
	var list []role.ShownStatement
	for _, sp := range sentence.Spans(p.Answer) {
		text := p.Answer[sp.Start:sp.End]
		st := role.ShownStatement{Text: citationMark.ReplaceAllString(text, ""), Under: under}
		for _, m := range citationMark.FindAllStringSubmatch(text, -1) {
			quote := p.Sources[m[1][0]-'1']
			st.Quotes = append(st.Quotes, quote)
			for _, paragraph := range strings.Split(document, "\n\n") {
				if strings.Contains(paragraph, quote) && !slices.Contains(st.Passages, paragraph) {
					st.Passages = append(st.Passages, paragraph)
				}
			}
		}
		list = append(list, st)
	}
	return list
}
