package ground

import (
	"regexp"
	"strings"
)

// A reply is the word that a claim answers a question with before it says anything.
type reply int

const (
	neither reply = iota
	yes
	no
)

var (
	yesOrNo = regexp.MustCompile(`(?i)^(yes|no|ja|nein)\b(?:,\s*sir)?\s*[,;:.–—-]\s*`)

	// leadIns say where a statement comes from, or that one follows. What a document is
	// called is asked of the headings.
	leadIns = regexp.MustCompile(`(?i)^(?:in (?:short|summary|brief|other words|general|conclusion)|to (?:summari[sz]e|sum up)|overall|specifically|note that|please note that|` +
		`(?:according to|as (?:stated|described|specified|defined) (?:in|by)|as per|per|under|based on|laut|gemäß) (?:the|this|these|our|der|dem|den) ` + document + `|` +
		`the ` + document + ` (?:says?|states?|specif(?:y|ies)|requires?) that),?\s+`)

	// topicLead is a lead-in that names something: a heading, if it is none but one.
	topicLead = regexp.MustCompile(`(?i)^(?:according to|as (?:stated|described|specified|defined) (?:in|by)|for|in|under|regarding|concerning|with regard to|as for) ([^,;.:]{1,80}),\s+`)
)

const document = `(?:(?:cited|given|provided|relevant|company)\s)?(?:passages?|documents?|documentation|sources?|texts?|polic(?:y|ies)|rules?|handbook|guide|guidelines?|manual|excerpts?|sections?|contexts?|richtlinie|dokument(?:en|s)?|quellen?)`

// withoutLeadIn returns a claim without what only leads in to it: the yes or no that it
// answers with, and where it says that it comes from.
func withoutLeadIn(claim string, t topic) (bare string, answer reply) {
	bare = itemMark.ReplaceAllString(strings.TrimSpace(claim), "")
	const most = 3
	for range most {
		before := bare
		if m := yesOrNo.FindStringSubmatch(bare); m != nil && answer == neither {
			answer = no
			if strings.EqualFold(m[1], "yes") || strings.EqualFold(m[1], "ja") {
				answer = yes
			}
			bare = bare[len(m[0]):]
		}
		bare = bare[len(leadIns.FindString(bare)):]
		if m := topicLead.FindStringSubmatch(bare); m != nil && t.isHeading(m[1]) {
			bare = bare[len(m[0]):]
		}
		if bare == before {
			break
		}
	}
	return bare, answer
}
