package pdflayout

import (
	"slices"
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// edgeZone is the share of a page's height at its top and bottom in which furniture is looked for.
const edgeZone = 0.12

// pageNumber matches a line that is only a page number.
var pageNumber = lazyregexp.New(`(?i)^[-–—\[(|\s]*(page|seite|pagina|página|стр\.?|p\.)?\s*([0-9]{1,4}|[ivxlc]{1,7})(\s*(of|von|de|/|из)\s*[0-9]{1,4})?[-–—\])|\s]*$`)

// markFurniture marks the lines that are left out: artifacts, running headers and footers, and page
// numbers. A running line occurs on at least three pages or half of them, at the same height near the
// edge, with the same words apart from digits, in letters that are not larger than the text.
func (a *Analyzer) markFurniture() {
	body := a.bodySize()
	type place struct {
		text string
		y    int
	}
	pages := map[place]int{}
	each := func(f func(p *page, l *line, at place)) {
		for i := range a.pages {
			p := &a.pages[i]
			for _, l := range p.edgeLines() {
				y := int(l.shown.Y0/8 + 0.5)
				f(p, l, place{withoutDigits(l.text), y})
			}
		}
	}
	lastPage := map[place]int{}
	each(func(p *page, _ *line, at place) {
		if lastPage[at] != p.number {
			lastPage[at] = p.number
			pages[at]++
		}
	})
	running := func(at place) bool {
		n := 0
		for y := at.y - 1; y <= at.y+1; y++ {
			n += pages[place{at.text, y}]
		}
		return n >= 3 || n == 2 && 1 < len(a.pages) && len(a.pages) <= 4
	}
	each(func(_ *page, l *line, at place) {
		if running(at) && l.size <= 1.15*body {
			l.drop = true
		}
	})
	for i := range a.pages {
		a.pages[i].markEdges(body)
	}
	a.markAlike()
	a.markApart(body)
}

// marginZone is the share of a page's height in which a line that differs from page to page may be a
// running header or footer.
const marginZone = 0.09

// markApart marks the first and last line of pages if it is apart from the text and at one height on at
// least half of the pages, and on four. The first line of a text is at one height too, but it is not
// apart on half of the pages.
func (a *Analyzer) markApart(body float32) {
	for _, end := range []func(*page) []*line{(*page).head, (*page).foot} {
		pages := map[int]int{}
		ends := make([][]*line, len(a.pages))
		for i := range a.pages {
			if ends[i] = end(&a.pages[i]); len(ends[i]) > 0 {
				pages[int(ends[i][0].base/4+0.5)]++
			}
		}
		for _, lines := range ends {
			if len(lines) == 0 {
				continue
			}
			y := int(lines[0].base/4 + 0.5)
			if n := pages[y-1] + pages[y] + pages[y+1]; n < 4 || 2*n < len(a.pages) {
				continue
			}
			for _, l := range lines {
				l.drop = l.drop || l.size <= 1.15*body
			}
		}
	}
}

// head returns the first lines of a page, on one baseline, if they are in its margin and apart from the
// lines below.
func (p *page) head() []*line {
	all := p.byHeight()
	n := 1
	for n < len(all) && abs(all[n].base-all[0].base) < 0.5*all[0].size {
		n++
	}
	if len(all) <= n || all[0].shown.Y1 > marginZone*p.height || all[n].shown.Y0-all[0].shown.Y1 < 0.8*all[0].size {
		return nil
	}
	return all[:n]
}

// foot returns the last lines of a page, on one baseline, if they are in its margin and apart from the
// lines above.
func (p *page) foot() []*line {
	all := p.byHeight()
	slices.Reverse(all)
	n := 1
	for n < len(all) && abs(all[n].base-all[0].base) < 0.5*all[0].size {
		n++
	}
	if len(all) <= n || all[0].shown.Y0 < (1-marginZone)*p.height || all[0].shown.Y0-all[n].shown.Y1 < 0.8*all[0].size {
		return nil
	}
	return all[:n]
}

// byHeight returns the lines of a page from top to bottom.
func (p *page) byHeight() []*line {
	var all []*line
	for _, ar := range p.areas {
		all = append(all, ar.lines...)
	}
	slices.SortStableFunc(all, func(a, b *line) int { return compare(a.shown.Y0, b.shown.Y0) })
	return all
}

// markAlike marks lines with a page number at the height at which at least three pages have furniture.
func (a *Analyzer) markAlike() {
	pages := map[int]int{}
	for i := range a.pages {
		seen := map[int]bool{}
		for _, l := range a.pages[i].edgeLines() {
			if y := int(l.base/4 + 0.5); l.drop && !seen[y] {
				seen[y] = true
				pages[y]++
			}
		}
	}
	for i := range a.pages {
		for _, l := range a.pages[i].edgeLines() {
			y := int(l.base/4 + 0.5)
			words := strings.Fields(l.text)
			numbered := len(words) > 0 && (pageNumber.MatchString(words[0]) || pageNumber.MatchString(words[len(words)-1]))
			if numbered && len(words) < 15 && pages[y-1]+pages[y]+pages[y+1] >= 3 {
				l.drop = true
			}
		}
	}
}

// edgeLines returns the lines near the top and bottom of a page.
func (p *page) edgeLines() []*line {
	var out []*line
	for _, ar := range p.areas {
		for _, l := range ar.lines {
			if l.shown.Y0 < edgeZone*p.height || l.shown.Y1 > (1-edgeZone)*p.height {
				out = append(out, l)
			}
		}
	}
	return out
}

// markEdges marks artifacts, and the first and last line of a page if they have its number.
func (p *page) markEdges(body float32) {
	var all []*line
	for _, ar := range p.areas {
		for _, l := range ar.lines {
			l.drop = l.drop || l.artifact
			all = append(all, l)
		}
		if ar.table != nil {
			all = append(all, &line{shown: ar.box, drop: true})
		}
	}
	if len(all) < 2 {
		return
	}
	slices.SortStableFunc(all, func(a, b *line) int { return compare(a.shown.Y0, b.shown.Y0) })
	first, last := all[0], all[len(all)-1]
	if first.shown.Y1 < edgeZone*p.height && (pageNumber.MatchString(first.text) || first.isRunning(all[1], body)) {
		first.drop = true
	}
	for i := len(all) - 1; i > 0 && last.shown.Y0 > (1-edgeZone)*p.height; i-- {
		l := all[i]
		if abs(l.base-last.base) > 0.5*last.size {
			break
		}
		above := all[i-1]
		for k := i - 1; k > 0 && abs(above.base-last.base) <= 0.5*last.size; k-- {
			above = all[k-1]
		}
		if pageNumber.MatchString(l.text) || l.isFooter(above, body, p.height) {
			l.drop = true
		}
	}
}

// isRunning reports whether the first line of a page is a header with the page's number: it is
// smaller than the text, stands apart from the line below, and begins or ends with a number.
func (l *line) isRunning(below *line, body float32) bool {
	words := strings.Fields(l.text)
	if len(words) < 2 || l.size >= 0.97*body || below.shown.Y0-l.shown.Y1 < 0.8*l.size {
		return false
	}
	return isDigits(words[0]) || isDigits(words[len(words)-1])
}

// isFooter reports whether a line at the end of a page is a footer with the page's number: it is far
// below the line above, ends with a number, and is smaller than the text or in the margin. A footnote
// is nearer to its text or ends with a mark. In the margin the number may be at the start.
func (l *line) isFooter(above *line, body, height float32) bool {
	words := strings.Fields(l.text)
	if len(words) < 2 || l.shown.Y0-above.shown.Y1 < 1.5*l.size {
		return false
	}
	inMargin := l.shown.Y0 > 0.93*height
	if inMargin && isDigits(words[0]) && len(words[0]) > 1 {
		return true
	}
	return isDigits(words[len(words)-1]) && (inMargin || l.size < 0.97*body)
}

func isDigits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsDigit(c) })
}

// withoutDigits returns a text in lower case with a "#" for each number, and for a Roman page number
// at its start or end.
func withoutDigits(s string) string {
	var b strings.Builder
	words := strings.Fields(s)
	for _, i := range []int{0, len(words) - 1} {
		if i >= 0 && i < len(words) && pageNumber.MatchString(words[i]) {
			words[i] = "0"
		}
	}
	s = strings.Join(words, " ")
	digits := false
	for _, c := range strings.ToLower(s) {
		if unicode.IsDigit(c) {
			if !digits {
				b.WriteByte('#')
			}
			digits = true
			continue
		}
		digits = false
		b.WriteRune(c)
	}
	return b.String()
}
