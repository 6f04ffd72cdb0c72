package recorded

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/llm"
)

// The size limits of a recording. A larger one is an error.
const (
	maxLine  = 16 << 20  // bytes of a line
	maxBytes = 512 << 20 // of all lines
)

// A Recording is a recording in memory. It is safe for concurrent use.
type Recording struct {
	head        head
	completions map[string]completion // by key
	repeated    int
	torn        bool
	size        int64 // bytes of the lines read

	unknown atomic.Int64
}

// Open reads the recording in a file. A file of another format is assay.ErrInvalid, one that is
// damaged in the middle assay.ErrDamaged.
func Open(path string) (*Recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the recording: %w: %w", err, assay.ErrInvalid)
	}
	r, err := Read(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("recording %s: %w", path, err)
	}
	return r, nil
}

// Read reads a recording, compressed or not. Its errors are those of Open.
func Read(from io.Reader) (*Recording, error) {
	in := bufio.NewReaderSize(from, 1<<16)
	if start, _ := in.Peek(2); bytes.Equal(start, []byte{0x1f, 0x8b}) {
		whole, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("decompress: %w: %w", assay.ErrDamaged, err)
		}
		in = bufio.NewReaderSize(whole, 1<<16)
	}
	r := &Recording{completions: map[string]completion{}}
	for n := 1; ; n++ {
		line, err := readLine(in)
		if r.size += int64(len(line)); err == nil && r.size > maxBytes {
			err = fmt.Errorf("it has more than %d bytes: %w", maxBytes, assay.ErrInvalid)
		}
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			if err := r.take(n, text); err != nil && last && n > 1 {
				r.torn = true
				r.size -= int64(len(line))
			} else if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
		}
		if last {
			break
		}
	}
	if r.head.Format == "" {
		return nil, fmt.Errorf("it is empty: %w", assay.ErrInvalid)
	}
	return r, nil
}

// readLine returns the next line, including its end. For a last line without an end it also returns
// io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > maxLine:
			return line, fmt.Errorf("it has more than %d bytes: %w", maxLine, assay.ErrInvalid)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return line, fmt.Errorf("%w: %w", assay.ErrDamaged, err)
		}
		return line, err
	}
}

// take adds line n to the recording.
func (r *Recording) take(n int, line []byte) error {
	if r.head.Format == "" {
		if err := json.Unmarshal(line, &r.head); err != nil || r.head.Format != format {
			r.head = head{}
			return fmt.Errorf("it is no recording of completions: %w", assay.ErrInvalid)
		}
		if r.head.Version != version {
			return fmt.Errorf("it is of version %d, and this program reads %d: %w", r.head.Version, version, assay.ErrInvalid)
		}
		for name, model := range r.head.Roles {
			if name == "" || model == "" {
				return fmt.Errorf("a role or its model has no name: %w", assay.ErrDamaged)
			}
		}
		return nil
	}
	var c completion
	if err := json.Unmarshal(line, &c); err != nil {
		return fmt.Errorf("%w: %w", assay.ErrDamaged, err)
	}
	if key, err := hex.DecodeString(c.Key); err != nil || len(key) != 32 || c.Key != strings.ToLower(c.Key) {
		return fmt.Errorf("key %.70q is not the SHA-256 of a request: %w", c.Key, assay.ErrDamaged)
	}
	if (c.Response == nil) == (c.Error == nil) {
		return fmt.Errorf("a completion has either a response or an error: %w", assay.ErrDamaged)
	}
	if _, twice := r.completions[c.Key]; twice {
		r.repeated++
		return nil
	}
	r.completions[c.Key] = c
	return nil
}

// Len returns the number of recorded requests.
func (r *Recording) Len() int { return len(r.completions) }

// Repeated returns the number of lines that were skipped because an earlier line has their key.
func (r *Recording) Repeated() int { return r.repeated }

// Torn reports whether the last line was torn and skipped.
func (r *Recording) Torn() bool { return r.torn }

// Unknown returns the number of requests so far that were not recorded.
func (r *Recording) Unknown() int { return int(r.unknown.Load()) }

// Roles returns the models by role. They replay the recorded replies. A request that was not
// recorded is an *llm.Error of kind llm.NoModel, which is assay.ErrUnavailable. The recording never
// makes up a reply. Unknown counts such requests.
func (r *Recording) Roles() map[string]llm.Model {
	roles := map[string]llm.Model{}
	for role, model := range r.head.Roles {
		roles[role] = player{r, model}
	}
	return roles
}

// A player is one of a recording's models.
type player struct {
	*Recording
	name string
}

// Model implements llm.Model.
func (p player) Model() string { return p.name }

// Facts implements llm.Described.
func (p player) Facts() llm.Facts { return p.head.Models[p.name] }

// Generate implements llm.Model.
func (p player) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Response, error) {
	key, err := KeyOf(p.name, req)
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return llm.Response{}, err
	}
	c, ok := p.completions[key]
	if !ok {
		p.unknown.Add(1)
		return llm.Response{}, &llm.Error{Model: p.name, Kind: llm.NoModel, Message: "nobody has recorded this request; record it again with the program of today"}
	}
	return spoken(c, stream)
}

// spoken returns the result of a completion and streams its text.
func spoken(c completion, stream func(llm.Delta)) (llm.Response, error) {
	r, err := c.result()
	if err == nil && stream != nil && r.Text != "" {
		stream(llm.Delta{Text: r.Text})
	}
	return r, err
}
