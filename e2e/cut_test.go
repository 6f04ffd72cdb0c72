package e2e

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/engine"
	"github.com/assay-rag/assay/llm"
	"github.com/assay-rag/assay/llm/llmtest"
	"github.com/assay-rag/assay/role"
)

// TestReplyCutAnywhere cuts a generator's reply during an ask: for OpenAI's chat completions at
// every byte, for the other formats at some. A truncated reply must be discarded. The answer is
// then the local generator's, with a note, or the whole reply's if only its last bytes are missing.
func TestReplyCutAnywhere(t *testing.T) {
	for i, f := range formats() {
		for mode, stream := range modes {
			places := 9 // about
			if testing.Short() {
				places = 5
			}
			if os.Getenv("ASSAY_LONG") != "" || i == 0 && stream && !testing.Short() {
				places = math.MaxInt
			}
			t.Run(f.name+"/"+mode, func(t *testing.T) { testCuts(t, f, stream, places) })
		}
	}
}

// testCuts cuts a reply at the given number of places.
func testCuts(t *testing.T, f format, stream bool, places int) {
	checkGoroutines(t)
	var at atomic.Int64 // byte offset of the cut; negative: no cut
	var size atomic.Int64
	few := func(s llmtest.Script) llmtest.Script { // larger pieces, so that there are fewer bytes
		s.Pieces = pieces(strings.Join(s.Pieces, ""), 120)
		return s
	}
	cut := attack{say: few, do: func(_ *host, w http.ResponseWriter, r *http.Request, good llmtest.Body) {
		all := good.Bytes()
		size.Store(int64(len(all)))
		n := at.Load()
		if n < 0 {
			send(w, r, good)
			return
		}
		head(w, good)
		w.Write(all[:n])
		if n%2 == 0 { // else it ends like a complete reply
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}}
	h := f.serve(t, newPlay().reply(role.GeneratorRole), cut)
	e := openHandbook(t, map[string]llm.Model{role.GeneratorRole: h.open(t, f.name+"/generator", stream)})
	local := askCut(t, e, true)
	at.Store(-1)
	whole := askCut(t, e, false)
	if !strings.Contains(whole.Text, "26 weeks") || strings.Contains(notesOf(whole), "stood in") {
		t.Fatalf("a reply that is not cut: %+v", whole)
	}
	fell, step := 0, max(1, int(size.Load())/places)
	for n := 0; n < int(size.Load()); n += step {
		at.Store(int64(n))
		got := askCut(t, e, false)
		want, which := whole, "the whole reply's"
		if strings.Contains(notesOf(got), "the local generator stood in") {
			want, which = local, "the local generator's"
			fell++
		}
		if diff := cmp.Diff(want.Text, got.Text); diff != "" || got.Status != want.Status {
			t.Fatalf("cut at byte %d of %d: %s and not %s answer (-want +got):\n%s", n, size.Load(), got.Status, which, diff)
		}
		if n < int(size.Load())/2 && which != "the local generator's" {
			t.Fatalf("cut at byte %d of %d, and taken for whole", n, size.Load())
		}
	}
	t.Logf("%d bytes, cut at every %s: the local generator stood in %d times", size.Load(), ordinal(step), fell)
}

// askCut asks the question of the play with a budget of one call, so that a truncated reply is not
// retried.
func askCut(t *testing.T, e *engine.Engine, local bool) assay.Answer {
	t.Helper()
	got, err := e.Answer(t.Context(), assay.Local(), engine.Request{Question: parentalLeave, NoCache: true, Strategy: "static", Local: local, Budget: assay.Budget{Calls: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func ordinal(n int) string {
	if n == 1 {
		return "byte"
	}
	return fmt.Sprintf("%dth byte", n)
}
