// Command tinymodel writes a very small language model, as a GGUF file that llama.cpp
// loads: for tests that need a real model server and no sensible replies.
//
//	go run ./scripts/tinymodel FILE
//
// The model has the architecture of Llama, one block, and a vocabulary of the 256 bytes
// and some words. Nothing in it was trained. Its weights are random numbers, always the
// same ones, except for what makes some tokens likely: words follow words in fixed
// sentences, a sentence ends a string, and lists are short. So free text goes on for as
// long as it may, and a reply that the server binds to a JSON schema ends soon.
//
// It calls a tool only when the server is told to like that (--logit-bias 3+22), and its
// strings do not end when the server is told to dislike quotation marks (--logit-bias 38-50).
//
// Source of the format: ggml, docs/gguf.md.
package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: tinymodel FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], encode(metadata(), tensors()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "tinymodel:", err)
		os.Exit(1)
	}
}

// The shape of the model.
const (
	width   = 256 // of an embedding
	hidden  = 64  // of the feed-forward layer
	heads   = 2   // of queries; they share one of keys and values
	head    = 32  // width of a head
	context = 32768
)

// words are what free text is made of. They have nothing to do with the documents of the
// tests.
var words = strings.Fields(`
	river stone cloud amber lantern willow copper meadow harbor violet
	falcon timber marble saddle orchard pebble candle thunder velvet canyon
	walnut feather anchor glacier hollow ribbon sparrow cinder basket maple
	drifts glows bends hums turns sleeps rises fades
	under over beyond beside near past
	old bright quiet broken golden narrow silver distant
	and the one`)

// sentence is how many words a sentence has.
const sentence = 6

// Tokens.
const (
	unknown   = iota
	begin     // of a text
	end       // of a text
	call      // "<tool_call>\n", which begins the call of a tool
	firstByte // of 256
	space     = firstByte + 256
	bracket   = space + 1 // " <": with it, as with Llama's, some chat templates cannot be bound to a schema
	firstWord = bracket + 1
)

// token returns the token of a byte.
func token(b byte) int { return firstByte + int(b) }

// Types of tokens.
const (
	normalType  int32 = 1
	unknownType int32 = 2
	controlType int32 = 3
	byteType    int32 = 6
)

// A pair is an entry of the metadata.
type pair struct {
	key   string
	value any
}

// metadata describes the model and its tokenizer, which is SentencePiece's almost without
// merges: a text has about as many tokens as bytes.
func metadata() []pair {
	texts := []string{"<unk>", "<s>", "</s>", "<tool_call>\n"}
	types := []int32{unknownType, controlType, controlType, normalType}
	for b := range 256 {
		texts, types = append(texts, fmt.Sprintf("<0x%02X>", b)), append(types, byteType)
	}
	const blank = "\u2581" // a space, as SentencePiece writes it
	texts, types = append(texts, blank, blank+"<"), append(types, normalType, normalType)
	for _, w := range words {
		texts, types = append(texts, blank+w), append(types, normalType)
	}
	return []pair{
		{"general.architecture", "llama"},
		{"general.name", "tiny"},
		{"llama.context_length", uint32(context)},
		{"llama.embedding_length", uint32(width)},
		{"llama.block_count", uint32(1)},
		{"llama.feed_forward_length", uint32(hidden)},
		{"llama.attention.head_count", uint32(heads)},
		{"llama.attention.head_count_kv", uint32(1)},
		{"llama.attention.key_length", uint32(head)},
		{"llama.attention.value_length", uint32(head)},
		{"llama.attention.layer_norm_rms_epsilon", float32(1e-5)},
		{"llama.rope.dimension_count", uint32(head)},
		{"llama.vocab_size", uint32(len(texts))},
		{"tokenizer.ggml.model", "llama"},
		{"tokenizer.ggml.tokens", texts},
		{"tokenizer.ggml.scores", make([]float32, len(texts))},
		{"tokenizer.ggml.token_type", types},
		{"tokenizer.ggml.unknown_token_id", uint32(unknown)},
		{"tokenizer.ggml.bos_token_id", uint32(begin)},
		{"tokenizer.ggml.eos_token_id", uint32(end)},
		{"tokenizer.ggml.add_bos_token", true},
		{"tokenizer.ggml.add_space_prefix", true},
	}
}

// A tensor is a matrix, row by row, or a vector, which has no rows.
type tensor struct {
	name          string
	rows, columns int
	values        []float32
}

// tensors returns the weights.
func tensors() []tensor {
	r := rand.New(rand.NewPCG(1, 2))
	embeddings := embed(r)
	return []tensor{
		embeddings,
		output(r, embeddings),
		ones("output_norm.weight"),
		ones("blk.0.attn_norm.weight"),
		random(r, "blk.0.attn_q.weight", heads*head, width, 1),
		random(r, "blk.0.attn_k.weight", head, width, 1),
		random(r, "blk.0.attn_v.weight", head, width, 1),
		random(r, "blk.0.attn_output.weight", width, heads*head, 1),
		ones("blk.0.ffn_norm.weight"),
		random(r, "blk.0.ffn_gate.weight", hidden, width, 1),
		random(r, "blk.0.ffn_up.weight", hidden, width, 1),
		random(r, "blk.0.ffn_down.weight", width, hidden, 1),
	}
}

// random returns a matrix of random numbers. Its product with a vector of numbers around 0
// is a vector of such numbers too, with scale times their deviation.
func random(r *rand.Rand, name string, rows, columns int, scale float64) tensor {
	t := tensor{name, rows, columns, make([]float32, rows*columns)}
	for i := range t.values {
		t.values[i] = float32(r.NormFloat64() * scale / math.Sqrt(float64(columns)))
	}
	return t
}

// ones returns the weights of a normalisation that weighs all components alike.
func ones(name string) tensor {
	t := tensor{name: name, columns: width, values: make([]float32, width)}
	for i := range t.values {
		t.values[i] = 1
	}
	return t
}

// constant is the first component of every embedding, large enough that the block does not
// change its sign.
const constant = 8

// embed returns the embeddings of the tokens. Apart from the first component, they are
// nearly perpendicular to one another.
func embed(r *rand.Rand) tensor {
	t := random(r, "token_embd.weight", firstWord+len(words), width, math.Sqrt(width))
	for i := 0; i < len(t.values); i += width {
		t.values[i] = constant
	}
	return t
}

// output returns the matrix that turns a vector into the scores of all tokens. A score is a
// random number with a deviation of 1, plus what liking says, which the first component
// brings in, plus up to 16, the root of the width, where the token follows the last one.
func output(r *rand.Rand, embeddings tensor) tensor {
	t := random(r, "output.weight", embeddings.rows, width, 1)
	row := func(t tensor, i int) []float32 { return t.values[i*width : (i+1)*width] }
	for from, next := range followers() {
		for _, to := range next {
			for i, x := range row(embeddings, from) {
				row(t, to)[i] += x / float32(math.Sqrt(width))
			}
		}
	}
	for i := range t.rows {
		row(t, i)[0] = liking(i) / constant
	}
	return t
}

// followers returns which tokens are likely after each token.
func followers() [][]int {
	next := make([][]int, firstWord+len(words))
	add := func(from byte, to string) {
		for _, b := range []byte(to) {
			next[token(from)] = append(next[token(from)], token(b))
		}
	}
	for i := range words {
		follower := firstWord + (i+1)%len(words)
		if i%sentence == sentence-1 {
			follower = token('.')
		}
		next[firstWord+i] = []int{follower}
	}
	add('.', `"`)
	add('[', `"{1`)
	// The turn of the assistant begins after a new line; a call ends with "}</tool_call>".
	next[token('\n')] = []int{call}
	add('}', `<`)
	next[token('>')] = []int{end}
	for digit := byte('0'); digit <= '9'; digit++ {
		add(digit, `]},`)
	}
	return next
}

// liking returns what a token scores whatever comes before it.
func liking(t int) float32 {
	const never, rarely, seldom, often, mostly = -60, -20, -5, 2, 5
	b := byte(t - firstByte) // where it is one
	switch {
	case t == unknown || t == begin:
		return never
	case t == end:
		return seldom
	case t >= firstWord:
		return mostly
	case t == call || t == space || t == bracket:
		return rarely
	case b <= ' ' || b > '~' || b == '\\' || b == '-': // no plain text
		return rarely
	case b == ']' || b == '}':
		return often
	}
	return 0
}

// encode returns the file.
func encode(metadata []pair, tensors []tensor) []byte {
	const version, alignment, float = 3, 32, 0
	e := encoder{[]byte("GGUF")}
	e.uint32(version)
	e.uint64(len(tensors))
	e.uint64(len(metadata))
	for _, p := range metadata {
		e.string(p.key)
		e.value(p.value)
	}
	offset := 0
	for _, t := range tensors {
		e.string(t.name)
		shape := []int{t.columns} // the innermost first
		if t.rows > 0 {
			shape = append(shape, t.rows)
		}
		e.uint32(uint32(len(shape)))
		for _, n := range shape {
			e.uint64(n)
		}
		e.uint32(float)
		e.uint64(offset)
		offset += 4 * len(t.values) // a multiple of the alignment, as all widths are
	}
	e.data = append(e.data, make([]byte, -len(e.data)&(alignment-1))...)
	for _, t := range tensors {
		for _, x := range t.values {
			e.uint32(math.Float32bits(x))
		}
	}
	return e.data
}

// An encoder appends to a file.
type encoder struct{ data []byte }

func (e *encoder) uint32(x uint32) { e.data = binary.LittleEndian.AppendUint32(e.data, x) }
func (e *encoder) uint64(x int)    { e.data = binary.LittleEndian.AppendUint64(e.data, uint64(x)) }

func (e *encoder) string(s string) {
	e.uint64(len(s))
	e.data = append(e.data, s...)
}

// value appends a value of the metadata, with its type before it.
func (e *encoder) value(v any) {
	const uint32Type, int32Type, float32Type, boolType, stringType, arrayType = 4, 5, 6, 7, 8, 9
	array := func(of uint32, n int) {
		e.uint32(arrayType)
		e.uint32(of)
		e.uint64(n)
	}
	switch v := v.(type) {
	case uint32:
		e.uint32(uint32Type)
		e.uint32(v)
	case float32:
		e.uint32(float32Type)
		e.uint32(math.Float32bits(v))
	case bool:
		e.uint32(boolType)
		if v {
			e.data = append(e.data, 1)
		} else {
			e.data = append(e.data, 0)
		}
	case string:
		e.uint32(stringType)
		e.string(v)
	case []string:
		array(stringType, len(v))
		for _, s := range v {
			e.string(s)
		}
	case []int32:
		array(int32Type, len(v))
		for _, x := range v {
			e.uint32(uint32(x))
		}
	case []float32:
		array(float32Type, len(v))
		for _, x := range v {
			e.uint32(math.Float32bits(x))
		}
	default:
		panic(fmt.Sprintf("no type for %T", v))
	}
}
