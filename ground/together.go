package ground

import (
	"regexp"
	"slices"
)

// What is denied together. jointly is a sentence that begins by denying of all or some and
// joins a second verb; doing are two verbs behind one denial. What they deny second stands
// in the last group.
var (
	jointly    = regexp.MustCompile(`(?is)^\W*(?:no|none|nobody|no one|nothing|neither|not (?:all|every|each|both|many|everyone|everybody))\b.*?[^,;:\s]\s+and\s+((?:[^\s]+).*)$`)
	doing      = regexp.MustCompile(`(?i)(?:\b(?:not|never|cannot)|n['’]t)\s+\w+\s+and\s+(\w+)`)
	newSubject = regexp.MustCompile(`(?i)^(?:the|an?|this|that|these|those|it|they|he|she|we|you|I|its|their|his|her|our|your|my|each|every|all|no|none|some|any|there|only|if|when)\b`)
)

// deniedTogether reports whether a text denies two things together of which a claim with
// these terms has the first alone: "No plan costs 5 euros and includes 10 GB" does not say
// that no plan costs 5 euros, nor "Do not drink and drive" that one must not drink. What is
// joined by "or" is denied each for itself.
func deniedTogether(text string, claim []term) bool {
	for _, pattern := range []*regexp.Regexp{jointly, doing} {
		m := pattern.FindStringSubmatch(text)
		if m == nil || newSubject.MatchString(m[1]) {
			continue
		}
		said := func(t term) bool {
			return t.stem == "" || slices.ContainsFunc(claim, func(c term) bool { return c.stem == t.stem })
		}
		if second := read(m[1]).terms; checkable(second) && !slices.ContainsFunc(second, func(t term) bool { return t.stem != "" && said(t) }) {
			return true
		}
	}
	return false
}
