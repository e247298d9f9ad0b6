package selfissued

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

const (
	day         = 24 * time.Hour
	lifetime    = 90 * day
	renewBefore = 30 * day
)

func mustIssue(t *testing.T, now time.Time, names ...string) Issued {
	t.Helper()
	made, err := Issue(Terms{Subject: "test", Names: names, Lifetime: lifetime}, now)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// secretWith is the data of a Secret with a certificate from start.
func secretWith(t *testing.T, names ...string) map[string][]byte {
	t.Helper()
	return Material{}.Replaced(nil, mustIssue(t, start, names...))
}

// stagedAt is such a Secret with a successor of that time.
func stagedAt(t *testing.T, at time.Time, names ...string) map[string][]byte {
	t.Helper()
	data := secretWith(t, "a", "b")
	return Read(data, at).Staged(data, mustIssue(t, at, names...))
}

func damaged(data map[string][]byte, key string) map[string][]byte {
	return with(data, map[string][]byte{key: []byte("damaged")})
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const renewal = lifetime - renewBefore
	renewed := start.Add(renewal)
	good := secretWith(t, "a", "b")
	foreign := with(good, map[string][]byte{keyAuthorities: mustIssue(t, start, "a", "b").Authority})
	swapped := with(good, map[string][]byte{keyPrivate: mustIssue(t, start, "a", "b").Key})
	tests := map[string]struct {
		reason string
		data   map[string][]byte
		after  time.Duration
		want   Decision
	}{
		"nothing":            {reason: "the first replica of a cluster", want: Decision{Action: Replace, Names: []string{"a", "b"}}},
		"good":               {data: good, want: Decision{Action: Keep, Wait: renewal}},
		"good for longer":    {data: good, after: 10 * day, want: Decision{Action: Keep, Wait: renewal - 10*day}},
		"clock behind":       {reason: "the certificate is valid a little earlier", data: good, after: -backdate, want: Decision{Action: Keep, Wait: renewal + backdate}},
		"clock far behind":   {reason: "the certificate would be refused", data: good, after: -backdate - time.Second, want: Decision{Action: Replace, Names: []string{"a", "b"}}},
		"no key":             {data: without(with(good, nil), keyPrivate), want: Decision{Action: Replace, Names: []string{"a", "b"}}},
		"damaged":            {data: damaged(good, keyCertificate), want: Decision{Action: Replace, Names: []string{"a", "b"}}},
		"no authority":       {data: damaged(good, keyAuthorities), want: Decision{Action: Replace, Names: []string{"a", "b"}}},
		"another authority":  {reason: "nobody would trust the certificate", data: foreign, want: Decision{Action: Replace, Names: []string{"a", "b"}}},
		"another key":        {data: swapped, want: Decision{Action: Replace, Names: []string{"a", "b"}}},
		"expired":            {reason: "the controller was off for long", data: good, after: lifetime + time.Second, want: Decision{Action: Replace, Names: []string{"a", "b"}}},
		"other names":        {reason: "replicas with the other URL go on", data: secretWith(t, "c"), want: Decision{Action: Replace, Names: []string{"a", "b", "c"}}},
		"more names":         {data: secretWith(t, "a", "b", "c"), want: Decision{Action: Keep, Wait: renewal}},
		"addresses":          {data: secretWith(t, "127.0.0.1", "::1"), want: Decision{Action: Replace, Names: []string{"127.0.0.1", "::1", "a", "b"}}},
		"near its end":       {data: good, after: renewal, want: Decision{Action: Stage, Names: []string{"a", "b"}}},
		"just staged":        {data: stagedAt(t, renewed, "a", "b"), after: renewal, want: Decision{Action: Keep, Wait: TrustDelay}},
		"staged for a while": {data: stagedAt(t, renewed, "a", "b"), after: renewal + TrustDelay - 1, want: Decision{Action: Keep, Wait: 1}},
		"trusted":            {data: stagedAt(t, renewed, "a", "b"), after: renewal + TrustDelay, want: Decision{Action: Promote}},
		"staged too early":   {reason: "a clock was wrong: the order of events stays", data: stagedAt(t, start.Add(day), "a", "b"), after: day, want: Decision{Action: Keep, Wait: renewal - day}},
		"staged for others":  {data: stagedAt(t, renewed, "c"), after: renewal, want: Decision{Action: Stage, Names: []string{"a", "b"}}},
		"damaged successor":  {data: damaged(stagedAt(t, renewed, "a", "b"), keyNextPrivate), after: renewal, want: Decision{Action: Stage, Names: []string{"a", "b"}}},
		"useless successor":  {reason: "it ends with the current one", data: stagedAt(t, start, "a", "b"), after: renewal, want: Decision{Action: Stage, Names: []string{"a", "b"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := start.Add(tt.after)
			got := Decide(Read(tt.data, now), []string{"b", "a"}, now)
			if (got.Action == Keep) != (got.Reason == "") {
				t.Errorf("reason %q for action %d", got.Reason, got.Action)
			}
			got.Reason = ""
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", tt.reason, diff)
			}
		})
	}
}

// What is served at any time was trusted by whoever had read the Secret as it
// was before the change, for years on end.
func TestRenewalWithoutInterruption(t *testing.T) {
	t.Parallel()
	data := secretWith(t, "a")
	changes := map[Action]int{}
	for now := start; now.Before(start.Add(3 * 365 * day)); {
		found := Read(data, now)
		decision := Decide(found, []string{"a"}, now)
		changes[decision.Action]++
		if decision.Action == Keep {
			now = now.Add(decision.Wait)
			continue
		}
		changed := found.Promoted(data)
		if decision.Action == Stage {
			changed = found.Staged(data, mustIssue(t, now, decision.Names...))
		}
		after := Read(changed, now)
		if after.Current == nil || found.Current == nil {
			t.Fatalf("at %v there is nothing to serve", now)
		}
		for _, side := range []struct {
			trusted Material
			served  Material
		}{{found, after}, {after, found}} {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(side.trusted.Bundle())
			options := x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: "a"}
			if _, err := side.served.Current.Leaf.Verify(options); err != nil {
				t.Fatalf("action %d: %v", decision.Action, err)
			}
		}
		if count := len(after.Authorities); count > 3 {
			t.Errorf("%d authorities are trusted", count)
		}
		data = changed
	}
	if changes[Replace] != 0 || changes[Stage] < 15 || changes[Promote] != changes[Stage] {
		t.Errorf("actions %v", changes)
	}
}

// Names that change all the time do not fill the Secret.
func TestAuthoritiesAreBounded(t *testing.T) {
	t.Parallel()
	data := secretWith(t, "a")
	for i := range 20 {
		now := start.Add(time.Duration(i) * time.Minute)
		data = Read(data, now).Replaced(data, mustIssue(t, now, "a"))
		if Read(data, now).Current == nil {
			t.Fatal("the current authority was dropped")
		}
	}
	if got := len(Read(data, start.Add(time.Hour)).Authorities); got > maxAuthorities+1 {
		t.Errorf("%d authorities are trusted", got)
	}
}

func TestIssueRefusesNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".", "ü.example", ""} {
		if _, err := Issue(Terms{Subject: "test", Names: []string{"a.svc", name}, Lifetime: lifetime}, start); err == nil {
			t.Errorf("there is a certificate for %q", name)
		}
	}
}

func TestIssue(t *testing.T) {
	t.Parallel()
	data := secretWith(t, "b.svc", "a.svc", "10.0.0.1")
	pair := Read(data, start).Current
	if pair == nil {
		t.Fatal("the certificate cannot be used")
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		t.Errorf("got a key of type %T", pair.PrivateKey)
	}
	leaf := pair.Leaf
	if diff := cmp.Diff([]string{"a.svc", "b.svc"}, leaf.DNSNames); diff != "" || len(leaf.IPAddresses) != 1 || leaf.IsCA {
		t.Errorf("addresses %v, names -want +got\n%s", leaf.IPAddresses, diff)
	}
	if len(data) != 3 {
		t.Errorf("the Secret has %d entries: the key of the authority must not be among them", len(data))
	}
}
