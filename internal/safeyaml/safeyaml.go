// Package safeyaml bounds YAML from foreign files before it is decoded. A few hundred bytes of
// nested aliases can stand for gigabytes, and deep nesting exhausts a recursive parser's stack.
package safeyaml

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/assay-rag/assay"
)

// Limits of a file. With 16 aliases at most 350 copies of an anchored value can be made.
const (
	maxAliases = 16
	maxDepth   = 64
)

// Check returns an error, of kind assay.ErrInvalid, if YAML has more than 16 aliases or is
// nested more than 64 levels deep. It does not check the syntax.
func Check(data []byte) error {
	aliases, flow := 0, 0
	for _, t := range lexer.Tokenize(string(data)) {
		switch t.Type {
		case token.AliasType:
			aliases++
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		}
		if aliases > maxAliases {
			return fmt.Errorf("line %d: more than %d aliases: %w", t.Position.Line, maxAliases, assay.ErrInvalid)
		}
		if flow > maxDepth {
			return fmt.Errorf("line %d: nested more than %d levels deep: %w", t.Position.Line, maxDepth, assay.ErrInvalid)
		}
	}
	line := 0
	for text := range strings.SplitSeq(string(data), "\n") {
		line++
		if deep := blocks(text); deep > maxDepth {
			return fmt.Errorf("line %d: nested more than %d levels deep: %w", line, maxDepth, assay.ErrInvalid)
		}
	}
	return nil
}

// blocks bounds the depth of the blocks that a line can be in: a level takes a column or a
// dash.
func blocks(line string) int { return len(line) - len(strings.TrimLeft(line, " -?\t")) }
