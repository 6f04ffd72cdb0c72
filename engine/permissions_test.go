package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/tool"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/strategy"
)

// hidden occurs in every document that only the board may see, and in no other.
const hidden = "PLUMBAGO"

var (
	staff = assay.Principal{User: "ann", Groups: []string{"staff"}}
	board = assay.Principal{User: "bob", Groups: []string{"board", "staff"}}
)

// guardedPapers are documents by collection and name. Those for the board have "board" in their
// names. The documents mention the same things, have similar titles, and lead from one to
// another.
var guardedPapers = map[string]string{
	"open/falcon.md":      "# Falcon project\n\nThe Falcon project is led by Ada Stern. Its sponsor is Brightwater Ltd.",
	"open/brightwater.md": "# Brightwater\n\nBrightwater Ltd was founded in Bergen in 1987. It makes sails.",
	"open/guide-1.md":     "# Falcon guide 1.0\n\nThe default timeout of Falcon is 30 seconds. Falcon is configured in a file.",
	"open/heron.md":       "# Heron guide\n\nHeron is configured in a database. Its default timeout is 10 seconds.",
	"open/board-plan.md":  "# Falcon budget " + hidden + "\n\nThe budget of the Falcon project is " + hidden + "-7731 euros. Ada Stern owns Brightwater Ltd, which is " + hidden + ".",
	"open/board-2.md":     "# Falcon guide 2.0 " + hidden + "\n\nThe default timeout of Falcon is " + hidden + " seconds. Falcon is configured by " + hidden + ".",
	"vault/board-v.md":    "# Vault of the Falcon project " + hidden + "\n\nThe Falcon project moves to " + hidden + " in May. Brightwater Ltd is owned by " + hidden + ".",
	"vault/staff.md":      "# Garden\n\nThe garden of the vault is open from nine to five.",
}

// guardedQuestions try to reach hidden text by searching, by following links between documents,
// by clarifying questions, and by naming collections.
var guardedQuestions = []string{
	"What is the budget of the Falcon project?",
	"Where was the sponsor of the Falcon project founded, and who owns it?",
	"What is the default timeout of Falcon?",
	"How do I configure it?",
	"What do open and vault say about the Falcon project?",
	"Who owns the sponsor of the project that is led by Ada Stern?",
}

// openGuarded opens a data directory with these documents. It returns a function that sets the
// group that may see the board's documents.
func openGuarded(t *testing.T) (e *Engine, root string, allow func(group string)) {
	t.Helper()
	root = t.TempDir()
	for name, text := range guardedPapers {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at, _, _ := site(t, everyPages)
	config := everyConfig(t.TempDir(), at)
	config.NoCache = false
	e, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	allow = func(group string) {
		t.Helper()
		for name := range guardedPapers {
			if strings.Contains(name, "board") {
				if err := os.WriteFile(filepath.Join(root, name)+".metadata.json", []byte(`{"acl": ["group:`+group+`"]}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, collection := range []string{"open", "vault"} {
			if _, err := e.Ingest(context.Background(), IngestRequest{Paths: []string{filepath.Join(root, collection)}, Collection: collection}); err != nil {
				t.Error(err)
			}
		}
	}
	allow("board")
	return e, root, allow
}

// prying makes the actor also try to read documents that it may not see.
func prying(root string) func(string, seen, map[string]any, []llm.ToolCall) []llm.ToolCall {
	return func(form string, _ seen, reply map[string]any, calls []llm.ToolCall) []llm.ToolCall {
		if form != "action" || len(calls) == 0 {
			return calls
		}
		more := []llm.ToolCall{callOn(tool.GetDocument, jsonOf(map[string]any{"id": filepath.ToSlash(filepath.Join(root, "vault", "board-v.md"))}))}
		if calls[0].Name == tool.Search {
			more = append(more, callOn(tool.Graph, `{"entities":["Falcon"]}`))
			calls = calls[:min(len(calls), 2)]
		}
		for i := range more {
			more[i].ID = fmt.Sprintf("pry%d", i)
		}
		return append(calls[:min(len(calls), 2)], more...)
	}
}

// TestEveryStrategyHidesWhatMayNotBeSeen checks that no answer, stored run or prompt of any
// strategy contains text that the principal may not see, and that a principal who may see it gets
// it.
func TestEveryStrategyHidesWhatMayNotBeSeen(t *testing.T) {
	t.Parallel()
	e, root, _ := openGuarded(t)
	told, runs := map[string]bool{}, 0
	for _, way := range everyWay {
		for s, name := range strategy.Names() {
			for q, question := range guardedQuestions {
				if os.Getenv("ASSAY_LONG") == "" && (q+s)%3 > 0 {
					continue
				}
				by := clerks(prying(root))
				if e.config.Models = (Models{}); way == "models" {
					e.config.Models = served(by)
				}
				req := Request{Question: question, Strategy: name, Budget: assay.Budget{Wall: 10 * time.Minute}}
				boards, err := e.Answer(t.Context(), board, req) // first, so that the answer could be reused
				if err != nil {
					t.Fatalf("%s, %s: %v", name, question, err)
				}
				if strings.Contains(jsonOf(boards), hidden) {
					told[name] = true
				}
				for _, m := range by {
					m.requests = nil
				}
				label := fmt.Sprintf("%s, %s, %q", name, way, question)
				var events strings.Builder
				var a assay.Answer
				for ev, err := range e.Ask(t.Context(), staff, req) {
					if err != nil {
						t.Fatalf("%s: %v", label, err)
					}
					events.WriteString(jsonOf(ev) + "\n")
					if ev.Answer != nil {
						a = *ev.Answer
					}
				}
				runs++
				if a.Cached != nil {
					t.Errorf("%s: the answer of %s is given again", label, a.Cached.Run)
				}
				_, records, err := e.journal(t.Context(), staff, a.Run)
				if err != nil {
					t.Fatal(err)
				}
				r, err := e.run(t.Context(), staff, a.Run)
				if err != nil {
					t.Fatal(err)
				}
				for what, text := range map[string]string{"the events": events.String(), "the run": jsonOf(r) + string(r.Request), "a record": recordsText(records)} {
					if i := strings.Index(text, hidden); i >= 0 {
						t.Errorf("%s: %s has it: …%.300s", label, what, text[max(0, i-150):])
					}
				}
				for role, m := range by {
					for _, r := range m.requests {
						if strings.Contains(jsonOf(r), hidden) {
							t.Errorf("%s: the %s is shown it", label, role)
						}
					}
				}
				if _, err := e.Answer(t.Context(), staff, Request{Question: "And what else?", Strategy: name, Follows: boards.Run}); !errors.Is(err, assay.ErrNotFound) {
					t.Errorf("%s: the board's run is followed: %v", label, err)
				}
				for what, do := range waysTo(e, staff, boards.Run) {
					if err := do(t.Context()); !errors.Is(err, assay.ErrNotFound) {
						t.Errorf("%s: %s of the board's run: %v", label, what, err)
					}
				}
			}
		}
	}
	for _, name := range strategy.Names() {
		if name != "managed" && !told[name] {
			t.Errorf("%s tells the board nothing, so that the staff is told nothing says little", name)
		}
	}
	t.Logf("%d runs", runs)
}

func recordsText(records []assay.Record) string {
	var all strings.Builder
	for _, rec := range records {
		all.WriteString(rec.Path + " " + string(rec.Input) + " " + string(rec.Output) + " " + jsonOf(rec.Error) + "\n")
	}
	return all.String()
}

// waysTo returns the operations that reveal a run.
func waysTo(e *Engine, p assay.Principal, id string) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"show": func(ctx context.Context) error {
			_, _, err := e.Run(ctx, p, id)
			return err
		},
		"replay": func(ctx context.Context) error {
			_, err := e.Replay(ctx, p, id)
			return err
		},
		"resume": func(ctx context.Context) error {
			for _, err := range e.Resume(ctx, p, id) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// TestEveryStrategyForgetsWhatMayNotBeSeenAnyMore checks, for every strategy, a principal who may
// no longer see a document that a run read. That principal must not be able to show, resume or
// follow the run or its follow-ups, or get its answer from the cache.
func TestEveryStrategyForgetsWhatMayNotBeSeenAnyMore(t *testing.T) {
	t.Parallel()
	e, root, allow := openGuarded(t)
	runs := e.runs
	const question = "What is the budget of the Falcon project?"
	type kept struct{ done, follows, cut, strategy, way string }
	var all []kept
	for _, way := range everyWay {
		for _, name := range strategy.Names() {
			if name == "managed" {
				continue // the service applies its own access rules
			}
			if e.config.Models = (Models{}); way == "models" {
				e.config.Models = served(clerks(prying(root)))
			}
			req := Request{Question: question, Strategy: name, Budget: assay.Budget{Wall: 10 * time.Minute}}
			k := kept{strategy: name, way: way}
			a, err := e.Answer(t.Context(), board, req)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(a.Text, hidden) {
				t.Errorf("%s, %s: the board is told %q", name, way, a.Text)
			}
			k.done = a.Run
			after, err := e.Answer(t.Context(), board, Request{Question: "Where was Brightwater Ltd founded?", Strategy: name, Follows: a.Run, Budget: req.Budget})
			if err != nil {
				t.Fatal(err)
			}
			k.follows = after.Run
			r, err := e.run(t.Context(), board, a.Run)
			if err != nil {
				t.Fatal(err)
			}
			e.runs = cutRuns{runs, r.Steps - 1, refused, func() {}}
			req.NoCache = true
			_, err = e.Answer(t.Context(), board, req)
			e.runs = runs
			var cut *RunError
			if !errors.As(err, &cut) || !cut.Resumable {
				t.Fatalf("%s, %s: %v", name, way, err)
			}
			k.cut = cut.Run
			all = append(all, k)
		}
	}
	allow("nobody")
	for _, k := range all {
		if e.config.Models = (Models{}); k.way == "models" {
			e.config.Models = served(clerks(prying(root)))
		}
		for _, id := range []string{k.done, k.follows, k.cut} {
			for what, do := range waysTo(e, board, id) {
				err := do(t.Context())
				ended := what == "resume" && id != k.cut && errors.Is(err, assay.ErrInvalid) // reported before anything is read
				if !ended && !errors.Is(err, assay.ErrNotFound) || strings.Contains(fmt.Sprint(err), hidden) {
					t.Errorf("%s, %s: %s of run %s: %v", k.strategy, k.way, what, id, err)
				}
			}
			if _, err := e.Answer(t.Context(), board, Request{Question: "And what else?", Strategy: k.strategy, Follows: id}); !errors.Is(err, assay.ErrNotFound) {
				t.Errorf("%s, %s: run %s is followed: %v", k.strategy, k.way, id, err)
			}
		}
		a, err := e.Answer(t.Context(), board, Request{Question: question, Strategy: k.strategy, Budget: assay.Budget{Wall: 10 * time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		if a.Cached != nil || strings.Contains(jsonOf(a), hidden) {
			t.Errorf("%s, %s: after all still %q, cached %+v", k.strategy, k.way, a.Text, a.Cached)
		}
	}
}

// TestEveryStrategyTakenAwayMeanwhile checks that a document removed during a run, right after it
// was found, is neither quoted nor cited.
func TestEveryStrategyTakenAwayMeanwhile(t *testing.T) {
	t.Parallel()
	for _, way := range everyWay {
		for s, name := range strategy.Names() {
			if name == "managed" || os.Getenv("ASSAY_LONG") == "" && s%4 > 0 {
				continue
			}
			e, _, allow := openGuarded(t)
			take := sync.OnceFunc(func() { allow("nobody") })
			e.wrap = func(r assay.Retriever) (assay.Retriever, error) { return &taking{Retriever: r, take: take}, nil }
			everyModels(e, way)
			a, err := e.Answer(t.Context(), board, Request{Question: "What is the budget of the Falcon project?", Strategy: name, Budget: assay.Budget{Wall: 10 * time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(a.Text, hidden) || slices.ContainsFunc(a.Citations, func(c assay.Citation) bool { return strings.Contains(jsonOf(c), hidden) }) {
				t.Errorf("%s, %s: %s: %q, cited %+v", name, way, a.Status, a.Text, a.Citations)
			}
			if _, _, err := e.Run(t.Context(), board, a.Run); !errors.Is(err, assay.ErrNotFound) {
				t.Errorf("%s, %s: the run can be seen: %v", name, way, err)
			}
		}
	}
}

// A taking is a retriever that removes documents after it has found them.
type taking struct {
	assay.Retriever
	take func()
}

func (r *taking) Retrieve(ctx context.Context, access assay.Access, q assay.Query) (assay.Results, error) {
	found, err := r.Retriever.Retrieve(ctx, access, q)
	if strings.Contains(jsonOf(found), hidden) {
		r.take()
	}
	return found, err
}

// TestEveryStrategyAsIfItWereNotThere checks that hidden documents have no influence. With and
// without the board's documents, every step of every strategy has the same input and output for
// the staff, to the last digit of a score.
func TestEveryStrategyAsIfItWereNotThere(t *testing.T) {
	t.Parallel()
	e, root, _ := openGuarded(t)
	type asking struct{ way, strategy, question string }
	first := map[asking][]string{}
	for _, without := range []bool{false, true} {
		if without {
			for name := range guardedPapers {
				if strings.Contains(name, "board") {
					if err := os.Remove(filepath.Join(root, name)); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, collection := range []string{"open", "vault"} {
				if _, err := e.Ingest(t.Context(), IngestRequest{Paths: []string{filepath.Join(root, collection)}, Collection: collection}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for w, way := range everyWay {
			for s, name := range strategy.Names() {
				for q, question := range append(slices.Clone(guardedQuestions), "What does "+hidden+" mean for the Falcon project?") {
					if os.Getenv("ASSAY_LONG") == "" && (q+s+w)%3 > 0 {
						continue
					}
					everyModels(e, way)
					a, err := e.Answer(t.Context(), staff, Request{Question: question, Strategy: name, NoCache: true, Budget: assay.Budget{Wall: 10 * time.Minute}})
					if err != nil {
						t.Fatal(err)
					}
					steps := append([]string{a.Text, a.Justification, jsonOf(a.Closest), jsonOf(a.Searched), jsonOf(a.Notes)}, stepsByPath(t, e, a.Run)...)
					k := asking{way, name, question}
					if !without {
						first[k] = steps
						continue
					}
					for i := range max(len(steps), len(first[k])) {
						if at(steps, i) != at(first[k], i) {
							t.Errorf("%+v: without what may not be seen %.400s, with it %.400s", k, at(steps, i), at(first[k], i))
							break
						}
					}
				}
			}
		}
	}
}
