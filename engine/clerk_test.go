package engine

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/lexical"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/internal/tool"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/role"
)

// clerks returns models for all roles that fill in every form by fixed rules, immediately and
// deterministically. A passage is relevant if it has words of the question, and the answer quotes
// it. The actor makes several searches at once, summarises and ends.
//
// If bend is not nil it changes the replies: a form before it is sent, or the calls of the actor.
func clerks(bend func(form string, p seen, reply map[string]any, calls []llm.ToolCall) []llm.ToolCall) map[string]*scripted {
	by := map[string]*scripted{}
	for _, name := range roleNames {
		of := "fake/writer"
		if name == role.VerifierRole {
			of = "fake/checker" // never the model that wrote
		}
		by[name] = &scripted{name: of, facts: llm.Facts{Window: 32768}, reply: func(_ context.Context, _ int, req llm.Request) (llm.Response, error) {
			return clerkReply(req, bend), nil
		}}
	}
	return by
}

func clerkReply(req llm.Request, bend func(string, seen, map[string]any, []llm.ToolCall) []llm.ToolCall) llm.Response {
	p := promptIn(req)
	if bend == nil {
		bend = func(_ string, _ seen, _ map[string]any, calls []llm.ToolCall) []llm.ToolCall { return calls }
	}
	if len(req.Tools) > 0 {
		reply := map[string]any{"thought": "so far so good"}
		calls := bend("action", p, reply, p.act(req))
		r := spoken(fmt.Sprint(reply["thought"]), req)
		if r.Calls = calls; len(calls) > 0 {
			r.Finish = llm.FinishTools
		}
		return r
	}
	form := ""
	if req.Schema != nil {
		form = req.Schema.Name
	}
	fill, ok := forms[form]
	if !ok {
		return spoken("no rule fills the form "+form, req)
	}
	reply := fill(p)
	bend(form, p, reply, nil)
	return spoken(jsonOf(reply), req)
}

// seen is the decoded content of a prompt.
type seen struct {
	all      string // text of the user and tool messages
	question string
	passages []seenPassage
	others   map[string][]string // other data by name: "claim", "statement", "source"
	sources  map[int][]string    // by claim number, without headings
}

type seenPassage struct {
	number int
	text   string
	has    float64 // share of the question's content words in the text
}

var (
	dataBlock  = regexp.MustCompile(`(?s)<([\w ]+?)((?: \w+="[^"]*")*) id="\w+">\n(.*?)\n</\w+ id="\w+">`)
	dataNumber = regexp.MustCompile(` (?:number|of_claim)="(\d+)"`)
)

func promptIn(req llm.Request) seen {
	p := seen{others: map[string][]string{}, sources: map[int][]string{}}
	for _, m := range req.Messages {
		if m.Speaker == llm.User {
			p.all += m.Text + "\n"
		}
		for _, r := range m.Results {
			p.all += r.Text + "\n"
		}
	}
	for _, m := range dataBlock.FindAllStringSubmatch(p.all, -1) {
		n := 0
		if at := dataNumber.FindStringSubmatch(m[2]); at != nil {
			fmt.Sscan(at[1], &n)
		}
		switch m[1] {
		case "question":
			p.question = m[3]
		case "passage":
			_, text, _ := strings.Cut(m[3], "\n") // skip the heading
			p.passages = append(p.passages, seenPassage{number: n, text: text})
		case "source":
			_, text, _ := strings.Cut(m[3], "\n") // skip the heading
			p.sources[n] = append(p.sources[n], text)
			fallthrough
		default:
			p.others[m[1]] = append(p.others[m[1]], m[3])
		}
	}
	for i, of := range p.passages {
		p.passages[i].has = shareOf(of.text, p.question)
	}
	return p
}

// shareOf returns the share of a question's content words that occur in text.
func shareOf(text, question string) float64 {
	wanted, held := lexical.Content(question), lexical.Content(text)
	n := 0
	for _, w := range wanted {
		if slices.Contains(held, w) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(wanted)))
}

// best returns at most n passages, those with most of the question's words.
func (p seen) best(n int) []seenPassage {
	ranked := slices.Clone(p.passages)
	slices.SortStableFunc(ranked, func(a, b seenPassage) int { return cmp.Compare(b.has, a.has) })
	return ranked[:min(n, len(ranked))]
}

func (p seen) numbers() []int {
	all := []int{}
	for _, of := range p.passages {
		all = append(all, of.number)
	}
	return all
}

// quotes returns, for each of the n best passages, the sentence with most of the question's
// words.
func (p seen) quotes(n int) []any {
	statements := []any{}
	for _, of := range p.best(n) {
		said, has := "", -1.0
		for _, sp := range sentence.Spans(of.text) {
			text := strings.Join(strings.Fields(of.text[sp.Start:sp.End]), " ")
			if c := shareOf(text, p.question); c > has {
				said, has = text, c
			}
		}
		if said != "" {
			statements = append(statements, statementOf(said, of.number))
		}
	}
	return statements
}

func statementOf(text string, sources ...int) map[string]any {
	return map[string]any{"text": text, "sources": sources}
}

// parts splits a question into parts that can be searched in parallel. A part that begins with
// "then" needs the part before it.
func (p seen) parts() []any {
	var parts []any
	for i, text := range strings.Split(p.question, ", and ") {
		part := map[string]any{"text": text, "needs": []int{}, "conditions": []any{}}
		if rest, ok := strings.CutPrefix(text, "then "); ok && i > 0 {
			part["text"], part["needs"] = rest, []int{i}
		}
		parts = append(parts, part)
	}
	return parts
}

// act returns the calls of an actor: first several searches at once, then one of each other tool but
// the comparison, then none.
func (p seen) act(req llm.Request) []llm.ToolCall {
	turns := 0
	for _, m := range req.Messages {
		if len(m.Calls) > 0 {
			turns++
		}
	}
	if turns == 0 && len(p.others["calls that were made"]) > 0 { // earlier calls are listed as text
		turns = 2
	}
	var calls []llm.ToolCall
	call := func(name string, arguments map[string]any) {
		calls = append(calls, llm.ToolCall{ID: fmt.Sprintf("c%d_%d", turns, len(calls)), Name: name, Arguments: jsonOf(arguments)})
	}
	switch turns {
	case 0:
		for _, part := range p.parts()[:min(3, len(p.parts()))] {
			call(tool.Search, map[string]any{"query": part.(map[string]any)["text"]})
		}
	case 1:
		call(tool.Summarise, map[string]any{"chunks": []int{1, 2}})
		call(tool.Extract, map[string]any{"chunks": []int{1}, "entity_type": role.AnyEntity})
		call(tool.GetDocument, map[string]any{"id": "d1"})
		call(tool.Graph, map[string]any{"entities": []string{"Falcon"}})
	}
	return calls
}

// listOf returns a list of n entries.
func listOf(n int, entry func(i int) map[string]any) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = entry(i)
	}
	return list
}

// forms fills in each form, by the name of its schema.
var forms = map[string]func(p seen) map[string]any{
	"plan": func(p seen) map[string]any {
		shape := role.Single
		if len(p.parts()) > 1 {
			shape = role.Conjunction
		}
		return map[string]any{"shape": shape, "sub_questions": p.parts()}
	},
	"goals": func(p seen) map[string]any {
		goals := []any{}
		for _, part := range p.parts() {
			part := part.(map[string]any)
			goals = append(goals, map[string]any{"goal": part["text"], "needs": part["needs"]})
		}
		return map[string]any{"goals": goals}
	},
	"self_critique": func(p seen) map[string]any { // sufficient when the results were summed up too
		k := map[string]any{"missing": []string{}, "next_searches": []string{}, "covered": []int{}, "revised": []string{}, "sufficient": true}
		if !strings.Contains(p.all, tool.Summarise) || p.best(1)[0].has < 0.75 {
			k["sufficient"], k["missing"], k["next_searches"] = false, []string{"the rest"}, []string{strings.Join(lexical.Content(p.question), " ") + " details"}
		}
		return k
	},
	"revision": func(seen) map[string]any {
		return map[string]any{"reason": "by rule", "decision": "keep", "sub_questions": []any{}}
	},
	"route": func(seen) map[string]any { return map[string]any{"reason": "by rule", "complexity": "complex"} },
	"clarity": func(seen) map[string]any {
		return map[string]any{"reason": "by rule", "ambiguous": false, "meanings": []int{}}
	},
	"grade": func(p seen) map[string]any {
		relevant := []int{}
		most := 0.0
		for _, of := range p.best(5) {
			if most = max(most, of.has); of.has >= 0.4 {
				relevant = append(relevant, of.number)
			}
		}
		g := map[string]any{"reason": "by rule", "relevant_chunks": relevant, "missing": []string{}, "verdict": "sufficient", "reformulated_query": ""}
		if most < 0.75 {
			g["verdict"], g["missing"], g["reformulated_query"] = "partly", []string{"the rest"}, strings.Join(lexical.Content(p.question), " ")+" details"
		}
		if len(relevant) == 0 {
			g["verdict"] = "insufficient"
		}
		return g
	},
	"answer": func(p seen) map[string]any {
		statements := p.quotes(3)
		for _, s := range statements {
			s := s.(map[string]any)
			s["item"], s["cells"], s["section"] = false, []string{}, ""
		}
		return map[string]any{"shape": "prose", "columns": []string{}, "statements": statements, "conflicts": []any{}, "open": []string{}}
	},
	"verdicts": func(p seen) map[string]any {
		return map[string]any{"verdicts": listOf(len(p.others["claim"]), func(i int) map[string]any {
			verdict, score := "unsupported", 0.1
			if shareOf(strings.Join(p.others["source"], "\n"), p.others["claim"][i]) == 1 {
				verdict, score = "supported", 0.9
			}
			return map[string]any{"claim": i + 1, "reason": "by rule", "quotes": p.sources[i+1], "verdict": verdict, "score": score}
		})}
	},
	"scores": func(p seen) map[string]any {
		return map[string]any{"scores": listOf(len(p.passages), func(i int) map[string]any {
			return map[string]any{"passage": p.passages[i].number, "score": int(10 * p.passages[i].has)}
		})}
	},
	"retrieval_grades": func(p seen) map[string]any {
		return map[string]any{"grades": listOf(len(p.passages), func(i int) map[string]any {
			grade := "not"
			if has := p.passages[i].has; has >= 0.5 {
				grade = "relevant"
			} else if has > 0.2 {
				grade = "partly"
			}
			return map[string]any{"passage": p.passages[i].number, "grade": grade}
		})}
	},
	"support_grades": func(p seen) map[string]any {
		return map[string]any{"grades": listOf(len(p.others["statement"]), func(i int) map[string]any {
			return map[string]any{"statement": i + 1, "grade": []string{"supported", "partly"}[i%2]}
		})}
	},
	"answer_grade": func(seen) map[string]any { return map[string]any{"lacks": []string{}, "score": 10} },
	"judgement": func(p seen) map[string]any {
		if len(p.others["statement"])%2 == 1 {
			return map[string]any{"reason": "by rule", "revise": []string{"say more"}, "verdict": "REVISE"}
		}
		return map[string]any{"reason": "by rule", "revise": []string{}, "verdict": "ACCEPT"}
	},
	"critique": func(seen) map[string]any {
		remarks := []any{map[string]any{"statement": 1, "flaw": "unclear", "advice": "say it in order"}}
		return map[string]any{"remarks": remarks, "grounded": "good", "complete": "good", "relevant": "good", "clear": "good"}
	},
	"reflection": func(p seen) map[string]any {
		if len(p.others["known"]) == 0 || len(p.others["open"]) > 0 {
			return map[string]any{"justification": "by rule", "coverage": 0.3, "status": "INCOMPLETE"}
		}
		return map[string]any{"justification": "by rule", "coverage": 1, "status": "COMPLETED"}
	},
	"next_query": func(p seen) map[string]any {
		query := strings.Join(lexical.Content(p.question), " ") + fmt.Sprintf(" more %d", len(p.others["searched"]))
		if len(p.others["searched"]) > 2 {
			query = "" // no better query is known
		}
		return map[string]any{"reason": "by rule", "gap": "", "query": query}
	},
	"rewriting": func(p seen) map[string]any {
		switch words := lexical.Content(p.question); {
		case strings.Contains(p.all, `Technique: "resolve"`):
			return map[string]any{"queries": []string{}}
		case strings.Contains(p.all, `Technique: "expand"`):
			return map[string]any{"queries": []string{strings.Join(words, " ") + " facts", strings.Join(words, " ") + " rules", strings.Join(words[:(len(words)+1)/2], " ")}}
		default:
			return map[string]any{"queries": []string{"What is known about " + strings.Join(words, " ") + "?"}}
		}
	},
	"analysis": func(p seen) map[string]any {
		open := []string{}
		if len(p.passages) > 0 && p.best(1)[0].has < 0.75 {
			open = []string{p.question}
		}
		return map[string]any{"categories": []any{map[string]any{"name": "by rule", "statements": p.quotes(3)}}, "answered": []string{}, "open": open}
	},
	"extraction": func(p seen) map[string]any { return map[string]any{"entities": []any{}, "facts": p.quotes(3)} },
	"summary":    func(p seen) map[string]any { return map[string]any{"statements": p.quotes(3)} },
	"comparison": func(p seen) map[string]any {
		points := []any{}
		if sides := p.quotes(2); len(sides) == 2 {
			points = append(points, map[string]any{"aspect": "by rule", "sides": sides, "relation": "differ"})
		}
		return map[string]any{"points": points}
	},
}
