package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/internal/browsertest"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/role"
	"github.com/assay-rag/assay/server"
)

// hostileStrings reads the strings that run a script, load something or change a page wherever a text becomes
// markup. A script of them sets window.__xss, and what they load is at evil.example.
func hostileStrings(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/xss.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// names are the fields that hold one name. Others are texts, which hold several strings.
var names = []string{"collection", "file", "policy", "user", "hold", "webhook", "source", "key", "set"}

// stringsPerText is how many hostile strings a text has.
const stringsPerText = 12

// hostileRounds returns how often a hostile world repeats its documents and questions: until each field has
// had every string, or, with -short, a few of them.
func hostileRounds(strings int) int {
	if testing.Short() {
		return 2
	}
	return strings/stringsPerText + 1
}

// A hostile returns hostile texts, each field in the order of the corpus.
type hostile struct {
	all []string
	at  map[string]int // the next string of a field
}

func (h *hostile) next(field string, n int) string {
	var some []string
	for range n {
		some = append(some, h.all[h.at[field]%len(h.all)])
		h.at[field]++
	}
	return strings.Join(some, " ")
}

func (h *hostile) say(field string) string {
	for i, name := range names {
		if name == field {
			h.at[field] += i // fields of one world take different strings
			return h.next(field, 1)
		}
	}
	return h.next(field, stringsPerText)
}

var givenPassages = regexp.MustCompile(`(?s)<passage number="(\d+)" id="[^"]*">\n(.*?)\n</passage`)

// hostileModel plays a model whose every text is hostile: it plans, grades, writes the first passage as its
// answer, and judges.
func hostileModel(h *hostile) *llmtest.Scripted {
	number := func(prompt string) (n []json.Number, text string) {
		if m := givenPassages.FindStringSubmatch(prompt); m != nil {
			return []json.Number{json.Number(m[1])}, strings.TrimSpace(m[2])
		}
		return []json.Number{}, ""
	}
	return &llmtest.Scripted{Name: "scripted/<img src=x onerror=window.__xss=1>", Known: llm.Facts{Window: 100_000, MaxOutput: 10_000, Priced: true, Input: 1, Output: 1},
		Reply: func(r llm.Request) (llm.Response, error) {
			prompt := r.System
			for _, m := range r.Messages {
				prompt += "\n" + m.Text
			}
			numbers, text := number(prompt)
			var reply any
			switch {
			case strings.Contains(prompt, "You plan how to look a question up"):
				reply = map[string]any{"shape": "single", "sub_questions": []any{map[string]any{"text": "Falcon project " + h.next("model", 3), "needs": []int{}, "conditions": []any{}}}}
			case strings.Contains(prompt, "You judge whether passages found by a search"):
				reply = map[string]any{"reason": h.next("model", 6), "relevant_chunks": numbers, "missing": []string{}, "verdict": "sufficient", "reformulated_query": h.next("model", 2)}
			case strings.Contains(prompt, "You answer a question from numbered passages"):
				statement := func(text string) map[string]any {
					return map[string]any{"text": text, "sources": numbers, "item": false, "cells": []string{}, "section": ""}
				}
				reply = map[string]any{"shape": "prose", "columns": []string{}, "statements": []any{statement(text), statement(h.next("model", 4))}, "conflicts": []any{}, "open": []string{h.next("model", 3)}}
			case strings.Contains(prompt, "You check claims against the words that they cite"):
				verdicts := []any{}
				for i := range strings.Count(prompt, "<claim ") {
					verdicts = append(verdicts, map[string]any{"claim": i + 1, "reason": h.next("model", 4), "quotes": []string{h.next("model", 1)}, "verdict": "supported", "score": 0.9})
				}
				reply = map[string]any{"verdicts": verdicts}
			default:
				return llm.Response{Text: h.next("model", 2)}, nil
			}
			data, err := json.Marshal(reply)
			return llm.Response{Text: string(data)}, err
		}}
}

// newHostileWorld opens a site that has the hostile strings everywhere: in documents with their titles,
// metadata and names, in questions and in the answers, plans and reasons of a model, in what an
// administrator sets, and in what people send by the forms of the pages.
func newHostileWorld(t testing.TB) (*site, *hostile) {
	t.Helper()
	h := &hostile{all: hostileStrings(t), at: map[string]int{}}
	model := hostileModel(&hostile{all: h.all, at: map[string]int{}})
	x, acme, _ := newWorld(t, func(string) func(string) string { return h.say }, func(c *engine.HostConfig, _ *server.Config) {
		c.Models.Roles = map[string]llm.Model{role.PlannerRole: model, role.GraderRole: model, role.GeneratorRole: model, role.VerifierRole: model}
	})
	for range hostileRounds(len(h.all)) {
		acme.upload("handbook", fmt.Sprintf("# %s\n\nThe Falcon project is about %s.\n\n```\n%s\n```\n\n| %s | %s |\n| --- | --- |\n| %s | x |\n",
			acme.say("title"), acme.say("text"), acme.say("code"), acme.say("cell"), acme.say("cell"), acme.say("cell")),
			map[string]any{"title": acme.say("title"), "tag": acme.say("metadata"), acme.say("file"): "x", "url": "javascript:window.__xss=1"})
		for _, local := range []bool{true, false} {
			if _, err := acme.asker.Answer(t.Context(), engine.Request{Question: "What is the Falcon project about? " + acme.say("question"), NoCache: true, Local: local}); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d hostile strings; names that the engine does not take: %q", len(h.all), acme.refused)
	return x, h
}

// destructive are words in the targets of forms that a test must not send, because later pages need what
// they end.
var destructive = []string{"sign-", "stop", "delete", "remove", "revoke", "erase", "cancel", "retention", "apply"}

// sendForms fills the forms of pages with hostile texts and sends them. The answers must keep the rules of
// the policy.
func sendForms(t *testing.T, x *site, user string, h *hostile, visits []visit) (sent int) {
	t.Helper()
	done := map[string]bool{}
	for _, v := range visits {
		for form := range elements(t, v.body) {
			action := attribute(form, "action")
			if u, err := url.Parse(v.path); err == nil && action == "" {
				action = u.Path
			}
			if form.Data != "form" || !strings.HasPrefix(action, "/") || containsAny(action, destructive) {
				continue
			}
			values := fill(form, h)
			key := fmt.Sprint(v.route.Name, len(values), attribute(form, "method"))
			if done[key] {
				continue
			}
			done[key] = true
			sent++
			if strings.EqualFold(attribute(form, "method"), "post") {
				r := x.post(user, action, values)
				checkPolicy(t, visit{path: "POST " + action, status: r.StatusCode, header: r.Header, body: r.body})
				continue
			}
			r := x.get(user, action+"?"+values.Encode())
			checkPolicy(t, visit{path: "GET " + action + "?…", status: r.StatusCode, header: r.Header, body: r.body})
		}
	}
	return sent
}

func containsAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// fill returns the values of a form: hostile texts where people write, and what the page offers elsewhere.
func fill(form *html.Node, h *hostile) url.Values {
	values := url.Values{}
	for n := range form.Descendants() {
		name := attribute(n, "name")
		if n.Type != html.ElementNode || name == "" {
			continue
		}
		switch kind := attribute(n, "type"); {
		case n.Data == "textarea", n.Data == "input" && (kind == "" || kind == "text" || kind == "search" || kind == "url" || kind == "email" || kind == "password"):
			values.Set(name, h.next("form", 3))
		case n.Data == "input" && kind == "number":
			values.Set(name, h.next("form", 1))
		case n.Data == "input", n.Data == "button":
			if kind != "file" {
				values.Set(name, attribute(n, "value"))
			}
		case n.Data == "select":
			for o := range n.Descendants() {
				if o.Data == "option" {
					values.Set(name, attribute(o, "value"))
				}
			}
		}
	}
	return values
}

// TestHostileTexts checks the markup of all pages of a site that is full of hostile texts: it has no script,
// handler, style or address that a text has made, also in the answers to forms. The asker of the runs and the
// administrator, who see the texts of all objects, open every page; others, for whom the same pages have other
// parts, a few of each kind.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	x, h := newHostileWorld(t)
	most := map[string]int{"root": 100, "bob": 100, "rae": perState, "aud": perState}
	pages, sent, forms := 0, 0, 15 // pages of each kind whose forms are sent
	for _, user := range []string{"root", "bob", "rae", "aud"} {
		if testing.Short() {
			most[user], forms = perState, perState
		}
		sent += sendForms(t, x, user, h, x.crawl(user, forms))
		visits := x.crawl(user, most[user]) // with what the forms have stored
		for _, v := range visits {
			if v.status >= http.StatusInternalServerError {
				t.Errorf("%s as %s: status %d", v.path, user, v.status)
			}
			checkPolicy(t, v)
		}
		pages += len(visits)
	}
	t.Logf("%d pages, %d forms sent", pages, sent)
}

// TestChromiumHostileTexts opens the pages of such a site in a browser, uses what they offer, and counts what
// runs or loads: nothing.
func TestChromiumHostileTexts(t *testing.T) {
	t.Parallel()
	browsertest.Start(t)
	x, h := newHostileWorld(t)
	executed := 0
	for _, user := range []string{"root", "bob", "rae"} {
		sendForms(t, x, user, h, x.crawl(user, perState))
	}
	for user, visits := range onlyNew(x, []string{"bob", "root", "rae", "aud"}, 8) {
		inParallel(t, x, user, browsertest.Options{}, visits, func(t *testing.T, p *browsertest.Page, v visit) {
			p.Eval(`document.querySelectorAll("details").forEach(d => { d.open = true; })`, nil)
			for _, key := range []string{"1", "j", "j", "?"} {
				p.PressOnly(key)
			}
			p.Press("Escape")
			var ran bool
			p.Eval(`typeof window.__xss !== "undefined" || document.querySelector("iframe, object, embed, base, style, math") !== null`, &ran)
			if ran || len(p.Complaints()) > 0 {
				executed++
				t.Errorf("%s: a hostile text has run: %v %q", v.path, ran, p.Complaints())
			}
		})
	}
	t.Cleanup(func() { t.Logf("%d executed", executed) })
}
