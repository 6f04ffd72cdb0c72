package ground_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/assay-rag/assay/ground"
	"github.com/assay-rag/assay/ground/groundtest"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
)

func TestLocalContract(t *testing.T) {
	t.Run("without a reader", func(t *testing.T) {
		groundtest.Run(t, groundtest.Subject{Open: func(*testing.T) groundtest.Judge { return groundtest.Of(ground.Local{}) }})
	})
	t.Run("reader", func(t *testing.T) {
		local := func(r llm.Reader) groundtest.Judge {
			return groundtest.Of(ground.Local{Reader: r, Model: readerModel()})
		}
		groundtest.Run(t, groundtest.Subject{
			Open:     func(*testing.T) groundtest.Judge { return local(&llmtest.Reader{}) },
			Break:    func(_ *testing.T, f groundtest.Fault) (groundtest.Judge, bool) { return local(&faulty{fault: f}), true },
			Verbatim: true,
		})
	})
}

// faulty is a reader with a fault.
type faulty struct {
	llmtest.Reader
	fault groundtest.Fault
}

func (f *faulty) Entail(ctx context.Context, pairs []llm.ClaimPair) ([]llm.Entailment, error) {
	out := make([]llm.Entailment, len(pairs))
	for i := range out {
		out[i] = llm.Entailment{Supported: 1}
		switch f.fault {
		case groundtest.Fails:
			return out, errors.New("broken")
		case groundtest.Hangs:
			<-ctx.Done()
			return out, ctx.Err()
		case groundtest.Nothing, groundtest.None:
			return nil, nil
		case groundtest.Junk:
			out[i] = llm.Entailment{}
		case groundtest.NoScore:
			out[i].Supported = math.NaN()
		case groundtest.Beyond:
			out[i] = llm.Entailment{Supported: 1.5, Decisive: llm.Extract{Start: -1, End: 1 << 30}}
		}
	}
	return out, nil
}

// TestSpansOfNoPlace checks that a decisive place outside the window still gives spans of the
// passage.
func TestSpansOfNoPlace(t *testing.T) {
	r := &llmtest.Reader{OnEntail: func(llm.ClaimPair) (llm.Entailment, error) {
		return llm.Entailment{Supported: 1, Decisive: llm.Extract{Start: -1 << 40, End: 1 << 40}}, nil
	}}
	const source = "Ducks swim well. The tenant pays rent."
	j, err := ground.Local{Reader: r, Model: readerModel()}.Verify(t.Context(), "Rent is paid by tenants.", cited(source))
	if err != nil || len(j.Spans) != 1 || source[j.Spans[0].Start:j.Spans[0].End] != "The tenant pays rent." {
		t.Errorf("%+v, %v", j, err)
	}
}
