package entity

import "strings"

// What is taken from one passage.
const (
	maxKeyBytes = 64
	maxWords    = 8 // of a name
	maxEntities = 128
)

// An Entity is something that a passage names.
type Entity struct {
	Key   string // under which all its wordings meet: lower case, without accents, articles and marks
	Title bool   // the passage stands under it: it is its title or last heading
}

// A Finder finds entities. It keeps room from one passage to the next, and is not
// safe for concurrent use. The zero value is ready to use.
type Finder struct {
	words  scanner // of the text at hand
	inside scanner // of a part of it
	key    []byte
	found  map[string]int // in list, by key
	list   []Entity

	spans    []Name // of the text at hand, where spanning
	spanning bool

	nouns  bool // all nouns are capitalised
	asking bool // the text is a question

	// The title of the passage before, and what it gave: a document's passages have
	// the same.
	lastTitle string
	lastNouns bool
	ofTitle   []Entity
}

// Passage returns the entities of a passage, each once, at most 128, in the order in
// which they come; the list is valid until the next call. The language is an ISO
// 639-1 code; empty: not known.
func (f *Finder) Passage(title string, headings []string, text, language string) []Entity {
	f.begin(language)
	f.documentTitle(title)
	for i, h := range headings {
		if i == len(headings)-1 {
			f.title(h)
		} else {
			f.names(h)
		}
	}
	f.names(text)
	return f.list
}

// Question returns the keys of the entities that a question names. The first word of
// a sentence counts, for little is lost where it names nothing.
func (f *Finder) Question(text, language string) []string {
	f.begin(language)
	f.asking = true
	f.names(text)
	var keys []string
	for _, e := range f.list {
		keys = append(keys, e.Key)
	}
	return keys
}

// A Name is where a text names something.
type Name struct {
	Key        string // as of an Entity
	Start, End int    // in the text
}

// Names returns where a text names something, in order; of a name that is within
// another both. The list is valid until the next call.
func (f *Finder) Names(text, language string) []Name {
	f.begin(language)
	f.spans, f.spanning = f.spans[:0], true
	f.names(text)
	f.spanning = false
	return f.spans
}

func (f *Finder) begin(language string) {
	if f.found == nil {
		f.found = make(map[string]int)
	}
	clear(f.found)
	f.list = f.list[:0]
	f.asking = false
	code, _, _ := strings.Cut(strings.ToLower(language), "-")
	f.nouns = code == "de" || code == "lb"
}

// at notes where the entity of f.key stands.
func (f *Finder) at(start, end int) {
	if f.spanning && len(f.key) > 1 && len(f.key) <= maxKeyBytes {
		f.spans = append(f.spans, Name{string(f.key), start, end})
	}
}

// add notes an entity.
func (f *Finder) add(key []byte, title bool) {
	if len(key) < 2 || len(key) > maxKeyBytes {
		return
	}
	if i, ok := f.found[string(key)]; ok {
		f.list[i].Title = f.list[i].Title || title
		return
	}
	if len(f.list) >= maxEntities {
		return
	}
	k := string(key)
	f.found[k] = len(f.list)
	f.list = append(f.list, Entity{k, title})
}

// documentTitle notes the title of the document, which comes first.
func (f *Finder) documentTitle(text string) {
	if text == f.lastTitle && f.nouns == f.lastNouns {
		for i, e := range f.ofTitle {
			f.found[e.Key] = i
		}
		f.list = append(f.list, f.ofTitle...)
		return
	}
	f.title(text)
	f.lastTitle, f.lastNouns = strings.Clone(text), f.nouns
	f.ofTitle = append(f.ofTitle[:0], f.list...)
}

// title notes a title as a whole, without what it says in brackets, and what stands
// before its first comma or colon; of a declaration what it declares; and the names
// in it.
func (f *Finder) title(text string) {
	if f.declaration(text) {
		return
	}
	f.whole(text)
	if strings.Contains(text, "_") && !strings.Contains(text, " ") {
		text = strings.ReplaceAll(text, "_", " ") // as in the names of files and URLs
		f.whole(text)
	}
	if i := strings.IndexAny(text, "(["); i > 0 {
		text = text[:i]
		f.whole(text)
	}
	for _, mark := range []string{", ", ": ", " - ", " – "} {
		if before, _, ok := strings.Cut(text, mark); ok {
			f.whole(before)
		}
	}
	f.names(text)
}

// whole notes a text as one entity.
func (f *Finder) whole(text string) {
	f.inside.scan(text, true)
	if len(f.inside.words) <= maxWords {
		f.add(f.keyOf(text, f.inside.words), true)
	}
}

// declaration notes what a heading of source code declares, as in "type Server" and
// "func (*Server) Shutdown".
func (f *Finder) declaration(text string) bool {
	keyword, rest, ok := strings.Cut(text, " ")
	if !ok || !declares[keyword] {
		return false
	}
	f.inside.scan(rest, true)
	words := f.inside.words
	if len(words) > 1 && strings.HasPrefix(rest, "(") { // a receiver
		method := words[len(words)-1]
		f.key = appendFolded(f.keyOf(rest, words[len(words)-2:len(words)-1]), "."+rest[method.start:method.end], true)
		f.add(f.key, true)
		words = words[len(words)-1:]
	}
	if len(words) > 0 {
		f.add(f.keyOf(rest, words[:1]), true)
	}
	return len(words) > 0
}
