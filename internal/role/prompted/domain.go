package prompted

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/visible"
	"github.com/assay-rag/assay/role"
)

// A Domain is a team's addition to the prompts: its vocabulary, its conventions for names, the
// sections of an answer, and its house rules. [ParseDomain] reads it from a Markdown file. The nil
// Domain adds nothing.
//
// A Domain cannot remove anything from a prompt. The rules of a prompt follow it and state their
// precedence. Numbers and names are checked in code. The verifier and the graders of support and
// answers never see it.
type Domain struct {
	name     string
	about    string
	terms    []term
	entities []string
	sections []section
	rules    []string
	hash     string
}

// A term is a word of the domain with its synonyms.
type term struct {
	word     string
	synonyms []string
}

// A section is a section of an answer.
type section struct{ name, about string }

// Limits of a domain file.
const (
	maxDomain     = 32 << 10 // bytes
	maxDomainLine = 400      // bytes
	maxField      = 120      // bytes
	maxTerms      = 200
	maxRules      = 40 // of each kind
)

// ParseDomain parses a domain file. Errors are assay.ErrInvalid and name the file and the line. The
// format is:
//
//	---
//	name: toxicology
//	about: safety of industrial chemicals
//	---
//	Anything up to the first heading is for people.
//
//	## Vocabulary
//	- LD50: median lethal dose, lethal dose 50
//
//	## Entities
//	- A substance is named by its CAS number or its systematic name.
//
//	## Answer sections
//	- Exposure limits: values with units, route and species
//
//	## House rules
//	- Give doses in mg/kg body weight.
//
// Only the name is required. Each heading may occur once. HTML comments are skipped.
func ParseDomain(file string, text []byte) (*Domain, error) {
	r := domainReader{file: file, domain: &Domain{}}
	if err := r.read(text); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	r.domain.hash = hex.EncodeToString(sum[:4])
	return r.domain, nil
}

// Name returns the domain's name, or "" for nil.
func (d *Domain) Name() string {
	if d == nil {
		return ""
	}
	return d.name
}

// Hash returns 8 hex digits of the file's SHA-256, or "" for nil.
func (d *Domain) Hash() string {
	if d == nil {
		return ""
	}
	return d.hash
}

// Sections returns the names of the answer sections, in order.
func (d *Domain) Sections() []string {
	if d == nil {
		return nil
	}
	names := make([]string, len(d.sections))
	for i, s := range d.sections {
		names[i] = s.name
	}
	return names
}

func (d *Domain) hasSection(name string) bool {
	return name != "" && slices.Contains(d.Sections(), name)
}

// A domainReader parses a domain file line by line.
type domainReader struct {
	file   string
	line   int
	domain *Domain
	seen   []string // headings
}

// wrong returns an error about the current line.
func (r *domainReader) wrong(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s: %w", r.file, r.line, fmt.Sprintf(format, args...), assay.ErrInvalid)
}

func (r *domainReader) read(text []byte) error {
	r.line = 1
	switch {
	case len(text) > maxDomain:
		return r.wrong("the file has %d bytes; the limit is %d", len(text), maxDomain)
	case !utf8.Valid(text):
		r.line += bytes.Count(text[:invalidAt(text)], []byte("\n"))
		return r.wrong("the text is not UTF-8")
	}
	lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n"), "\n")
	n, err := r.readFront(lines)
	if err != nil {
		return err
	}
	comment := false
	for i := n; i < len(lines); i++ {
		r.line = i + 1
		l := strings.TrimSpace(lines[i])
		switch {
		case comment || strings.HasPrefix(l, "<!--"):
			comment = !strings.HasSuffix(l, "-->")
		case l == "":
		case visible.Text(l) != l && strings.ContainsFunc(l, func(c rune) bool { return !visible.Rune(c) }):
			return r.wrong("the line contains invisible characters")
		default:
			if err := r.readLine(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// invalidAt returns the offset of the first byte that is not valid UTF-8.
func invalidAt(text []byte) int {
	at := 0
	for at < len(text) {
		c, size := utf8.DecodeRune(text[at:])
		if c == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// readFront parses the fields between the two "---" lines and returns the number of lines read.
func (r *domainReader) readFront(lines []string) (int, error) {
	if strings.TrimSpace(lines[0]) != "---" {
		return 0, r.wrong(`want "---", the name of the domain as "name: NAME", and "---"`)
	}
	for i, l := range lines[1:] {
		r.line = i + 2
		l = strings.TrimSpace(l)
		if l == "---" {
			if r.domain.name == "" {
				return 0, r.wrong(`the domain has no name; want "name: NAME" above`)
			}
			return i + 2, nil
		}
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		key, value, ok := strings.Cut(l, ":")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		if !ok || value == "" || len(value) > maxField || visible.Line(value) != value {
			return 0, r.wrong(`want "FIELD: VALUE" of at most 120 bytes, not %q`, shorten(l, 60))
		}
		var field *string
		switch strings.TrimSpace(key) {
		case "name":
			field = &r.domain.name
		case "about":
			field = &r.domain.about
		default:
			return 0, r.wrong(`unknown field %q; want "name" or "about"`, shorten(key, 40))
		}
		if *field != "" {
			return 0, r.wrong("duplicate field %q", strings.TrimSpace(key))
		}
		*field = value
	}
	return 0, r.wrong(`the fields do not end; want a line "---" after them`)
}

// The headings of a domain file.
const (
	vocabularyHeading = "vocabulary"
	entitiesHeading   = "entities"
	sectionsHeading   = "answer sections"
	rulesHeading      = "house rules"
)

func (r *domainReader) readLine(l string) error {
	if title, ok := strings.CutPrefix(l, "#"); ok {
		return r.readHeading(strings.ToLower(strings.TrimSpace(strings.TrimLeft(title, "#"))), strings.HasPrefix(l, "## "))
	}
	if len(r.seen) == 0 {
		return nil // ignored: text for people
	}
	item, ok := strings.CutPrefix(l, "- ")
	if !ok {
		if item, ok = strings.CutPrefix(l, "* "); !ok {
			return r.wrong(`want an item that starts with "- ", not %q`, shorten(l, 40))
		}
	}
	item = strings.TrimSpace(item)
	if item == "" || len(item) > maxDomainLine {
		return r.wrong("the item has %d bytes, want 1 to %d", len(item), maxDomainLine)
	}
	return r.readItem(item)
}

func (r *domainReader) readHeading(name string, second bool) error {
	switch {
	case !second && len(r.seen) == 0:
		return nil // the title of the page
	case !second:
		return r.wrong(`want a heading of the form "## NAME"`)
	case !slices.Contains([]string{vocabularyHeading, entitiesHeading, sectionsHeading, rulesHeading}, name):
		return r.wrong(`unknown heading %q; want "Vocabulary", "Entities", "Answer sections" or "House rules"`, shorten(name, 40))
	case slices.Contains(r.seen, name):
		return r.wrong("duplicate heading %q", name)
	}
	r.seen = append(r.seen, name)
	return nil
}

func (r *domainReader) readItem(item string) error {
	d := r.domain
	head, rest, _ := strings.Cut(item, ":")
	head, rest = strings.TrimSpace(head), strings.TrimSpace(rest)
	full := func(n, most int) error {
		if n < most {
			return nil
		}
		return r.wrong("there are more than %d items under this heading", most)
	}
	switch r.seen[len(r.seen)-1] {
	case vocabularyHeading:
		t := term{word: head}
		for s := range strings.SplitSeq(rest, ",") {
			if s = strings.TrimSpace(s); s != "" {
				t.synonyms = append(t.synonyms, s)
			}
		}
		if head == "" || len(t.synonyms) == 0 {
			return r.wrong(`want "- TERM: another word, another one", not %q`, shorten(item, 60))
		}
		if slices.ContainsFunc(d.terms, func(o term) bool { return strings.EqualFold(o.word, head) }) {
			return r.wrong("duplicate term %q", shorten(head, 60))
		}
		d.terms = append(d.terms, t)
		return full(len(d.terms)-1, maxTerms)
	case entitiesHeading:
		d.entities = append(d.entities, item)
		return full(len(d.entities)-1, maxRules)
	case sectionsHeading:
		if head == "" || d.hasSection(head) {
			return r.wrong("section %q is unnamed or a duplicate", shorten(head, 60))
		}
		d.sections = append(d.sections, section{head, rest})
		return full(len(d.sections)-1, maxRules)
	default:
		d.rules = append(d.rules, item)
		return full(len(d.rules)-1, maxRules)
	}
}

// part returns the part of the domain for a role's prompt, or "" for a role that does not use it.
func (d *Domain) part(name string) string {
	if d == nil || name == role.VerifierRole || name == role.SupportGraderTask || name == role.AnswerGraderTask {
		return ""
	}
	var b strings.Builder
	b.WriteString("The documents are about: " + strings.TrimSuffix(d.name+", "+d.about, ", ") + ".\n")
	add := func(title string, items []string) {
		if len(items) > 0 {
			b.WriteString(title + "\n- " + strings.Join(items, "\n- ") + "\n")
		}
	}
	searches := []string{role.ActorRole, role.AgentTask, role.ActorPlanTask, role.ActorCritiqueTask, role.PlannerRole, role.RewriterRole, role.GraderRole, role.QuerierTask, role.ScorerTask, role.RefinerTask, role.ReviserTask, role.RetrievalGraderTask, role.AnalystTask, role.GeneratorRole}
	if slices.Contains(searches, name) {
		items := make([]string, len(d.terms))
		for i, t := range d.terms {
			items[i] = t.word + " = " + strings.Join(t.synonyms, " = ")
		}
		add("Words that mean the same:", items)
	}
	reads := []string{role.PlannerRole, role.GraderRole, role.AnalystTask, role.GeneratorRole, role.ExtractorTask, role.ComparerTask}
	if slices.Contains(reads, name) {
		add("Names:", d.entities)
	}
	writes := []string{role.AnalystTask, role.GeneratorRole, role.SummariserTask}
	if slices.Contains(writes, name) {
		items := make([]string, len(d.sections))
		for i, s := range d.sections {
			items[i] = strings.TrimSuffix(s.name+": "+s.about, ": ")
		}
		add("Answer sections, in this order:", items)
	}
	ruled := append(writes, role.ComparerTask, role.JudgeRole, role.CriticTask, role.ReflectorTask)
	if slices.Contains(ruled, name) {
		add("House rules:", d.rules)
	}
	return harmless(strings.TrimSpace(b.String()))
}

// Variants returns up to n rewordings of text, each with a term of the domain replaced by a
// synonym, in the order of the file. It returns none for a nil Domain.
func (d *Domain) Variants(text string, n int) []string {
	if d == nil {
		return nil
	}
	var out []string
	for _, t := range d.terms {
		words := append([]string{t.word}, t.synonyms...)
		for _, w := range words {
			start, end, ok := wordAt(text, w)
			if !ok {
				continue
			}
			for _, other := range words {
				v := text[:start] + other + text[end:]
				if len(out) < n && !strings.EqualFold(other, w) && !slices.Contains(out, v) {
					out = append(out, v)
				}
			}
			break
		}
	}
	return out
}
