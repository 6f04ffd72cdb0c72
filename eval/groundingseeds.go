package eval

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/sentence"
)

// A seed is a claim that a text supports, to make others of.
type seed struct {
	claim string
	text  *seedText
	alone bool // a sentence of the text or its title: there is nothing of an answer about it
}

// A seedText is a text that claims rest on.
type seedText struct {
	id        string
	title     string
	sentences []string
}

func (t *seedText) String() string { return strings.Join(t.sentences, " ") }

// A seedSet is the texts of a set, by ID and in the order of the file, with the claims
// that they support.
type seedSet struct {
	name  string
	texts []*seedText
	byID  map[string]*seedText
	gold  map[string][]*seedText // of a question
	seeds []seed
	asked []askedSeed
}

// seedSets are the folders that seeds are read from, and how a question's metadata gives
// an answer in whole sentences; nil: there are none, and seeds are sentences and titles.
// Asked says that statements are made of its questions, too.
var seedSets = []struct {
	name   string
	asked  bool
	answer func(metadata) (text, from string)
}{
	{"clapnq-answerable", false, func(m metadata) (string, string) { return strings.Join(m.Answers, " "), m.Shown }},
	{"pubmedqa-1000", true, func(m metadata) (string, string) { return m.Long, "" }},
	{"anthropic-docs", false, func(m metadata) (string, string) { return m.Answer, "" }},
	{"mtrag-un-reference", false, func(m metadata) (string, string) {
		if len(m.Answerability) != 1 || m.Answerability[0] != "ANSWERABLE" || len(m.Targets) == 0 {
			return "", ""
		}
		return m.Targets[0].Text, ""
	}},
	{"scifact-train", false, nil},
	{"hotpotqa-train100", true, nil},
	{"musique-train100", true, nil},
	{"xquad-en", true, nil},
}

// metadata is what the sets say of a question, each in its own way.
type metadata struct {
	Answer        string   `json:"answer"`
	Answers       []string `json:"answers"`
	Long          string   `json:"long_answer"`
	Shown         string   `json:"shown_passage"`
	Answerability []string `json:"answerability"`
	Targets       []struct {
		Text string `json:"text"`
	} `json:"targets"`
	Decomposition []struct {
		Question string `json:"question"`
		Answer   string `json:"answer"`
	} `json:"decomposition"`
}

// How many parts of answers, sentences and titles are taken of a set as seeds.
const (
	mostAnswers   = 350
	mostSentences = 100
	mostTitles    = 250
)

// readSeeds reads the sets that lie under dir; those that do not are left out. Texts whose
// opening is among known are left out, too.
func readSeeds(dir string, known map[string]bool) ([]*seedSet, error) {
	var sets []*seedSet
	for _, s := range seedSets {
		set := &seedSet{name: s.name, byID: map[string]*seedText{}, gold: map[string][]*seedText{}}
		folder := filepath.Join(dir, s.name)
		err := set.readTexts(filepath.Join(folder, "corpus.jsonl"), known)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && (s.answer != nil || s.asked) {
			err = set.readAnswers(folder, s.answer, s.asked)
		}
		if err != nil {
			return nil, err
		}
		set.addTitles()
		set.addSentences()
		sets = append(sets, set)
	}
	if len(sets) == 0 {
		return nil, fmt.Errorf("%s holds none of the sets that claims are made of: %w", dir, assay.ErrNotFound)
	}
	return sets, nil
}

// eachLine calls f with each line of a file.
func eachLine(file string, f func(line []byte) error) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 1<<16), maxGroundingLine)
	for n := 1; lines.Scan(); n++ {
		if err := f(lines.Bytes()); err != nil {
			return fmt.Errorf("%s: line %d: %w: %w", file, n, err, assay.ErrInvalid)
		}
	}
	return lines.Err()
}

func (s *seedSet) readTexts(file string, known map[string]bool) error {
	return eachLine(file, func(line []byte) error {
		var raw struct {
			ID    string `json:"_id"`
			Title string `json:"title"`
			Text  string `json:"text"`
		}
		if err := json.Unmarshal(line, &raw); err != nil {
			return err
		}
		t := &seedText{id: raw.ID, title: tidied(raw.Title), sentences: tidySentences(raw.Text)}
		if len(t.sentences) > 0 && !known[opening(t.String())] {
			s.texts = append(s.texts, t)
			s.byID[t.id] = t
		}
		return nil
	})
}

func (s *seedSet) readAnswers(folder string, answer func(metadata) (text, from string), asked bool) error {
	lacking := map[string]bool{} // questions of which a gold text is left out
	err := eachLine(filepath.Join(folder, "qrels.tsv"), func(line []byte) error {
		f := strings.Split(string(line), "\t")
		if len(f) < 2 {
			return nil
		}
		if s.byID[f[1]] == nil {
			lacking[f[0]] = true
			return nil
		}
		s.gold[f[0]] = append(s.gold[f[0]], s.byID[f[1]])
		return nil
	})
	if err != nil {
		return err
	}
	return eachLine(filepath.Join(folder, "queries.jsonl"), func(line []byte) error {
		var raw struct {
			ID       string   `json:"_id"`
			Text     string   `json:"text"`
			Metadata metadata `json:"metadata"`
		}
		if err := json.Unmarshal(line, &raw); err != nil {
			return err
		}
		gold := s.gold[raw.ID]
		if asked && len(gold) > 0 && !lacking[raw.ID] {
			s.addAsked(raw.Text, raw.Metadata, joinedText(gold))
		}
		if answer == nil {
			return nil
		}
		text, from := answer(raw.Metadata)
		if t := s.byID[from]; t != nil {
			gold = []*seedText{t}
		}
		s.addAnswer(text, gold)
		return nil
	})
}

// addAnswer takes one to three sentences of an answer at a time as a seed.
func (s *seedSet) addAnswer(answer string, gold []*seedText) {
	if len(gold) == 0 || answer == "" {
		return
	}
	text := joinedText(gold)
	sentences := tidySentences(answer)
	for i := 0; i < len(sentences); {
		n := []int{1, 1, 2, 3}[hashed(sentences[i])%4]
		end := min(i+n, len(sentences))
		if len(s.seeds) < mostAnswers {
			s.add(seed{claim: strings.Join(sentences[i:end], " "), text: text})
		}
		i = end
	}
}

// joinedText is one text of one or more.
func joinedText(list []*seedText) *seedText {
	if len(list) == 1 {
		return list[0]
	}
	text := &seedText{id: list[0].id}
	for _, t := range list {
		text.sentences = append(text.sentences, t.sentences...)
	}
	return text
}

// addAsked takes a question with its short answer as a seed, and the questions that it
// was put together of. A conclusion that the text of a yes-or-no question lacks is put at
// its end.
func (s *seedSet) addAsked(question string, m metadata, text *seedText) {
	if m.Long != "" {
		if m.Answer != "yes" && m.Answer != "no" {
			return
		}
		whole := &seedText{id: text.id, title: text.title, sentences: slices.Concat(text.sentences, tidySentences(m.Long))}
		if strings.Contains(text.String(), tidied(m.Long)) {
			whole = text
		}
		s.asked = append(s.asked, askedSeed{question: question, answer: m.Answer, text: whole, yesNo: true})
		return
	}
	s.asked = append(s.asked, askedSeed{question: tidied(question), answer: m.Answer, text: text})
	for _, part := range m.Decomposition {
		asks := part.Question
		for i, before := range m.Decomposition {
			asks = strings.ReplaceAll(asks, fmt.Sprintf("#%d", i+1), before.Answer)
		}
		s.asked = append(s.asked, askedSeed{question: tidied(asks), answer: part.Answer, text: text})
	}
}

// add takes a seed of a size that a claim has.
func (s *seedSet) add(d seed) {
	const least, most = 6, 90 // words
	if n := len(strings.Fields(d.claim)); n >= least && n <= most {
		s.seeds = append(s.seeds, d)
	}
}

// addTitles takes titles that are statements: those with a verb that titles of papers
// have.
func (s *seedSet) addTitles() {
	n := 0
	for _, t := range s.texts {
		if n == mostTitles {
			return
		}
		if len(t.sentences) > 3 && hashed(t.id)%2 == 0 && strings.ContainsFunc(t.title, func(r rune) bool { return r == ' ' }) && stated(t.title) {
			n++
			s.add(seed{claim: t.title, text: t, alone: true})
		}
	}
}

func stated(title string) bool {
	for w := range strings.FieldsSeq(strings.ToLower(title)) {
		if titleVerbs[w] {
			return !strings.HasSuffix(title, "?")
		}
	}
	return false
}

var titleVerbs = wordsOf(`is are was were has have can may reveals increases decreases reduces promotes inhibits regulates mediates induces controls
requires causes prevents activates suppresses improves protects drives contributes enhances predicts affects modulates determines provides identifies
impairs maintains confers facilitates directs triggers blocks alters attenuates limits`)

func wordsOf(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

// addSentences takes a sentence of some of the texts.
func (s *seedSet) addSentences() {
	n := 0
	for _, t := range s.texts {
		if n == mostSentences {
			return
		}
		if len(t.sentences) > 2 && hashed("sentence of "+t.id)%4 == 0 {
			n++
			s.add(seed{claim: t.sentences[hashed(t.id)%uint64(len(t.sentences))], text: t, alone: true})
		}
	}
}

// tidySentences cuts a text into sentences, tidied.
func tidySentences(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		for _, sp := range sentence.Spans(line) {
			if s := tidied(line[sp.Start:sp.End]); s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// spaced takes back what tokenizers do to punctuation.
var spaced = strings.NewReplacer(" .", ".", " ,", ",", " ;", ";", " :", ":", "( ", "(", " )", ")", " 's", "'s", "`` ", `"`, " ''", `"`, " - ", "-", " n't", "n't", " %", "%", "$ ", "$")

func tidied(text string) string {
	return strings.Join(strings.Fields(spaced.Replace(text)), " ")
}

// opening is what texts are known again by: their first letters and digits.
func opening(text string) string {
	const runes = 60
	var b strings.Builder
	n := 0
	for _, r := range strings.ToLower(text) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
			if n++; n == runes {
				break
			}
		}
	}
	return b.String()
}

func hashed(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}
