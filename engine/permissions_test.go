package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/strategy"
	"github.com/assay-rag/assay/tool"
)

// The board may see what the staff may not: hidden is in every document that is the
// board's alone, and nowhere else.
const hidden = "PLUMBAGO"

var (
	staff = assay.Principal{User: "ann", Groups: []string{"staff"}}
	board = assay.Principal{User: "bob", Groups: []string{"board", "staff"}}
)

// guardedPapers are documents by collection and name; those of the board have "board" in
// their name. They name the same things, are called alike, and lead from one to the
// other.
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

// guardedQuestions look for what the staff may not see: by search, by walking from one
// document to the next, by asking what is meant, by naming collections.
var guardedQuestions = []string{
	"What is the budget of the Falcon project?",
	"Where was the sponsor of the Falcon project founded, and who owns it?",
	"What is the default timeout of Falcon?",
	"How do I configure it?",
	"What do open and vault say about the Falcon project?",
	"Who owns the sponsor of the project that is led by Ada Stern?",
}

// openGuarded opens a data directory with them. It returns how to change who may see the
// board's.
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

// prying has the actor look for what it may not see beside what it does anyway.
func prying(root string) func(string, seen, map[string]any, []llm.ToolCall) []llm.ToolCall {
	return func(form string, _ seen, reply map[string]any, calls []llm.ToolCall) []llm.ToolCall {
		if form != "action" || len(calls) == 0 {
			return calls
		}
		more := []llm.ToolCall{callOn(tool.GetDocument, jsonOf(map[string]any{"document": filepath.ToSlash(filepath.Join(root, "vault", "board-v.md")), "collection": "vault"}))}
		if calls[0].Name == tool.Search {
			more = append(more, callOn(tool.Search, `{"query":"budget of the Falcon project","collections":["vault"]}`))
			calls = calls[:min(len(calls), 2)]
		}
		for i := range more {
			more[i].ID = fmt.Sprintf("pry%d", i)
		}
		return append(calls[:min(len(calls), 2)], more...)
	}
}

// Whatever the strategy, nothing that the asker may not see is in what they are told, in
// the run that is kept, or in any prompt; whoever may see it is told.
func TestEveryStrategyHidesWhatMayNotBeSeen(t *testing.T) {
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
				boards, err := e.Answer(t.Context(), board, req) // first, so that it could be given again
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

// waysTo are the ways to get at a run.
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

// Who may not see any more what a run read may not see the run, nor go on with it, nor
// follow it or what followed it, nor be given its answer again, whatever the strategy.
func TestEveryStrategyForgetsWhatMayNotBeSeenAnyMore(t *testing.T) {
	e, root, allow := openGuarded(t)
	runs := e.runs
	const question = "What is the budget of the Falcon project?"
	type kept struct{ done, follows, cut, strategy, way string }
	var all []kept
	for _, way := range everyWay {
		for _, name := range strategy.Names() {
			if name == "managed" {
				continue // what it reads is the service's to guard
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
				ended := what == "resume" && id != k.cut && errors.Is(err, assay.ErrInvalid) // which is said before anything is read
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

// A document that is taken away while a run is on its way, right after it was found, is
// neither quoted nor cited.
func TestEveryStrategyTakenAwayMeanwhile(t *testing.T) {
	for _, way := range everyWay {
		for s, name := range strategy.Names() {
			if name == "managed" || os.Getenv("ASSAY_LONG") == "" && s%4 > 0 {
				continue
			}
			e, _, allow := openGuarded(t)
			found, err := e.search(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			e.retriever = &taking{Retriever: found, take: sync.OnceFunc(func() { allow("nobody") })}
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

// A taking retriever has documents taken away once it has found them.
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

// For the staff the board's documents might as well not be there: with and without them
// every step of every strategy asks and brings the same, to the last digit of a score.
func TestEveryStrategyAsIfItWereNotThere(t *testing.T) {
	e, root, _ := openGuarded(t)
	type asking struct{ way, strategy, question string }
	first := map[asking][]string{}
	ofTheIndex := regexp.MustCompile(`"(?:sequence|index)":(?:\d+|\{[^{}]*\})`)
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
					for i := range steps {
						steps[i] = ofTheIndex.ReplaceAllString(steps[i], "")
					}
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
