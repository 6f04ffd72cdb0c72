package starter

import (
	"strings"
	"sync"

	"github.com/assay-rag/assay/eval/testset"
	"github.com/assay-rag/assay/internal/lazyregexp"
)

// The forms of headings that are questions or that name a task.
var (
	askingHeading = lazyregexp.New(`^(?:What|Who|When|Where|Why|How|Which|Can|Does|Do|Is|Are|Should|Must|May) [^:|]{8,110}\?$`)
	howToHeading  = lazyregexp.New(`^How to ([a-z]+) ([^:|?()]{3,80})$`)
	doingHeading  = lazyregexp.New(`^([A-Z][a-z]+ing) ((?:an?|the|your|from|with|without|to|into|all|several|more than one) [^:|?()]{2,70})$`)
)

// pointing matches words that refer to earlier text.
var pointing = lazyregexp.New(`(?i)\b(?:it|this|that|these|those|them|him|her|they|we|us|our|here|above|below|previous|following|next|other|another)\b`)

// askHeading turns the heading of a passage into a question that its section answers. The expected
// answer is left for people to fill in. Each heading is used once.
func (g *gathering) askHeading(p Passage) []candidate {
	if len(p.Headings) == 0 || len(strings.Fields(p.Text)) < leastSection {
		return nil
	}
	heading := strings.Join(strings.Fields(p.Headings[len(p.Headings)-1]), " ")
	question := ""
	if askingHeading.MatchString(heading) {
		question = strings.TrimSuffix(heading, "?")
	} else if m := howToHeading.FindStringSubmatch(heading); m != nil && verbs().base[m[1]] {
		question = "How do you " + m[1] + " " + m[2]
	} else if m := doingHeading.FindStringSubmatch(heading); m != nil && gerunds()[strings.ToLower(m[1])] != "" {
		question = "How do you " + gerunds()[strings.ToLower(m[1])] + " " + m[2]
	}
	words := contentWords(question)
	if question == "" || g.seen[question] || len(words) < 2 || pointing.MatchString(question) {
		return nil
	}
	g.seen[question] = true
	return []candidate{{kind: "section", score: 1.1, words: words, Case: testset.Case{
		Question: question + "?",
		Gold:     []testset.Gold{{Document: p.document, Section: heading}},
		Slices:   map[string]string{"type": "section"},
	}}}
}

// leastSection is the least number of words of a section that can answer a question.
const leastSection = 12

// gerunds maps "-ing" forms to their verbs. Verbs of states and of mere events are left out, since
// "how do you …" makes no sense for them.
var gerunds = sync.OnceValue(makeGerunds)

func makeGerunds() map[string]string {
	forms := map[string]string{}
	still := wordSet("be have know mean understand exist appear belong happen seem think fall become consist expire fail concern concern lack live need occur follow reach")
	doubling := wordSet(doublingVerbs + " get cut put let hit shut set split run win begin")
	for base := range verbs().base {
		switch {
		case still[base]:
		case doubling[base]:
			forms[base+base[len(base)-1:]+"ing"] = base
		case strings.HasSuffix(base, "e") && !strings.HasSuffix(base, "ee"):
			forms[base[:len(base)-1]+"ing"] = base
		default:
			forms[base+"ing"] = base
		}
	}
	return forms
}
