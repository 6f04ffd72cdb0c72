package governance_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/assay-rag/assay/governance"
	"github.com/assay-rag/assay/store"
)

func ExampleBuilder() {
	b := governance.NewBuilder(governance.Options{Tenant: "acme"})
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for i, decision := range []string{"approved", "approved", "edited"} {
		detail, err := json.Marshal(map[string]any{"decision": decision, "outcome": decision, "dwell_ms": 60_000 - 29_000*i, "open_ms": 55_000 - 27_000*i})
		if err != nil {
			panic(err)
		}
		b.Act(store.LoggedAct{Time: at, Act: store.Act{Kind: "review.decided", Subject: fmt.Sprint("run", i), Detail: detail}})
	}
	for _, name := range []string{"override_rate", "quick_decisions"} {
		f := b.Report().Figure(name)
		fmt.Println(f.Title+":", f.Text(), f.State, f.Runs)
	}
	// Output:
	// Override rate: 33.3% alert [run2]
	// Decisions that were not considered: 33.3% alert [run2]
}
