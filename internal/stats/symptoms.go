package stats

// The symptoms, by their anchors in docs/symptoms.md.
const (
	NothingFound      = "nothing-found"
	ConfidentlyWrong  = "confidently-wrong"
	UnsupportedClaims = "unsupported-claims"
	Slow              = "slow"
	OverBlocked       = "over-blocked"
	Stale             = "stale"
	ProviderErrors    = "provider-errors"
)

// A Symptom is a problem that users notice, how the signals show it, and what to do.
type Symptom struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Shows string   `json:"shows"`
	Do    []string `json:"do"`
}

// Symptoms returns all symptoms.
func Symptoms() []Symptom {
	return []Symptom{
		{NothingFound, "Nothing found", "not_found rises, top_relevance and sufficient_first_try fall, iterations rise", []string{
			"`assay show RUN`: was the right document found at all? If `assay search` with the document's own words does not bring it, it is not ingested, or the filter or collection excludes it",
			"`assay documents` lists what is stored; `assay ingest` says what it skipped and why",
			"found by its own words and not by the question's: `assay doctor` says whether all passages have vectors",
			"found and graded away: measure with `assay eval SET`; if recall is under 0.80, look at chunking first, else at the relevance floor (`assay tune SET`)",
		}},
		{ConfidentlyWrong, "Confidently wrong", "people correct answers that were shown as supported; the signals look healthy", []string{
			"`assay show RUN` and `assay replay RUN`: read the quotes that the claim cites",
			"`assay runs export` writes answers to be corrected; `assay eval` on the corrected file says which stage loses them",
			"the quote says it and is wrong: the document is wrong or outdated, see stale",
			"the quote does not say it: report it; a stricter floor for claims refuses it",
		}},
		{UnsupportedClaims, "Unsupported claims", "claims_rejected and incomplete rise, the finish reason `length` gets frequent", []string{
			"`assay show RUN` lists each refused claim with the verifier's reason",
			"after a change of the generator's model or prompt: compare with `assay eval SET --baseline FILE --gate gate.yaml`",
			"replies cut off by length: raise the reply's limit or ask for less at a time",
		}},
		{Slow, "Slow", "latency_ms, cap_hits or cost_micros rise; the table of stages says where the time goes", []string{
			"one stage is slow: model stages depend on the provider (see provider errors), searches on the index (`assay doctor`)",
			"many iterations: the evidence is seldom sufficient at first, see nothing found",
			"runs that end by a deadline or budget: raise it, or use `--mode quick` or a cheaper strategy (`assay ask --strategy help`)",
		}},
		{OverBlocked, "Over-blocked", "incomplete and not_found rise while top_relevance stays as it was", []string{
			"`assay show RUN`: is the right passage there and the answer refused all the same? Then the abstention threshold or the floor is too high for these documents: `assay tune SET`",
			"claims refused though their quotes say them: paraphrases and other languages than English are hard for the local verifier; configure a model as verifier",
			"somebody lacks the right to see the documents: `assay documents` as that person",
		}},
		{Stale, "Stale", "stale_citations rises: stored answers cite texts that were replaced or removed since; people correct what was right once", []string{
			"`assay ingest PATH` again: what changed is replaced, what is gone is removed",
			"`assay ask --no-cache` asks anew; `assay stats` shows how many answers were given again",
			"`assay doctor` shows the index's version and what vectors lag behind",
		}},
		{ProviderErrors, "Provider errors", "tool_errors or model_errors rise, often with latency_ms and cap_hits; finishes have `error`, `refused` or `other`", []string{
			"`assay doctor` asks every configured model once and says what is wrong",
			"`assay show RUN` has each failed attempt with the provider's words",
			"rate limits: lower the parallelism or raise the limit at the provider; assay retries with growing pauses, and falls back to the local roles and says so",
		}},
	}
}
