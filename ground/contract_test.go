package ground_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/ground/groundtest"
	"github.com/assay-rag/assay/provider/embedded"
)

func TestLocalContract(t *testing.T) {
	groundtest.Run(t, groundtest.Subject{Open: func(*testing.T) groundtest.Judge { return groundtest.Of(ground.Local{}) }})
}

func TestLearnedContract(t *testing.T) {
	encoder, err := embedded.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("words", func(t *testing.T) {
		groundtest.Run(t, groundtest.Subject{Open: func(*testing.T) groundtest.Judge { return groundtest.Of(ground.Learned{}) }})
	})
	t.Run("vectors", func(t *testing.T) {
		groundtest.Run(t, groundtest.Subject{
			Open: func(*testing.T) groundtest.Judge { return groundtest.Of(ground.Learned{Encoder: encoder}) },
			Break: func(_ *testing.T, fault groundtest.Fault) (groundtest.Judge, bool) {
				return groundtest.Of(ground.Learned{Encoder: faulty{encoder, fault}}), true
			},
			Verbatim: true,
		})
	})
}

// faulty is an encoder with a fault.
type faulty struct {
	ground.Encoder
	fault groundtest.Fault
}

func (f faulty) Encode(ctx context.Context, texts []string) ([][]ground.Token, error) {
	switch f.fault {
	case groundtest.Fails:
		return nil, errors.New("broken")
	case groundtest.Hangs:
		<-ctx.Done()
		return nil, ctx.Err()
	case groundtest.Nothing:
		return nil, nil
	case groundtest.None:
		return make([][]ground.Token, len(texts)), nil
	}
	out, err := f.Encoder.Encode(ctx, texts)
	for _, tokens := range out {
		for i := range tokens {
			switch f.fault {
			case groundtest.Junk: // of another number of dimensions each
				tokens[i].Vector = make([]float32, i)
			case groundtest.NoScore:
				tokens[i].Vector = []float32{float32(math.NaN()), float32(math.Inf(1))}
			case groundtest.Beyond:
				tokens[i].Start, tokens[i].End = -i, 1<<30
			}
		}
	}
	return out, err
}
