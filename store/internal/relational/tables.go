package relational

import "strings"

// A Table is one of the tables of a database.
type Table struct {
	Name    string
	Columns []string
	Key     []string // unique and not NULL; the first of Columns
	Counted bool     // the numbers of its rows are never used again, even if the last ones are removed
	Single  bool     // it has one row, which a new database has too
}

// table returns a table from its columns, of which those before the bar are the key.
func table(name, columns string) Table {
	key, rest, _ := strings.Cut(columns, "|")
	k := strings.Fields(key)
	return Table{Name: name, Columns: append(k[:len(k):len(k)], strings.Fields(rest)...), Key: k}
}

// Numbered reports whether the database gives new rows their numbers.
func (t Table) Numbered() bool { return t.Key[0] == "number" }

func counted(t Table) Table { t.Counted = true; return t }
func single(t Table) Table  { t.Single = true; return t }

// ContentTables are the tables of a tenant's content. A table comes after those that its rows refer
// to.
func ContentTables() []Table {
	return []Table{
		single(table("store", "id | tenant sequence")),
		table("collections", "number | name require_acl chunker chunk_size chunk_overlap"),
		table("documents", "number | id collection uri container version sequence acl"),
		counted(table("originals", "number | hash data")),
		counted(table("versions", "number | document version title metadata acl source_size source_modified source_hash pages original media replaced")),
		table("pieces", "version start | line page text anchors hash"),
		table("structures", "version | data hash"),
		table("chunks", "version ordinal | id kind start end headings parent tokens origin hash"),
		table("sources", "number | collection uri path size modified hash acl same_as"),
		table("failures", "source uri | reason detail failed"),
		table("models", "number | name dropped"),
		table("vectors", "number | model hash sequence data"),
		counted(table("waiting_acts", "number | act")),
		table("sync_sources", "number | name kind target collection options credentials cursor sweep_due since_sweep last_sync last_try last_error report"),
		table("sync_items", "source uri | version hash reason detail retry failures acl"),
	}
}

// RunsTables are the tables of a tenant's runs and of the system, in the same order.
func RunsTables() []Table {
	return []Table{
		single(table("store", "id | tenant sequence registry moved")),
		counted(table("runs", "number | id principal question request created answer error")),
		table("progress", "run | state steps updated cancelled token owner pid machine boot expires"),
		table("log", "sequence | header leaf"),
		table("tree", "position | hash"),
		table("acts", "sequence | kind subject salt payload"),
		table("registry", "kind name | value updated"),
		table("records", "sequence | run ordinal path salt payload"),
		counted(table("long_values", "number | hash data")),
		table("value_uses", "run value |"),
		table("pins", "document version run |"),
		table("offers", "run | key"),
		table("promises", "run | slot request attempts steps"),
		table("spending", "subject period | requests calls tokens micros other_calls other_tokens other_micros"),
		table("admissions", "subject token | run owner pid machine boot expires"),
		table("reservations", "subject token path | run day calls tokens micros"),
		table("reviews", "run | open version created state draft"),
		single(table("outbox_position", "id | act")),
		counted(table("outbox", "number | id act kind target body made attempts due error")),
		table("outbox_targets", "target | delivered last failures removed"),
		table("uses", "name | used"),
		counted(table("shares", "number | run id hash created expires")),
		table("feedback", "run user | verdict body updated"),
		counted(table("questions", "number | set_name run line documents updated")),
	}
}
