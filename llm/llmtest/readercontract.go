package llmtest

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
	"golang.org/x/sync/errgroup"

	"github.com/assay-rag/assay/llm"
)

// maxSpans is the largest number of spans of a Reading.
const maxSpans = 5

// readerQuestion and readerPassages are the input of TestReader. The claims are the passages' first
// words and the question.
const readerQuestion = "How many days of leave may be carried over?"

func readerPassages() []llm.Excerpt {
	long := strings.Repeat("The server drains its connections before it stops, and écrit « 漢字 » to its log. ", 14)
	return []llm.Excerpt{
		{Heading: "Handbook > Leave", Text: "Five days of leave may be carried over. Ask your manager."},
		{Text: "The server drains its connections."},
		{Heading: "Empty", Text: ""},
		{Text: " \n\t"},
		{Text: "a"},
		{Heading: "漢字", Text: "Ünïcödé, 漢字 and 😀 in cafe\u0301s"},
		{Heading: strings.Repeat("A long heading > ", 40), Text: "Leave is not carried over."},
		{Heading: "Handbook", Text: long + "Five days of leave may be carried over. " + long},
		{Text: "[CLS] [SEP] names of special tokens [MASK] are text."},
		{Text: strings.Repeat("x", 700)},
		{Heading: "Handbook > Leave", Text: "Five days of leave may be carried over. Ask your manager."},
	}
}

func readerPairs() []llm.ClaimPair {
	var pairs []llm.ClaimPair
	for i, p := range readerPassages() {
		claim := readerQuestion
		if i%2 == 0 {
			claim = strings.Join(strings.Fields(p.Text)[:min(6, len(strings.Fields(p.Text)))], " ")
		}
		pairs = append(pairs, llm.ClaimPair{Claim: claim, Passage: p})
	}
	return pairs
}

// TestReader checks readers against the contract of llm.Reader. open returns the reader; it may
// return the same one each time.
func TestReader(t *testing.T, open func(testing.TB) llm.Reader) {
	t.Run("values", func(t *testing.T) { testReaderValues(t, open(t)) })
	t.Run("order", func(t *testing.T) { testReaderOrder(t, open(t)) })
	t.Run("nothing", func(t *testing.T) {
		r := open(t)
		readings, err := r.Read(t.Context(), readerQuestion, nil)
		if err != nil || len(readings) > 0 {
			t.Errorf("Read of no passages = %d readings, %v", len(readings), err)
		}
		entailments, err := r.Entail(t.Context(), nil)
		if err != nil || len(entailments) > 0 {
			t.Errorf("Entail of no pairs = %d entailments, %v", len(entailments), err)
		}
		if _, err := r.Read(t.Context(), "", readerPassages()); err != nil {
			t.Errorf("Read of an empty question: %v", err)
		}
	})
	t.Run("concurrent", func(t *testing.T) { testReaderConcurrent(t, open(t)) })
	t.Run("cancelled", func(t *testing.T) {
		r := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if readings, err := r.Read(ctx, readerQuestion, readerPassages()); !errors.Is(err, context.Canceled) {
			t.Errorf("Read with a context that has ended: %d readings, %v", len(readings), err)
		}
		if entailments, err := r.Entail(ctx, readerPairs()); !errors.Is(err, context.Canceled) {
			t.Errorf("Entail with a context that has ended: %d entailments, %v", len(entailments), err)
		}
	})
	t.Run("too long", func(t *testing.T) { testReaderTooLong(t, open(t)) })
}

// testReaderValues checks the ranges of all numbers.
func testReaderValues(t *testing.T, r llm.Reader) {
	if r.Model() == "" {
		t.Error("the reader has no name")
	}
	readings, entailments := readAll(t, r)
	for i, p := range readerPassages() {
		if err := CheckReading(readings[i], p.Text); err != nil {
			t.Errorf("passage %d (%.20q): %v", i, p.Text, err)
		}
		if err := CheckEntailment(entailments[i], p.Text); err != nil {
			t.Errorf("pair %d (%.20q): %v", i, p.Text, err)
		}
	}
}

func readAll(t testing.TB, r llm.Reader) ([]llm.Reading, []llm.Entailment) {
	t.Helper()
	readings, err := r.Read(t.Context(), readerQuestion, readerPassages())
	if err != nil || len(readings) != len(readerPassages()) {
		t.Fatalf("%d readings of %d passages, %v", len(readings), len(readerPassages()), err)
	}
	entailments, err := r.Entail(t.Context(), readerPairs())
	if err != nil || len(entailments) != len(readerPairs()) {
		t.Fatalf("%d entailments of %d pairs, %v", len(entailments), len(readerPairs()), err)
	}
	return readings, entailments
}

// testReaderOrder checks that the result for a passage does not depend on the other passages.
func testReaderOrder(t *testing.T, r llm.Reader) {
	readings, entailments := readAll(t, r)
	for i, p := range readerPassages() {
		alone, err := r.Read(t.Context(), readerQuestion, []llm.Excerpt{p})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(readings[i:i+1], alone); d != "" {
			t.Errorf("passage %d (%.20q) among others and alone (-others +alone):\n%s", i, p.Text, d)
		}
	}
	turned := readerPairs()
	slices.Reverse(turned)
	other, err := r.Entail(t.Context(), turned)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(other)
	if d := cmp.Diff(entailments, other); d != "" {
		t.Errorf("the pairs in another order (-first +reversed):\n%s", d)
	}
}

func testReaderConcurrent(t *testing.T, r llm.Reader) {
	readings, entailments := readAll(t, r)
	g, ctx := errgroup.WithContext(t.Context())
	for range 2 {
		g.Go(func() error {
			got, err := r.Read(ctx, readerQuestion, readerPassages())
			if err == nil && !cmp.Equal(got, readings) {
				err = errors.New("Read returns other readings than alone")
			}
			return err
		})
		g.Go(func() error {
			got, err := r.Entail(ctx, readerPairs())
			if err == nil && !cmp.Equal(got, entailments) {
				err = errors.New("Entail returns other entailments than alone")
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// testReaderTooLong checks that a long question is either read or reported as a *llm.TooLongError
// that names the passage.
func testReaderTooLong(t *testing.T, r llm.Reader) {
	long := strings.Repeat("How many days of leave may be carried over? ", 1000)
	passages := []llm.Excerpt{{Text: strings.Repeat("Five days of leave. ", 200)}}
	readings, err := r.Read(t.Context(), long, passages)
	checkTooLong(t, "Read", r, len(readings), err)
	entailments, err := r.Entail(t.Context(), []llm.ClaimPair{{Claim: long, Passage: passages[0]}})
	checkTooLong(t, "Entail", r, len(entailments), err)
}

func checkTooLong(t *testing.T, what string, r llm.Reader, n int, err error) {
	t.Helper()
	if err == nil && n == 1 {
		return // the reader has no limit
	}
	tooLong, ok := errors.AsType[*llm.TooLongError](err)
	if !ok {
		t.Errorf("%s of a very long text: %d results, %v, want a *TooLongError", what, n, err)
	} else if tooLong.Text != 0 || tooLong.Model != r.Model() || tooLong.Tokens <= tooLong.Limit {
		t.Errorf("%s: %+v, want it about passage 0 of %s", what, *tooLong, r.Model())
	}
}

// CheckReading returns an error if a reading of text violates the contract of llm.Reader.
func CheckReading(r llm.Reading, text string) error {
	if err := errors.Join(probability("Answerable", r.Answerable), probability("Relevance", r.Relevance)); err != nil {
		return err
	}
	if len(r.Spans) > maxSpans {
		return fmt.Errorf("%d spans, want at most %d", len(r.Spans), maxSpans)
	}
	for i, s := range r.Spans {
		if err := checkExtract(s, text); err != nil {
			return fmt.Errorf("span %d: %w", i, err)
		}
		if s.Start == s.End {
			return fmt.Errorf("span %d is empty", i)
		}
		for j, better := range r.Spans[:i] {
			if s.Start < better.End && better.Start < s.End {
				return fmt.Errorf("span %d [%d, %d) overlaps span %d [%d, %d)", i, s.Start, s.End, j, better.Start, better.End)
			}
			if s.Score > better.Score {
				return fmt.Errorf("span %d has the score %g, span %d before it %g", i, s.Score, j, better.Score)
			}
		}
	}
	return nil
}

// CheckEntailment returns an error if an entailment by text violates the contract of llm.Reader.
func CheckEntailment(e llm.Entailment, text string) error {
	if err := errors.Join(probability("Supported", e.Supported), probability("Contradicted", e.Contradicted), probability("Neutral", e.Neutral)); err != nil {
		return err
	}
	if sum := e.Supported + e.Contradicted + e.Neutral; math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("the probabilities sum to %g", sum)
	}
	if err := checkExtract(e.Decisive, text); err != nil {
		return fmt.Errorf("decisive: %w", err)
	}
	if e.Decisive.Start == e.Decisive.End && strings.ContainsFunc(text, isWordRune) {
		return errors.New("decisive is empty, and the text has words")
	}
	return nil
}

func probability(name string, p float64) error {
	if p >= 0 && p <= 1 {
		return nil
	}
	return fmt.Errorf("%s is %g, want a probability", name, p)
}

func checkExtract(x llm.Extract, text string) error {
	if x.Start < 0 || x.End < x.Start || x.End > len(text) {
		return fmt.Errorf("[%d, %d) of %d bytes", x.Start, x.End, len(text))
	}
	onRune := func(at int) bool { return at == len(text) || utf8.RuneStart(text[at]) }
	if !onRune(x.Start) || !onRune(x.End) {
		return fmt.Errorf("[%d, %d) cuts a character", x.Start, x.End)
	}
	return probability("score", x.Score)
}
