package local

import (
	"context"
	"regexp"
	"strings"

	"github.com/assay-rag/assay/internal/surface"
	"github.com/assay-rag/assay/role"
)

// Router says how much work a question is, by its grammar: several questions in one, a
// comparison, and what leads to a thing by way of another one that is not named, is complex
// (not all that the planner cuts into a chain: it cuts what one passage may well hold);
// what ranks or lists, says a lot or says hardly anything is moderate; the rest is simple.
//
// Of the questions of the shared retrieval sets it calls simple, moderate and complex:
// MuSiQue 8, 4, 88 of 100; HotpotQA 36, 19, 45 of 100; CLAP NQ 258, 25, 17 of 300; XQuAD
// 979, 137, 74 of 1190. It sees relations by capitals and by English words: a bridge
// question without either, as many of HotpotQA's are, looks simple to it.
type Router struct{}

// Route implements role.Router. It returns an error only when ctx has ended.
func (Router) Route(ctx context.Context, c role.Caller, question string) (role.Route, error) {
	plan, err := Planner{}.Plan(ctx, c, question)
	if err != nil {
		return role.Route{}, err
	}
	question = strings.Join(strings.Fields(question), " ")
	complexity, reason := complexityOf(question, plan)
	return role.Route{Complexity: complexity, Reason: reason}, nil
}

func complexityOf(question string, plan role.Plan) (role.Complexity, string) {
	switch {
	case plan.Shape == role.Comparison:
		return role.Complex, "it compares things"
	case plan.Shape == role.Conjunction:
		return role.Complex, "it asks several things"
	case byWay(question):
		return role.Complex, "it names a thing only by what is said of it"
	}
	words := contentWords(question)
	switch {
	case len(words) < 2 && len(surface.Names(surface.Quiet(question))) == 0:
		return role.Moderate, "it says hardly what it is about"
	case ranks.MatchString(question):
		return role.Moderate, "it compares or ranks, and several passages may be needed"
	case lists.MatchString(question):
		return role.Moderate, "it asks for several things of a kind"
	case len(words) >= manyWords:
		return role.Moderate, "it says a lot, not all of which one passage may hold"
	}
	return role.Simple, "it asks one thing"
}

// manyWords is from how many words of content on a question is not simple.
const manyWords = 14

// What leads from one thing to another that it does not name.
var steps = []*regexp.Regexp{
	// A clause: "the city where X died", "a film in which Z plays", "the city X was born".
	regexp.MustCompile(`\b(?i:the|a|an|this|that)\s+(?:[\pL\d'-]+\s+){1,4}?(?:(?:in|of|from|on|at|by|for|to|with)\s+)?(?i:that|which|who|whom|whose|where)\s+\S+`),
	regexp.MustCompile(`\b(?:the|a|an)\s+(?:\p{Ll}+\s+){1,2}(?:\p{Lu}[\pL\d.'-]*\s+)+(?:is|was|are|were|has|had|did|died|lived|played|worked|won|wrote)\b`),
	// A participle: "the country containing X", "a man born in Y".
	regexp.MustCompile(`\b(?:the|a|an)\s+(?:\p{Ll}+\s+){1,2}?(?:containing|including|bordering|producing|publishing|born|named|created|founded|written|directed|produced|performed|owned|played|located|known)\s+(?:(?:in|by|as|for|after|on)\s+)?(?:the\s+)?["\p{Lu}]`),
	// Somebody by what they did: "the director of X", "X's wife".
	regexp.MustCompile(`\bthe\s+(?:\p{Ll}+\s+)?` + related + `\s+(?:of|for|from|to|in)\s+(?:the\s+|a\s+)?["“\p{Lu}]`),
	regexp.MustCompile(`\p{Lu}[\pL\d.-]*['’]s?\s+(?:\p{Ll}+\s+)?` + related + `\b`),
}

// related are nouns for who or what stands in a relation to something that has a name.
const related = `(?:author|writer|performer|singer|composer|lyricist|director|producer|creator|founder|inventor|designer|publisher|manufacturer|` +
	`owner|employer|artist|painter|band|actor|actress|star|narrator|host|presenter|captain|coach|manager|team|club|label|network|` +
	`spouse|wife|husband|partner|father|mother|parents?|son|daughter|brother|sister|siblings?|child|children|successor|predecessor|` +
	`birthplace|hometown|place of birth|place of death|city of birth|country|capital|headquarters|alma mater|university|employer)`

var (
	// whoIs matches a question for what stands in one relation to something: one search.
	whoIs = regexp.MustCompile(`^(?i:who|what|which|where)(?:'s|\s+(?i:is|are|was|were))\s+(?:(?i:the)\s+)?`)

	ranks = regexp.MustCompile(`(?i)\b(?:most|least|more|less|fewer|fewest|(?:larg|small|high|low|old|young|long|short|earli|lat|new|fast|slow|great|big|rich|clos|near)(?:er|est)|better|best|worse|worst|compare[ds]?|versus|vs|both|same|differ\w*|in common|connected)\b`)
	lists = regexp.MustCompile(`(?i)\b(?:all|each|every|list|several|various|examples)\b|^(?:and )?(?:what|which) (?:are|were) (?:the )?(?:\pL+ )*?\pL+s\b`)
)

// byWay reports whether a question asks for something by way of another thing that it
// does not name. What it asks for itself may be described once: "Who is the director of
// X?" and "What is the system that Y uses?" are one search.
func byWay(question string) bool {
	question = strings.TrimRight(question, " ?.")
	asked := -1 // where what is asked for may begin
	if at := whoIs.FindStringIndex(question); at != nil {
		asked = at[1]
	}
	n := 0
	for _, step := range steps {
		for _, at := range step.FindAllStringIndex(question, -1) {
			n++
			if determiners := determiner.FindAllStringIndex(question[at[0]:at[1]], -1); len(determiners) > 0 && step == steps[0] {
				at[0] += determiners[len(determiners)-1][0]
			}
			if at[0] <= asked {
				n-- // once: no other step begins there
				asked = -1
			}
		}
	}
	return n > 0
}

var determiner = regexp.MustCompile(`\b(?i:the|a|an|this)\s`)
