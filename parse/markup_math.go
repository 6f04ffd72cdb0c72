package parse

import "strings"

// mathText returns MathML as text on one line: "a^2", "x_i", "(a+b)/(c)", "√(x)".
//
// Source: W3C MathML Core, "Presentation MathML".
func mathText(n *markupNode) string {
	var out strings.Builder
	writeMath(&out, n, 0)
	return strings.Join(strings.Fields(out.String()), " ")
}

func writeMath(out *strings.Builder, n *markupNode, depth int) {
	var args []*markupNode
	for _, c := range n.children {
		if c.name != "" {
			args = append(args, c)
		}
	}
	mark := mathMarks[n.local()]
	switch n.local() {
	case "annotation", "annotation-xml":
		return
	case "mfrac":
		writeMathArgs(out, args, depth, "/")
	case "msup", "mover":
		writeMathArgs(out, args, depth, "^")
	case "msub", "munder":
		writeMathArgs(out, args, depth, "_")
	case "msubsup", "munderover":
		writeMathArgs(out, args, depth, "_", "^")
	case "mroot":
		out.WriteString("√")
		writeMathArgs(out, args, depth, " of degree ")
	case "mo", "mtext":
		text := n.words()
		if text == "" || strings.Contains("=<>≤≥≠≈+−-→⇒∈", text) {
			text = " " + text + " "
		}
		out.WriteString(text)
	case "mtr", "mtd", "msqrt", "mfenced":
		out.WriteString(mark[0])
		writeMathRow(out, n, depth)
		out.WriteString(mark[1])
	default:
		writeMathRow(out, n, depth)
	}
}

// mathMarks are written around elements.
var mathMarks = map[string][2]string{
	"mtr": {"", "; "}, "mtd": {"", " "}, "msqrt": {"√(", ")"}, "mfenced": {"(", ")"},
}

func writeMathRow(out *strings.Builder, n *markupNode, depth int) {
	for _, c := range n.children {
		if c.name == "" {
			out.WriteString(strings.TrimSpace(c.text))
		} else if depth < maxMarkupDepth {
			writeMath(out, c, depth+1)
		}
	}
}

// writeMathArgs writes arguments with the given separators between them, in parentheses if they
// have several characters.
func writeMathArgs(out *strings.Builder, args []*markupNode, depth int, between ...string) {
	for i, a := range args {
		var arg strings.Builder
		writeMath(&arg, a, depth+1)
		text := strings.TrimSpace(arg.String())
		if i > 0 {
			out.WriteString(between[min(i, len(between))-1])
		}
		if len([]rune(text)) > 1 && strings.ContainsAny(text, " +-/*^_=−") {
			text = "(" + text + ")"
		}
		out.WriteString(text)
	}
}
