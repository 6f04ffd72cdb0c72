// Package slack reads the messages of Slack: each message in a channel with its thread is a
// document, and each file in it is another.
//
// Slack has no feed of changes for this interface, and the first message of a thread does not show
// edits of its replies. Each sync therefore lists all messages up to the configured age, and reads
// the replies of each thread.
//
// Sources: "Slack Web API" (2025): conversations.list, conversations.history, conversations.replies,
// conversations.members, users.list, Pagination, Rate limits, "File object" and "Formatting text".
package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/internal/secret"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/internal/rest"
)

const name = "slack"

// Kind returns the kind of source.
func Kind() source.Kind {
	return source.Kind{
		Name:   name,
		Short:  "messages, threads and files of Slack",
		Target: "https://WORKSPACE.slack.com",
		Help: `Reads the channels in which the app is a member: each message with its thread is a document,
each file in it another. Messages older than the option days are neither read nor kept. Direct
messages are not read.

Needs an app with a bot token and the scopes channels:history, channels:read, groups:history,
groups:read, files:read, users:read and users:read.email. Slack limits some apps that are not from
its marketplace to one request each minute; apps made for the own workspace are exempt.

Readers are the members of the channel: "user:EMAIL", or "user:USER-ID" if the e-mail address is
not known. With --set public=everyone, public channels are for all principals, also for guests, to
whom Slack does not show them.`,
		Options: []source.Option{
			{Name: "channels", Help: "names or ids of the channels, separated by commas; empty: all of the app"},
			{Name: "days", Default: "365", Help: "age in days up to which messages are read and kept"},
			{Name: "public", Default: "members", Help: "readers of public channels: members or everyone"},
			{Name: "endpoint", Default: "https://slack.com/api", Help: "address of the interface"},
		},
		SweepOnly:   true,
		Hosts:       []string{"files.slack.com:443"},
		Credentials: []source.Credential{{Name: "token", Env: "SLACK_TOKEN", Help: "bot token of the app"}},
		Open:        open,
	}
}

type slack struct {
	client   *rest.Client
	base     string // of the workspace
	path     string // of the endpoint
	channels []string
	keep     time.Duration
	everyone bool // may read public channels

	mu    sync.Mutex
	users *directory
}

func open(_ context.Context, c source.Config) (source.Source, error) {
	c = c.WithDefaults()
	s := &slack{base: strings.TrimRight(c.Target, "/"), channels: rest.List(c.Options["channels"])}
	u, err := url.Parse(s.base)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return nil, rest.Invalid(name, "%q is no address of a workspace, such as https://acme.slack.com", c.Target)
	}
	if s.keep, err = days(c, "days"); err != nil {
		return nil, err
	}
	switch c.Options["public"] {
	case "members":
	case "everyone":
		s.everyone = true
	default:
		return nil, rest.Invalid(name, "the option public is %q, not members or everyone", c.Options["public"])
	}
	token, err := rest.Required(name, c, "token")
	if err != nil {
		return nil, err
	}
	endpoint, err := url.Parse(strings.TrimRight(c.Options["endpoint"], "/"))
	if err != nil {
		return nil, rest.Invalid(name, "%q is no address of an interface", c.Options["endpoint"])
	}
	s.path = endpoint.Path
	var trusted []string
	if endpoint.Host == "slack.com" {
		trusted = []string{"https://files.slack.com"} // which needs the token
	}
	s.client, err = rest.New(rest.Config{
		Name: name + " " + u.Host, Base: endpoint.String(), Trusted: trusted, Settings: c, Secrets: []string{token}, Throttled: throttled,
		Authorize: func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+token)
			return nil
		},
	})
	return s, err
}

// days returns an option with a number of days, from 1 to 36,500.
func days(c source.Config, option string) (time.Duration, error) {
	const most = 36_500
	n, err := strconv.Atoi(c.Options[option])
	if err != nil || n < 1 || n > most {
		return 0, rest.Invalid(name, "the option %s is %q, not a number of days from 1 to %d", option, c.Options[option], most)
	}
	return time.Duration(n) * 24 * time.Hour, nil
}

// Close implements source.Source.
func (s *slack) Close() error { return s.client.Close() }

// An envelope is a part of each reply.
type envelope struct {
	OK               bool
	Error            string
	ResponseMetadata struct {
		NextCursor string `json:"next_cursor"`
	} `json:"response_metadata"`
}

// Errors of methods.
//
// Source: the lists of errors of the methods. Methods report errors with the status 200.
var (
	again   = []string{"ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout"}
	refused = []string{"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "no_permission", "missing_scope",
		"not_allowed_token_type", "org_login_required", "ekm_access_denied", "team_access_not_granted", "access_denied"}
	missing = []string{"channel_not_found", "thread_not_found", "message_not_found", "file_not_found", "file_deleted", "not_in_channel"}
)

// throttled reports whether a reply asks to try again.
func throttled(_ int, body []byte) bool {
	var e envelope
	return json.Unmarshal(body, &e) == nil && !e.OK && slices.Contains(again, e.Error)
}

// call calls a method. It returns the cursor of the next page.
func (s *slack) call(ctx context.Context, method string, query url.Values, into any) (next string, err error) {
	var raw json.RawMessage
	if err := s.client.Get(ctx, s.path+"/"+method, query, &raw); err != nil {
		return "", err
	}
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		return "", s.client.Malformed("%s: %v", method, err)
	}
	switch {
	case e.OK:
	case slices.Contains(refused, e.Error):
		return "", s.client.Failed(http.StatusUnauthorized, "%s: %s", method, e.Error)
	case slices.Contains(missing, e.Error):
		return "", s.client.Failed(http.StatusNotFound, "%s: %s", method, e.Error)
	default:
		return "", s.client.Fail("%s: %s", method, secret.Redact(e.Error))
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return "", s.client.Malformed("%s: %v", method, err)
	}
	return e.ResponseMetadata.NextCursor, nil
}

// all yields the pages of a method.
func all[T any](ctx context.Context, s *slack, method string, query url.Values, size func(T) int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query.Set("limit", "200")
		pager := s.client.Pager()
		for {
			var page T
			next, err := s.call(ctx, method, query, &page)
			if err == nil && next != "" {
				err = pager.Next(next, size(page))
			}
			if !yield(page, err) || err != nil || next == "" {
				return
			}
			query.Set("cursor", next)
		}
	}
}

// A channel is a conversation.
type channel struct {
	ID, Name  string
	IsPrivate bool `json:"is_private"`
	IsMember  bool `json:"is_member"`
}

// listChannels returns the channels that are read, sorted, and a skip for each channel that is
// configured and not readable.
func (s *slack) listChannels(ctx context.Context) (channels []channel, skips []*source.Skip, err error) {
	type page struct{ Channels []channel }
	found := map[string]bool{}
	query := url.Values{"types": {"public_channel,private_channel"}}
	for p, err := range all(ctx, s, "conversations.list", query, func(p page) int { return len(p.Channels) }) {
		if err != nil {
			return nil, nil, err
		}
		for _, c := range p.Channels {
			wanted := len(s.channels) == 0 || slices.Contains(s.channels, c.ID) || slices.Contains(s.channels, c.Name) || slices.Contains(s.channels, "#"+c.Name)
			if !wanted || !c.IsMember || c.ID == "" || found[c.ID] {
				continue
			}
			found[c.ID], found[c.Name], found["#"+c.Name] = true, true, true
			channels = append(channels, c)
		}
	}
	for _, wanted := range s.channels {
		if !found[wanted] {
			skips = append(skips, &source.Skip{URI: s.base + "/archives/" + url.PathEscape(wanted), Reason: source.Unreadable, Folder: true,
				Detail: "the channel does not exist, or the app is not a member"})
		}
	}
	slices.SortFunc(channels, func(a, b channel) int { return strings.Compare(a.ID, b.ID) })
	return channels, skips, nil
}

// Changes implements source.Source.
func (s *slack) Changes(ctx context.Context, _ string) iter.Seq2[source.Change, error] {
	return source.ChangesOf(s.Sweep(ctx))
}

// Sweep implements source.Source.
func (s *slack) Sweep(ctx context.Context) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		channels, skips, err := s.listChannels(ctx)
		if err != nil {
			yield(source.Item{}, err)
			return
		}
		for _, skip := range skips {
			if !yield(source.Item{}, skip) {
				return
			}
		}
		users, err := s.directory(ctx, true)
		if err != nil {
			yield(source.Item{}, err)
			return
		}
		for _, c := range channels {
			if !s.sweepChannel(ctx, users, c, yield) {
				return
			}
		}
	}
}

// sweepChannel yields the threads and files of a channel. A channel that was deleted, or left by the
// app, since the list was made has none. It reports whether the iteration continues.
func (s *slack) sweepChannel(ctx context.Context, users *directory, c channel, yield func(source.Item, error) bool) bool {
	acl, err := s.readers(ctx, users, c)
	if rest.Gone(err) {
		return true
	}
	if err != nil {
		yield(source.Item{}, err)
		return false
	}
	for thread, err := range s.history(ctx, c, s.client.Now().Add(-s.keep)) {
		if rest.Gone(err) {
			return true
		}
		if err != nil {
			yield(source.Item{}, err)
			return false
		}
		for item, err := range s.items(users, c, acl, thread) {
			if !yield(item, err) {
				return false
			}
		}
	}
	return true
}

// readers returns the ACL of a channel: its members.
func (s *slack) readers(ctx context.Context, users *directory, c channel) (assay.ACL, error) {
	if s.everyone && !c.IsPrivate {
		return assay.RestrictTo("*")
	}
	type page struct{ Members []string }
	var names []string
	for p, err := range all(ctx, s, "conversations.members", url.Values{"channel": {c.ID}}, func(p page) int { return len(p.Members) }) {
		if err != nil {
			return assay.ACL{}, err
		}
		for _, id := range p.Members {
			if principal := users.principal(id); principal != "" {
				names = append(names, principal)
			}
		}
	}
	return assay.RestrictTo(names...)
}

// history yields the threads of a channel, the latest first. Replies are read for each thread, since
// the first message does not show edits of replies.
func (s *slack) history(ctx context.Context, c channel, oldest time.Time) iter.Seq2[[]message, error] {
	return func(yield func([]message, error) bool) {
		query := url.Values{"channel": {c.ID}, "oldest": {fmt.Sprintf("%d.%06d", oldest.Unix(), oldest.Nanosecond()/1000)}, "inclusive": {"true"}}
		for p, err := range all(ctx, s, "conversations.history", query, func(p messages) int { return len(p.Messages) }) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, m := range p.Messages {
				if !m.starts() {
					continue
				}
				thread := []message{m}
				if m.ReplyCount > 0 {
					if thread, err = s.thread(ctx, c.ID, m.TS); rest.Gone(err) {
						continue // deleted since the list was made
					}
				}
				if !yield(thread, err) || err != nil {
					return
				}
			}
		}
	}
}

// thread returns a message and its replies.
func (s *slack) thread(ctx context.Context, channel, ts string) ([]message, error) {
	var thread []message
	seen := map[string]bool{}
	query := url.Values{"channel": {channel}, "ts": {ts}}
	for p, err := range all(ctx, s, "conversations.replies", query, func(p messages) int { return len(p.Messages) }) {
		if err != nil {
			return nil, err
		}
		for _, m := range p.Messages {
			if !seen[m.TS] { // each page may repeat the first message
				seen[m.TS] = true
				thread = append(thread, m)
			}
		}
	}
	if len(thread) == 0 || thread[0].TS != ts {
		return nil, s.client.Failed(http.StatusNotFound, "the message does not exist")
	}
	return thread, nil
}

// Fetch implements source.Source. A thread is HTML.
func (s *slack) Fetch(ctx context.Context, item source.Item) (source.Content, error) {
	var r ref
	if err := rest.Unref(item, &r); err != nil {
		return source.Content{}, err
	}
	began := s.client.Now()
	if r.File != "" {
		return s.fetchFile(ctx, item, r, began)
	}
	thread, err := s.thread(ctx, r.Channel, r.TS)
	if err != nil {
		return source.Content{}, rest.Skipped(item.URI, err)
	}
	users, err := s.directory(ctx, false)
	if err != nil {
		return source.Content{}, err
	}
	data := []byte(threadHTML(r.Name, thread, users))
	if err := s.client.TooLarge(item.URI, int64(len(data))); err != nil {
		return source.Content{}, err
	}
	return source.Content{Data: data, Read: began}, nil
}

// fetchFile returns the content of a file. Slack answers a request without sufficient rights with a
// page for signing in.
func (s *slack) fetchFile(ctx context.Context, item source.Item, r ref, began time.Time) (source.Content, error) {
	if _, err := s.client.Address(r.File, nil); err != nil {
		return source.Content{}, &source.Skip{URI: item.URI, Reason: source.Unreadable, Detail: "its file is on another host", Err: err}
	}
	got, err := s.client.Download(ctx, r.File, nil)
	if err != nil {
		return source.Content{}, rest.Skipped(item.URI, err)
	}
	if strings.HasPrefix(got.Type, "text/html") && !strings.HasPrefix(item.Type, "text/html") {
		return source.Content{}, &source.Skip{URI: item.URI, Reason: source.Unreadable, Detail: "Slack returned a page instead of the file; the app may lack the scope files:read"}
	}
	return source.Content{Data: got.Data, Read: began}, nil
}
