package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// A scripted is a model whose replies a test defines.
type scripted struct {
	name  string
	facts llm.Facts
	reply func(ctx context.Context, n int, req llm.Request) (llm.Response, error) // n counts from 1

	key string // secret of this model

	mu       sync.Mutex
	requests []llm.Request
}

func (m *scripted) Model() string    { return m.name }
func (m *scripted) Facts() llm.Facts { return m.facts }

func (m *scripted) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	m.mu.Lock()
	m.requests = append(m.requests, req)
	n := len(m.requests)
	m.mu.Unlock()
	r, err := m.reply(ctx, n, req)
	if err == nil && stream != nil {
		for piece := range slices.Chunk([]byte(r.Text), 16+len(r.Text)/64) {
			stream(llm.Delta{Text: string(piece)})
		}
	}
	return r, err
}

func (m *scripted) calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

// texts returns a model that replies with the text that say returns.
func texts(name string, say func(req llm.Request) string) *scripted {
	return &scripted{name: name, reply: func(_ context.Context, _ int, req llm.Request) (llm.Response, error) {
		return spoken(say(req), req), nil
	}}
}

// spoken returns a reply with a text and plausible usage.
func spoken(text string, req llm.Request) llm.Response {
	return llm.Response{
		Text: text, Finish: llm.FinishStop,
		Usage: assay.Usage{Calls: 1, InputTokens: req.InputTokens() / 2, OutputTokens: min(llm.EstimateTokens(text), req.MaxTokens)},
	}
}

// failing returns a model whose provider fails.
func failing(name string, kind llm.ErrorKind, message string) *scripted {
	return &scripted{name: name, reply: func(context.Context, int, llm.Request) (llm.Response, error) {
		return llm.Response{}, &llm.Error{Model: name, Kind: kind, Message: message, Usage: assay.Usage{Calls: 1}}
	}}
}

// passages returns the passages in a request by number.
func passages(req llm.Request) map[int]string {
	shown := map[int]string{}
	for _, m := range passageBlock.FindAllStringSubmatch(req.Messages[0].Text, -1) {
		n, _ := strconv.Atoi(m[1])
		shown[n] = m[2]
	}
	return shown
}

var (
	passageBlock = regexp.MustCompile(`(?s)<passage number="(\d+)" id="\w+">\n(.*?)\n</passage`)
	questionPart = regexp.MustCompile(`(?s)<question id="\w+">\n(.*?)\n</question`)
	claimPart    = regexp.MustCompile(`(?s)<claim`)
)

func questionIn(req llm.Request) string {
	if m := questionPart.FindStringSubmatch(req.Messages[0].Text); m != nil {
		return m[1]
	}
	return ""
}

// holding returns the numbers of the passages that contain the words.
func holding(shown map[int]string, words string) []int {
	found := []int{}
	for n, text := range shown {
		if strings.Contains(strings.Join(strings.Fields(text), " "), words) {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found
}

func jsonOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// A knower plans, grades, writes and verifies correctly. It knows the words that answer each
// question.
type knower map[string]string // from a part of the question to words of the handbook

func (k knower) words(question string) (string, bool) {
	for part, words := range k {
		if strings.Contains(question, part) {
			return words, true
		}
	}
	return "", false
}

func (k knower) plan(req llm.Request) string {
	question := questionIn(req)
	var parts []map[string]any
	for _, part := range strings.Split(question, ", and ") {
		parts = append(parts, map[string]any{"text": part, "needs": []int{}, "conditions": []any{}})
	}
	shape := role.Single
	if len(parts) > 1 {
		shape = role.Conjunction
	}
	return jsonOf(map[string]any{"shape": shape, "sub_questions": parts})
}

func (k knower) grade(req llm.Request) string {
	words, _ := k.words(questionIn(req))
	relevant := []int{}
	if words != "" {
		relevant = holding(passages(req), words)
	}
	if len(relevant) == 0 {
		return jsonOf(map[string]any{
			"reason": "nothing says it", "relevant_chunks": relevant, "missing": []string{questionIn(req)}, "verdict": "insufficient", "reformulated_query": "",
		})
	}
	return jsonOf(map[string]any{"reason": "it is there", "relevant_chunks": relevant, "missing": []string{}, "verdict": "sufficient", "reformulated_query": ""})
}

func (k knower) write(req llm.Request) string {
	statements := []map[string]any{}
	for part, words := range k {
		if from := holding(passages(req), words); len(from) > 0 && strings.Contains(questionIn(req), part) {
			statements = append(statements, map[string]any{"text": words, "sources": from, "item": false, "cells": []string{}, "section": ""})
		}
	}
	slices.SortFunc(statements, func(a, b map[string]any) int { return strings.Compare(fmt.Sprint(a["text"]), fmt.Sprint(b["text"])) })
	return jsonOf(map[string]any{"shape": "prose", "columns": []string{}, "statements": statements, "conflicts": []any{}, "open": []string{}})
}

func (k knower) verify(req llm.Request) string {
	verdicts := []map[string]any{}
	seen := promptIn(req)
	for i := range claimPart.FindAllString(req.Messages[0].Text, -1) {
		verdicts = append(verdicts, map[string]any{"claim": i + 1, "reason": "said", "quotes": seen.sources[i+1], "verdict": "supported", "score": 0.9})
	}
	return jsonOf(map[string]any{"verdicts": verdicts})
}

// handbook is a knower for the handbook.
var handbook = knower{
	"approves travel": "Travel to a customer is approved by the head of the department.",
}

// models returns one model for each role, each with its own name.
func (k knower) models() map[string]*scripted {
	return map[string]*scripted{
		role.PlannerRole:   texts("fake/planner", k.plan),
		role.GraderRole:    texts("fake/grader", k.grade),
		role.GeneratorRole: texts("fake/generator", k.write),
		role.VerifierRole:  texts("fake/verifier", k.verify),
	}
}

// served returns the models as Models. Without a verifier among them, the local verifier is used.
func served(by map[string]*scripted) Models {
	m := Models{Roles: map[string]llm.Model{}, LocalVerifier: by[role.VerifierRole] == nil}
	for task, model := range by {
		model.key = canary
		if task == role.Of(task) && m.Roles[task] == nil {
			m.Roles[task] = model
		}
	}
	for task := range by {
		if name := role.Of(task); name != task {
			m.Roles[name] = byTask(name, by)
		}
	}
	return m
}

// schemaOf names the schemas of tasks that a role has besides its own.
var schemaOf = map[string]string{
	role.RouterTask: "route", role.QuerierTask: "next_query", role.ClarifierTask: "clarity", role.AnalystTask: "analysis", role.ReflectorTask: "reflection",
	role.CriticTask: "critique", role.ScorerTask: "scores", role.RefinerTask: "quotes", role.RetrievalGraderTask: "retrieval_grades",
	role.SupportGraderTask: "support_grades", role.AnswerGraderTask: "answer_grade", role.ExtractorTask: "extraction",
}

// byTask returns the model of a role that replies as the model of the task does, by the schema of
// the request. An unknown task is unreachable, so that the local role does it.
func byTask(name string, by map[string]*scripted) *scripted {
	return &scripted{name: "fake/" + name, key: canary, reply: func(ctx context.Context, _ int, req llm.Request) (llm.Response, error) {
		model := by[name]
		for task, schema := range schemaOf {
			if req.Schema != nil && req.Schema.Name == schema {
				model = by[task]
			}
		}
		if model == nil {
			return llm.Response{}, &llm.Error{Model: "fake/" + name, Kind: llm.Unreachable, Message: "not scripted", Usage: assay.Usage{Calls: 1}}
		}
		return model.Generate(ctx, req, nil)
	}}
}

// openModels opens a data directory with the handbook and with models for roles.
func openModels(t *testing.T, m Models) *Engine {
	t.Helper()
	e, err := Open(t.Context(), Config{Dir: t.TempDir(), Models: m})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	ingestPaths(t, e, "testdata/handbook")
	return e
}

// noteTexts returns the texts of notes.
func noteTexts(notes []assay.Note) []string {
	var texts []string
	for _, n := range notes {
		texts = append(texts, n.Text)
	}
	return texts
}

// gapTexts returns the texts of gaps.
func gapTexts(gaps []assay.Gap) []string {
	var texts []string
	for _, g := range gaps {
		texts = append(texts, g.Text)
	}
	return texts
}
