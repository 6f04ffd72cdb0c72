package engine

import (
	"github.com/assay-rag/assay/internal/chunk"
	"github.com/assay-rag/assay/internal/ingest"
	"github.com/assay-rag/assay/internal/retrieve"
	"github.com/assay-rag/assay/internal/role/prompted"
	"github.com/assay-rag/assay/internal/stats"
)

// Types of the engine's methods that are defined in internal packages.
type (
	// An IngestReport counts the documents of an Ingest and lists the files that it skipped.
	IngestReport = ingest.Report

	// Skipped is a file that was not ingested, with the reason.
	Skipped = ingest.Skipped

	// Chunker is a way to divide documents into chunks.
	Chunker = chunk.Chunker

	// IngestProgress is the state of a running Ingest.
	IngestProgress = ingest.Progress

	// A WalkFunc parses a source and the documents inside it; see parse.Walk.
	WalkFunc = ingest.WalkFunc

	// An IngestPlan is what an Ingest would do.
	IngestPlan = ingest.Plan

	// A VectorPlan estimates the vectors that an Ingest would make necessary.
	VectorPlan = ingest.VectorPlan

	// A VectorReport states the coverage of the wanted encoder's vectors, and what Embed made.
	VectorReport = ingest.VectorReport

	// EmbedFailed is a passage of which no vector could be made.
	EmbedFailed = ingest.EmbedFailed

	// EmbedProgress is the state of a running Embed.
	EmbedProgress = ingest.EmbedProgress

	// An Explanation describes how the results of a search were found.
	Explanation = retrieve.Explanation

	// An Explained describes how one of the hits was found.
	Explained = retrieve.Explained

	// An Observation holds the measurements of one run.
	Observation = stats.Observation

	// A Domain is a team's vocabulary, conventions, sections and house rules.
	Domain = prompted.Domain
)

// ParseDomain reads a Domain from the text of a Markdown file. file names it in errors, which are
// assay.ErrInvalid.
func ParseDomain(file string, text []byte) (*Domain, error) { return prompted.ParseDomain(file, text) }
