package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/analysis"
)

// shortQueries draws n queries of 3 to 8 terms. It draws a chunk at random, then the terms from its
// distinct words with equal probability. Words have three or more letters and are not stop words. A
// query is thus about one topic, with common and rare words as in its chunk.
func shortQueries(c *corpus, n int) []string {
	random := rand.New(rand.NewPCG(9, 1))
	var queries []string
	for tries := 0; len(queries) < n && tries < 100*n; tries++ {
		d := c.document(random.IntN(c.documents()))
		words := contentWords(d.Chunks[random.IntN(len(d.Chunks))].Text)
		terms := 3 + random.IntN(6)
		if len(words) < terms {
			continue
		}
		random.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		queries = append(queries, strings.Join(words[:terms], " "))
	}
	return queries
}

// contentWords returns the distinct lower-case words of a text that are not stop words, in their
// order.
func contentWords(text string) []string {
	var words []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if len(w) >= 3 && !analysis.Stop(w) && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}

// questions returns n questions as people type them. If ASSAY_TESTDATA is set, half come from its
// English question sets, in equal parts. The others put a heading or title of the corpus into one
// of the templates.
func questions(ctx context.Context, c *corpus, n int, testdata string) ([]string, error) {
	random := rand.New(rand.NewPCG(9, 2))
	var all []string
	if testdata != "" {
		typed, err := typedQuestions(ctx, testdata, n/2)
		if err != nil {
			return nil, err
		}
		all = typed
	}
	for i := 0; len(all) < n; i++ {
		d := c.document(random.IntN(c.documents()))
		topic := d.Chunks[0].Heading
		if words := contentWords(topic); len(words) == 0 || len(words) > 7 {
			topic = strings.Join(someWords(random, contentWords(d.Chunks[0].Text)), " ")
		}
		if topic == "" {
			continue
		}
		all = append(all, fmt.Sprintf(templates[i%len(templates)], strings.ToLower(strings.Join(strings.Fields(topic), " "))))
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all, nil
}

// someWords picks two or three adjacent words.
func someWords(random *rand.Rand, words []string) []string {
	n := 2 + random.IntN(2)
	if len(words) < n {
		return nil
	}
	i := random.IntN(len(words) - n + 1)
	return words[i : i+n]
}

// templates are common questions about a topic, with stop words and common words.
var templates = []string{
	"What is the difference between %s and the other options?",
	"How do I use %s in a program?",
	"how to change the %s",
	"Why does %s not work when the file is not there?",
	"Where can I find out more about %s?",
	"Is it possible to set %s for all users of the system?",
	"What happens if %s is called with a nil or empty value?",
	"When should I use %s instead of writing my own function?",
	"which version added %s",
	"Can you explain what %s does and give an example of it?",
	"what are the default values for %s?",
	"Who should I ask when there is an error in %s?",
}

// typedQuestions takes n questions from the retrieval sets in equal parts.
func typedQuestions(ctx context.Context, testdata string, n int) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(testdata, "data", "retrieval", "*", "queries.jsonl"))
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		set := filepath.Base(filepath.Dir(name))
		return strings.HasSuffix(set, "-de") || strings.HasPrefix(set, "scifact") // in German; claims, not questions
	})
	var all []string
	for i, name := range names {
		want := (n - len(all)) / (len(names) - i)
		for t, err := range jsonRows(name) {
			if err != nil {
				return nil, err
			}
			if want == 0 || ctx.Err() != nil {
				break
			}
			all = append(all, t.Text)
			want--
		}
	}
	return all, ctx.Err()
}
