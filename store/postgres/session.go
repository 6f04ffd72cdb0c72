package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/assay-rag/assay"
)

// replyWait bounds how long a reply of the server may take beyond the server's own limits. Then the
// connection is taken for lost.
const replyWait = 30 * time.Second

// fetchRows is how many rows of a result are read at a time.
const fetchRows = 1000

// A session is a connection with prepared statements. It uses the extended query protocol, so that
// several statements take one round trip, and so that the rows of a query are fetched in portions,
// between which further queries run on the same connection. It is not safe for concurrent use.
type session struct {
	conn   *pgconn.PgConn
	limit  time.Duration // for a reply
	stmts  map[string]*statement
	named  int    // statements that were ever sent to be prepared
	depth  int    // results that are being read
	prefix []call // calls that are sent before the next one
	broken error  // set once the connection is lost
	ctx    context.Context
}

// A statement is a prepared statement.
type statement struct {
	name string
	oids []uint32 // types of the columns
}

// A call is a statement to be executed.
type call struct {
	query  string
	args   []any
	portal string
	most   uint32 // rows to be returned; 0: all
}

// A result is what a call returned.
type result struct {
	oids     []uint32
	rows     [][][]byte
	affected int64
	all      int64 // rows that all calls affected
	more     bool  // there may be further rows
}

// sessionOf returns the session of a connection of a pool.
func sessionOf(conn *pgconn.PgConn, limit time.Duration) *session {
	const key = "assay session"
	s, ok := conn.CustomData()[key].(*session)
	if !ok {
		s = &session{conn: conn, limit: limit + replyWait, stmts: map[string]*statement{}, ctx: context.Background()}
		conn.CustomData()[key] = s
	}
	return s
}

// do executes the calls in one round trip and returns the result of the last one.
func (s *session) do(calls ...call) (result, error) {
	calls = append(s.prefix, calls...)
	s.prefix = nil
	if s.broken != nil {
		return result{}, s.broken
	}
	x := exchange{s: s, calls: calls}
	if err := x.send(); err != nil {
		return result{}, err
	}
	err := x.receive()
	if err == nil {
		err = x.err
	}
	return x.last, err
}

// lose gives the connection up.
func (s *session) lose(err error) error {
	s.broken = &lostError{err}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.CancelRequest(ctx) // a statement that waits for a lock would wait on
	_ = s.conn.Close(ctx)
	return s.broken
}

// A lostError says that the connection to the server was lost, so that it is not known whether the
// last statement was executed.
type lostError struct{ err error }

func (e *lostError) Error() string   { return "the connection to the server was lost: " + e.err.Error() }
func (e *lostError) Unwrap() []error { return []error{assay.ErrUnavailable, e.err} }

func isLost(err error) bool {
	var lost *lostError
	return errors.As(err, &lost)
}

// An exchange is one round trip.
type exchange struct {
	s     *session
	calls []call
	stmts []*statement
	fresh []bool // whether the statement of a call is prepared in this exchange
	last  result
	err   error // of a statement
}

// send sends the calls.
func (x *exchange) send() error {
	f := x.s.conn.Frontend()
	for _, c := range x.calls {
		st, known := x.s.stmts[c.query]
		if !known {
			st = x.pending(c.query)
		}
		fresh := !known && st == nil
		if fresh {
			x.s.named++
			st = &statement{name: "s" + strconv.Itoa(x.s.named)}
			f.SendParse(&pgproto3.Parse{Name: st.name, Query: numbered(c.query)})
			f.SendDescribe(&pgproto3.Describe{ObjectType: 'S', Name: st.name})
		}
		x.stmts, x.fresh = append(x.stmts, st), append(x.fresh, fresh)
		bind := pgproto3.Bind{DestinationPortal: c.portal, PreparedStatement: st.name, ResultFormatCodes: []int16{pgproto3.BinaryFormat}}
		for _, arg := range c.args {
			value, format, err := encode(arg)
			if err != nil {
				return x.s.lose(err) // messages are buffered already
			}
			bind.Parameters, bind.ParameterFormatCodes = append(bind.Parameters, value), append(bind.ParameterFormatCodes, format)
		}
		if c.portal != "" {
			f.SendClose(&pgproto3.Close{ObjectType: 'P', Name: c.portal})
		}
		f.SendBind(&bind)
		f.SendExecute(&pgproto3.Execute{Portal: c.portal, MaxRows: c.most})
	}
	return x.s.flush(f)
}

// pending returns the statement that an earlier call of the exchange prepares.
func (x *exchange) pending(query string) *statement {
	for i, st := range x.stmts {
		if x.calls[i].query == query {
			return st
		}
	}
	return nil
}

// flush ends a series of messages and sends them.
func (s *session) flush(f *pgproto3.Frontend) error {
	f.SendSync(&pgproto3.Sync{})
	err := s.conn.Conn().SetDeadline(time.Now().Add(s.limit))
	if err == nil {
		err = f.Flush()
	}
	if err != nil {
		return s.lose(err)
	}
	return nil
}

// receive reads the replies up to the end of the exchange. Its error means that the connection is
// lost.
func (x *exchange) receive() error {
	at := 0                  // the call that replies
	var described *statement // that the next row description is of
	next := 0                // the call whose statement is prepared next
	for {
		msg, err := x.s.conn.ReceiveMessage(x.s.ctx)
		if err != nil {
			return x.s.lose(err)
		}
		switch msg := msg.(type) {
		case *pgproto3.ParseComplete:
			for !x.fresh[next] {
				next++
			}
			described = x.stmts[next]
			x.s.stmts[x.calls[next].query] = described
			next++
		case *pgproto3.RowDescription:
			for _, field := range msg.Fields {
				described.oids = append(described.oids, field.DataTypeOID)
			}
		case *pgproto3.DataRow:
			if at == len(x.calls)-1 {
				x.last.rows = append(x.last.rows, copied(msg.Values))
			}
		case *pgproto3.CommandComplete:
			x.last.affected = pgconn.NewCommandTag(string(msg.CommandTag)).RowsAffected()
			x.last.all += x.last.affected
			at++
		case *pgproto3.PortalSuspended:
			x.last.more = true
			at++
		case *pgproto3.EmptyQueryResponse:
			at++
		case *pgproto3.ErrorResponse:
			x.err = pgconn.ErrorResponseToPgError(msg)
		case *pgproto3.ReadyForQuery:
			x.last.oids = x.stmts[len(x.stmts)-1].oids
			return nil
		}
	}
}

// copied returns a row in memory of its own.
func copied(values [][]byte) [][]byte {
	size := 0
	for _, v := range values {
		size += len(v)
	}
	row, all := make([][]byte, len(values)), make([]byte, 0, size)
	for i, v := range values {
		if v != nil {
			all = append(all, v...)
			row[i] = all[len(all)-len(v) : len(all) : len(all)]
		}
	}
	return row
}

// fetch reads further rows of a portal.
func (s *session) fetch(portal string, oids []uint32) (result, error) {
	if s.broken != nil {
		return result{}, s.broken
	}
	f := s.conn.Frontend()
	f.SendExecute(&pgproto3.Execute{Portal: portal, MaxRows: fetchRows})
	if err := s.flush(f); err != nil {
		return result{}, err
	}
	x := exchange{s: s, calls: []call{{}}, stmts: []*statement{{oids: oids}}}
	if err := x.receive(); err != nil {
		return result{}, err
	}
	return x.last, x.err
}

// row scans the first row of a query.
func (s *session) row(query string, args []any, dest []any) error {
	r, err := s.do(call{query: query, args: args, most: 1})
	if err != nil {
		return err
	}
	return r.scanFirst(dest)
}

// each calls fn for each row of a query. Within a transaction, fn may use the session.
func (s *session) each(ctx context.Context, query string, args []any, fn func(scan func(...any) error) error) error {
	portal := "p" + strconv.Itoa(s.depth)
	s.depth++
	defer func() { s.depth-- }()
	r, err := s.do(call{query: query, args: args, portal: portal, most: fetchRows})
	for {
		if err != nil {
			return err
		}
		for _, row := range r.rows {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := fn(func(dest ...any) error { return scan(r.oids, row, dest) }); err != nil {
				return err
			}
		}
		if !r.more {
			return nil
		}
		r, err = s.fetch(portal, r.oids)
	}
}

// script runs statements without parameters in one round trip.
func (s *session) script(ctx context.Context, text string) error {
	if s.broken != nil {
		return s.broken
	}
	if err := s.conn.Conn().SetDeadline(time.Time{}); err != nil {
		return s.lose(err)
	}
	_, err := s.conn.Exec(ctx, text).ReadAll()
	var pg *pgconn.PgError
	if err != nil && !errors.As(err, &pg) {
		return s.lose(err)
	}
	return err
}

// numbered writes the parameters ? and ?N of a query as PostgreSQL does.
func numbered(query string) string {
	var b strings.Builder
	count, quoted := 0, false
	for i := 0; i < len(query); i++ {
		c := query[i]
		if c == '\'' {
			quoted = !quoted
		}
		if c != '?' || quoted {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('$')
		if i+1 < len(query) && '0' <= query[i+1] && query[i+1] <= '9' {
			continue // the number follows
		}
		count++
		b.WriteString(strconv.Itoa(count))
	}
	return b.String()
}

// classify adds one of assay's kinds to an error from the server, if one fits.
func classify(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	kind := kindOfCode(pg.Code)
	if kind == nil || errors.Is(err, kind) {
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// kindOfCode returns the kind of an error by its SQLSTATE.
func kindOfCode(code string) error {
	switch code {
	case "42P01", "3F000": // undefined table, invalid schema name: the tenant was deleted
		return assay.ErrNotFound
	case "25006", "42501": // read-only transaction, insufficient privilege
		return assay.ErrReadOnly
	case "55P03": // lock not available
		return assay.ErrLocked
	case "22021", "22P05", "54000", "22003": // not a character, program limit, out of range
		return assay.ErrInvalid
	case "XX001", "XX002": // damaged data, damaged index
		return assay.ErrDamaged
	case "53100": // disk full
		return assay.ErrFull
	}
	return nil
}

var _ io.Closer = (*session)(nil)

// Close closes the connection.
func (s *session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), replyWait)
	defer cancel()
	return s.conn.Close(ctx)
}
