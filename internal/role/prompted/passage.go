package prompted

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sentence"
	"github.com/assay-rag/assay/llm"
)

// A passage is the numbered text of a hit that a model reads.
type passage struct {
	number int
	head   string // the document's title and the headings above the passage
	text   string
	mark   string // how the text was obtained; empty: it is the document's
}

func passageOf(number int, h assay.Hit, text string) passage {
	c := h.Chunk
	return passage{
		number: number, head: strings.Join(append([]string{h.Title}, c.Headings...), " › "), text: text,
		mark: markOf(c.Provenance, c.Provenance.Label(c.Confidence, c.Model)),
	}
}

// markOf returns the mark after the heading of text that a source does not contain as text.
func markOf(kind assay.ProvenanceKind, label string) string {
	if kind == assay.ProvenanceDescribed {
		label += ", not the document's words"
	}
	return marked(label)
}

// marked returns a label in the form of a mark.
func marked(label string) string {
	if label == "" {
		return ""
	}
	return " [" + shorten(line(label), 200) + "]"
}

// numbered returns hits as passages, numbered from 1.
func numbered(hits []assay.Hit) []passage {
	out := make([]passage, len(hits))
	for i, h := range hits {
		out[i] = passageOf(i+1, h, h.Text)
	}
	return out
}

// String returns the passage in its prompt form.
func (p passage) String() string {
	return fenced(fmt.Sprintf("passage number=\"%d\"", p.number), shorten(line(p.head), 200)+p.mark+"\n"+p.text)
}

// minCut is the least part of a passage, in tokens, that is worth reading.
const minCut = 60

// fit returns the passages, best first, that together fit into room tokens. The first one that does
// not fit is shortened if enough of it remains; the others are left out. The notes report this.
func fit(passages []passage, room int) (kept []passage, notes []string) {
	cut := ""
	for _, p := range passages {
		need := llm.EstimateTokens(p.String())
		if need > room {
			if short, ok := p.upTo(room); ok {
				kept = append(kept, short)
				cut = fmt.Sprintf(", and for a part of passage %d", p.number)
			}
			break
		}
		room -= need
		kept = append(kept, p)
	}
	full := len(kept)
	if cut != "" {
		full--
	}
	if full < len(passages) {
		notes = append(notes, fmt.Sprintf("the model's window had room for %d of %d passages%s", full, len(passages), cut))
	}
	return kept, notes
}

// upTo returns the passage with the sentences of its text that fit into room tokens. ok is false if
// hardly any fit.
func (p passage) upTo(room int) (short passage, ok bool) {
	if room < minCut {
		return passage{}, false
	}
	spans := sentence.Spans(p.text)
	upTo := func(n int) passage {
		short := p
		short.text = p.text[:spans[n-1].End] + " …"
		return short
	}
	n := most(len(spans), func(n int) bool { return n == 0 || llm.EstimateTokens(upTo(n).String()) <= room })
	if n == 0 {
		return passage{}, false
	}
	short = upTo(n)
	return short, llm.EstimateTokens(short.text) >= minCut/2
}

// most returns the largest k in 0 to n for which fits holds, or 0 if there is none. fits must be
// monotonic: if it holds for k, it holds for less.
func most(n int, fits func(k int) bool) int {
	return max(0, sort.Search(n+1, func(k int) bool { return !fits(k) })-1)
}

// fitting returns a job's write function that shows the first k of n items, as many as fit. fill
// returns the template's data. what is the noun for the items in the note.
func fitting(n int, what string, fill func(k int) any) func(prompt, int) (string, []string, bool) {
	return func(p prompt, room int) (string, []string, bool) {
		k := most(n, func(k int) bool { return llm.EstimateTokens(p.render(fill(k))) <= room })
		user := p.render(fill(k))
		var notes []string
		if k < n {
			notes = []string{fmt.Sprintf("the model's window had room for %d of %d %s", k, n, what)}
		}
		return user, notes, llm.EstimateTokens(user) <= room
	}
}

// reading returns a job's write function that shows passages, best first. fill returns the
// template's data for the passages shown; it is first called with none.
func reading(passages []passage, fill func(shown []passage) any) func(prompt, int) (string, []string, bool) {
	return func(p prompt, room int) (string, []string, bool) {
		room -= llm.EstimateTokens(p.render(fill(nil)))
		kept, notes := fit(passages, room)
		if room < 0 || len(kept) == 0 && len(passages) > 0 {
			return "", nil, false
		}
		return p.render(fill(kept)), notes, true
	}
}

// numbersOf returns the numbers of passages.
func numbersOf(passages []passage) []int {
	out := make([]int, len(passages))
	for i, p := range passages {
		out[i] = p.number
	}
	return out
}

// unknown returns a problem for each number that was not given.
func unknown(what string, numbers, given []int) []string {
	var problems []string
	for _, n := range numbers {
		if !slices.Contains(given, n) {
			problems = append(problems, fmt.Sprintf("%s %d does not exist; there are %s", what, n, listed(given)))
		}
	}
	return problems
}

// listed formats numbers for people: "1, 2 and 5"; "none".
func listed(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = fmt.Sprint(n)
	}
	return joined(words)
}

// joined formats words for people: "a, b and c"; "none".
func joined(words []string) string {
	switch n := len(words); n {
	case 0:
		return "none"
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}

// known returns the given ones of numbers, each once, in order.
func known(numbers, given []int) []int {
	out := []int{}
	for _, n := range numbers {
		if slices.Contains(given, n) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
