package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/provider/anthropic/anthropictest"
	"github.com/assay-rag/assay/provider/bedrock/bedrocktest"
	"github.com/assay-rag/assay/provider/gemini/geminitest"
	"github.com/assay-rag/assay/provider/openai/openaitest"
)

// A fakeModel is a server that speaks a vendor's format. It plays a model that knows the handbook,
// and plans, grades and writes as its prompt demands.
type fakeModel struct {
	*httptest.Server
	format

	mu    sync.Mutex
	fail  llm.ErrorKind // of every call; empty: none
	echo  bool          // replies and errors repeat the request, headers included
	hold  int           // number of calls that get a reply; negative: all
	calls int           // received, including those for vectors

	heard func(prompt string) // called for each request for text; nil: none
}

// A format is a wire format and the models of a server that speaks it.
type format struct {
	wire   llmtest.Wire
	models []string // that the server lists
}

// formats returns the formats that a fake can speak.
func formats() map[string]format {
	return map[string]format{
		"openai":    {wire: openaitest.Chat(), models: []string{"text-embedding-3-small", "gpt-6.1-sol", "gpt-6-luna"}},
		"ollama":    {wire: openaitest.Ollama(), models: []string{"nomic-embed-text:latest", "llama3.2:latest"}},
		"gemini":    {wire: geminitest.Generate(), models: []string{"gemini-3.8-flash", "gemini-3.5-flash-lite"}},
		"bedrock":   {wire: bedrocktest.Converse()},
		"anthropic": {wire: anthropictest.Current(), models: []string{"claude-sonnet-5-5", "claude-haiku-5-5"}},
	}
}

// newFakeModel starts a server. The caller must close it.
func newFakeModel(name string) (*fakeModel, error) {
	kinds := formats()
	kind, ok := kinds[name]
	if !ok {
		return nil, fmt.Errorf("no format %q, want one of %q", name, slices.Sorted(maps.Keys(kinds)))
	}
	f := &fakeModel{format: kind, hold: -1}
	f.Server = httptest.NewServer(f)
	return f, nil
}

// behave sets fail and echo for all further calls.
func (f *fakeModel) behave(fail llm.ErrorKind, echo bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail, f.echo = fail, echo
}

func (f *fakeModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	fail, echo := f.fail, f.echo
	f.mu.Unlock()
	if r.Method == http.MethodGet {
		f.list(w)
		return
	}
	heard := ""
	if echo {
		heard = fmt.Sprintf(" You sent %v %s", r.Header, r.URL)
	}
	var in struct{ Model string }
	_ = json.Unmarshal(body, &in)
	f.mu.Lock()
	f.calls++
	held := f.hold >= 0 && f.calls > f.hold
	f.mu.Unlock()
	switch {
	case held:
		<-r.Context().Done()
		return
	case fail != "":
		b, ok := f.wire.Fail(llmtest.Failure{Kind: fail, Message: "It does not go." + heard, RetryAfter: f.patience(fail)})
		if !ok {
			panic("the format has no error " + fail)
		}
		send(w, b)
	case strings.HasSuffix(r.URL.Path, "/embeddings"):
		embeddings(w, body)
	case strings.HasSuffix(r.URL.Path, "/rerank"):
		rerank(w, body)
	default:
		stream := f.wire.Streams(r, body)
		prompt := texts(body)
		if f.heard != nil {
			f.heard(prompt)
		}
		text := play(prompt, heard)
		half := len(text) / 2
		for half > 0 && text[half]&0xC0 == 0x80 {
			half--
		}
		pieces := []string{text}
		if half > 0 {
			pieces = []string{text[:half], text[half:]}
		}
		s := llmtest.Script{Pieces: pieces, Finish: llm.FinishStop, Served: in.Model, Schema: strings.HasPrefix(text, "{")}
		s.Usage.InputTokens, s.Usage.OutputTokens = 1000, 50
		send(w, f.wire.Reply(s, stream))
	}
}

// holdAfter makes the server reply to the next n calls only. If n is -1, it always replies.
func (f *fakeModel) holdAfter(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hold, f.calls = n, 0
}

// count returns the number of received calls.
func (f *fakeModel) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// patience returns the retry delay that the server requests, which is longer than any test takes.
func (f *fakeModel) patience(kind llm.ErrorKind) (d time.Duration) {
	if kind == llm.RateLimited {
		d = 600 * time.Second
	}
	return d
}

func send(w http.ResponseWriter, b llmtest.Body) {
	for name, values := range b.Header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", b.Type)
	w.WriteHeader(max(b.Status, 200))
	_, _ = w.Write(b.Bytes())
}

// list lists the models in the form that OpenAI's and Anthropic's formats share.
func (f *fakeModel) list(w http.ResponseWriter) {
	type model struct {
		ID string `json:"id"`
	}
	data := []model{}
	for _, name := range f.models {
		data = append(data, model{name})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data, "has_more": false})
}

// embeddings makes vectors from words.
func embeddings(w http.ResponseWriter, body []byte) {
	var in struct {
		Input []string `json:"input"`
		Model string   `json:"model"`
	}
	_ = json.Unmarshal(body, &in)
	type vector struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	data := []vector{}
	for i, text := range in.Input {
		data = append(data, vector{i, new(llmtest.Hashing).Vector(text)})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data, "model": in.Model, "usage": map[string]int{"prompt_tokens": 5, "total_tokens": 5}})
}

// rerank scores texts by length, the shortest highest, unlike any of the program's own rankings.
func rerank(w http.ResponseWriter, body []byte) {
	var in struct {
		Documents []string `json:"documents"`
	}
	_ = json.Unmarshal(body, &in)
	type result struct {
		Index int     `json:"index"`
		Score float64 `json:"relevance_score"`
	}
	results := []result{}
	for i, text := range in.Documents {
		results = append(results, result{i, 1 / float64(1+len(text))})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"id": "1", "results": results, "meta": map[string]any{"billed_units": map[string]int{"search_units": 1}}})
}

// texts returns all strings of a JSON document, in no particular order.
func texts(body []byte) string {
	var v any
	_ = json.Unmarshal(body, &v)
	var b strings.Builder
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v + "\n")
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(v[name])
			}
		}
	}
	walk(v)
	return b.String()
}

var (
	askedQuestion   = regexp.MustCompile(`(?s)<question id="[^"]*">\n(.*?)\n</question`)
	statedClaims    = regexp.MustCompile(`(?s)<claim[^>]*>\n(.*?)\n</claim`)
	givenStatements = regexp.MustCompile(`<statement number="\d+"`)
	givenPassages   = regexp.MustCompile(`(?s)<passage number="(\d+)" id="[^"]*">\n(.*?)\n</passage`)
)

// known is the fact that the fake knows from the handbook.
const known = "Travel to a customer is approved by the head of the department."

// play returns a valid reply to a prompt, with heard appended to its statements.
func play(prompt, heard string) string {
	question := ""
	if m := askedQuestion.FindStringSubmatch(prompt); m != nil {
		question = m[1]
	}
	numbers := []json.Number{}
	for _, m := range givenPassages.FindAllStringSubmatch(prompt, -1) {
		if strings.Contains(strings.Join(strings.Fields(m[2]), " "), "approved by the head of the department") {
			numbers = append(numbers, json.Number(m[1]))
		}
	}
	var reply any
	switch {
	case strings.Contains(prompt, "You plan how to look a question up"):
		sub := map[string]any{"text": question, "needs": []int{}, "conditions": []any{}}
		reply = map[string]any{"shape": "single", "sub_questions": []any{sub}}
	case strings.Contains(prompt, "You judge whether passages found by a search"):
		verdict, missing := "sufficient", []string{}
		if len(numbers) == 0 {
			verdict, missing = "insufficient", []string{"who approves it"}
		}
		reply = map[string]any{"reason": "As far as I can tell." + heard, "relevant_chunks": numbers, "missing": missing, "verdict": verdict, "reformulated_query": ""}
	case strings.Contains(prompt, "You answer a question from numbered passages"):
		statements := []any{}
		if len(numbers) > 0 {
			statements = append(statements, statement(known, numbers[:1]), statement("The moon approves it as well."+heard, numbers[:1]))
		}
		reply = map[string]any{"shape": "prose", "columns": []string{}, "statements": statements, "conflicts": []any{}, "open": []string{}}
	case strings.Contains(prompt, "You check claims against the words that they cite"):
		verdicts := []any{}
		for i, m := range statedClaims.FindAllStringSubmatch(prompt, -1) {
			claim := strings.TrimSpace(m[1])
			verdict, score, quotes := "unsupported", 0.1, []string{}
			if strings.Contains(known, claim) {
				verdict, score, quotes = "supported", 0.9, []string{claim}
			}
			verdicts = append(verdicts, map[string]any{"claim": i + 1, "reason": "As it says." + heard, "quotes": quotes, "verdict": verdict, "score": score})
		}
		reply = map[string]any{"verdicts": verdicts}
	case strings.Contains(prompt, "You judge an answer that a system gave"):
		reply = judgement(prompt, numbers, heard)
	case strings.Contains(prompt, "You score an answer that a system gave"):
		reply = map[string]any{"reason": "Short." + heard, "score": 4}
	case strings.Contains(prompt, "You describe a figure"):
		if !strings.Contains(prompt, "data:image/png;base64,") {
			return "I see no image."
		}
		reply = map[string]any{"decorative": false, "description": known, "text": ""}
	default:
		return "ok" + heard
	}
	data, _ := json.Marshal(reply)
	return string(data)
}

// judgement judges that the passages support a claim if they contain the known fact.
func judgement(prompt string, numbers []json.Number, heard string) map[string]any {
	claims, reference := []any{}, []any{}
	for i, m := range statedClaims.FindAllStringSubmatch(prompt, -1) {
		held := len(numbers) > 0 && strings.Contains(known, strings.TrimSpace(m[1]))
		alone, right := []json.Number{}, "no"
		if held {
			alone, right = numbers, "yes"
		}
		claims = append(claims, map[string]any{"claim": i + 1, "held": held, "cited": held, "alone": alone, "needed": []int{}, "right": right})
	}
	for i := range givenStatements.FindAllString(prompt, -1) {
		reference = append(reference, map[string]any{"statement": i + 1, "said": len(numbers) > 0})
	}
	score := func(n int) map[string]any {
		return map[string]any{"reason": "As far as I can tell." + heard, "score": n}
	}
	return map[string]any{
		"claims": claims, "reference": reference, "correctness": score(9), "completeness": score(8), "harmfulness": score(0), "relevance": score(10),
	}
}

func statement(text string, sources []json.Number) map[string]any {
	return map[string]any{"text": text, "sources": sources, "item": false, "cells": []string{}, "section": ""}
}
