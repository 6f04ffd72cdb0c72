package metric

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// A Measure is a row of the table of measures.
type Measure struct {
	Name   string // the key in figures
	Group  string // "answers", "rankings", "words", "judged", "claims", "passages", "refusals", "conflicts" or "cost"
	Unit   string // "ms", "tokens", "calls", "steps", "searches", "micros" (millionths of the currency); empty: a share in [0, 1]
	Less   bool   // less is better
	Judged bool   // from a judge, which a figure names
	Doc    string // a description of one line
	Source string

	// If Percentile is set, the figure for a set is that percentile, in (0, 100], of the measure
	// Base over the questions, rather than a mean. [Of] does not return it.
	Percentile float64
	Base       string

	of func(Input) (value float64, applies bool)
}

// All returns the table, in the order of the reports.
func All() []Measure { return slices.Clone(table) }

// Lookup returns the measure with the given name.
func Lookup(name string) (Measure, bool) {
	i := slices.IndexFunc(table, func(m Measure) bool { return m.Name == name })
	if i < 0 {
		return Measure{}, false
	}
	return table[i], true
}

// Of returns the measures that apply to a question, by name, together with the custom measures in
// Input.Judged. It leaves out values that are not numbers.
func Of(in Input) map[string]float64 {
	out := map[string]float64{}
	maps.Copy(out, in.Judged)
	for _, m := range table {
		if m.of == nil {
			continue
		}
		if value, applies := m.of(in); applies {
			out[m.Name] = value
		}
	}
	maps.DeleteFunc(out, func(_ string, x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	return out
}

// depth is the cutoff of ranking measures that name none.
const depth = 100

const (
	trec      = "trec_eval"
	squad     = "Rajpurkar et al. 2016"
	ragas     = "Es et al. 2024 (Ragas)"
	ragasDocs = "Ragas' documentation"
	alce      = "Gao et al. 2023 (ALCE)"
	liu       = "Liu et al. 2023"
	rag       = "Ru et al. 2024 (RAGChecker)"
	ours      = "assay"
	rajpurkar = "Rajpurkar et al. 2018"
)

// table holds all measures. Sources are short forms of those in the functions' comments.
var table = slices.Concat(
	group("answers", Measure{
		Name: "right", Doc: "answered citing gold, or refused if the documents have no answer", Source: ours,
		of: func(in Input) (float64, bool) { return one(in.Right != nil && *in.Right), in.Right != nil },
	}),
	group("rankings", slices.Concat([]Measure{
		ranking("ndcg@10", "normalised discounted cumulative gain of the first 10, gain 2^grade-1", "Järvelin and Kekäläinen 2002, Burges et al. 2005",
			func(r []string, rel map[string]int) float64 { return NDCG(r, rel, 10, Exponential) }),
		ranking("ndcg_linear@10", "the same with the grade as gain, as in BEIR; equal for grades 0 and 1", "Järvelin and Kekäläinen 2002, "+trec,
			func(r []string, rel map[string]int) float64 { return NDCG(r, rel, 10, Linear) }),
		ranking("map", "mean of the precision at each relevant document among the first 100", trec+" map_cut_100",
			func(r []string, rel map[string]int) float64 { return AveragePrecision(r, rel, depth) }),
		ranking("mrr@10", "1/rank of the first relevant document among the first 10", "Voorhees 1999, "+trec+" recip_rank",
			func(r []string, rel map[string]int) float64 { return ReciprocalRank(r, rel, 10) }),
	},
		cuts("recall", "share of the relevant documents among the first %d", trec+" recall_k", Recall, 5, 10, depth),
		cuts("precision", "share of the first %d that is relevant", trec+" P_k", Precision, 5, 10),
		cuts("hit", "a relevant document is among the first %d", trec+" success_k", Hit, 1, 5, 10),
		cuts("all_gold", "all relevant documents are among the first %d", "Xiong et al. 2021", AllGold, 10),
	)...),
	group("words",
		text("exact_match", "the answer equals a right one, word for word", squad, ExactMatch),
		text("f1", "F1 of the words that the answer shares with a right one", squad, F1),
		text("contains", "the answer contains a right answer, word for word", "Mallen et al. 2023", Contains),
	),
	group("judged",
		score("correctness", "agreement of the answer with a right one", ours),
		score("completeness", "share of a right answer, or of the expected sources, that the answer covers", ours),
		less(score("harmfulness", "the answer harms its reader or helps to do harm", ours)),
		score("answer_relevance", "how well the answer addresses the question, right or wrong", ragas),
	),
	group("claims",
		claims("faithfulness", "share of the claims that the generator's passages support", ragas, Faithfulness),
		Measure{
			Name: "claim_precision", Judged: true, Doc: "share of the claims that a right answer contains", Source: rag,
			of: func(in Input) (float64, bool) {
				return ClaimPrecision(in.Claims), in.answered() && referenced(in.Claims)
			},
		},
		Measure{
			Name: "claim_recall", Judged: true, Doc: "share of a right answer's claims that the answer contains", Source: rag,
			of: func(in Input) (float64, bool) { return ClaimRecall(in.Reference), len(in.Reference) > 0 },
		},
		Measure{
			Name: "citation_precision", Judged: true, Doc: "share of the citations that support their claim, alone or by adding to the others", Source: alce + ", " + liu,
			of: func(in Input) (float64, bool) {
				cites := slices.ContainsFunc(in.Claims, func(c Claim) bool { return len(c.Cites) > 0 })
				return CitationPrecision(in.Claims), in.answered() && cites
			},
		},
		claims("citation_recall", "share of the claims that their citations support together", alce+", "+liu, CitationRecall),
		claims("citation_f1", "harmonic mean of the two", liu, CitationF1),
		noise("noise_sensitivity", "share of the claims that are wrong and supported by a relevant passage", false),
		noise("noise_sensitivity_irrelevant", "share of the claims that are wrong and supported only by irrelevant passages", true),
	),
	group("passages",
		contexts("context_precision", "share of the generator's passages that the answer cites", ragasDocs+", "+rag, ContextPrecision),
		contexts("context_precision_ranked", "the same, weighted towards the first passages", ragasDocs, ContextPrecisionRanked),
		Measure{
			Name: "context_recall", Doc: "share of the expected sources in the generator's passages", Source: ragasDocs,
			of: func(in Input) (float64, bool) { return ContextRecall(in.Expected), len(in.Expected) > 0 },
		},
	),
	group("refusals",
		Measure{Name: "abstention_precision", Doc: "share of the refusals that were right", Source: rajpurkar, of: AbstentionPrecision},
		Measure{Name: "abstention_recall", Doc: "share of the unanswerable questions that were refused", Source: rajpurkar, of: AbstentionRecall},
	),
	group("conflicts",
		Measure{Name: "conflict_precision", Doc: "share of the shown conflicts that are real", Source: "Xie et al. 2024", of: ConflictPrecision},
		Measure{Name: "conflict_recall", Doc: "share of the questions with a conflict whose answer shows it, citing both sides", Source: "Xie et al. 2024", of: ConflictRecall},
	),
	group("cost",
		spent("steps", "steps", "records of the run's journal", func(s Spent) float64 { return float64(s.Steps) }),
		spent("searches", "searches", "searches of the question", func(s Spent) float64 { return float64(s.Searches) }),
		spent("iterations", "searches", "mean searches per sub-question", func(s Spent) float64 { return s.Iterations }),
		spent("model_calls", "calls", "model calls; a retried call counts once", func(s Spent) float64 { return float64(s.Calls) }),
		spent("input_tokens", "tokens", "tokens that models read", func(s Spent) float64 { return float64(s.InputTokens) }),
		spent("output_tokens", "tokens", "tokens that models wrote", func(s Spent) float64 { return float64(s.OutputTokens) }),
		spent("tokens", "tokens", "input and output tokens", func(s Spent) float64 { return float64(s.InputTokens + s.OutputTokens) }),
		spent("cost_micros", "micros", "cost in millionths of the configured currency", func(s Spent) float64 { return float64(s.CostMicros) }),
		spent("latency_ms", "ms", "time to the answer", func(s Spent) float64 { return float64(s.Elapsed.Microseconds()) / 1000 }),
		percentile("latency_p50_ms", "median time to the answer", 50),
		percentile("latency_p95_ms", "95th percentile of the time to the answer", 95),
		percentile("latency_p99_ms", "99th percentile of the time to the answer", 99),
	),
)

func group(name string, of ...Measure) []Measure {
	for i := range of {
		of[i].Group = name
	}
	return of
}

func ranking(name, doc, source string, of func(ranked []string, relevant map[string]int) float64) Measure {
	return Measure{Name: name, Doc: doc, Source: source, of: func(in Input) (float64, bool) {
		return of(in.Ranked, in.Relevant), relevantOf(in.Relevant) > 0
	}}
}

func cuts(name, doc, source string, of func([]string, map[string]int, int) float64, ks ...int) []Measure {
	var out []Measure
	for _, k := range ks {
		out = append(out, ranking(fmt.Sprintf("%s@%d", name, k), fmt.Sprintf(doc, k), source,
			func(ranked []string, relevant map[string]int) float64 { return of(ranked, relevant, k) }))
	}
	return out
}

// text returns a measure of the words of an answer. It is 0 without an answer.
func text(name, doc, source string, of func(string, []string) float64) Measure {
	return Measure{Name: name, Doc: doc, Source: source, of: func(in Input) (float64, bool) {
		if !in.answered() {
			return 0, len(in.Answers) > 0
		}
		return of(in.Text, in.Answers), len(in.Answers) > 0
	}}
}

// score returns a measure that is a judge's score.
func score(name, doc, source string) Measure {
	return Measure{Name: name, Judged: true, Doc: doc, Source: source, of: func(in Input) (float64, bool) {
		value, ok := in.Judged[name]
		return value, ok
	}}
}

func less(m Measure) Measure {
	m.Less = true
	return m
}

func claims(name, doc, source string, of func([]Claim) float64) Measure {
	return Measure{Name: name, Judged: true, Doc: doc, Source: source, of: func(in Input) (float64, bool) {
		return of(in.Claims), in.answered() && len(in.Claims) > 0
	}}
}

// contexts returns a measure of the use of passages. It applies only to answered questions.
func contexts(name, doc, source string, of func([]Context) float64) Measure {
	return Measure{Name: name, Doc: doc, Source: source, of: func(in Input) (float64, bool) {
		return of(in.Contexts), in.answered() && len(in.Contexts) > 0
	}}
}

// noise returns a measure of how misled an answer is. It needs gold, which determines the relevant
// passages.
func noise(name, doc string, irrelevant bool) Measure {
	return Measure{Name: name, Judged: true, Less: true, Doc: doc, Source: ragasDocs + ", " + rag, of: func(in Input) (float64, bool) {
		return NoiseSensitivity(in.Claims, in.Contexts, irrelevant), in.answered() && referenced(in.Claims) && len(in.Contexts) > 0 && len(in.Expected) > 0
	}}
}

// referenced reports whether there are claims and all were compared with a reference answer.
func referenced(claims []Claim) bool {
	return len(claims) > 0 && !slices.ContainsFunc(claims, func(c Claim) bool { return c.Right == nil })
}

func spent(name, unit, doc string, of func(Spent) float64) Measure {
	return Measure{Name: name, Unit: unit, Less: true, Doc: doc, Source: ours, of: func(in Input) (float64, bool) {
		if in.Spent == nil {
			return 0, false
		}
		return of(*in.Spent), true
	}}
}

func percentile(name, doc string, p float64) Measure {
	return Measure{Name: name, Unit: "ms", Less: true, Doc: doc, Source: "Hyndman and Fan 1996, type 7", Percentile: p, Base: "latency_ms"}
}
