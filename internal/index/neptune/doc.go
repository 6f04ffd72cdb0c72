// Package neptune keeps the graph of an index in Amazon Neptune Analytics: which passages name which
// entities. Another index searches text and vectors; the [Index] of this package delegates to it,
// and gives walks the graph in Neptune in place of that index's own.
//
// # Nodes and edges
//
//	(:State)                                  of a tenant: the last sequence number written, and the writer's claim
//	(:Passage)-[:PART_OF]->(:Document)        of a tenant; a document has its collection, sequence number and metadata
//	(:Document)-[:SHOWN_TO]->(:Reader)        for each entry of the document's access list, as a digest; one stands for all
//	(:Passage)-[:NAMES {key, title}]->(:Entity)
//
// No text is stored. The name of an entity is on the edges, so that it disappears with the passages
// that have it. Nodes of entities and readers are digests, and remain until [Graph.Remove] or a
// rebuild. All IDs begin with a digest of the identity of the tenant's content.
//
// # Reads
//
// Statements are constants; all values are parameters. Tenant, access, collections and the documents
// that a filter keeps are conditions of each statement that finds or counts passages. A filter is
// evaluated before, over the metadata of the documents that the access may see, of which there may
// be at most maxFiltered.
//
// A graph has the documents of the last Flush, without those that changed since then according to the
// source. So it never has a deleted document, an old version, or a document that the access lost the
// right to see, however late the next Flush is. Each row of a reply is checked against what was asked
// for; a row that does not fit fails the whole graph. Without a usable graph the error is
// assay.ErrUnavailable, and searches go on without a walk.
//
// # Writes
//
// Flush writes the changes in batches and then the sequence number. Documents with a higher one than
// the state's are not read. Every statement has one effect however often it is executed, and has an
// effect only while the state has the claim of its writer and no later step. So neither a writer that
// was superseded nor a request that arrives late changes the graph. Neptune reports statements that
// write the same property at once as a conflict; the claim and the step are written by each.
//
// Sources: AWS, Neptune Analytics API Reference, ExecuteQuery; Neptune Analytics User Guide,
// "Exceptions", "Transaction isolation levels in Neptune Analytics" and "OpenCypher specification
// compliance"; Neptune User Guide, "openCypher extensions in Amazon Neptune", custom IDs. The service
// itself was not reached. The statements were executed by Neo4j 5.26, with id(n) as the property ~id.
package neptune
