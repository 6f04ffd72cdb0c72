package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-rag/assay"
)

func testAct() Act {
	return Act{
		Sequence: 7, Kind: "key.revoked", Subject: "k1", Time: time.Unix(1, 2).UTC(), Registry: true,
		Actor: assay.Local(), Reason: "it leaked", Detail: json.RawMessage(`{"scopes":["ask"]}`),
		Item: &Item{Kind: "key", Name: "k1", Value: strings.Repeat("0", 64), Updated: 3},
	}
}

func TestSealAct(t *testing.T) {
	want := testAct()
	s, err := SealAct(want, testSalt)
	if err != nil {
		t.Fatal(err)
	}
	got, err := OpenAct(s.Header, s.Payload, testSalt, s.Leaf)
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("OpenAct = %s, %v", cmp.Diff(want, got), err)
	}
	erased, err := OpenAct(s.Header, nil, nil, s.Leaf)
	if err != nil || !cmp.Equal(erased, Act{Sequence: 7, Kind: "key.revoked", Subject: "k1", Time: want.Time, Registry: true}) {
		t.Errorf("an erased act: %+v, %v", erased, err)
	}
	for _, secret := range []string{"leaked", "ask", "local"} {
		if bytes.Contains(s.Header, []byte(secret)) {
			t.Errorf("the header has %q, which cannot be erased: %s", secret, s.Header)
		}
	}
	h, err := OpenHeader(s.Header, s.Leaf)
	if err != nil || h.Act != want.Kind || h.Subject != want.Subject || h.Sequence != 7 {
		t.Errorf("OpenHeader = %+v, %v", h, err)
	}
	if err := h.CheckPayload(s.Payload, testSalt); err != nil {
		t.Error(err)
	}
	if err := h.CheckPayload(append(s.Payload, ' '), testSalt); !errors.Is(err, assay.ErrDamaged) {
		t.Errorf("CheckPayload of another: %v", err)
	}
	rec := mustSeal(t, testRecord())
	h, err = OpenHeader(rec.Header, rec.Leaf)
	if err != nil || h.Act != "" || h.Path != testRecord().Path || h.Run != testRecord().Run {
		t.Errorf("OpenHeader of a record = %+v, %v", h, err)
	}
}

func TestSealActInvalid(t *testing.T) {
	for name, change := range map[string]func(*Act){
		"no kind":      func(a *Act) { a.Kind = "" },
		"one word":     func(a *Act) { a.Kind = "revoked" },
		"capitals":     func(a *Act) { a.Kind = "Key.revoked" },
		"spaces":       func(a *Act) { a.Kind = "key revoked" },
		"subject":      func(a *Act) { a.Subject = "\xff" },
		"reason":       func(a *Act) { a.Reason = "\xff" },
		"detail":       func(a *Act) { a.Detail = json.RawMessage(`{`) },
		"item":         func(a *Act) { a.Item.Name = "\xff" },
		"empty detail": func(a *Act) { a.Detail = json.RawMessage{} },
	} {
		a := testAct()
		change(&a)
		if _, err := SealAct(a, testSalt); !errors.Is(err, assay.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := SealAct(testAct(), testSalt[1:]); !errors.Is(err, assay.ErrInvalid) {
		t.Errorf("a short salt: %v", err)
	}
}

// FuzzOpenAct opens foreign headers and payloads whose hashes match.
func FuzzOpenAct(f *testing.F) {
	s, err := SealAct(testAct(), testSalt)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(s.Header, s.Payload)
	f.Add([]byte(`{"act":"a.b","format":2}`), []byte(`{}`))
	f.Add([]byte(`{"act":"a.b","format":1,"payload":"","sequence":-1,"subject":"","time":"x"}`), []byte(`{"actor":{},"reason":"","detail":[1e999]}`))
	f.Fuzz(func(t *testing.T, header, payload []byte) {
		leaf := leafHash(header)
		if _, err := OpenHeader(header, leaf); err != nil && !errors.Is(err, assay.ErrDamaged) && !errors.Is(err, assay.ErrNewer) {
			t.Fatalf("OpenHeader: %v", err)
		}
		if h, err := OpenHeader(header, [32]byte{}); err == nil {
			t.Fatalf("a header of another leaf: %+v", h)
		}
		var h map[string]any
		if json.Unmarshal(header, &h) == nil && h["payload"] != nil { // give it the hash of this payload
			h["payload"] = payloadHash(testSalt, payload)
			if sealed, err := Canonical(h); err == nil {
				header = sealed
			}
		}
		a, err := OpenAct(header, payload, testSalt, leafHash(header))
		if err != nil {
			if !errors.Is(err, assay.ErrDamaged) && !errors.Is(err, assay.ErrNewer) {
				t.Fatalf("OpenAct: %v", err)
			}
			return
		}
		again, err := SealAct(a, testSalt)
		if err != nil {
			return // a kind that is no kind
		}
		if b, err := OpenAct(again.Header, again.Payload, testSalt, again.Leaf); err != nil || payload != nil && !sameAct(a, b) {
			t.Fatalf("sealed again it differs: %s, %v", cmp.Diff(a, b), err)
		}
	})
}

// sameAct compares acts by their sealed form.
func sameAct(a, b Act) bool {
	one, err := SealAct(a, testSalt)
	two, err2 := SealAct(b, testSalt)
	return err == nil && err2 == nil && bytes.Equal(one.Header, two.Header) && bytes.Equal(one.Payload, two.Payload)
}
