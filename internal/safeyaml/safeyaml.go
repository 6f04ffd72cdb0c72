// Package safeyaml checks limits of YAML from foreign files before it is decoded. A few hundred
// bytes of nested aliases can expand to gigabytes, and deep nesting exhausts a recursive parser's
// stack.
package safeyaml

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"github.com/assay-rag/assay"
)

// Limits of a file. With 16 aliases at most 350 copies of an anchored value are possible.
const (
	maxAliases     = 16
	maxDepth       = 64
	maxCollections = 2000 // in brackets or braces
)

// Check returns an error, of kind assay.ErrInvalid, if YAML has more than 16 aliases or 2,000
// collections in brackets or braces, is nested more than 64 levels deep, or breaks the
// library's lexer. It does not check the syntax.
func Check(data []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be read: %v: %w", p, assay.ErrInvalid)
		}
	}()
	aliases, flow, collections := 0, 0, 0
	for _, t := range lexer.Tokenize(string(data)) {
		switch t.Type {
		case token.AliasType:
			aliases++
		case token.SequenceStartType, token.MappingStartType:
			flow++
			collections++
		case token.SequenceEndType, token.MappingEndType:
			flow = max(0, flow-1) // a surplus end allows no deeper nesting
		}
		if aliases > maxAliases {
			return fmt.Errorf("line %d: more than %d aliases: %w", t.Position.Line, maxAliases, assay.ErrInvalid)
		}
		if collections > maxCollections {
			return fmt.Errorf("line %d: more than %d lists and maps in brackets: %w", t.Position.Line, maxCollections, assay.ErrInvalid)
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

// blocks returns an upper bound of the block depth of a line: each level takes a column or a dash.
func blocks(line string) int { return len(line) - len(strings.TrimLeft(line, " -?\t")) }
