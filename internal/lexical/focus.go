package lexical

import (
	"strings"

	"github.com/assay-rag/assay/internal/analysis"
)

// Focus returns the share, in [0, 1], of a heading's content words whose stems are held.
// Language is that of analysis.Tokens. The parts of a compound count; the compound and
// the keywords of a declaration do not.
func Focus(heading, language string, held func(stem string) bool) float64 {
	n, all := 0, 0
	tokens := analysis.Tokens(heading, language)
	for i, t := range tokens {
		word := strings.ToLower(heading[t.Start:t.End])
		hasParts := i+1 < len(tokens) && tokens[i+1].Part && !tokens[i+1].Character
		isCompound := hasParts && !t.Part
		if t.Character || isCompound || Function(word) || declares[word] {
			continue
		}
		all++
		if held(t.Term) {
			n++
		}
	}
	if all == 0 {
		return 0
	}
	return float64(n) / float64(all)
}

// declares lists the keywords that begin headings of source code.
var declares = map[string]bool{"func": true, "type": true, "var": true, "const": true, "package": true, "class": true, "def": true}
