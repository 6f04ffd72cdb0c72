package parse

import (
	"strings"
	"unicode"
)

// droppedTags are elements whose text is not read: scripts, controls, media and the head.
var droppedTags = tagSet("head script style template noscript iframe frameset svg object embed canvas audio video map " +
	"select button textarea datalist input option title meta link rp annotation annotation-xml dialog")

// hidden reports whether browsers do not show n.
func (n *htmlNode) hidden() bool {
	if n.attrs == nil {
		return false
	}
	if _, ok := n.lookup("hidden"); ok {
		return true
	}
	if n.attr("aria-hidden") == "true" && n.tag != "body" && n.tag != "main" {
		return true
	}
	style := strings.ReplaceAll(strings.ToLower(n.attr("style")), " ", "")
	return strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") ||
		strings.Contains(style, "font-size:0") && !strings.Contains(style, "font-size:0.")
}

// A page separates the main content of an HTML document from boilerplate.
//
// It uses the page's own markup: first the elements and roles that HTML defines for parts of a
// page, then the names of classes and ids. A part is dropped because of its name only if it does
// not contain much of the page's prose, so that text in an unusual place is kept.
type page struct {
	root  *htmlNode // what is read: the main element or the whole document
	total int       // words of root
	prose int       // prose of root
	depth int       // number of articles and main elements around the current node
	title bool      // the page has an h1 with words
}

func newPage(tree *htmlNode) *page {
	tree.measure(false, false)
	p := &page{root: tree}
	mains := tree.find(func(n *htmlNode) bool {
		return n.tag == "main" || n.attr("role") == "main"
	})
	for _, m := range mains {
		const enough = 3 // a main element with less than a third of the prose is ignored
		if int(m.words) > p.total && int(m.prose)*enough >= int(tree.prose) {
			p.root, p.total = m, int(m.words)
		}
	}
	p.total, p.prose = int(p.root.words), int(p.root.prose)
	if p.root != tree {
		p.depth = 1
	}
	p.title = len(p.root.find(func(n *htmlNode) bool { return n.tag == "h1" && n.words > 0 })) > 0
	return p
}

// boilerplate reports whether n surrounds the content rather than being part of it.
func (p *page) boilerplate(n *htmlNode) bool {
	if n.words == 0 {
		return false
	}
	switch n.tag {
	case "nav":
		return true
	case "footer":
		return p.depth == 0 && p.minor(n)
	case "header":
		return p.depth == 0 && p.minor(n) && len(n.find(isHeadingNode)) == 0
	case "aside":
		return p.depth == 0 && p.minor(n) || linky(n)
	case "form":
		return p.minor(n) && hasLittleProse(n)
	case "body", "html", "main", "article", "p", "pre", "code", "td", "th", "tr", "tbody", "table", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6":
		return n.tag == "table" && p.named(n) && p.minor(n)
	}
	switch n.attr("role") {
	case "navigation", "search", "menu", "menubar", "toolbar", "tablist", "alertdialog", "dialog":
		return true
	case "banner", "contentinfo", "complementary":
		return p.minor(n)
	}
	return p.named(n) && p.minor(n)
}

// minor reports whether n has less than half of the page's words and less than a quarter of its
// prose.
func (p *page) minor(n *htmlNode) bool {
	return int(n.words)*2 < p.total && (int(n.prose)*4 < p.prose || n.prose == 0)
}

// linky reports whether more than two thirds of n's words are links.
func linky(n *htmlNode) bool { return int(n.links)*3 > int(n.words)*2 }

// hasLittleProse reports whether less than half of n's words are prose.
func hasLittleProse(n *htmlNode) bool { return int(n.prose)*2 < int(n.words) }

func isHeadingNode(n *htmlNode) bool { return tagSetHeading[n.tag] && n.words > 0 }

// named reports whether n's classes or id name a kind of boilerplate.
func (p *page) named(n *htmlNode) bool {
	if n.attrs == nil {
		return false
	}
	names := n.attr("class") + " " + n.attr("id")
	for _, phrase := range aroundPhrases {
		if strings.Contains(names, phrase) {
			return true
		}
	}
	for word := range strings.FieldsFuncSeq(names, func(r rune) bool { return !unicode.IsLetter(r) }) {
		switch word = strings.ToLower(word); {
		case aroundWords[word]:
			return true
		case maybeAroundWords[word] && !inline[n.tag]:
			if linky(n) || p.depth == 0 && hasLittleProse(n) {
				return true
			}
		}
	}
	return false
}

// inline elements are parts of a line. For example, <a class="header"> in a heading is part of the
// heading, not the page's header.
var inline = tagSet("a span em strong b i small code abbr cite mark sub sup time u")

var (
	// aroundWords are parts of class names and ids that almost never mark content.
	aroundWords = tagSet("navbar navigation breadcrumb breadcrumbs cookie cookies consent gdpr newsletter subscribe " +
		"sidebar sidenav masthead pagination pager advert advertisement ads adsbygoogle social sharing sharedaddy " +
		"skiplink skipnav editsection navbox catlinks printfooter toggle headerlink topbar noprint")

	// maybeAroundWords mark boilerplate if the element is mostly links or has little prose.
	maybeAroundWords = tagSet("nav menu menus footer header banner toc related share popup modal overlay comments promo widget search login languages tabs dropdown")

	aroundPhrases = []string{"skip-link", "skip-to", "jump-link", "site-header", "site-footer", "page-footer", "cookie-", "back-to-top", "vector-header", "sidebar-", "-sidebar"}
)
