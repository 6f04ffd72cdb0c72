package prompted

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/visible"
)

// unmarked stands for the marker of a message until that is known. Text that
// has been made visible does not hold it.
const unmarked = "\x00"

// steady stands in a message where what comes before it is all that the next one like it
// begins with: the marker is made of that alone, so that a provider that keeps the
// beginnings of requests finds it again.
const steady = "\x01"

// fenced marks text as data with a name, in a message that mark is yet to see.
func fenced(name, text string) string {
	tag := strings.TrimSpace(name) + ` id="` + unmarked + `"`
	short, _, _ := strings.Cut(name, " ")
	return "<" + tag + ">\n" + harmless(text) + "\n</" + short + ` id="` + unmarked + `">`
}

// mark gives a message its marker: one that nothing else in the message holds, so
// that no data can end its fence. It is made of a hash of the message, up to where that
// is steady: messages that begin alike have equal markers, and whoever writes a document
// cannot know it.
func mark(message string) string {
	begins, rest, _ := strings.Cut(message, steady)
	message = begins + rest
	for n := 0; ; n++ {
		sum := sha256.Sum256([]byte(strconv.Itoa(n) + unmarked + begins))
		marker := hex.EncodeToString(sum[:6])
		if !strings.Contains(message, marker) {
			return strings.ReplaceAll(message, unmarked, marker)
		}
	}
}

// harmless returns text as it may stand in a prompt: without invisible
// characters, and without the signs by which servers tell the turns of a
// conversation apart. (A server of open models may read them wherever they stand.)
func harmless(text string) string { return turnSigns.Replace(visible.Text(text)) }

// line is harmless on one line.
func line(text string) string { return strings.Join(strings.Fields(harmless(text)), " ") }

// turnSigns puts a blank into the signs of the common chat templates.
var turnSigns = strings.NewReplacer(
	"<|", "< |", "|>", "| >", "<｜", "< ｜", "｜>", "｜ >",
	"[INST]", "[ INST]", "[/INST]", "[ /INST]", "<<SYS>>", "< <SYS>>", "<</SYS>>", "< </SYS>>",
	"<s>", "< s>", "</s>", "< /s>", "<start_of_turn>", "< start_of_turn>", "<end_of_turn>", "< end_of_turn>",
	"<bos>", "< bos>", "<eos>", "< eos>",
)
