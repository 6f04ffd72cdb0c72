package parse

import (
	"strings"
	"unicode"

	"github.com/assay-rag/assay/internal/ooxml"
)

// ommlText returns a formula in Office Math (ECMA-376 part 1, 22.1) as LaTeX.
func ommlText(n *ooxml.Node) string {
	var m mathWriter
	m.kids(n)
	return strings.Join(strings.Fields(m.s.String()), " ")
}

type mathWriter struct{ s strings.Builder }

// arg returns the formula of the child of n with a name.
func arg(n *ooxml.Node, name string) string {
	var m mathWriter
	m.kids(n.Child(name))
	return m.s.String()
}

// property returns the value of a property of n, or other if it is not set.
func property(n *ooxml.Node, name, other string) string {
	p := n.Child(n.Name+"Pr", name)
	if p == nil {
		return other
	}
	if !p.HasAttr("m:val") {
		return ""
	}
	return p.Attr("m:val")
}

func (m *mathWriter) kids(n *ooxml.Node) {
	if n == nil {
		return
	}
	for _, c := range n.Children {
		m.node(c)
	}
}

func (m *mathWriter) put(parts ...string) {
	for _, p := range parts {
		m.s.WriteString(p)
	}
}

// script writes a script with its mark, unless it is empty.
func (m *mathWriter) script(mark, s string) {
	if s = strings.TrimSpace(s); s != "" {
		m.put(mark, "{", s, "}")
	}
}

func (m *mathWriter) node(n *ooxml.Node) {
	e := func() string { return arg(n, "m:e") }
	switch n.Name {
	case "m:r":
		m.run(n)
	case "w:t":
		m.put(n.Text)
	case "m:sSup":
		m.put(base(e()))
		m.script("^", arg(n, "m:sup"))
	case "m:sSub":
		m.put(base(e()))
		m.script("_", arg(n, "m:sub"))
	case "m:sSubSup":
		m.put(base(e()))
		m.script("_", arg(n, "m:sub"))
		m.script("^", arg(n, "m:sup"))
	case "m:sPre":
		m.put("{}")
		m.script("_", arg(n, "m:sub"))
		m.script("^", arg(n, "m:sup"))
		m.put(e())
	case "m:f":
		m.fraction(n)
	case "m:rad":
		m.put(`\sqrt`)
		if degree := arg(n, "m:deg"); degree != "" {
			m.put("[", degree, "]")
		}
		m.put("{", e(), "}")
	case "m:nary":
		m.nary(n)
	case "m:d":
		m.delimiters(n)
	case "m:func":
		m.function(n)
	case "m:limLow":
		m.limit(n, "_", arg(n, "m:lim"))
	case "m:limUpp":
		m.put(`\overset{`, arg(n, "m:lim"), "}{", e(), "}")
	case "m:groupChr":
		m.group(n)
	case "m:acc":
		m.accent(n)
	case "m:bar":
		name := `\underline`
		if property(n, "m:pos", "bot") == "top" {
			name = `\overline`
		}
		m.put(name, "{", e(), "}")
	case "m:eqArr":
		m.rows(n.All("m:e"))
	case "m:m":
		m.matrix(n)
	case "m:borderBox":
		m.put(`\boxed{`, e(), "}")
	default:
		if !strings.HasSuffix(n.Name, "Pr") {
			m.kids(n)
		}
	}
}

// base puts braces around a fraction that has a script.
func base(s string) string {
	if strings.HasPrefix(s, `\frac`) {
		return "{" + s + "}"
	}
	return s
}

func (m *mathWriter) fraction(n *ooxml.Node) {
	num, den := arg(n, "m:num"), arg(n, "m:den")
	switch property(n, "m:type", "bar") {
	case "noBar":
		m.put(`\genfrac{}{}{0pt}{}{`, num, "}{", den, "}")
	case "lin", "skw":
		m.put(num, "/", den)
	default:
		m.put(`\frac{`, num, "}{", den, "}")
	}
}

func (m *mathWriter) nary(n *ooxml.Node) {
	m.put(strings.TrimSpace(mathSymbols(property(n, "m:chr", "∫"))))
	m.script("_", arg(n, "m:sub"))
	m.script("^", arg(n, "m:sup"))
	body := arg(n, "m:e")
	if body != "" && body[0] != '\\' {
		m.put(" ")
	}
	m.put(body)
}

func (m *mathWriter) delimiters(n *ooxml.Node) {
	m.put(`\left`, fence(property(n, "m:begChr", "(")))
	for i, e := range n.All("m:e") {
		if i > 0 {
			m.put(property(n, "m:sepChr", "|"))
		}
		m.kids(e)
	}
	m.put(`\right`, fence(property(n, "m:endChr", ")")))
}

// fence returns a delimiter as LaTeX.
func fence(s string) string {
	switch s {
	case "":
		return "."
	case "{", "}":
		return `\` + s
	}
	return strings.TrimSpace(mathSymbols(s))
}

func (m *mathWriter) function(n *ooxml.Node) {
	name, body := arg(n, "m:fName"), arg(n, "m:e")
	if isWord(strings.TrimSpace(name)) {
		name = operator(strings.TrimSpace(name))
	}
	m.put(name)
	if strings.HasPrefix(body, `\left`) || strings.HasPrefix(body, "(") || strings.Contains(name, "_") {
		m.put(body)
		return
	}
	m.put("(", body, ")")
}

func (m *mathWriter) limit(n *ooxml.Node, mark, s string) {
	body := strings.TrimSpace(arg(n, "m:e"))
	if isWord(body) {
		body = operator(body)
	}
	m.put(body)
	m.script(mark, s)
}

// mathOperators are the functions that LaTeX has a command for.
const mathOperators = " arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln log max min sec sin sinh sup tan tanh "

// operator returns the name of a function as LaTeX.
func operator(name string) string {
	if strings.Contains(mathOperators, " "+name+" ") {
		return `\` + name
	}
	return `\operatorname{` + name + "}"
}

func isWord(s string) bool {
	return len(s) > 1 && strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) }) < 0
}

func (m *mathWriter) group(n *ooxml.Node) {
	e := arg(n, "m:e")
	name := `\underbrace`
	switch property(n, "m:chr", "⏟") {
	case "⏞":
		name = `\overbrace`
	case "⏟":
	default:
		name = `\overset{` + strings.TrimSpace(mathSymbols(property(n, "m:chr", ""))) + "}"
	}
	m.put(name, "{", e, "}")
}

// accents are the commands of combining characters.
var accents = map[string]string{
	"\u0302": `\hat`, "\u0303": `\tilde`, "\u0304": `\bar`, "\u0305": `\overline`, "\u0306": `\breve`, "\u0307": `\dot`, "\u0308": `\ddot`,
	"\u0301": `\acute`, "\u0300": `\grave`, "\u030c": `\check`, "\u20d7": `\vec`, "\u20db": `\dddot`,
}

func (m *mathWriter) accent(n *ooxml.Node) {
	name := accents[property(n, "m:chr", "\u0302")]
	if name == "" {
		name = `\hat`
	}
	m.put(name, "{", arg(n, "m:e"), "}")
}

func (m *mathWriter) rows(rows []*ooxml.Node) {
	for i, e := range rows {
		if i > 0 {
			m.put(` \\ `)
		}
		m.kids(e)
	}
}

func (m *mathWriter) matrix(n *ooxml.Node) {
	m.put(`\begin{matrix} `)
	for i, row := range n.All("m:mr") {
		if i > 0 {
			m.put(` \\ `)
		}
		for j, e := range row.All("m:e") {
			if j > 0 {
				m.put(" & ")
			}
			m.kids(e)
		}
	}
	m.put(` \end{matrix}`)
}

// run writes the text of a run, which is upright text if it is marked as normal.
func (m *mathWriter) run(n *ooxml.Node) {
	plain := n.Child("m:rPr", "m:nor") != nil
	for _, c := range n.Children {
		switch {
		case c.Name != "m:t" && c.Name != "w:t":
		case plain && strings.TrimSpace(c.Text) != "":
			m.put(`\text{`, c.Text, "}")
		default:
			m.put(mathSymbols(c.Text))
		}
	}
}

// mathSymbols replaces symbols by their commands, between blanks.
func mathSymbols(s string) string {
	if isASCII(s) {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		switch name := symbolNames[r]; {
		case name == "":
			out.WriteRune(plainLetter(r))
		case len(name) == 1:
			out.WriteString(name)
		default:
			out.WriteString(` \` + name + " ")
		}
	}
	return out.String()
}

// plainLetter returns the letter or digit of a mathematical alphanumeric symbol (U+1D400 …), as
// Unicode's compatibility decomposition has it; other runes are unchanged.
func plainLetter(r rune) rune {
	const letters = 52
	switch {
	case r >= 0x1d400 && r < 0x1d400+13*letters:
		i := (r - 0x1d400) % letters
		if i < 26 {
			return 'A' + i
		}
		return 'a' + i - 26
	case r >= 0x1d7ce && r <= 0x1d7ff:
		return '0' + (r-0x1d7ce)%10
	}
	return r
}

// symbolNames has the LaTeX commands of symbols, without the backslash, or the one character that
// replaces it.
var symbolNames = map[rune]string{
	'α': "alpha", 'β': "beta", 'γ': "gamma", 'δ': "delta", 'ε': "epsilon", 'ϵ': "epsilon", 'ζ': "zeta", 'η': "eta", 'θ': "theta", 'ϑ': "vartheta",
	'ι': "iota", 'κ': "kappa", 'λ': "lambda", 'μ': "mu", 'µ': "mu", 'ν': "nu", 'ξ': "xi", 'π': "pi", 'ρ': "rho", 'σ': "sigma", 'ς': "varsigma",
	'τ': "tau", 'υ': "upsilon", 'φ': "phi", 'ϕ': "phi", 'χ': "chi", 'ψ': "psi", 'ω': "omega",
	'Γ': "Gamma", 'Δ': "Delta", '∆': "Delta", 'Θ': "Theta", 'Λ': "Lambda", 'Ξ': "Xi", 'Π': "Pi", 'Σ': "Sigma", 'Υ': "Upsilon", 'Φ': "Phi", 'Ψ': "Psi", 'Ω': "Omega",
	'𝛼': "alpha", '𝛽': "beta", '𝛾': "gamma", '𝛿': "delta", '𝜀': "epsilon", '𝜖': "epsilon", '𝜃': "theta", '𝜆': "lambda", '𝜇': "mu", '𝜋': "pi", '𝜌': "rho",
	'𝜎': "sigma", '𝜏': "tau", '𝜑': "phi", '𝜙': "phi", '𝜓': "psi", '𝜔': "omega",
	'∞': "infty", '∑': "sum", '∏': "prod", '∐': "coprod", '∫': "int", '∬': "iint", '∭': "iiint", '∮': "oint", '∯': "oiint", '∰': "oiiint",
	'⋃': "bigcup", '⋂': "bigcap", '⋀': "bigwedge", '⋁': "bigvee", '⨁': "bigoplus", '⨂': "bigotimes", '∪': "cup", '∩': "cap", '∧': "wedge", '∨': "vee",
	'×': "times", '÷': "div", '±': "pm", '∓': "mp", '⋅': "cdot", '·': "cdot", '∙': "cdot", '∘': "circ", '⊕': "oplus", '⊗': "otimes",
	'≤': "leq", '≥': "geq", '≠': "neq", '≈': "approx", '≡': "equiv", '∼': "sim", '≅': "cong", '∝': "propto", '≪': "ll", '≫': "gg",
	'→': "to", '←': "leftarrow", '↔': "leftrightarrow", '⇒': "Rightarrow", '⇐': "Leftarrow", '⇔': "Leftrightarrow", '↦': "mapsto",
	'∈': "in", '∉': "notin", '⊂': "subset", '⊆': "subseteq", '⊃': "supset", '⊇': "supseteq", '∅': "emptyset", '∀': "forall", '∃': "exists", '¬': "neg",
	'∂': "partial", '∇': "nabla", '√': "sqrt", '…': "ldots", '⋯': "cdots", '⋮': "vdots", '⋱': "ddots", 'ℏ': "hbar", 'ℓ': "ell",
	'‖': "Vert", '⌈': "lceil", '⌉': "rceil", '⌊': "lfloor", '⌋': "rfloor", '⟨': "langle", '⟩': "rangle", '〈': "langle", '〉': "rangle",
	'−': "-", '–': "-", '′': "'", '∣': "|", '∗': "*", 'ℎ': "h", '\u2061': " ",
}
