package ground

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// idleSentence is one that speaks about the answer, or to whoever asked, and claims
	// nothing of what was asked.
	idleSentence = regexp.MustCompile(`(?i)^(?:` + strings.Join([]string{
		`(?:i|we) (?:hope|trust) (?:that )?(?:this|that|it|these)\b.*`,
		`(?:please )?(?:feel free|don['’]t hesitate|do not hesitate)\b.*`,
		`(?:please )?let (?:me|us) know\b.*`,
		`if (?:you (?:have|need|want|would like)|there (?:is|are)) (?:any |further |more |other |additional |anything )*(?:questions?|help|details?|information|assistance|else|clarification)\b.*`,
		`(?:i|we)(?:['’]m| am| are|['’]re)? (?:not (?:entirely |quite |completely |fully )?(?:sure|certain)|unsure|uncertain)(?: (?:about|of) (?:this|that|it))?`,
		`(?:i|we) (?:think|believe|guess|suppose) (?:so|not)`,
		`(?:it|that|this) (?:may|might|could|would) (?:also )?(?:be|prove) (?:helpful|useful|worth|worthwhile|a good idea|advisable|best|necessary|interesting)\b.*`,
		`(?:it|that|this) depends`,
		`(?:you|one) (?:may|might|could) (?:also )?(?:want|wish|like|consider|try|need) (?:to )?(?:check|consult|ask|look|contact|read|refer|see|verify|review|consider|reach)\w*\b.*`,
		`(?:please )?(?:consult|refer to|check|see|contact|ask) (?:the|your|our|an?|its) (?:official |full |relevant |original |cited |local )*(?:documentation|document|documents|docs|source|sources|manual|passages?|text|support|expert|professional|administrator|website|handbook)(?: (?:for|to)\b.*)?`,
		`(?:sure|certainly|of course|absolutely|great question|good question|okay|ok|thanks?|thank you|hello|hi|yes|no|ja|nein|exactly|correct|right|understood|got it|indeed)(?: thing| so much| very much)?`,
		`(?:here|below) (?:is|are|['’]s)\b[^.]*(?:summary|answer|overview|list|found|know|details|breakdown|explanation|steps)\b.*`,
		`(?:here['’]s|the following is)\b[^.]*(?:summary|answer|overview|list|found|know|details|breakdown|explanation)\b.*`,
		`(?:in (?:summary|short|conclusion|other words)|to (?:summari[sz]e|sum up|conclude)|overall|note|important|answer|summary|conclusion|sources?|references?)`,
		`i (?:could not|couldn['’]t|cannot|can['’]t|did not|didn['’]t|was unable to|were unable to|am unable to|are unable to|do not|don['’]t) (?:find|locate|see|determine|tell|say|answer|have (?:enough|sufficient|any|more))\b.*`,
		`as an? (?:ai|language model|assistant)\b.*`,
		`i(?: would|['’]d) (?:be happy|be glad|love|like|recommend|suggest|advise) (?:to|that|checking|consulting)?\b.*`,
		`hope (?:this|that|it) helps`,
	}, "|") + `)$`)

	// saidSo stands before a claim and says how sure the writer is.
	saidSo = regexp.MustCompile(`(?i)^(?:i (?:think|believe|guess|suppose|assume|would say|understand)(?: that)?|in my (?:opinion|view|understanding),|as far as (?:i|we) (?:know|can (?:see|tell)),|to (?:my|the best of my|our) knowledge,|it (?:seems|appears|looks)(?: to me)?(?: that| like)|apparently,|presumably,|probably,|perhaps,|maybe,|it is (?:worth noting|important to (?:note|remember)|likely)(?: that)?,?|it should be noted that|note that|please note that|keep in mind that|remember that)\s+`)
)

// noncommittal reports whether a sentence claims nothing that a document could say.
func noncommittal(text string) bool {
	text = strings.Trim(strings.TrimSpace(itemMark.ReplaceAllString(strings.TrimSpace(text), "")), "*_ ")
	return idleSentence.MatchString(strings.TrimRight(text, ".!:… \t)"))
}

// withoutSaidSo returns a claim without what only says how sure the writer is.
func withoutSaidSo(claim string) string {
	for range 2 {
		rest := claim[len(saidSo.FindString(claim)):]
		if rest == claim {
			break
		}
		claim = upperFirst(rest)
	}
	return claim
}

// upperFirst begins a text with a capital.
func upperFirst(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError {
		return text
	}
	return string(unicode.ToUpper(r)) + text[size:]
}
