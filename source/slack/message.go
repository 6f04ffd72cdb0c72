package slack

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-rag/assay"
	"github.com/assay-rag/assay/source"
	"github.com/assay-rag/assay/source/internal/rest"
)

type messages struct{ Messages []message }

// A message is a message in a channel or a reply.
type message struct {
	TS         string                `json:"ts"`
	ThreadTS   string                `json:"thread_ts"`
	Subtype    string                `json:"subtype"`
	User       string                `json:"user"`
	Username   string                `json:"username"`
	BotProfile struct{ Name string } `json:"bot_profile"`
	Text       string                `json:"text"`
	Edited     struct {
		TS string `json:"ts"`
	} `json:"edited"`
	ReplyCount  int          `json:"reply_count"`
	Files       []file       `json:"files"`
	Attachments []attachment `json:"attachments"`
	Blocks      []any        `json:"blocks"`
}

// An attachment is a secondary part of a message.
type attachment struct {
	Pretext, Title, Text, Fallback string
	Fields                         []struct{ Title, Value string }
}

// A file is a file in a message.
type file struct {
	ID, Name, Title, Mimetype, Mode string
	Size                            int64
	IsExternal                      bool   `json:"is_external"`
	FileAccess                      string `json:"file_access"`
	Private                         string `json:"url_private"`
	Download                        string `json:"url_private_download"`
}

// events are the subtypes of messages that only report what happened in the channel.
var events = []string{"channel_join", "channel_leave", "channel_topic", "channel_purpose", "channel_name", "channel_archive", "channel_unarchive",
	"channel_posting_permissions", "channel_convert_to_private", "group_join", "group_leave", "group_topic", "group_purpose", "group_name", "group_archive",
	"group_unarchive", "pinned_item", "unpinned_item", "bot_add", "bot_remove", "reminder_add"}

// starts reports whether m is the first message of a thread, or one without a thread, and has
// content.
func (m message) starts() bool {
	reply := m.ThreadTS != "" && m.ThreadTS != m.TS
	if m.TS == "" || reply || slices.Contains(events, m.Subtype) {
		return false
	}
	return m.ReplyCount > 0 || len(m.Files) > 0 || m.words() != ""
}

// words returns the text of a message with that of its attachments, in Slack's form.
func (m message) words() string {
	parts := []string{m.Text}
	if strings.TrimSpace(m.Text) == "" {
		parts = blockTexts(m.Blocks, parts, 0)
	}
	for _, a := range m.Attachments {
		n := len(parts)
		parts = append(parts, a.Pretext, a.Title, a.Text)
		for _, f := range a.Fields {
			parts = append(parts, strings.TrimSpace(f.Title+" "+f.Value))
		}
		if strings.Join(parts[n:], "") == "" {
			parts = append(parts, a.Fallback)
		}
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return strings.TrimSpace(s) == "" })
	return strings.Join(parts, "\n")
}

// blockTexts appends the texts in blocks.
func blockTexts(value any, to []string, depth int) []string {
	const most = 50
	if depth > most {
		return to
	}
	switch v := value.(type) {
	case []any:
		for _, member := range v {
			to = blockTexts(member, to, depth+1)
		}
	case map[string]any:
		if text, ok := v["text"].(string); ok {
			return append(to, text)
		}
		for _, key := range []string{"text", "fields", "elements"} {
			to = blockTexts(v[key], to, depth+1)
		}
	}
	return to
}

// timeOf returns the time of a timestamp, which has the form SECONDS.MICROSECONDS.
func timeOf(ts string) time.Time {
	whole, fraction, _ := strings.Cut(ts, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}
	}
	micro, err := strconv.ParseInt((fraction + "000000")[:6], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, micro*1000).UTC()
}

// activity returns the time of the last message or edit in a thread.
func activity(thread []message) time.Time {
	var latest time.Time
	for _, m := range thread {
		for _, ts := range []string{m.TS, m.Edited.TS} {
			if t := timeOf(ts); t.After(latest) && assay.ValidTime(t) {
				latest = t
			}
		}
	}
	return latest
}

// A ref is what Fetch needs: a thread or a file.
type ref struct {
	Channel string `json:"channel,omitempty"`
	Name    string `json:"name,omitempty"` // of the channel
	TS      string `json:"ts,omitempty"`
	File    string `json:"file,omitempty"` // address
}

// items yields a thread and its files.
func (s *slack) items(users *directory, c channel, acl assay.ACL, thread []message) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		first := thread[0]
		uri := s.base + "/archives/" + url.PathEscape(c.ID) + "/p" + url.PathEscape(strings.ReplaceAll(first.TS, ".", ""))
		m := rest.Metadata{}.Text(assay.MetaAuthor, users.author(first)).Text("channel", c.Name)
		m.Time(assay.MetaCreated, timeOf(first.TS)).Time(assay.MetaModified, activity(thread))
		item := source.Item{
			URI: uri, Name: rest.FileName(c.Name+" "+first.TS, ".html"), Type: "text/html", Version: version(thread),
			Metadata: assay.Metadata(m), ACL: acl, Ref: rest.Ref(ref{Channel: c.ID, Name: c.Name, TS: first.TS}),
		}
		if !yield(item, nil) {
			return
		}
		seen := map[string]bool{}
		for _, m := range thread {
			for _, f := range m.Files {
				if f.ID == "" || f.Mode == "tombstone" || seen[f.ID] {
					continue
				}
				seen[f.ID] = true
				if !yield(s.file(users, c, acl, m, f, uri+"?file="+url.QueryEscape(f.ID))) {
					return
				}
			}
		}
	}
}

// file returns a file of a message. Its content never changes.
func (s *slack) file(users *directory, c channel, acl assay.ACL, m message, f file, uri string) (source.Item, error) {
	address := cmp.Or(f.Download, f.Private)
	if f.IsExternal || f.Mode == "external" || f.Mode == "hidden_by_limit" || f.FileAccess == "check_file_info" || address == "" {
		return source.Item{}, &source.Skip{URI: uri, Reason: source.Unsupported, Detail: "a file that Slack does not hold or does not show"}
	}
	if err := s.client.TooLarge(uri, f.Size); err != nil {
		return source.Item{}, err
	}
	meta := rest.Metadata{}.Text(assay.MetaAuthor, users.author(m)).Text("channel", c.Name).Time(assay.MetaCreated, timeOf(m.TS))
	return source.Item{
		URI: uri, Name: rest.FileName(cmp.Or(f.Name, f.Title), ""), Type: f.Mimetype, Version: f.ID, Size: max(f.Size, 0),
		Metadata: assay.Metadata(meta), ACL: acl, Ref: rest.Ref(ref{File: address}),
	}, nil
}

// version returns a hash of the words, edits and files of a thread.
func version(thread []message) string {
	h := sha256.New()
	encoder := json.NewEncoder(h)
	for _, m := range thread {
		parts := []string{m.TS, m.Edited.TS, m.User, m.Username, m.words()}
		for _, f := range m.Files {
			parts = append(parts, f.ID, f.Name, f.Title)
		}
		if err := encoder.Encode(parts); err != nil {
			panic("slack: strings that are no JSON: " + err.Error())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// A directory holds the users of a workspace.
type directory struct{ users map[string]user }

type user struct {
	ID      string
	Name    string
	Deleted bool
	IsBot   bool `json:"is_bot"`
	Profile struct {
		Email       string
		DisplayName string `json:"display_name"`
		RealName    string `json:"real_name"`
	}
}

// directory returns the users of the workspace. fresh reads them again.
func (s *slack) directory(ctx context.Context, fresh bool) (*directory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users != nil && !fresh {
		return s.users, nil
	}
	type page struct{ Members []user }
	d := &directory{users: map[string]user{}}
	for p, err := range all(ctx, s, "users.list", url.Values{}, func(p page) int { return len(p.Members) }) {
		if err != nil {
			return nil, err
		}
		for _, u := range p.Members {
			d.users[u.ID] = u
		}
	}
	s.users = d
	return d, nil
}

// principal returns the principal of a user, or "" for a bot and a deactivated user.
func (d *directory) principal(id string) string {
	u := d.users[id]
	if u.Deleted || u.IsBot {
		return ""
	}
	return rest.User(u.Profile.Email, id)
}

// name returns the name of a user, or the id.
func (d *directory) name(id string) string {
	u := d.users[id]
	return cmp.Or(u.Profile.DisplayName, u.Profile.RealName, u.Name, id)
}

// author returns the name of the author of a message.
func (d *directory) author(m message) string {
	if m.User != "" {
		return d.name(m.User)
	}
	return cmp.Or(m.Username, m.BotProfile.Name)
}
