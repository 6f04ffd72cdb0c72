package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/role/local"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/run"
	"github.com/assay-rag/assay/strategy"
)

// scorer scores hits by URI; 0 if it has no entry.
type scorer map[string]float64

func (s scorer) Score(_ context.Context, _ role.Caller, _ string, hits []assay.Hit) (role.HitScores, error) {
	out := role.HitScores{}
	for _, h := range hits {
		out.Scores = append(out.Scores, s[h.URI])
	}
	return out, nil
}

// Refine returns the first sentence of each hit that contains "vault".
func (s scorer) Refine(_ context.Context, _ role.Caller, _ string, hits []assay.Hit) (role.Refinement, error) {
	return firstSentences(hits), nil
}

func firstSentences(hits []assay.Hit) role.Refinement {
	out := role.Refinement{Parts: make([][]role.Span, len(hits))}
	for i, h := range hits {
		if strings.Contains(h.Text, "vault") {
			out.Parts[i] = []role.Span{{End: strings.Index(h.Text, ".") + 1}}
		}
	}
	return out
}

// scores is a scorer made of a function.
type scores func(hits []assay.Hit) (role.HitScores, error)

func (f scores) Refine(_ context.Context, _ role.Caller, _ string, hits []assay.Hit) (role.Refinement, error) {
	return firstSentences(hits), nil
}

// A parts is a scorer that scores all hits as ambiguous and returns the function's parts.
type parts func(hits []assay.Hit) (role.Refinement, error)

func (f parts) Score(_ context.Context, _ role.Caller, _ string, hits []assay.Hit) (role.HitScores, error) {
	return role.HitScores{Scores: slices.Repeat([]float64{0.5}, len(hits))}, nil
}

func (f parts) Refine(_ context.Context, _ role.Caller, _ string, hits []assay.Hit) (role.Refinement, error) {
	return f(hits)
}

func (f scores) Score(_ context.Context, _ role.Caller, _ string, hits []assay.Hit) (role.HitScores, error) {
	return f(hits)
}

// web is an open web with a few pages.
type web struct {
	results []assay.WebResult
	pages   map[string][]string // passages of a page, by address
	err     error               // of a search
	pageErr map[string]error
	price   int64
	asked   []string
}

func (w *web) Name() string { return "finder" }

func (w *web) Price() int64 { return w.price }

func (w *web) Search(_ context.Context, query string, n int) ([]assay.WebResult, error) {
	w.asked = append(w.asked, fmt.Sprintf("%d of %s", n, query))
	return w.results, w.err
}

func (w *web) Page(_ context.Context, url string) ([]assay.Passage, error) {
	if err := w.pageErr[url]; err != nil {
		return nil, err
	}
	var passages []assay.Passage
	id, start := assay.DocumentID("web", url), 0
	for i, text := range w.pages[url] {
		c := assay.Chunk{ID: assay.ChunkID(id, "1", i), Document: id, Version: "1", Ordinal: i, Kind: assay.ChunkProse, Start: start, End: start + len(text), Headings: []string{}}
		passages = append(passages, assay.Passage{Chunk: c, Text: text, URI: url, Title: "Page"})
		start += len(text) + 1
	}
	return passages, nil
}

// onePage returns a web with one page, which states how long a vault holds a token.
func onePage() *web {
	return &web{
		results: []assay.WebResult{{URL: "https://example.com/cache", Title: "Cache", Snippet: "About caches."}},
		pages:   map[string][]string{"https://example.com/cache": {"The vault may hold a token for nine days.", "Bananas are yellow."}},
	}
}

const vaultQuestion = "How long may the vault hold a token?"

// TestCRAGActions walks the three branches, with scores exactly at the thresholds.
func TestCRAGActions(t *testing.T) {
	const page = "https://example.com/cache"
	docs := []string{"The vault may hold a token for seven days. Bananas are yellow.", "The vault is on the disk. It is old.", "A token is small. It is round."}
	tests := []struct {
		name   string
		scores scorer
		web    bool     // whether the web is searched
		used   []string // texts that the generator reads
	}{
		{"two relevant", scorer{"doc1": 0.7, "doc2": 0.7}, false, docs[:2]},
		{"two relevant, one ambiguous", scorer{"doc1": 0.7, "doc2": 0.71, "doc3": 0.3}, false, docs[:2]},
		{"two relevant, one irrelevant", scorer{"doc1": 0.9, "doc2": 0.7, "doc3": 0.29999}, false, docs[:2]},
		{"one relevant, one ambiguous", scorer{"doc1": 0.7, "doc2": 0.69999}, false, []string{docs[0], "The vault is on the disk."}},
		{"two ambiguous", scorer{"doc1": 0.3, "doc2": 0.3}, false, []string{"The vault is on the disk.", "The vault may hold a token for seven days."}},
		{"two ambiguous, nothing of one bears on it", scorer{"doc1": 0.5, "doc3": 0.5}, false, []string{"The vault may hold a token for seven days."}},
		{"one relevant", scorer{"doc1": 0.7, "doc2": 0.29999}, true, []string{docs[0], page}},
		{"one ambiguous", scorer{"doc1": 0.3}, true, []string{page}},
		{"all irrelevant", scorer{"doc1": 0.29999, "doc2": 0.29999}, true, []string{page}},
		{"no scores", scorer{}, true, []string{page}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			roles := localRoles()
			roles.Scorer, roles.Grader = test.scores, grader(enough)
			var used []string
			roles.Generator = generator(func(in role.GenerateInput) (role.Draft, error) {
				for _, ev := range in.Evidence {
					if ev.Hit.Origin == assay.FromWeb {
						used = append(used, ev.Hit.URI)
					} else {
						used = append(used, ev.Hit.Text)
					}
				}
				return verbatim(in)
			})
			e, w := env(newLibrary(docs...), vaultQuestion, roles), onePage()
			e.Web = w
			a := askAnywhere(t, strategy.CRAG, e)
			if asked := len(w.asked) > 0; asked != test.web {
				t.Errorf("the web was searched: %v, want %v; notes %q", asked, test.web, a.Notes)
			}
			slices.Sort(used)
			if diff := cmp.Diff(slices.Sorted(slices.Values(test.used)), slices.Compact(used)); diff != "" {
				t.Errorf("evidence (-want +got):\n%s", diff)
			}
			if test.web != slices.ContainsFunc(a.Citations, func(c assay.Citation) bool { return c.Origin == assay.FromWeb }) {
				t.Errorf("citations %+v", a.Citations)
			}
			if test.web != strings.Contains(a.Text, "from the web") {
				t.Errorf("the text %q has a disclaimer, want %v", a.Text, test.web)
			}
		})
	}
}

// TestCRAGParts checks that passages are used whole if a scorer finds no valid parts of them.
func TestCRAGParts(t *testing.T) {
	const text = "The vault may hold a token for seven days. Bären."
	for name, f := range map[string]parts{
		"too few": func([]assay.Hit) (role.Refinement, error) { return role.Refinement{}, nil },
		"outside": func(h []assay.Hit) (role.Refinement, error) {
			return role.Refinement{Parts: [][]role.Span{{{Start: 0, End: 999}}, {{Start: 0, End: 1}}}}, nil
		},
		"turned round": func(h []assay.Hit) (role.Refinement, error) {
			return role.Refinement{Parts: [][]role.Span{{{Start: 9, End: 3}}, {{Start: 0, End: 1}}}}, nil
		},
		"overlapping": func(h []assay.Hit) (role.Refinement, error) {
			return role.Refinement{Parts: [][]role.Span{{{Start: 0, End: 9}, {Start: 3, End: 12}}, nil}}, nil
		},
		"half a rune": func(h []assay.Hit) (role.Refinement, error) {
			return role.Refinement{Parts: [][]role.Span{{{Start: 0, End: 45}}, {{Start: 0, End: 45}}}}, nil
		},
		"an error": func(h []assay.Hit) (role.Refinement, error) { return role.Refinement{}, errors.New("no time") },
	} {
		t.Run(name, func(t *testing.T) {
			roles := localRoles()
			roles.Scorer, roles.Grader = f, grader(enough)
			var used []string
			roles.Generator = generator(func(in role.GenerateInput) (role.Draft, error) {
				for _, ev := range in.Evidence {
					used = append(used, ev.Hit.Text)
				}
				return verbatim(in)
			})
			a := ask(t, strategy.CRAG, env(newLibrary(text, text), vaultQuestion, roles), assay.Budget{})
			told := slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.HasPrefix(n, "refiner: ") })
			if !told || a.Status != assay.Answered || !slices.Contains(used, text) {
				t.Errorf("%s of %q, notes %q", a.Status, used, a.Notes)
			}
		})
	}
}

// askAnywhere is ask for answers that may quote text from outside the documents, which is only in
// the journal.
func askAnywhere(t *testing.T, f strategy.Func, e strategy.Env) assay.Answer {
	t.Helper()
	journal := &run.Memory{}
	r, err := run.New(run.Config{Run: "r", Journal: journal})
	if err != nil {
		t.Fatal(err)
	}
	a, err := f(context.Background(), r.Scope(), e)
	if err != nil {
		t.Fatal(err)
	}
	again, err := run.Replay(run.Config{Run: "r", Records: journal.Records()})
	if err != nil {
		t.Fatal(err)
	}
	silent := e
	silent.Retriever, silent.Web, silent.Managed = nil, nobody(e.Web), absent(e.Managed)
	b, err := f(context.Background(), again.Scope(), silent)
	if diff := cmp.Diff(a.Answer, b.Answer); err != nil || diff != "" {
		t.Errorf("replay: %v (-want +got):\n%s", err, diff)
	}
	if err := again.Finish(); err != nil {
		t.Errorf("replay: %v", err)
	}
	for _, c := range a.Claims {
		if c.Verdict != assay.Supported || c.Start < 0 || c.End > len(a.Text) {
			t.Errorf("claim %+v of %q", c, a.Text)
		}
	}
	return a.Answer
}

// nobody returns a web with the name of w that panics if it is used.
func nobody(w strategy.Web) strategy.Web {
	if w == nil {
		return nil
	}
	return unasked{w}
}

type unasked struct{ strategy.Web }

func (unasked) Search(context.Context, string, int) ([]assay.WebResult, error) {
	panic("a replay searches the web")
}

func (unasked) Page(context.Context, string) ([]assay.Passage, error) {
	panic("a replay reads a page")
}

// TestCRAGWithoutWeb checks that without the web the answer rests on the documents and that a note
// gives the reason why the web was not searched.
func TestCRAGWithoutWeb(t *testing.T) {
	for _, test := range []struct {
		scores scorer
		status assay.Status
		noted  bool
	}{
		{scorer{"doc1": 0.9, "doc2": 0.9}, assay.Answered, false},
		{scorer{"doc1": 0.9}, assay.Answered, true}, // the grader finds it sufficient
		{scorer{"doc1": 0.2}, assay.NotFound, true},
	} {
		roles := localRoles()
		roles.Scorer = test.scores
		e := env(newLibrary("The vault may hold a token for seven days.", "The vault is on the disk."), vaultQuestion, roles)
		e.NoWeb = "nobody allows it"
		a := ask(t, strategy.CRAG, e, assay.Budget{})
		noted := slices.Contains(noteTexts(a.Notes), "the web was not searched: nobody allows it")
		if a.Status != test.status || noted != test.noted || a.Strategy != "crag" {
			t.Errorf("%v: %s %q, notes %q", test.scores, a.Status, a.Text, a.Notes)
		}
		if test.status == assay.NotFound && (len(a.Closest) == 0 || len(a.Missing) == 0 || len(a.Claims) > 0) {
			t.Errorf("%v: closest %v, missing %q", test.scores, a.Closest, gapTexts(a.Missing))
		}
	}
}

// TestCRAGHostileScorer checks that there is one score in [0, 1] for each hit, whatever the scorer
// returns, and that invalid scores count as doubtful.
func TestCRAGHostileScorer(t *testing.T) {
	for name, f := range map[string]scores{
		"too few": func([]assay.Hit) (role.HitScores, error) { return role.HitScores{Scores: []float64{1}}, nil },
		"none":    func([]assay.Hit) (role.HitScores, error) { return role.HitScores{}, nil },
		"too many": func(h []assay.Hit) (role.HitScores, error) {
			return role.HitScores{Scores: slices.Repeat([]float64{1}, 99)}, nil
		},
		"no numbers": func(h []assay.Hit) (role.HitScores, error) {
			return role.HitScores{Scores: []float64{math.NaN(), math.Inf(1)}}, nil
		},
		"outside":  func(h []assay.Hit) (role.HitScores, error) { return role.HitScores{Scores: []float64{-1, 7}}, nil },
		"an error": func([]assay.Hit) (role.HitScores, error) { return role.HitScores{}, errors.New("no time") },
	} {
		t.Run(name, func(t *testing.T) {
			roles := localRoles()
			roles.Scorer = f
			e := env(newLibrary("The vault may hold a token for seven days.", "The vault is on the disk."), vaultQuestion, roles)
			a := ask(t, strategy.CRAG, e, assay.Budget{})
			told := slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.HasPrefix(n, "scorer: ") })
			if !told || a.Status != assay.Answered {
				t.Errorf("%s, notes %q", a.Status, a.Notes)
			}
		})
	}
}

// TestCRAGRefines checks that the generator reads only the relevant part of an ambiguous hit, and
// that the citation has its position in the document.
func TestCRAGRefines(t *testing.T) {
	filler := strings.Repeat("Bananas are yellow and grow in warm places. ", 6)
	long := filler + "The vault may hold a token for seven days. It does so by night. " + filler
	roles := localRoles()
	roles.Scorer = parts(func(hits []assay.Hit) (role.Refinement, error) {
		return local.Judge{}.Refine(context.Background(), nil, vaultQuestion, hits)
	})
	var read string
	inner := roles.Generator
	roles.Generator = generator(func(in role.GenerateInput) (role.Draft, error) {
		for _, ev := range in.Evidence {
			read += ev.Hit.Text + "\n"
		}
		return inner.Generate(context.Background(), nil, in)
	})
	a := ask(t, strategy.CRAG, env(newLibrary(long, "The vault is on the disk."), vaultQuestion, roles), assay.Budget{})
	if a.Status != assay.Answered || !strings.Contains(a.Text, "for seven days") {
		t.Errorf("%s: %q; %s", a.Status, a.Text, a.Justification)
	}
	if n := strings.Count(read, "Bananas"); n > 2 || !strings.Contains(read, "by night") {
		t.Errorf("the generator read %q", read)
	}
}

// TestWebPages checks that the snippet of a page that cannot be read is used, and that of a
// forbidden address is not.
func TestWebPages(t *testing.T) {
	w := &web{
		results: []assay.WebResult{
			{URL: "https://example.com/down", Title: "Down", Snippet: "The vault may hold a token for nine days."},
			{URL: "http://10.0.0.1/", Title: "Inside", Snippet: "The vault may hold a token for no days."},
			{URL: "https://example.com/other", Title: "Other", Snippet: "Nothing."},
		},
		pages: map[string][]string{"https://example.com/other": {"Bananas are yellow."}},
		pageErr: map[string]error{
			"https://example.com/down": fmt.Errorf("read example.com: HTTP 500: %w", assay.ErrUnavailable),
			"http://10.0.0.1/":         fmt.Errorf("read 10.0.0.1: refused: %w", assay.ErrInvalid),
		},
	}
	e := env(newLibrary("Bananas."), vaultQuestion, localRoles())
	e.Web = w
	a := askAnywhere(t, strategy.CRAG, e)
	if a.Status != assay.Answered || !strings.Contains(a.Text, "for nine days. [1]") || strings.Contains(a.Text, "no days") || len(a.Citations) != 1 || a.Citations[0].URI != "https://example.com/down" {
		t.Errorf("%s: %q, %+v; %s", a.Status, a.Text, a.Citations, a.Justification)
	}
	for _, want := range []string{"https://example.com/down was not read: ", "https://example.com/down counts with its search snippet only", "http://10.0.0.1/ was not read: "} {
		if !slices.ContainsFunc(noteTexts(a.Notes), func(n string) bool { return strings.HasPrefix(n, want) }) {
			t.Errorf("notes %q, want %q", a.Notes, want)
		}
	}
}

// TestWebFails checks that CRAG answers from the documents if the web fails, finds no page or
// exhausts the time.
func TestWebFails(t *testing.T) {
	for name, w := range map[string]*web{
		"down":    {err: fmt.Errorf("finder: overloaded: %w", assay.ErrUnavailable)},
		"nothing": {},
		"late":    {err: fmt.Errorf("late: %w", assay.ErrDeadline)},
	} {
		roles := localRoles()
		roles.Scorer = scorer{"doc1": 0.9}
		e := env(newLibrary("The vault may hold a token for seven days."), vaultQuestion, roles)
		e.Web = w
		a := askAnywhere(t, strategy.CRAG, e)
		if a.Status != assay.Answered || !strings.Contains(a.Text, "seven days") || len(w.asked) != 1 {
			t.Errorf("%s: %s %q, notes %q", name, a.Status, a.Text, a.Notes)
		}
	}
	e := env(newLibrary("Bananas."), vaultQuestion, localRoles())
	e.Web = &web{err: errors.New("the run cannot go on")}
	r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := strategy.CRAG(context.Background(), r.Scope(), e); err == nil {
		t.Error("an error that is none of the web's is swallowed")
	}
}

// TestLadderEndsAtTheWeb checks that the web is searched last, and only if the documents do not
// hold the answer.
func TestLadderEndsAtTheWeb(t *testing.T) {
	for _, name := range []string{"corrective", "auto"} {
		spec, err := strategy.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		w := onePage()
		w.pages["https://example.com/cache"] = []string{"The vault may hold a token for nine days."}
		e := env(newLibrary("Bananas are yellow."), vaultQuestion, localRoles())
		e.Web = w
		a := askAnywhere(t, spec.Func, e)
		if a.Status != assay.Answered || !strings.Contains(a.Text, "for nine days. [1]") || len(w.asked) != 1 || a.Citations[0].Origin != assay.FromWeb {
			t.Errorf("%s: %s %q, asked %q; %s", name, a.Status, a.Text, w.asked, a.Justification)
		}
		w = onePage()
		e = env(newLibrary("The vault may hold a token for seven days."), vaultQuestion, localRoles())
		e.Web = w
		if a := askAnywhere(t, spec.Func, e); a.Status != assay.Answered || len(w.asked) != 0 {
			t.Errorf("%s: %s %q, asked %q", name, a.Status, a.Text, w.asked)
		}
		w = &web{err: fmt.Errorf("finder: overloaded: %w", assay.ErrUnavailable)}
		e = env(newLibrary("Bananas are yellow."), vaultQuestion, localRoles())
		e.Web = w
		if a := askAnywhere(t, spec.Func, e); a.Status != assay.NotFound || len(w.asked) != 1 || len(a.Notes) == 0 {
			t.Errorf("%s: %s %q, asked %q", name, a.Status, a.Text, w.asked)
		}
	}
}

// TestWebPrice checks that a paid web search is made only if the budget has room for it, and is
// charged.
func TestWebPrice(t *testing.T) {
	for limit, asked := range map[int64]int{4999: 0, 5000: 1, 0: 1} {
		roles := localRoles()
		roles.Scorer = scorer{"doc1": 0.9}
		w := onePage()
		w.price = 5000
		e := env(newLibrary("The vault may hold a token for seven days."), vaultQuestion, roles)
		e.Web = w
		r, err := run.New(run.Config{Run: "r", Journal: &run.Memory{}, Budget: assay.Budget{CostMicros: limit}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := strategy.CRAG(context.Background(), r.Scope(), e)
		if err != nil {
			t.Fatal(err)
		}
		if spent := r.Scope().Spent().CostMicros; len(w.asked) != asked || spent != int64(asked)*5000 || !strings.Contains(a.Text, "seven days") {
			t.Errorf("with %d to spend: asked %d times for %d: %s %q (%s), %q", limit, len(w.asked), spent, a.Status, a.Text, a.Stop, a.Notes)
		}
		if asked == 0 && !slices.Contains(noteTexts(a.Notes), "the run had no budget left left to search the web to the end (money_budget)") {
			t.Errorf("notes %q", a.Notes)
		}
	}
}
