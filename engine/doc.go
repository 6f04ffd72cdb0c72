// Package engine is where a program starts: it opens a data directory, ingests
// documents into it and answers questions from them.
//
// [Open] returns an [Engine]. [Engine.Ingest] brings documents in;
// [Engine.Ask] answers a question and yields an [Event] for each thing it does,
// the answer last; [Engine.Answer] returns the answer alone. Every question is a
// run, kept with its journal: [Engine.Runs] lists them, [Engine.Run] shows one,
// [Engine.Resume] continues one that was interrupted and [Engine.Replay] goes
// through one again from its journal alone. [Doctor] looks a data directory
// over.
//
// Whoever asks is named by a principal. A run belongs to its principal: to any
// other it does not exist. Before a run is shown, replayed or resumed, the
// access to all documents that it read is checked again.
//
// Vectors follow the text. With Config.Encoders they catch up in the background, as
// long as the engine is open; [Engine.Embed] and IngestRequest.Wait wait for them,
// and a search first makes those that it needs, for a moment. [Engine.Vectors] says
// how far they are, [Engine.UseEncoder] has another model make them.
//
// Config.Models names the language models that do roles; a role without one is done
// locally, as is every role of a Request that says so. A model that fails, or whose
// replies cannot be used, costs no answer that can be given without it, and is named in
// the answer's Notes; Answer.Roles says who did what. What a run began with is kept with
// it, so that it can be gone on with and replayed under another configuration.
//
// The package wires the others together and holds no algorithm: how documents
// are read is in ingest, how questions are gone about in strategy, how a run is
// kept in run and store.
package engine
