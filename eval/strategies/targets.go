package strategies

import (
	"cmp"
	"slices"

	"github.com/assay-rag/assay/eval/stat"
)

// Targets compares the strategies with their targets, as far as the rows have the figures. It
// counts only rows with local roles.
type Targets struct {
	// MultiHop is the gain of multihop and corrective over static on each set, the one with the
	// greater all-gold gain first.
	MultiHop []SetGain `json:"multi_hop"`
	Auto     *Share    `json:"auto,omitempty"` // nil: auto or multihop was not measured
}

// A SetGain is the gain of a strategy over static on a set.
type SetGain struct {
	Set      string        `json:"set"`
	Strategy string        `json:"strategy"`
	AllGold  stat.Interval `json:"all_gold@10"`
	Recall   stat.Interval `json:"recall@10"`
}

// A Share compares auto with the best strategy and with the steps of multihop. The best strategy is
// the one with the greatest mean over the sets, and may be auto itself.
type Share struct {
	Sets        int     `json:"sets"`
	Best        string  `json:"best"`         // by recall
	Recall      float64 `json:"recall@10"`    // auto's mean as a fraction of the best
	BestAllGold string  `json:"best_allgold"` // by all-gold
	AllGold     float64 `json:"all_gold@10"`
	Steps       float64 `json:"steps"` // auto's mean as a fraction of multihop's
}

// TargetsOf computes the targets from rows.
func TargetsOf(rows []Row) Targets {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Roles != localRoles })
	var t Targets
	for _, r := range rows {
		if r.Gain != nil && r.Gain.Strategy == floorStrategy && (r.Strategy == "multihop" || r.Strategy == "corrective") {
			t.MultiHop = append(t.MultiHop, SetGain{r.Set, r.Strategy, r.Gain.AllGold, r.Gain.Recall})
		}
	}
	order := sets(rows)
	slices.SortStableFunc(t.MultiHop, func(a, b SetGain) int {
		return cmp.Or(slices.Index(order, a.Set)-slices.Index(order, b.Set), cmp.Compare(b.AllGold.Mean, a.AllGold.Mean))
	})
	t.Auto = shareOf(rows, order)
	return t
}

// sets returns the sets of rows, in their order.
func sets(rows []Row) []string {
	var names []string
	for _, r := range rows {
		if !slices.Contains(names, r.Set) {
			names = append(names, r.Set)
		}
	}
	return names
}

// shareOf compares auto with the best of the strategies that were measured on every set. It returns
// nil if auto or multihop was not.
func shareOf(rows []Row, order []string) *Share {
	type sum struct {
		sets                   int
		recall, allGold, steps float64
	}
	sums := map[string]*sum{}
	var names []string
	for _, r := range rows {
		s := sums[r.Strategy]
		if s == nil {
			s = &sum{}
			sums[r.Strategy] = s
			names = append(names, r.Strategy)
		}
		s.sets++
		s.recall, s.allGold, s.steps = s.recall+r.Recall.Mean, s.allGold+r.AllGold.Mean, s.steps+r.Steps
	}
	auto, multihop := sums["auto"], sums["multihop"]
	if auto == nil || multihop == nil || auto.sets != len(order) || multihop.sets != len(order) {
		return nil
	}
	best, bestAllGold := "auto", "auto"
	for _, name := range names {
		if s := sums[name]; s.sets == len(order) {
			if s.recall > sums[best].recall {
				best = name
			}
			if s.allGold > sums[bestAllGold].allGold {
				bestAllGold = name
			}
		}
	}
	part := func(a, b float64) float64 {
		if b == 0 {
			return 1
		}
		return a / b
	}
	return &Share{
		Sets: len(order), Best: best, Recall: part(auto.recall, sums[best].recall),
		BestAllGold: bestAllGold, AllGold: part(auto.allGold, sums[bestAllGold].allGold),
		Steps: part(auto.steps, multihop.steps),
	}
}
