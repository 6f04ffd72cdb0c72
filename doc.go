// Package assay defines the vocabulary of the assay engine: documents, chunks, queries, hits,
// evidence, claims, citations, answers and runs, and the metadata filter. It is plain structs
// without I/O. All other packages use these types. It also holds the kinds of failure with their
// exit codes and HTTP statuses. Programs start with standalone.Open, which opens an engine with
// the models in the binary. Package engine ingests and asks, and takes a program's own store,
// strategies, roles and retriever.
//
// # A document, package by package
//
// Package source walks a folder and finds handbook.md with its sidecar of metadata. Package
// parse chooses a format by its bytes and makes normalised text of them, with headings, lists and
// tables; every offset in the system is a byte offset into that text. Package internal/chunk cuts the text into chunks
// that keep their heading path. Package internal/ingest runs these steps in parallel and writes
// each finished [Document] with its [Chunk] values through the interfaces of package store, to the
// tenant that the engine was opened for; store/sqlite implements them. Package internal/index adds the chunks to its segments, so
// that they can be searched at once; vectors, made by an llm.Embedder, follow behind.
//
// # A question, package by package
//
// Package engine opens a run (package run), whose journal records every step, and hands it to a
// strategy (package strategy), an ordinary function. A strategy asks roles (package role): the
// planner cuts "Who approves trips, and how early?" into two sub-questions. Each role has a
// version without a language model (internal/role/local) and one with (internal/role/prompted).
//
// For each sub-question the [Retriever] (package internal/retrieve) compiles the filter and the
// [Access] of the [Principal] into a bitmap, searches words and vectors under it, fuses both
// lists, gives each [Hit] its relevance, and lets package internal/rerank order the best. The
// grader decides whether the hits suffice or what to search next. Accepted hits become numbered
// [Evidence]. The generator writes a draft from it; package ground cuts the draft into [Claim]
// values and checks each against the passages that it cites, which gives a [Verdict] and a
// [Citation]. One function, in strategy/decide.go, then sets the status of the [Answer].
//
// # Around a question
//
// Package identity turns a credential into a grant: a tenant, a [Principal] and scopes. A door opens
// an engine.Session for it, which checks the grant at each call. Package limit says what the tenant,
// the user and the key may still spend. After the strategy, an answer that holds the text of a canary
// (internal/canary) is withheld, and one that a policy of package review matches waits for a person.
//
// Each step, and each act of an administrator, is appended to the tenant's audit log. Package audit
// signs and verifies it and proves single runs from it, package webhook tells others about it, and
// package governance reports on it. Package backup copies all of it.
package assay
