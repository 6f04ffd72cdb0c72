package parse

import (
	"strings"

	"github.com/assay-rag/assay/internal/lazyregexp"
)

// A format is one way to parse a source.
type format struct {
	name string // Document.Type

	// is reports whether src may have the format, by its extension and content. A binary format
	// looks at src.data alone.
	is func(src *source) bool

	// parse writes src into b. If it returns false, src is not of that format and its output is
	// discarded. If it sets b.err, src is of that format and cannot be parsed.
	parse func(src *source, b *builder) bool
}

// textFormat returns a format of text. is and parse read the decoded source.
func textFormat(name string, is func(*source) bool, parse func(*source, *builder) bool) format {
	return format{name, func(src *source) bool { return src.decoded() && is(src) }, parse}
}

// formats lists the formats in the order in which they are tried. The content decides; the
// extension decides between formats that are possible for the content. A binary format goes first,
// because decoding as text fails for it.
var formats = []format{
	{"image", isImage, parseImage},
	{"pdf", isPDF, parsePDF},
	odfFormat("odt", "text", "text-master", "text-web", "formula", "writer", "writer.global"),
	odfFormat("ods", "spreadsheet", "chart", "calc"),
	odfFormat("odp", "presentation", "graphics", "impress", "draw"),
	{"epub", isEPUB, parseEPUB},
	{"rtf", isRTF, parseRTF},
	{"docx", isOffice(kindDOCX), parseDOCX},
	{"pptx", isOffice(kindPPTX), parsePPTX},
	{"xlsx", isOffice(kindXLSX), parseXLSX},
	{"xlsb", isLegacy(kindXLSB), parseLegacy(kindXLSB)},
	{"doc", isLegacy("doc"), parseLegacy("doc")},
	{"xls", isLegacy("xls"), parseLegacy("xls")},
	{"ppt", isLegacy("ppt"), parseLegacy("ppt")},
	{"office", isBadOffice, parseBadOffice},
	{"zip", isZIP, parseZIP},
	{"tar", isTar, parseTar},
	{"gzip", isGzip, parseGzip},
	{"bzip2", isBzip2, parseBzip2},
	{"7z", is7z, parse7z},
	{"msg", isMSG, parseMSG},
	{"mbox", isMbox, parseMbox},
	{"eml", isEML, parseEML},
	textFormat("html", isHTML, parseHTML),
	textFormat("xml", isXML, parseXML),
	textFormat("subtitles", isSubtitles, parseSubtitles),
	textFormat("latex", isLaTeX, parseLaTeX),
	textFormat("go", isGo, parseGo),
	textFormat("notebook", isNotebook, parseNotebook),
	textFormat("jsonl", isNamedJSONL, parseJSONL),
	textFormat("json", isJSON, parseJSON),
	textFormat("jsonl", isJSON, parseJSONL),
	textFormat("asciidoc", isAsciiDoc, parseAsciiDoc),
	textFormat("rst", isRST, parseRST),
	textFormat("markdown", isMarkdown, parseMarkdown),
	textFormat("csv", isCSV, parseCSV),
	textFormat("source", isSource, parseSource),
	textFormat("text", func(*source) bool { return true }, parseText),
}

// head returns the start of text that is used to detect the format.
func head(text string) string { return text[:min(len(text), 16<<10)] }

var (
	htmlStart = lazyregexp.New(`(?i)^\s*(<\?xml[^>]*>\s*|<!--[\s\S]*?-->\s*)*<(!doctype\s+html|html|head|body)[\s>]`)
	htmlTag   = lazyregexp.New(`(?i)</(p|div|h[1-6]|table|ul|ol|li|pre|body|section|span|a)\s*>|<(p|br|hr|div|h[1-6]|table|ul|ol|pre)(\s[^>]*)?/?>`)
)

// isHTML reports whether src is an HTML document or a fragment that starts with a tag and has
// several.
func isHTML(src *source) bool {
	start := head(src.text)
	if htmlStart.MatchString(start) {
		return !isProgram(src.ext)
	}
	tags := len(htmlTag.FindAllStringIndex(start, 12))
	switch src.ext {
	case ".html", ".htm", ".xhtml", ".shtml":
		return tags > 0
	case "", ".txt", ".text":
		return tags >= 6 && strings.HasPrefix(strings.TrimSpace(start), "<")
	}
	return false
}

// isProgram reports whether ext is the extension of programs that may contain HTML.
func isProgram(ext string) bool {
	switch ext {
	case ".php", ".jsp", ".erb", ".go", ".js", ".py", ".rb", ".ts":
		return true
	}
	return false
}

// isGo reports whether src may be Go and starts with a package clause.
func isGo(src *source) bool {
	switch src.ext {
	case ".go", "", ".txt", ".text":
		return hasPackageClause(src.text)
	}
	return false
}

// hasPackageClause reports whether the first line of text outside comments is a Go package clause.
func hasPackageClause(text string) bool {
	for {
		text = strings.TrimLeft(text, " \t\n")
		switch {
		case strings.HasPrefix(text, "//"):
			_, text, _ = strings.Cut(text, "\n")
		case strings.HasPrefix(text, "/*"):
			_, text, _ = strings.Cut(text, "*/")
		default:
			return packageClause.MatchString(text[:min(len(text), 200)])
		}
	}
}

var packageClause = lazyregexp.New(`^package [\pL_][\pL_0-9]*[ \t]*(//[^\n]*|;[^\n]*)?(\n|$)`)

// isNamedJSONL reports whether src has an extension of JSON lines and may be JSON.
func isNamedJSONL(src *source) bool {
	return (src.ext == ".jsonl" || src.ext == ".ndjson") && isJSON(src)
}

// isJSON reports whether src starts like an object or list and may be JSON.
func isJSON(src *source) bool {
	switch src.ext {
	case ".json", ".jsonl", ".ndjson", ".geojson", ".webmanifest", ".ipynb", ".har", "", ".txt", ".text", ".log":
	default:
		return false
	}
	start := strings.TrimSpace(head(src.text))
	return start != "" && (start[0] == '{' || start[0] == '[')
}

// isCSV reports whether src has an extension of delimited records or, without one, consists of
// records of similar length.
func isCSV(src *source) bool {
	switch src.ext {
	case ".csv", ".tsv", ".tab", ".psv":
		return true
	case "", ".txt", ".text":
		_, ok := delimiter(src)
		return ok
	}
	return false
}

// isSource reports whether src has a name of source code or starts with "#!".
func isSource(src *source) bool {
	return src.ext != ".txt" && sourceLanguage(src) != nil || languageByName[strings.ToLower(src.name)] != nil
}

var (
	rstDirective = lazyregexp.New(`(?m)^\.\. [A-Za-z][\w:-]*::`)
	rstTarget    = lazyregexp.New("(?m)^\\.\\. _[^:\n]+:|:[a-z]+:`[^`\n]+`|``[^`\n]+``|`[^`\n]+`_|::$")
	rstTitle     = lazyregexp.New(`(?m)^\S[^\n]*\n(={4,}|-{4,}|~{4,}|\^{4,}|\*{4,}|#{4,})\n`)
)

// isRST reports whether src has a reStructuredText extension or, without one, contains its titles
// and its directives or references.
func isRST(src *source) bool {
	switch src.ext {
	case ".rst", ".rest":
		return true
	case "", ".txt", ".text":
		start := head(src.text)
		return rstTitle.MatchString(start) && (rstDirective.MatchString(start) || len(rstTarget.FindAllStringIndex(start, 3)) > 2) && !atxHeading.MatchString(start)
	}
	return false
}

var (
	atxHeading = lazyregexp.New(`(?m)^#{1,6} \S`)
	fenceLine  = lazyregexp.New("(?m)^ {0,3}(```|~~~)")
	mdLink     = lazyregexp.New(`\[[^\]\n]+\]\([^)\s]+\)`)
	mdStrong   = lazyregexp.New(`\*\*[^*\s]([^*\n]*[^*\s])?\*\*`)
	mdTable    = lazyregexp.New(`(?m)^ {0,3}\|?[ \t]*:?-{3,}:?[ \t]*\|`)
)

// isMarkdown reports whether src has a Markdown extension or, without one, uses at least two kinds
// of its markup.
func isMarkdown(src *source) bool {
	switch src.ext {
	case ".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd":
		return true
	case "", ".txt", ".text":
	default:
		return false
	}
	start := head(src.text)
	signs := 0
	for _, sign := range []bool{
		hasATXHeadings(start),
		len(fenceLine.FindAllStringIndex(start, 2)) > 1,
		mdLink.MatchString(start),
		mdStrong.MatchString(start),
		mdTable.MatchString(start),
	} {
		if sign {
			signs++
		}
	}
	return signs >= 2
}

// hasATXHeadings reports whether several lines of text are Markdown headings. Consecutive lines that
// start with "#" are comments.
func hasATXHeadings(text string) bool {
	lines := strings.Split(text, "\n")
	isMark := func(i int) bool { return i >= 0 && i < len(lines) && strings.HasPrefix(lines[i], "#") }
	n := 0
	for i, l := range lines {
		if atxHeading.MatchString(l) && !isMark(i-1) && !isMark(i+1) {
			n++
		}
	}
	return n > 1
}
