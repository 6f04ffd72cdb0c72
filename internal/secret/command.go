package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/assay-rag/assay"
)

// CommandTimeout bounds how long a command takes that prints a credential.
const CommandTimeout = 30 * time.Second

// maxCommandOutput is the largest number of bytes of a command's output.
const maxCommandOutput = 64 << 10

// Command runs a command that prints a credential, and returns the first line of its standard output
// without surrounding white space. The command line is divided into words at white space; quotes
// group words, and a backslash quotes one character. No shell is involved.
//
// The program and its children are killed when ctx ends, when this process is interrupted, and after
// CommandTimeout. The error is assay.ErrInvalid, and holds neither the command line nor anything that
// the program printed.
func Command(ctx context.Context, line string) (Secret, error) {
	words, err := Words(line)
	if err != nil || len(words) == 0 {
		return Secret{}, fmt.Errorf("the command is empty or a quote in it is not closed: %w", assay.ErrInvalid)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	out := &firstBytes{limit: maxCommandOutput}
	cmd.Stdout = out // standard error is discarded, since it may hold the credential
	cmd.WaitDelay = time.Second
	killGroup(cmd)
	err = cmd.Run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Secret{}, fmt.Errorf("the command took longer than %v: %w", CommandTimeout, assay.ErrInvalid)
	case ctx.Err() != nil:
		return Secret{}, fmt.Errorf("the command: %w", ctx.Err())
	case errors.As(err, new(*exec.ExitError)):
		return Secret{}, fmt.Errorf("the command failed; run it by hand to see why: %w", assay.ErrInvalid)
	case err != nil:
		return Secret{}, fmt.Errorf("the command cannot be run: %w", assay.ErrInvalid)
	}
	first, _, _ := strings.Cut(out.data.String(), "\n")
	if first = strings.TrimSpace(first); first == "" {
		return Secret{}, fmt.Errorf("the command printed no credential in its first line: %w", assay.ErrInvalid)
	}
	return New(first), nil
}

// firstBytes keeps the first bytes that are written to it. More are an error, which closes the pipe.
type firstBytes struct {
	data  bytes.Buffer
	limit int
}

// Write implements io.Writer.
func (f *firstBytes) Write(p []byte) (int, error) {
	n, err := f.data.Write(p[:min(len(p), f.limit-f.data.Len())])
	if n < len(p) {
		return n, errors.New("too much output")
	}
	return n, err
}

// Words divides a command line into words.
func Words(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inside, quote, escaped := false, rune(0), false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'' && os.PathSeparator == '/':
			inside, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			inside, quote = true, r
		case r == ' ' || r == '\t' || r == '\n':
			if inside {
				words = append(words, word.String())
			}
			word.Reset()
			inside = false
		default:
			word.WriteRune(r)
			inside = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote is not closed")
	}
	if inside {
		words = append(words, word.String())
	}
	return words, nil
}
