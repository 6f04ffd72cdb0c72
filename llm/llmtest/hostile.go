package llmtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/assay-rag/assay/llm"
)

// A Fault is a way in which an embedder violates its contract or fails.
type Fault string

// The faults.
const (
	TooMany        Fault = "too many vectors"
	TooFew         Fault = "too few vectors"
	NaN            Fault = "a value that is not a number"
	Infinite       Fault = "an infinite value"
	OtherDimension Fault = "the last vector has another dimension"
	NotUnit        Fault = "a vector that is not of unit length"
	Empty          Fault = "a vector without dimensions"
	HalfThenError  Fault = "an error after half, with the vectors of the first half"
	NothingButFail Fault = "an error at once"
	Blocks         Fault = "no answer until ctx ends"
	WrongTooLong   Fault = "a TooLongError about a text that was not given"
)

// Faults lists all faults.
var Faults = []Fault{TooMany, TooFew, NaN, Infinite, OtherDimension, NotUnit, Empty, HalfThenError, NothingButFail, Blocks, WrongTooLong}

// ErrBroken is the error of an embedder that fails.
var ErrBroken = errors.New("the embedder is broken")

// Hostile returns an embedder that behaves like inner, with a fault. It is no TokenCounter.
func Hostile(inner llm.Embedder, fault Fault) llm.Embedder { return hostile{inner, fault} }

type hostile struct {
	llm.Embedder
	fault Fault
}

func (h hostile) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	switch h.fault {
	case Blocks:
		<-ctx.Done()
		return nil, ctx.Err()
	case NothingButFail:
		return nil, ErrBroken
	case WrongTooLong:
		return nil, &llm.TooLongError{Model: h.Model(), Text: len(texts), Tokens: 600, Limit: 512}
	case HalfThenError:
		made, err := h.Embedder.Embed(ctx, p, texts[:len(texts)/2])
		return made, errors.Join(err, ErrBroken)
	}
	made, err := h.Embedder.Embed(ctx, p, texts)
	if err != nil || len(made) == 0 {
		return made, err
	}
	last := len(made) - 1
	switch h.fault {
	case TooMany:
		return append(made, made[0]), nil
	case TooFew:
		return made[:last], nil
	case NaN:
		made[last][0] = float32(math.NaN())
	case Infinite:
		made[last][0] = float32(math.Inf(1))
	case OtherDimension:
		made[last] = append(made[last], 0)
	case NotUnit:
		made[last][0] += 0.5
	case Empty:
		made[last] = llm.Vector{}
	default:
		return nil, fmt.Errorf("llmtest: no fault is %q", h.fault)
	}
	return made, nil
}

// Refusing returns an embedder that behaves like inner but fails with ErrBroken at the first text
// that contains word. It then returns the vectors of the texts before.
func Refusing(inner llm.Embedder, word string) llm.Embedder { return refusing{inner, word} }

type refusing struct {
	llm.Embedder
	word string
}

func (r refusing) Embed(ctx context.Context, p llm.Purpose, texts []string) ([]llm.Vector, error) {
	for i, text := range texts {
		if strings.Contains(text, r.word) {
			made, err := r.Embedder.Embed(ctx, p, texts[:i])
			return made, errors.Join(err, ErrBroken)
		}
	}
	return r.Embedder.Embed(ctx, p, texts)
}

// Plain returns an embedder that implements llm.Embedder and no other interface.
func Plain(inner llm.Embedder) llm.Embedder { return plain{inner} }

type plain struct{ llm.Embedder }
