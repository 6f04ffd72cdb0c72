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

// A document is a passage that statements cite.
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
	Passage  string   // ID of the cited passage
	Heading  []string // of that passage
	Cited    string   // its text
	Verbatim bool     // the statement, or its original, occurs in the passage verbatim
	Kind     Kind     // of the mutation; empty: correct
	Of       string   // the statement before the mutation
}

// readLines reads a file of JSON values, one per line.
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

// documents returns the passages, with some texts read from the shared data. Without shared data it
// returns only the passages whose text is stored here.
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

// paragraph returns the paragraph of a text that starts with begins, on one line. If begins is
// empty it returns the whole text.
func paragraph(text, begins string) string {
	// Rejoin tokenized text, such as that of clapnq.
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

// perHalf is the number of verbatim answers of a half. There are as many paraphrases, and as many
// mutations of each.
const perHalf = 250

// Answers returns the answers of one half, "dev" or "test". The correct ones are verbatim
// statements followed by as many paraphrases. There are as many wrong ones, spread evenly over the
// kinds and made from both verbatim statements and paraphrases. Dir is the folder with
// passages.jsonl and paraphrases.jsonl. Shared is the folder of the data that some passages are
// read from; without it there are fewer answers. Equal files give equal answers in equal order.
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
			const least = 18 // bytes: shorter statements have too little content
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

// drawn returns n answers of all, in an order by the hash of their text.
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

// citedElsewhere replaces the citation of an answer. For two in three verbatim answers, this is the
// rest of the cited text, if it is longer than the claim. Otherwise it is the passage that shares
// the most words, or in a third of the cases any passage.
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

// inCommon counts the words of four or more letters that two texts share.
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
