package neptune

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/assay-rag/assay"
)

// The statements that read. Each that has $readers is within the scope of an access; see scope.
const (
	// readState returns the state of a tenant.
	readState = "MATCH (s:State) WHERE id(s) = $state" +
		" RETURN s.version AS version, s.sequence AS sequence, s.claim AS claim, s.step AS step"

	// visible matches the documents d of a scope, and for each the readers r that the access is among.
	visible = "(d:Document)-[:SHOWN_TO]->(r:Reader) WHERE id(r) IN $readers AND d.tenant = $tenant AND d.sequence <= $sequence" +
		" AND ($everywhere OR d.collection IN $collections) AND NOT d.document IN $changed" +
		" AND ($unfiltered OR d.document IN $documents)"

	// shown are the columns by which a row is checked again.
	shown = "d.tenant AS tenant, d.document AS document, d.collection AS collection, d.sequence AS sequence, readers"

	countPassages = "MATCH " + visible + " WITH DISTINCT d RETURN sum(d.passages) AS passages"

	readMetadata = "MATCH " + visible + " WITH d, collect(DISTINCT r.name) AS readers" +
		" RETURN d.metadata AS metadata, " + shown + " LIMIT 10001" // maxFiltered and one more

	readPassages = "MATCH (p:Passage)-[:PART_OF]->" + visible + " AND id(p) IN $passages" +
		" WITH p, d, collect(DISTINCT r.name) AS readers OPTIONAL MATCH (p)-[n:NAMES]->(:Entity)" +
		" RETURN p.chunk AS chunk, " + shown + ", collect({key: n.key, title: n.title}) AS names"

	readNamed = "MATCH (e:Entity)<-[n:NAMES]-(p:Passage)-[:PART_OF]->" + visible + " AND id(e) IN $entities" +
		" WITH n, p, d, collect(DISTINCT r.name) AS readers RETURN n.key AS key, n.title AS title, p.chunk AS chunk, " + shown

	countNamed = "MATCH (e:Entity)<-[n:NAMES]-(p:Passage)-[:PART_OF]->" + visible + " AND id(e) IN $entities" +
		" RETURN n.key AS key, count(DISTINCT p) AS passages"

	countLeft = "MATCH (n) WHERE n.tenant = $tenant RETURN count(n) AS left"
)

// The statements that write. A State has no property tenant.
const (
	createState = "MERGE (s:State {`~id`: $state}) ON CREATE SET s.version = 0, s.sequence = 0, s.claim = '', s.step = 0" +
		" RETURN count(s) AS written"

	// claimState replaces a claim.
	claimState = "MATCH (s:State) WHERE id(s) = $state AND (s.claim = $before OR s.claim = $claim) SET s.claim = $claim RETURN count(s) AS written"

	// guard begins every other statement that writes.
	guard = "MATCH (s:State) WHERE id(s) = $state AND s.claim = $claim AND s.step <= $step SET s.claim = $claim, s.step = $step"

	removePassages = guard + " WITH s MATCH (p:Passage)-[:PART_OF]->(d:Document) WHERE id(d) IN $documents DETACH DELETE p"

	removeDocuments = guard + " WITH s MATCH (d:Document) WHERE id(d) IN $documents DETACH DELETE d"

	writeDocuments = guard + " WITH s UNWIND $rows AS row MERGE (d:Document {`~id`: row.id})" +
		" SET d.tenant = $tenant, d.document = row.document, d.collection = row.collection, d.sequence = row.sequence," +
		" d.passages = row.passages, d.metadata = row.metadata RETURN count(d) AS written"

	writeReaders = guard + " WITH s UNWIND $rows AS row MATCH (d:Document) WHERE id(d) = row.document" +
		" MERGE (r:Reader {`~id`: row.id}) SET r.tenant = $tenant, r.name = row.name" +
		" MERGE (d)-[:SHOWN_TO]->(r) RETURN count(r) AS written"

	writePassages = guard + " WITH s UNWIND $rows AS row MATCH (d:Document) WHERE id(d) = row.document" +
		" MERGE (p:Passage {`~id`: row.id}) SET p.tenant = $tenant, p.chunk = row.chunk" +
		" MERGE (p)-[:PART_OF]->(d) RETURN count(p) AS written"

	writeNames = guard + " WITH s UNWIND $rows AS row MATCH (p:Passage) WHERE id(p) = row.passage" +
		" MERGE (e:Entity {`~id`: row.entity}) SET e.tenant = $tenant" +
		" MERGE (p)-[n:NAMES]->(e) SET n.key = row.key, n.title = row.title RETURN count(n) AS written"

	commitState = guard + ", s.version = $version, s.sequence = $sequence RETURN count(s) AS written"

	clearTenant = guard + " WITH s MATCH (n) WHERE n.tenant = $tenant WITH n LIMIT 1000 DETACH DELETE n"

	removeState = "MATCH (s:State) WHERE id(s) = $state AND s.claim = $claim DETACH DELETE s"
)

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// A namespace makes the IDs of a tenant's nodes. It is a digest of the identity of its content.
type namespace string

func namespaceOf(identity string) namespace { return namespace(digest("tenant", identity)) }

func (n namespace) state() string               { return string(n) + "/state" }
func (n namespace) document(id string) string   { return string(n) + "/document/" + id }
func (n namespace) passage(chunk string) string { return string(n) + "/passage/" + chunk }
func (n namespace) entity(key string) string    { return string(n) + "/entity/" + digest("entity", key) }
func (n namespace) reader(digest string) string { return string(n) + "/reader/" + digest }
func (n namespace) all(ids []string, id func(string) string) []string {
	out := make([]string, len(ids))
	for i := range ids {
		out[i] = id(ids[i])
	}
	return out
}

// everyone is the reader of unrestricted documents. It differs from the digest of every name.
const everyone = "everyone"

// readersOf returns the readers of a document.
func readersOf(acl assay.ACL) []string {
	if !acl.Restricted {
		return []string{everyone}
	}
	return readerNames(acl.Allow)
}

// readersOfAccess returns the readers that an access is among.
func readersOfAccess(access assay.Access) []string {
	return append(readerNames(access.Names()), everyone)
}

func readerNames(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = digest("reader", n)
	}
	return out
}
