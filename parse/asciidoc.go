package parse

import "strings"

// isAsciiDoc reports whether src has AsciiDoc headings such as "== Title".
func isAsciiDoc(src *source) bool {
	switch src.ext {
	case ".adoc", ".asciidoc", ".asc":
		return true
	}
	sections := 0
	for l := range strings.SplitSeq(src.text, "\n") {
		if asciiDocLevel(l) > 1 {
			sections++
		}
	}
	return sections >= 2 && !strings.Contains(src.text, "\n<<<<<<<")
}

// asciiDocLevel returns the level of an AsciiDoc heading ("= Title" is 1), or 0.
func asciiDocLevel(l string) int {
	level := 0
	for level < len(l) && l[level] == '=' {
		level++
	}
	if level == 0 || level > 6 || level+1 >= len(l) || l[level] != ' ' || strings.HasSuffix(l, " =") {
		return 0
	}
	return level
}

// asciiDocBlock reads a heading, a delimited block, a table or a line for the processor.
func (t *plainText) asciiDocBlock() bool {
	l := strings.TrimRight(t.line(t.at), " \t")
	switch {
	case asciiDocLevel(l) > 0:
		t.b.heading(asciiDocLevel(l), strings.TrimSpace(strings.TrimLeft(l, "=")), t.at+1)
		t.at++
	case l == "|===" || l == "!===":
		t.asciiDocTable(l)
	case len(l) >= 4 && (strings.Trim(l, "-") == "" || strings.Trim(l, ".") == "" || strings.Trim(l, "`") == ""):
		t.delimited(l, Code)
	case len(l) >= 4 && strings.Trim(l, "/") == "":
		t.delimited(l, "")
	case len(l) >= 4 && (strings.Trim(l, "=") == "" || strings.Trim(l, "*") == "" || strings.Trim(l, "_") == ""):
		t.at++ // delimiters of blocks whose content is parsed normally
	case strings.HasPrefix(l, "//"), isAttributeLine(l), l == "+":
		t.at++
	case imageLine(l) != "":
		t.b.puts(Paragraph, imageLine(l), t.at+1)
		t.at++
	case len(l) > 2 && l[0] == '.' && l[1] != '.' && l[1] != ' ': // a block's title
		t.b.puts(Paragraph, l[1:], t.at+1)
		t.at++
	case isAsciiDocItem(l):
		n := 1
		for !t.blank(t.at+n) && !isAsciiDocItem(t.line(t.at+n)) && strings.TrimSpace(t.line(t.at+n)) != "+" {
			n++
		}
		t.put(ListItem, n)
	default:
		return false
	}
	return true
}

// isAsciiDocItem reports whether l starts a list item: "* x", "** x", ". x".
func isAsciiDocItem(l string) bool {
	l = strings.TrimLeft(l, " \t")
	words := strings.TrimLeft(l, "*.-")
	return len(words) < len(l) && len(l)-len(words) <= 5 && strings.HasPrefix(words, " ")
}

// imageLine returns the alternative text of the image in l, or "".
func imageLine(l string) string {
	rest, ok := strings.CutPrefix(l, "image::")
	_, alt, ok2 := strings.Cut(strings.TrimSuffix(rest, "]"), "[")
	if !ok || !ok2 {
		return ""
	}
	alt, _, _ = strings.Cut(alt, ",")
	return strings.TrimSpace(alt)
}

// isAttributeLine reports whether l is an instruction to the processor: ":name: value",
// "[source,go]", "[[anchor]]".
func isAttributeLine(l string) bool {
	if strings.HasPrefix(l, "[") && strings.HasSuffix(l, "]") {
		return true
	}
	name, _, ok := strings.Cut(strings.TrimPrefix(l, ":"), ":")
	return ok && strings.HasPrefix(l, ":") && name != "" && !strings.ContainsAny(name, " \t")
}

// delimited reads the lines up to the next line equal to fence as a block of a kind. An empty kind
// is a comment and is dropped.
func (t *plainText) delimited(fence string, kind BlockKind) {
	end := t.at + 1
	for end < len(t.lines) && strings.TrimRight(t.lines[end], " \t") != fence {
		end++
	}
	t.at++
	for t.at < end && t.blank(t.at) {
		t.at++
	}
	if kind != "" && t.at < end {
		t.put(kind, end-t.at)
	}
	t.at = end + 1
}

// asciiDocTable reads a table. Each line becomes a row, including cells on their own lines.
func (t *plainText) asciiDocTable(fence string) {
	t.at++
	for first := true; t.at < len(t.lines) && strings.TrimRight(t.line(t.at), " \t") != fence; t.at++ {
		l := strings.TrimSpace(t.line(t.at))
		if l == "" {
			continue
		}
		if first {
			t.b.begin(TableRow)
		} else {
			t.b.beginTight(TableRow)
		}
		for i, cell := range strings.Split(strings.TrimLeft(l, "|!"), fence[:1]) {
			if i > 0 {
				t.b.glue(" | ")
			}
			t.b.put(strings.TrimSpace(cell), t.at+1)
		}
		t.b.end()
		first = false
	}
	t.at++
}
