package local

import (
	"github.com/assay-rag/assay/llm"
)

// The limits for dividing the tokens of a reader's input, for inputs of 256 tokens or more. In
// shorter ones a heading has at most, and a text at least, a quarter.
const (
	maxHeading = 48 // tokens of a heading
	leastText  = 64 // tokens left to a text that has that many
)

// A window is a part of a text, with the question or claim and the heading.
type window struct {
	sequence
	text     *located // of the whole text
	from, to int      // range of the text's tokens in the window
	first    int      // index of the first of them in the sequence
}

// cut returns the windows of a text beside the question or claim a, or none for a text without
// tokens. index is the index of the text in the call, for errors.
func (r *Reader) cut(a []int32, p llm.Excerpt, index int) ([]window, error) {
	text := r.tokenizer.locate(p.Text)
	n := len(text.ids)
	if n == 0 {
		return nil, nil
	}
	room, least := r.maxTokens-len(a)-3, min(n, leastText, r.maxTokens/4)
	if room < least {
		return nil, &llm.TooLongError{Model: r.name, Text: index, Tokens: len(a) + n + 3, Limit: r.maxTokens}
	}
	heading := r.heading(p.Heading, room-least)
	room -= len(heading)
	before := append(append(append([]int32{r.tokenizer.cls}, a...), r.tokenizer.sep), heading...)
	var windows []window
	for _, part := range parts(&text, room) {
		w := window{text: &text, from: part[0], to: part[1], first: len(before)}
		ids := append(append([]int32(nil), before...), text.ids[w.from:w.to]...)
		w.sequence = sequence{append(ids, r.tokenizer.sep), len(a) + 2}
		windows = append(windows, w)
	}
	return windows, nil
}

// heading returns the tokens of a heading and of a colon after it, at most room of them.
func (r *Reader) heading(heading string, room int) []int32 {
	ids := r.tokenizer.locate(heading).ids
	keep := min(len(ids), maxHeading, r.maxTokens/4, room-1)
	if keep < 1 {
		return nil
	}
	return append(ids[len(ids)-keep:len(ids):len(ids)], r.tokenizer.colon()...)
}

// colon returns the token of a colon.
func (t *tokenizer) colon() []int32 { return t.appendPieces(nil, []byte(":")) }

// parts splits the tokens of a text into the fewest evenly spread parts [from, to) of at most room
// that overlap by a quarter of it. Parts begin and end between words if words are shorter than an
// eighth of the room.
func parts(text *located, room int) [][2]int {
	n := len(text.ids)
	if n <= room {
		return [][2]int{{0, n}}
	}
	overlap := room / 4
	step, slack := room-overlap, overlap/2
	count := (n - overlap + step - 1) / step
	all := make([][2]int, count)
	for i := range all {
		from := i * (n - room) / (count - 1)
		to := from + room
		for k := 0; k < slack && text.continues(from); k++ {
			from++
		}
		for k := 0; k < slack && text.continues(to); k++ {
			to--
		}
		all[i] = [2]int{from, to}
	}
	return all
}
