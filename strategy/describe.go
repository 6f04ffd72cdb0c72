package strategy

// descriptions say in a line what each strategy does.
var descriptions = map[string]string{
	"auto":       "one look, and more where that does not suffice: the cheapest that is enough",
	"static":     "one search, one answer: the floor that the others are measured against",
	"advanced":   "searches the question in other words as well, and what a good answer would say",
	"corrective": "looks up each part of the question until what was found suffices",
	"self":       "writes, says what of its draft the passages support, and looks for the rest",
	"crag":       "scores each passage; with --web the web takes the place of weak ones",
	"adaptive":   "as much work as the question is: simple, moderate or complex",
	"fusion":     "searches several wordings of the question and fuses what they bring",
	"judge":      "a judge reads each draft and sends it back until it is good",
	"reflect":    "says after each round what is still open, and searches for that",
	"react":      "decides step by step which read-only tool to use next",
	"multihop":   "finds what an answer is needed for first, and fills it into the next question",
	"graph":      "walks from what the question names to what the documents say of it together",
	"agent":      "one prompt that plans, searches and reflects by itself, with the same tools",
	"managed":    "asks a managed service, and verifies what it says as any other answer",
}

// Describe says in a line what the strategy of that name does; empty: there is none.
func Describe(name string) string { return descriptions[name] }
