// Package scripted has models that reply by fixed rules, immediately and deterministically. They
// exercise prompts, parsing and accounting without a language model.
package scripted

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/eval/stat"
	"github.com/assay-rag/assay/internal/lazyregexp"
	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// Models returns a stand-in model for every role. It replies to a prompt by a fixed rule,
// immediately and deterministically. It rates the relevance of a passage by the share of the
// question's words in it, and its answers quote the sentences that have most of these words.
//
// Scripted models exercise the prompts, the parsing of replies and the accounting of a strategy.
// They say nothing about the quality of a real model.
func Models() engine.Models {
	roles := map[string]llm.Model{}
	for _, name := range engine.RoleNames() {
		roles[name] = Rule("scripted/writer")
	}
	roles[role.VerifierRole] = Rule("scripted/checker") // the verifier must not be the writer
	return engine.Models{Roles: roles}
}

// IsScripted reports whether models are scripted, or replay the recorded replies of scripted ones.
func IsScripted(m engine.Models) bool {
	for _, model := range m.Roles {
		if strings.HasPrefix(model.Model(), "scripted/") {
			return true
		}
	}
	return false
}

// A Rule is a scripted model with this name.
type Rule string

// Model implements llm.Model.
func (s Rule) Model() string { return string(s) }

// Facts implements llm.Described.
func (s Rule) Facts() llm.Facts { return llm.Facts{Window: 32768} }

// Generate implements llm.Model.
func (s Rule) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	if err := ctx.Err(); err != nil {
		return llm.Response{}, err
	}
	var calls []llm.ToolCall
	var text string
	switch fill := scripts[formOf(req)]; {
	case len(req.Tools) > 0:
		text, calls = act(req)
	case fill != nil:
		form, err := json.Marshal(fill(shownIn(req)))
		if err != nil {
			return llm.Response{}, err
		}
		text = string(form)
	default:
		return llm.Response{}, &llm.Error{
			Model: string(s), Kind: llm.Filtered, Message: fmt.Sprintf("no script fills the form %q", formOf(req)), Usage: assay.Usage{Calls: 1},
		}
	}
	return s.says(req, text, calls, stream), nil
}

// says returns a response with a text and tool calls.
func (s Rule) says(req llm.Request, text string, calls []llm.ToolCall, stream func(llm.Delta)) llm.Response {
	if stream != nil {
		stream(llm.Delta{Text: text})
	}
	out := llm.EstimateTokens(text)
	for _, c := range calls {
		out += llm.EstimateTokens(c.Name) + llm.EstimateTokens(c.Arguments)
	}
	r := llm.Response{
		Text: text, Calls: calls, Finish: llm.FinishStop, Served: string(s),
		Usage: assay.Usage{Calls: 1, InputTokens: req.InputTokens(), OutputTokens: out}, Estimated: true,
	}
	if len(calls) > 0 {
		r.Finish = llm.FinishTools
	}
	return r
}

// formOf returns the name of the form that a request asks to fill in, or "".
func formOf(req llm.Request) string {
	if req.Schema == nil {
		return ""
	}
	return req.Schema.Name
}

// act makes one tool call per turn. It searches for the question, then summarises the first
// results, then stops.
func act(req llm.Request) (string, []llm.ToolCall) {
	made := 0
	for _, m := range req.Messages {
		made += len(m.Calls)
	}
	p := shownIn(req)
	if made == 0 && len(p.others["calls that were made"]) > 0 { // listed in the prompt as text
		made = 2
	}
	call := func(name string, arguments any) []llm.ToolCall {
		text, err := json.Marshal(arguments)
		if err != nil || !slices.ContainsFunc(req.Tools, func(t llm.Tool) bool { return t.Name == name }) {
			return nil
		}
		return []llm.ToolCall{{ID: fmt.Sprintf("call%d", made), Name: name, Arguments: string(text)}}
	}
	switch made {
	case 0:
		return "Nothing is known yet.", call("search", map[string]any{"query": p.question})
	case 1:
		return "Something was found.", call("summarise_results", map[string]any{"chunks": []int{1, 2}})
	}
	return "That is all.", nil
}

// shown is the content of a prompt.
type shown struct {
	question string
	passages []shownPassage
	others   map[string][]string // by name: "claim", "statement", "searched"
	sources  map[string][]string // of a claim, by its number
	asked    string              // all user messages
}

type shownPassage struct {
	number int
	text   string
	has    float64 // share of the question's content words
}

// fencedData matches a fenced block of data in a prompt: its name, attributes and text.
var fencedData = lazyregexp.New(`(?s)<([\w ]+?)((?: \w+="[^"]*")*) id="\w+">\n(.*?)\n</\w+ id="\w+">`)

// numberOf matches the number in the attributes.
var numberOf = lazyregexp.New(` number="(\d+)"`)

// claimOf matches the number of the claim in the attributes of a source.
var claimOf = lazyregexp.New(` of_claim="(\d+)"`)

// shownIn parses a prompt.
func shownIn(req llm.Request) shown {
	p := shown{others: map[string][]string{}, sources: map[string][]string{}}
	for _, m := range req.Messages {
		if m.Speaker == llm.User {
			p.asked += m.Text + "\n"
		}
	}
	for _, m := range fencedData.FindAllStringSubmatch(p.asked, -1) {
		switch m[1] {
		case "question":
			p.question = m[3]
		case "passage":
			_, text, _ := strings.Cut(m[3], "\n") // without its heading
			n := 0
			if at := numberOf.FindStringSubmatch(m[2]); at != nil {
				fmt.Sscan(at[1], &n)
			}
			p.passages = append(p.passages, shownPassage{number: n, text: text})
		case "source":
			_, text, _ := strings.Cut(m[3], "\n") // without its heading
			if of := claimOf.FindStringSubmatch(m[2]); of != nil {
				p.sources[of[1]] = append(p.sources[of[1]], text)
			}
		default:
			p.others[m[1]] = append(p.others[m[1]], m[3])
		}
	}
	for i, of := range p.passages {
		p.passages[i].has = covers(of.text, p.question)
	}
	return p
}

// covers returns the share of the question's content words that a text has.
func covers(text, question string) float64 {
	wanted := lexical.Content(question)
	if len(wanted) == 0 {
		return 0
	}
	held := lexical.Content(text)
	n := 0
	for _, w := range wanted {
		n += stat.One(slices.Contains(held, w))
	}
	return float64(n) / float64(len(wanted))
}

// best returns the n passages that have most of the question's words.
func (p shown) best(n int) []shownPassage {
	ranked := slices.Clone(p.passages)
	slices.SortStableFunc(ranked, func(a, b shownPassage) int { return cmp.Compare(b.has, a.has) })
	return ranked[:min(n, len(ranked))]
}

// missing returns the question's words that no passage has.
func (p shown) missing() []string {
	var all strings.Builder
	for _, of := range p.passages {
		all.WriteString(of.text + "\n")
	}
	held := lexical.Content(all.String())
	words := []string{}
	for _, w := range lexical.Words(p.question) {
		stems := lexical.Content(w)
		if len(stems) > 0 && !slices.Contains(held, stems[0]) {
			words = append(words, w)
		}
	}
	return words
}

// quotes returns statements that quote the closest sentence of each of the n best passages.
func (p shown) quotes(n int) []map[string]any {
	statements := []map[string]any{}
	for _, of := range p.best(n) {
		if said := closest([]string{of.text}, p.question); said != "" {
			statements = append(statements, map[string]any{"text": strings.Join(strings.Fields(said), " "), "sources": []int{of.number}})
		}
	}
	return statements
}

// closest returns the sentence in texts that has most of the words of to.
func closest(texts []string, to string) string {
	said, has := "", -1.0
	for _, text := range texts {
		for _, sp := range sentence.Spans(text) {
			if c := covers(text[sp.Start:sp.End], to); c > has {
				said, has = text[sp.Start:sp.End], c
			}
		}
	}
	return said
}

// each returns n entries.
func each(n int, entry func(i int) map[string]any) []map[string]any {
	entries := make([]map[string]any, n)
	for i := range entries {
		entries[i] = entry(i)
	}
	return entries
}

// enough is the share of a question's words from which its passages are sufficient.
const enough = 0.75

// scripts fills in each form, by the name of its schema.
var scripts = map[string]func(p shown) any{
	"plan": func(p shown) any {
		return map[string]any{"shape": "single", "sub_questions": []any{map[string]any{"text": p.question, "needs": []int{}, "conditions": []any{}}}}
	},
	"revision": func(shown) any {
		return map[string]any{"reason": "by rule", "decision": "keep", "sub_questions": []any{}}
	},
	"route":   func(shown) any { return map[string]any{"reason": "by rule", "complexity": "moderate"} },
	"clarity": func(shown) any { return map[string]any{"reason": "by rule", "ambiguous": false, "meanings": []int{}} },
	"grade": func(p shown) any {
		relevant, missing := []int{}, p.missing()
		for _, of := range p.best(5) {
			if of.has > 0 {
				relevant = append(relevant, of.number)
			}
		}
		g := map[string]any{"reason": "by rule", "relevant_chunks": relevant, "missing": missing, "verdict": "sufficient", "reformulated_query": ""}
		if len(relevant) == 0 {
			g["verdict"] = "insufficient"
		} else if best := p.best(1); best[0].has < enough && len(missing) > 0 {
			g["verdict"], g["reformulated_query"] = "partly", strings.Join(missing, " ")
		}
		return g
	},
	"answer": func(p shown) any {
		statements := p.quotes(2)
		for _, s := range statements {
			s["item"], s["cells"], s["section"] = false, []string{}, ""
		}
		return map[string]any{"shape": "prose", "columns": []string{}, "statements": statements, "conflicts": []any{}, "open": []string{}}
	},
	"verdicts": func(p shown) any {
		return map[string]any{"verdicts": each(len(p.others["claim"]), func(i int) map[string]any {
			quote := closest(p.sources[fmt.Sprint(i+1)], p.others["claim"][i])
			return map[string]any{"claim": i + 1, "reason": "by rule", "quotes": []string{quote}, "verdict": "supported", "score": 0.9}
		})}
	},
	"scores": func(p shown) any {
		return map[string]any{"scores": each(len(p.passages), func(i int) map[string]any {
			return map[string]any{"passage": p.passages[i].number, "score": int(10 * p.passages[i].has)}
		})}
	},
	"retrieval_grades": func(p shown) any {
		return map[string]any{"grades": each(len(p.passages), func(i int) map[string]any {
			grade := "not"
			if has := p.passages[i].has; has >= enough {
				grade = "relevant"
			} else if has > 0.3 {
				grade = "partly"
			}
			return map[string]any{"passage": p.passages[i].number, "grade": grade}
		})}
	},
	"support_grades": func(p shown) any {
		return map[string]any{"grades": each(len(p.others["statement"]), func(i int) map[string]any {
			return map[string]any{"statement": i + 1, "grade": "supported"}
		})}
	},
	"answer_grade": func(shown) any { return map[string]any{"lacks": []string{}, "score": 10} },
	"judgement": func(shown) any {
		return map[string]any{"reason": "by rule", "revise": []string{}, "verdict": "ACCEPT"}
	},
	"critique": func(shown) any {
		return map[string]any{"remarks": []any{}, "grounded": "good", "complete": "good", "relevant": "good", "clear": "good"}
	},
	"reflection": func(p shown) any {
		if len(p.others["known"]) == 0 {
			return map[string]any{"justification": "by rule", "coverage": 0, "status": "INCOMPLETE"}
		}
		return map[string]any{"justification": "by rule", "coverage": 1, "status": "COMPLETED"}
	},
	"goals": func(p shown) any {
		return map[string]any{"goals": []any{map[string]any{"goal": p.question, "needs": []int{}}}}
	},
	"self_critique": func(p shown) any {
		k := map[string]any{"missing": []string{}, "next_searches": []string{}, "covered": []int{1}, "revised": []string{}, "sufficient": true}
		if best := p.best(1); len(best) == 0 || best[0].has < enough {
			k["missing"], k["covered"], k["sufficient"] = []string{p.question}, []int{}, false
		}
		return k
	},
	"next_query": func(p shown) any {
		gap := ""
		if gaps := p.others["missing"]; len(gaps) > 0 {
			gap, _, _ = strings.Cut(gaps[0], "\n")
		}
		query := gap
		for _, searched := range p.others["searched"] {
			earlier, _, _ := strings.Cut(strings.TrimPrefix(searched, "Query: "), "\n")
			if covers(earlier, gap) == 1 {
				query = "" // the gap was already searched for
			}
		}
		return map[string]any{"reason": "by rule", "gap": gap, "query": query}
	},
	"rewriting": func(p shown) any {
		words := lexical.Content(p.question)
		switch {
		case strings.Contains(p.asked, `Technique: "resolve"`):
			return map[string]any{"queries": []string{}}
		case strings.Contains(p.asked, `Technique: "step_back"`):
			return map[string]any{"queries": []string{"What is known about " + strings.Join(lexical.Names(p.question), " and ") + "?"}}
		case strings.Contains(p.asked, `Technique: "hyde"`):
			return map[string]any{"queries": []string{"This passage says: " + p.question}}
		}
		half := (len(words) + 1) / 2
		queries := []string{strings.Join(words, " ") + " facts"}
		if half < len(words) {
			queries = append(queries, strings.Join(words[:half], " ")+" overview", strings.Join(words[half:], " ")+" overview")
		}
		return map[string]any{"queries": queries}
	},
	"analysis": func(p shown) any {
		return map[string]any{"categories": []any{map[string]any{"name": "by rule", "statements": p.quotes(3)}}, "answered": []string{p.question}, "open": []string{}}
	},
	"extraction": func(p shown) any {
		return map[string]any{"entities": []any{}, "facts": p.quotes(3)}
	},
	"summary": func(p shown) any { return map[string]any{"statements": p.quotes(3)} },
	"comparison": func(p shown) any {
		points := []any{}
		if sides := p.quotes(2); len(sides) == 2 {
			points = append(points, map[string]any{"aspect": "by rule", "sides": sides, "relation": "differ"})
		}
		return map[string]any{"points": points}
	},
}
