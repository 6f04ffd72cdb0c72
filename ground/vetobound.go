package ground

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// againstBound says which quantity of a claim lies on the other side of what the source
// bounds by it. Where only one of the two denies something, what lies above for the one may
// lie below for the other.
func againstBound(c, b *piece, mine, theirs []quantity) string {
	text, source := c.text, b.text
	for _, q := range mine {
		if q.bound == exact || q.weak && strings.HasSuffix(text[q.start:q.end], "ly") {
			continue
		}
		same, other := false, false
		for _, o := range theirs {
			if !q.same(o) {
				continue
			}
			if o.bound == exact {
				o.bound = boundAround(b, o)
			}
			around := clauseAround(source, o)
			even := (denials(clauseAround(text, q))+denials(around))%2 == 0
			across := q.bound == least && upward.MatchString(source) && (exceeding.MatchString(text) || strings.Contains(source, "otherwise")) || q.bound == most && downward.MatchString(source)
			if o.bound == q.bound && !q.turned && !o.turned && deniesAround(c, q) && !deniedAround(b, o) {
				other = true
				continue
			}
			same = same || o.bound == q.bound || o.bound == exact || !even || across
			other = other || o.bound != exact && o.bound != q.bound
		}
		if other && !same {
			return fmt.Sprintf("%s bounds it on the other side", strings.TrimSpace(text[q.start:q.end]))
		}
	}
	return ""
}

// stretchOf is the clause in which a quantity stands.
func stretchOf(p *piece, q quantity) stretch {
	for _, c := range clausesOf(p) {
		if c.to > 0 && q.start < p.words[c.to-1].end {
			return c
		}
	}
	return stretch{0, len(p.words)}
}

// deniesAround reports whether the clause of a quantity denies what it says, once.
func deniesAround(p *piece, q quantity) bool {
	c := stretchOf(p, q)
	n := 0
	for i := c.from; i < c.to; i++ {
		n += int(oneIf(deniesAt(p, i) && p.words[i].lower != "without" && p.words[i].start < q.start))
	}
	return n == 1
}

// deniedAround reports whether the clause of a quantity may deny it somehow.
func deniedAround(p *piece, q quantity) bool {
	c := stretchOf(p, q)
	return slices.ContainsFunc(p.words[c.from:c.to], func(w token) bool {
		return deniesSomehow.MatchString(w.lower) && w.lower != "out" && w.lower != "off"
	})
}

var (
	asMost  = wordSet("maximum limit limited limits largest longest highest cap")
	asLeast = wordSet("minimum needed required need needs requires smallest shortest lowest")
)

// boundAround is the bound that words of its clause make of a quantity: "half of the points
// are needed".
func boundAround(p *piece, q quantity) bound {
	c := stretchOf(p, q)
	for _, w := range p.words[c.from:c.to] {
		switch {
		case asMost[w.lower]:
			return most
		case asLeast[w.lower]:
			return least
		}
	}
	return exact
}

// clauseAround is what stands around a quantity between semicolons.
func clauseAround(text string, q quantity) string {
	start := strings.LastIndexByte(text[:q.start], ';') + 1
	if end := strings.IndexByte(text[q.end:], ';'); end >= 0 {
		return text[start : q.end+end]
	}
	return text[start:]
}

// exceeding says that something lies beyond a bound, not that there is one.
var exceeding = regexp.MustCompile(`(?i)\b(?:exceed\w*|above|beyond|over|more than|in excess of)\b`)

// upward and downward are words for the other side of a bound.
var (
	upward   = regexp.MustCompile(`(?i)\b(?:above|beyond|exceeds?|exceeding) (?:that|this|it|the limit)\b|\b(?:larger|longer|higher|older|bigger) ones?\b|\b(?:otherwise|or else)\b`)
	downward = regexp.MustCompile(`(?i)\b(?:below|under) (?:that|this|it)\b|\b(?:cheaper|smaller|shorter|lower|younger|lighter) ones?\b|\b(?:otherwise|or else)\b`)
)
