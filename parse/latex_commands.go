package parse

import (
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// latexSections are the depths of sections.
var latexSections = map[string]int{
	"part": 1, "chapter": 2, "section": 3, "subsection": 4, "subsubsection": 5, "paragraph": 6, "subparagraph": 7, "frametitle": 6, "addsec": 3, "addchap": 2,
}

// latexDropped are the numbers of arguments of commands that are not text.
var latexDropped = map[string]int{
	"vspace": 1, "hspace": 1, "label": 1, "pagestyle": 1, "thispagestyle": 1, "setcounter": 2, "addtocounter": 2, "setlength": 2, "addtolength": 2,
	"usepackage": 1, "RequirePackage": 1, "documentclass": 1, "documentstyle": 1, "hypersetup": 1, "geometry": 1, "definecolor": 3, "colorlet": 2,
	"color": 1, "textcolor": 1, "colorbox": 1, "fcolorbox": 2, "fontsize": 2, "graphicspath": 1, "bibliographystyle": 1, "bibliography": 1,
	"addbibresource": 1, "index": 1, "phantom": 1, "hphantom": 1, "vphantom": 1, "hyphenation": 1, "captionsetup": 1, "lstset": 1, "tikzset": 1,
	"usetikzlibrary": 1, "setmainfont": 1, "setsansfont": 1, "setmonofont": 1, "fancyhead": 1, "fancyfoot": 1, "lhead": 1, "rhead": 1, "chead": 1,
	"lfoot": 1, "rfoot": 1, "cfoot": 1, "markboth": 2, "markright": 1, "addcontentsline": 3, "rule": 2, "raisebox": 1, "parbox": 1, "resizebox": 2,
	"scalebox": 1, "rotatebox": 1, "cline": 1, "cmidrule": 1, "rowcolor": 1, "cellcolor": 1, "columncolor": 1, "theoremstyle": 1, "newcounter": 1,
	"newlength": 1, "pagenumbering": 1, "linespread": 1, "usetheme": 1, "usecolortheme": 1, "usefonttheme": 1, "setbeamertemplate": 2,
	"selectlanguage": 1, "foreignlanguage": 1, "bibitem": 0, "nocite": 1, "inputencoding": 1, "fontfamily": 1, "fontseries": 1, "fontshape": 1,
	"refstepcounter": 1, "stepcounter": 1, "hypertarget": 1, "hyperlink": 1, "pdfbookmark": 2, "includeonly": 1, "newsavebox": 1, "ensuremath": 0,
	"numberwithin": 2, "allowdisplaybreaks": 0, "penalty": 0, "columnbreak": 0, "vskip": 0, "arraystretch": 0, "tcbset": 1, "crefname": 3, "newif": 0,
	"providecolor": 3, "setlist": 1, "titleformat": 4, "titlespacing": 4, "institute": 0, "AtBeginDocument": 1, "pgfplotsset": 1, "sisetup": 1,
}

// latexSymbols are commands that stand for text.
var latexSymbols = map[string]string{
	"%": "%", "&": "&", "$": "$", "#": "#", "_": "_", "{": "{", "}": "}", "-": "", "/": "", "!": "", "@": "",
	"ldots": "…", "dots": "…", "textellipsis": "…", "S": "§", "P": "¶", "copyright": "©", "textcopyright": "©", "textregistered": "®", "texttrademark": "™",
	"pounds": "£", "euro": "€", "texteuro": "€", "textdegree": "°", "degree": "°", "textbackslash": `\`, "textasciitilde": "~", "textasciicircum": "^",
	"textbar": "|", "textless": "<", "textgreater": ">", "textunderscore": "_", "textbraceleft": "{", "textbraceright": "}", "textbullet": "•",
	"textendash": "–", "textemdash": "—", "textquotedblleft": "“", "textquotedblright": "”", "textquoteleft": "‘", "textquoteright": "’",
	"ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "aa": "å", "AA": "Å", "i": "ı", "j": "ȷ", "dh": "ð", "th": "þ",
	"LaTeX": "LaTeX", "TeX": "TeX", "LaTeXe": "LaTeX2e", "BibTeX": "BibTeX", "XeLaTeX": "XeLaTeX", "LuaLaTeX": "LuaLaTeX", "pdfLaTeX": "pdfLaTeX",
	"slash": "/", "textperiodcentered": "·", "textpm": "±", "texttimes": "×", "textmu": "µ", "dag": "†", "ddag": "‡", "guillemotleft": "«", "guillemotright": "»",
	"og": "«", "fg": "»", "glqq": "„", "grqq": "“", "flqq": "«", "frqq": "»", "checkmark": "✓",
	"textquotedbl": `"`, "textquotesingle": "'", "textasciigrave": "`", "textdollar": "$", "textasteriskcentered": "*", "textrightarrow": "→", "textleftarrow": "←",
	"textsection": "§", "textparagraph": "¶", "textexclamdown": "¡", "textquestiondown": "¿", "textcent": "¢", "textyen": "¥", "textsterling": "£", "textonesuperior": "¹",
	"texttwosuperior": "²", "textthreesuperior": "³", "quotedblbase": "„", "quotesinglbase": "‚", "textnumero": "№", "textordfeminine": "ª", "textordmasculine": "º", "textonehalf": "½",
}

// symbol reads a command that stands for text, a space or a break.
func (l *latex) symbol(name string) bool {
	if s, ok := latexSymbols[name]; ok {
		l.text(s)
		return true
	}
	switch name {
	case " ", ",", ";", ":", "quad", "qquad", "enspace", "space", "thinspace", "hfill", "hskip", "\n", "\t", ">":
		l.blank = true
	case "\\", "newline", "linebreak", "tabularnewline":
		l.option()
		if l.open {
			l.newline = true
		}
	case "par", "bigskip", "medskip", "smallskip", "newpage", "clearpage", "cleardoublepage", "pagebreak":
		l.finish()
	case "and":
		l.blank, l.newline = false, false
		l.text(";")
		l.blank = true
	case "(":
		l.inlineFormula(`\)`)
	case "[":
		l.in.at -= len(`\[`)
		l.formula(`\[`, `\]`)
	default:
		return false
	}
	return true
}

func (l *latex) inlineFormula(shut string) {
	s := l.in.text[l.in.at:]
	s = s[:min(len(s), longestOption)]
	end := strings.Index(s, shut)
	if end < 0 {
		return
	}
	l.text(strings.Join(strings.Fields(s[:end]), " "))
	l.in.at += end + len(shut)
}

// latexAccents are the combining characters of accents.
var latexAccents = map[string]string{
	"'": "\u0301", "`": "\u0300", "^": "\u0302", "\"": "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307", "u": "\u0306", "v": "\u030c",
	"H": "\u030b", "c": "\u0327", "k": "\u0328", "d": "\u0323", "b": "\u0331", "r": "\u030a",
}

// accent reads an accent and its letter.
func (l *latex) accent(name string) bool {
	mark, ok := latexAccents[name]
	if !ok {
		return false
	}
	letter := strings.TrimSpace(l.arg().text)
	switch letter {
	case `\i`, `{\i}`:
		letter = "i"
	case `\j`, `{\j}`:
		letter = "j"
	}
	if strings.HasPrefix(letter, `\`) {
		letter = latexSymbols[letter[1:]]
	}
	if letter == "" {
		return true
	}
	size := 1
	for size < len(letter) && letter[size]&0xc0 == 0x80 {
		size++
	}
	l.text(letter[:size] + mark + letter[size:])
	return true
}

// structure reads the commands of sections, lists, captions and notes.
func (l *latex) structure(name string) bool {
	if depth := latexSections[name]; depth > 0 {
		l.sectionTitle(depth)
		return true
	}
	if l.titleCommand(name) {
		return true
	}
	switch name {
	case "begin":
		l.environment()
	case "end":
		l.endEnvironment()
	case "item", "bibitem":
		l.item(name)
	case "caption", "subcaption", "captionof":
		l.option()
		if name == "captionof" {
			l.arg()
		}
		line, text := l.line(), l.render(l.arg())
		l.finish()
		l.b.puts(Caption, text, line)
	case "footnote", "footnotetext", "thanks", "endnote", "sidenote", "marginpar":
		l.option()
		l.shared.notes++
		mark := "[" + strconv.Itoa(l.shared.notes) + "]"
		text := l.render(l.arg())
		l.blank, l.newline = false, false
		l.text(mark)
		l.after = append(l.after, mark+" "+text)
	case "maketitle", "titlepage":
		l.makeTitle()
	case "verb", "lstinline", "mintinline":
		l.verb(name)
	case "includegraphics":
		l.graphics()
	case "input", "include", "subfile", "lstinputlisting", "verbatiminput":
		l.option()
		line := l.line()
		l.finish()
		l.b.puts(Paragraph, "include: "+strings.Join(strings.Fields(l.arg().text), " "), line)
	case "iffalse":
		if l.shared.unended {
			break
		}
		if end := strings.Index(l.in.text[l.in.at:], `\fi`); end >= 0 {
			l.in.at += end + len(`\fi`)
		} else {
			l.shared.unended = true
		}
	case "tableofcontents", "listoffigures", "listoftables", "printindex", "printbibliography", "appendix":
		l.finish()
		l.option()
	default:
		return false
	}
	return true
}

// sectionTitle writes the title of a section. Its level is counted from the outermost kind of
// section of the document.
func (l *latex) sectionTitle(depth int) {
	l.option()
	line := l.line()
	text := l.render(l.arg())
	notes := l.after
	l.after = nil
	l.finish()
	level := depth - 2
	switch {
	case l.shared.parts:
		level = depth
	case l.shared.chapters:
		level = depth - 1
	}
	if l.shared.titled && l.shared.title != "" {
		level++
	}
	l.b.heading(max(level, 1), text, line)
	for _, n := range notes {
		l.b.puts(Footnote, n, line)
	}
}

func (l *latex) makeTitle() {
	line := l.line()
	l.finish()
	if l.shared.title != "" {
		l.b.heading(1, l.shared.title, line)
		l.b.title = l.shared.title
	}
	for _, text := range []string{l.shared.author, l.shared.date} {
		l.b.puts(Paragraph, text, line)
	}
	l.shared.author, l.shared.date = "", ""
}

// item starts an item of the innermost list.
func (l *latex) item(name string) {
	l.finish()
	label, ok := l.option()
	level := max(len(l.lists), 1)
	marker := "- "
	switch {
	case name == "bibitem":
		marker = "[" + strings.Join(strings.Fields(l.arg().text), " ") + "] "
	case ok:
		marker = ""
		if text := l.render(label); text != "" {
			marker = text + " "
		}
	case len(l.lists) > 0 && l.lists[len(l.lists)-1].ordered:
		list := &l.lists[len(l.lists)-1]
		list.number++
		marker = strconv.Itoa(list.number) + ". "
	}
	if l.shared.beamer && strings.HasPrefix(l.in.text[l.in.at:], "<") {
		l.other("item")
	}
	l.kind, l.level = ListItem, level
	l.marker = strings.Repeat("  ", min(level-1, 8)) + marker
	l.in.at += len(l.in.text[l.in.at:]) - len(strings.TrimLeft(l.in.text[l.in.at:], " \t\n"))
}

// verb reads code between two equal characters or in braces.
func (l *latex) verb(name string) {
	if name != "verb" {
		l.option()
	}
	if name == "mintinline" {
		l.arg()
	}
	s := l.in.text[l.in.at:]
	if s == "" {
		return
	}
	if s[0] == '{' {
		l.text(l.arg().text)
		return
	}
	s = s[:min(len(s), longestOption)]
	end := strings.IndexByte(s[1:], s[0])
	if end < 0 {
		return
	}
	l.text(s[1 : 1+end])
	l.in.at += end + 2
}

var latexAlt = lazyregexp.New(`\balt\s*=\s*(?:\{([^{}]*)\}|([^,]*))`)

// graphics writes the alternative text of a picture.
func (l *latex) graphics() {
	line := l.line()
	o, _ := l.option()
	l.arg()
	if m := latexAlt.FindStringSubmatch(o.text); m != nil {
		l.finish()
		l.b.puts(Figure, strings.Join(strings.Fields(m[1]+m[2]), " "), line)
	}
}

// reference reads references, citations and links.
func (l *latex) reference(name string) bool {
	switch name {
	case "ref", "pageref", "autoref", "cref", "Cref", "vref", "nameref", "url", "path", "nolinkurl":
		l.text(l.arg().text)
	case "eqref":
		l.text("(" + l.arg().text + ")")
	case "href":
		l.arg()
		l.run(l.sub(l.arg()))
	case "cite", "citep", "citet", "parencite", "textcite", "autocite", "footcite", "citeauthor", "citeyear", "citealp", "citealt":
		first, ok := l.option()
		second, ok2 := l.option()
		note := first
		if ok2 {
			note = second
		}
		text := l.arg().text
		if n := l.render(note); ok && n != "" {
			text += ", " + n
		}
		l.text("[" + text + "]")
	default:
		return false
	}
	return true
}
