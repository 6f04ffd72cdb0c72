package e2e

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// parentalLeave is a question with two parts, both of which the handbook answers.
const parentalLeave = "How long does parental leave last, and when must it be announced?"

// invented is the statement that a scripted generator adds to those of the handbook.
const invented = "Parental leave is paid at 80 percent of the salary."

// A play holds the replies of scripted models to parentalLeave, by role. They are those of a good
// model, except that the generator adds an invented claim.
type play struct {
	mu    sync.Mutex
	asked map[string]bool // questions that the grader has already judged
}

func newPlay() *play { return &play{asked: map[string]bool{}} }

// reply returns the replies of a role.
func (p *play) reply(name string) reply {
	return map[string]reply{
		role.PlannerRole: p.plan, role.GraderRole: p.grade, role.GeneratorRole: p.write, role.VerifierRole: p.verify,
	}[name]
}

// plan splits the question in two.
func (p *play) plan(llm.Request, int) string {
	part := func(text string) object {
		return object{"text": text, "needs": []int{}, "conditions": []string{}}
	}
	return text(object{
		"shape":         "conjunction",
		"sub_questions": []object{part("How long does parental leave last?"), part("When must parental leave be announced?")},
	})
}

// grade accepts the passage on parental leave, but rejects each question once first.
func (p *play) grade(req llm.Request, _ int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	question := fence("question", req)
	relevant := passagesWith("26 weeks", req)
	g := object{"reason": "The passage on parental leave says it.", "relevant_chunks": relevant, "missing": []string{}, "verdict": "sufficient", "reformulated_query": ""}
	if !p.asked[question] {
		g["verdict"], g["missing"], g["reformulated_query"] = "partly", []string{"more on parental leave"}, "parental leave weeks announced before it begins"
	}
	p.asked[question] = true
	return text(g)
}

// write states the handbook's content and the invented claim.
func (p *play) write(req llm.Request, _ int) string {
	sources := passagesWith("26 weeks", req)
	statement := func(text string) object {
		return object{"text": text, "sources": sources, "item": false, "cells": []string{}, "section": ""}
	}
	return text(object{
		"shape": "prose", "columns": []string{}, "conflicts": []string{}, "open": []string{},
		"statements": []object{
			statement("Parental leave lasts up to 26 weeks."),
			statement(invented),
			statement("It must be announced eight weeks before it begins."),
		},
	})
}

// claimMark matches the beginning of a claim in a prompt.
var claimMark = regexp.MustCompile(`<claim number="(\d+)" id="[0-9a-f]+">\n(.*)`)

// verify supports all claims but the invented one.
func (p *play) verify(req llm.Request, _ int) string {
	verdicts := []object{}
	for _, m := range claimMark.FindAllStringSubmatch(said(req), -1) {
		n, _ := strconv.Atoi(m[1])
		v := object{"claim": n, "reason": "It is written there.", "quotes": []string{m[2]}, "verdict": "supported", "score": 0.9}
		if strings.Contains(m[2], "80 percent") {
			v["verdict"], v["score"], v["reason"], v["quotes"] = "unsupported", 0.1, "No source says anything of pay.", []string{}
		}
		verdicts = append(verdicts, v)
	}
	return text(object{"verdicts": verdicts})
}

type object = map[string]any

func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// said returns the text of the user messages of a request.
func said(req llm.Request) string {
	var all []string
	for _, m := range req.Messages {
		if m.Speaker == llm.User {
			all = append(all, m.Text)
		}
	}
	return strings.Join(all, "\n")
}

// fence returns the data of the given name in a prompt.
func fence(name string, req llm.Request) string {
	m := regexp.MustCompile(`(?s)<` + name + ` id="[0-9a-f]+">\n(.*?)\n</` + name + ` `).FindStringSubmatch(said(req))
	if m == nil {
		return ""
	}
	return m[1]
}

// passageMark matches a passage in a prompt.
var passageMark = regexp.MustCompile(`(?s)<passage number="(\d+)" id="[0-9a-f]+">\n(.*?)\n</passage `)

// passagesWith returns the numbers of the passages in a prompt that contain words.
func passagesWith(words string, req llm.Request) []int {
	numbers := []int{}
	for _, m := range passageMark.FindAllStringSubmatch(said(req), -1) {
		if n, _ := strconv.Atoi(m[1]); strings.Contains(m[2], words) && !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// A cast holds the models of the roles, with the hosts that serve them.
type cast struct {
	models map[string]llm.Model
	hosts  map[string]*host
}

// roleNames are the roles that a model can have in the tested strategies.
var roleNames = []string{role.PlannerRole, role.GraderRole, role.GeneratorRole, role.VerifierRole}

// stage gives each role of a play its own model behind its own server, in the format that formatOf
// returns. The models of the attackers make the attack a.
func stage(t *testing.T, p *play, stream bool, formatOf func(name string) format, a attack, attackers ...string) cast {
	t.Helper()
	c := cast{map[string]llm.Model{}, map[string]*host{}}
	for _, name := range roleNames {
		f, does := formatOf(name), attack{}
		if slices.Contains(attackers, name) {
			does = a
		}
		h := f.serve(t, p.reply(name), does)
		c.hosts[name] = h
		c.models[name] = h.open(t, f.name+"/"+name, stream)
	}
	return c
}
