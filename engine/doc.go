// Package engine opens a tenant's data, in a data directory or in a store of the caller, ingests
// documents into it and answers questions from them. Package standalone opens an engine with the
// models in the binary.
//
// [Open] returns an [Engine]. [Engine.Ingest] ingests documents. [Engine.Ask] answers a question
// and yields an [Event] for each step, the answer last; [Engine.Answer] returns only the answer.
// Every question is a run, stored with its journal. [Engine.Runs] lists runs, [Engine.Run]
// returns one, [Engine.Resume] continues an interrupted one, and [Engine.Replay] repeats one from
// its journal alone. [Doctor] checks a data directory.
//
// A principal identifies the caller. A run belongs to the principal that started it and does not
// exist for any other. Before a run is shown, replayed or resumed, access to every document that
// it read is checked again.
//
// Vectors are made after the text is stored. With Config.Encoders they are made in the background
// while the engine is open; [Engine.Embed] and IngestRequest.Wait wait for them. A search first
// makes the vectors that it needs, for a limited time. [Engine.Vectors] reports their coverage,
// and [Engine.UseEncoder] selects another model.
//
// Config.Models assigns language models to roles. A role without a model is done locally, as are
// all roles of a Request with Local set. If a model fails or its replies cannot be used, the
// engine falls back where it can and names the model in the answer's Notes. Answer.Roles lists
// which model did each role. The configuration that a run began with is stored with it, so that
// the run can be resumed and replayed under another configuration.
//
// Config.Store, Config.Strategies, Config.Roles and Config.Retriever take implementations of the
// caller. Hits that the principal may not see are dropped, whatever a retriever returns.
//
// The package connects the others and contains no algorithms. Package ingest reads documents,
// package strategy decides how questions are answered, and packages run and store keep the runs.
package engine
