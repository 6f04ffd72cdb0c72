package mutate

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-rag/assay/internal/sentence"
)

// A document is a passage that statements rest on.
type document struct {
	ID      string   `json:"id"`
	Heading []string `json:"heading"`
	Text    string   `json:"text"`
	Half    string   `json:"half"`
	From    string   `json:"from"`
	FromID  string   `json:"from_id"`
	Begins  string   `json:"begins"`
}

// An Answer is a statement and the text that it cites.
type Answer struct {
	Claim    string
	Passage  string   // ID of the passage that it cites
	Heading  []string // of that
	Cited    string   // its text
	Verbatim bool     // it, or what it was made of, stands there word for word
	Kind     Kind     // of the mutation; empty: it is correct
	Of       string   // what was mutated
}

// readLines reads a file of JSON values, one a line.
func readLines[T any](file string) ([]T, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []T
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", file, len(out)+1, err)
		}
		out = append(out, v)
	}
	return out, lines.Err()
}

// documents returns the passages, with the texts of those that are read from the shared
// data; without that, those that are kept here.
func documents(dir, shared string) ([]document, error) {
	docs, err := readLines[document](filepath.Join(dir, "passages.jsonl"))
	if err != nil {
		return nil, err
	}
	corpora := map[string]map[string]string{}
	for i := range docs {
		d := &docs[i]
		if d.From == "" || shared == "" {
			continue
		}
		if corpora[d.From] == nil {
			if corpora[d.From], err = corpus(shared, d.From); err != nil {
				return nil, err
			}
		}
		if d.Text = paragraph(corpora[d.From][d.FromID], d.Begins); d.Text == "" {
			return nil, fmt.Errorf("%s: %s has no %q with a paragraph that begins with %q", d.ID, d.From, d.FromID, d.Begins)
		}
	}
	return slices.DeleteFunc(docs, func(d document) bool { return d.Text == "" }), nil
}

// corpus returns the texts of a corpus of the shared data by their IDs.
func corpus(shared, name string) (map[string]string, error) {
	file := filepath.Join(shared, "data", filepath.FromSlash(name)+".jsonl")
	if strings.HasPrefix(name, "retrieval/") {
		file = filepath.Join(shared, "data", filepath.FromSlash(name), "corpus.jsonl")
	}
	lines, err := readLines[struct {
		ID   string `json:"_id"`
		Text string `json:"text"`
	}](file)
	texts := map[string]string{}
	for _, l := range lines {
		texts[l.ID] = l.Text
	}
	return texts, err
}

// paragraph returns the paragraph of a text that begins so, on one line; all of the text
// when begins is empty.
func paragraph(text, begins string) string {
	// What was cut into words, as clapnq is, is put together again.
	words := strings.NewReplacer(" .", ".", " ,", ",", " 's", "'s", "( ", "(", " )", ")", "`` ", "\"", " ''", "\"", " - ", "-", " -- ", "–", " : ", ":", " ;", ";", "' O", "'O")
	fold := func(s string) string { return words.Replace(strings.Join(strings.Fields(s), " ")) }
	if begins == "" {
		return fold(text)
	}
	for p := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		if p = fold(p); strings.HasPrefix(p, begins) {
			return p
		}
	}
	return ""
}

// perHalf is how many verbatim answers, and as many paraphrases, a half has, and as many
// mutated ones of each.
const perHalf = 250

// Answers returns the correct answers of one half, "dev" or "test": verbatim ones, then as
// many paraphrases; and as many wrong ones: of each kind about as many as of any other, made
// of verbatim ones and of paraphrases alike. Dir is the folder with passages.jsonl and
// paraphrases.jsonl, shared the one with the data that some passages are read from; without
// it there are fewer answers. Equal files give equal answers in equal order.
func Answers(dir, shared, half string) (correct, wrong []Answer, err error) {
	docs, err := documents(dir, shared)
	if err != nil {
		return nil, nil, err
	}
	docs = slices.DeleteFunc(docs, func(d document) bool { return d.Half != half })
	paraphrases, err := readLines[struct{ Passage, Claim string }](filepath.Join(dir, "paraphrases.jsonl"))
	if err != nil {
		return nil, nil, err
	}
	var verbatim, paraphrased []Answer
	for _, d := range docs {
		for _, sp := range sentence.Spans(d.Text) {
			const least = 18 // bytes: what is shorter says nothing by itself
			if s := d.Text[sp.Start:sp.End]; len(s) >= least && strings.HasSuffix(s, ".") {
				verbatim = append(verbatim, Answer{Claim: s, Passage: d.ID, Heading: d.Heading, Cited: d.Text, Verbatim: true})
			}
		}
		for _, p := range paraphrases {
			if p.Passage == d.ID {
				paraphrased = append(paraphrased, Answer{Claim: p.Claim, Passage: d.ID, Heading: d.Heading, Cited: d.Text})
			}
		}
	}
	correct = slices.Concat(drawn(verbatim, perHalf), drawn(paraphrased, perHalf))
	return correct, slices.Concat(wrongOf(verbatim, docs), wrongOf(paraphrased, docs)), nil
}

// Passages returns the texts of the passages of one half, "dev" or "test", from the
// folders that Answers reads.
func Passages(dir, shared, half string) ([]string, error) {
	docs, err := documents(dir, shared)
	var out []string
	for _, d := range docs {
		if d.Half == half {
			out = append(out, d.Text)
		}
	}
	return out, err
}

// Exchanged returns the wrong answers of one half that can be made of its correct ones by
// exchanging the two sides of a word that orders them, of the kind Order; these come beside
// those of Answers.
func Exchanged(dir, shared, half string) ([]Answer, error) {
	correct, _, err := Answers(dir, shared, half)
	var out []Answer
	for _, a := range correct {
		if m, ok := Exchange(a.Claim); ok {
			a.Claim, a.Kind, a.Of = m.Claim, m.Kind, a.Claim
			out = append(out, a)
		}
	}
	return out, err
}

// drawn returns n answers of all, spread by their words.
func drawn(all []Answer, n int) []Answer {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Answer) int { return cmp.Compare(hash(a.Claim), hash(b.Claim)) })
	return all[:min(n, len(all))]
}

func hash(text string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return h.Sum32()
}

// wrongOf makes perHalf mutated answers, the kinds in turn.
func wrongOf(of []Answer, docs []document) []Answer {
	byKind := map[Kind][]Answer{}
	for _, a := range of {
		seen := map[Kind]bool{}
		all := Of(a.Claim, a.Cited)
		slices.SortStableFunc(all, func(x, y Mutation) int { return cmp.Compare(hash(x.Claim), hash(y.Claim)) })
		for _, m := range all {
			if seen[m.Kind] || slices.ContainsFunc(of, func(o Answer) bool { return o.Claim == m.Claim }) {
				continue
			}
			seen[m.Kind] = true
			w := a
			w.Claim, w.Kind, w.Of = m.Claim, m.Kind, a.Claim
			byKind[m.Kind] = append(byKind[m.Kind], w)
		}
		byKind[Source] = append(byKind[Source], citedElsewhere(a, docs))
	}
	var out []Answer
	for _, k := range Kinds {
		byKind[k] = drawn(byKind[k], len(byKind[k]))
	}
	for n := 0; len(out) < perHalf; n++ {
		none := true
		for _, k := range Kinds {
			if n < len(byKind[k]) && len(out) < perHalf {
				out, none = append(out, byKind[k][n]), false
			}
		}
		if none {
			break
		}
	}
	return out
}

// citedElsewhere has an answer cite something else: a verbatim one, in half of the cases, what
// stands around it; one of the others the passage that shares the most of its words, or in
// a third of the cases any.
func citedElsewhere(a Answer, docs []document) Answer {
	a.Kind, a.Of = Source, a.Claim
	turn := hash(a.Claim) % 3
	if a.Verbatim && turn != 0 {
		if rest := strings.Join(strings.Fields(strings.Replace(a.Cited, a.Claim, "", 1)), " "); len(rest) > len(a.Claim) {
			a.Cited = rest
			return a
		}
	}
	best := -1
	other := document{}
	for i, d := range docs {
		n := inCommon(a.Claim, d.Text)
		if d.Heading[0] == a.Heading[0] {
			n += 2
		}
		if turn == 0 {
			n = int(hash(a.Claim+d.ID) % 1000)
		}
		if d.ID != a.Passage && n > best {
			best, other = n, docs[i]
		}
	}
	a.Passage, a.Heading, a.Cited = other.ID, other.Heading, other.Text
	return a
}

// inCommon counts the words of four letters and more that two texts share.
func inCommon(a, b string) int {
	held := map[string]bool{}
	for w := range strings.FieldsSeq(strings.ToLower(b)) {
		held[strings.Trim(w, ".,;:()\"")] = true
	}
	n := 0
	for w := range strings.FieldsSeq(strings.ToLower(a)) {
		if w = strings.Trim(w, ".,;:()\""); len(w) > 3 && held[w] {
			n++
		}
	}
	return n
}
