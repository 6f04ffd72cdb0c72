package prompted

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/assay-rag/assay/internal/visible"
)

// unmarked is the placeholder of a message's marker. Text that has passed visible.Text does not
// contain it.
const unmarked = "\x00"

// steady marks the end of a message's common prefix, the part that it shares with similar messages.
// The marker depends on that prefix only, so that a provider's prompt cache can reuse it.
const steady = "\x01"

// fenced marks text as data with a name, for a message that still has to pass through mark.
func fenced(name, text string) string {
	tag := strings.TrimSpace(name) + ` id="` + unmarked + `"`
	short, _, _ := strings.Cut(name, " ")
	return "<" + tag + ">\n" + harmless(text) + "\n</" + short + ` id="` + unmarked + `">`
}

// mark fills in a message's marker, a string that occurs nowhere else in the message, so that no
// data can close its fence. The marker is a hash of the message up to steady. Messages with the
// same prefix have the same marker, and the author of a document cannot predict it.
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

// harmless returns text in a form that is safe in a prompt: without invisible characters and
// without the tokens that separate the turns of a conversation. A server of open models may
// interpret those anywhere in a message.
func harmless(text string) string { return turnSigns.Replace(visible.Text(text)) }

// line is harmless, with the result on one line.
func line(text string) string { return strings.Join(strings.Fields(harmless(text)), " ") }

// turnSigns inserts a blank into the tokens of common chat templates.
var turnSigns = strings.NewReplacer(
	"<|", "< |", "|>", "| >", "<｜", "< ｜", "｜>", "｜ >",
	"[INST]", "[ INST]", "[/INST]", "[ /INST]", "<<SYS>>", "< <SYS>>", "<</SYS>>", "< </SYS>>",
	"<s>", "< s>", "</s>", "< /s>", "<start_of_turn>", "< start_of_turn>", "<end_of_turn>", "< end_of_turn>",
	"<bos>", "< bos>", "<eos>", "< eos>",
)
