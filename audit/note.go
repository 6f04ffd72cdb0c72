package audit

import (
	"bytes"
	"fmt"

	"github.com/assay-rag/assay"
)

// cutNote returns the text of the first signed note in data, the whole note, and the rest.
func cutNote(data []byte) (text string, note, rest []byte) {
	head, after, ok := bytes.Cut(data, []byte("\n\n"))
	if !ok {
		return string(data), data, nil
	}
	end := len(head) + 2
	for bytes.HasPrefix(after, []byte("— ")) {
		line, more, ok := bytes.Cut(after, []byte("\n"))
		end += len(line)
		if ok {
			end++
		}
		after = more
	}
	return string(head) + "\n", data[:end], after
}

// SplitNotes splits a file of signed notes, as checkpoints are appended to it, one after the other
// with empty lines between. It verifies nothing. The error is assay.ErrInvalid for text that is no
// note.
func SplitNotes(data []byte) ([][]byte, error) {
	var notes [][]byte
	for data = bytes.TrimLeft(data, "\n"); len(data) > 0; data = bytes.TrimLeft(data, "\n") {
		_, note, rest := cutNote(data)
		if !bytes.Contains(note, []byte("\n\n— ")) || !bytes.HasSuffix(note, []byte("\n")) {
			return nil, fmt.Errorf("checkpoint %d: it has no signature, or its last line does not end: %w", len(notes)+1, assay.ErrInvalid)
		}
		notes, data = append(notes, note), rest
	}
	return notes, nil
}
