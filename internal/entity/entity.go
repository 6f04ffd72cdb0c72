package entity

import "strings"

// The limits per passage.
const (
	maxKeyBytes = 64
	maxWords    = 8 // of a name
	maxEntities = 128
)

// An Entity is a name in a passage.
type Entity struct {
	Key   string // shared by all its spellings: lower case, without accents, articles and marks
	Title bool   // it is the passage's title or last heading
}

// A Finder finds entities. It reuses its buffers from one passage to the next, and is not safe for
// concurrent use. The zero value is ready to use.
type Finder struct {
	words  scanner // of the current text
	inside scanner // of a part of it
	key    []byte
	found  map[string]int // index in list, by key
	list   []Entity

	spans    []Name // of the current text, if spanning
	spanning bool

	nouns  bool // all nouns are capitalised
	asking bool // the text is a question

	// The previous title and its entities, since the passages of a document share a title.
	lastTitle string
	lastNouns bool
	ofTitle   []Entity
}

// Passage returns the distinct entities of a passage, at most 128, in order of occurrence. The list
// is valid until the next call. The language is an ISO 639-1 code; empty: not known.
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

// Question returns the keys of the entities in a question. Here the first word of a sentence counts
// as a name, since a false one does little harm.
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

// A Name is an occurrence of a name in a text.
type Name struct {
	Key        string // as in Entity
	Start, End int    // in the text
}

// Names returns the names in a text, in order, including names within other names. The list is
// valid until the next call.
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

// at records the position of the entity of f.key.
func (f *Finder) at(start, end int) {
	if f.spanning && len(f.key) > 1 && len(f.key) <= maxKeyBytes {
		f.spans = append(f.spans, Name{string(f.key), start, end})
	}
}

// add records an entity.
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

// documentTitle records the title of the document, which comes first.
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

// title records the entities of a title: the whole title without parts in brackets, the part before
// its first comma or colon, and the names in it. Of a declaration it records only the declared
// names.
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

// whole records a text as one entity.
func (f *Finder) whole(text string) {
	f.inside.scan(text, true)
	if len(f.inside.words) <= maxWords {
		f.add(f.keyOf(text, f.inside.words), true)
	}
}

// declaration records the names that a heading of source code declares, as in "type Server" and
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
