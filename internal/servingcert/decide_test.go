package servingcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func mustIssue(t *testing.T, now time.Time, names ...string) issued {
	t.Helper()
	made, err := issue(names, now)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// secretWith is the data of a Secret with a certificate from start.
func secretWith(t *testing.T, names ...string) map[string][]byte {
	t.Helper()
	return material{}.replaced(nil, mustIssue(t, start, names...))
}

// stagedAt is such a Secret with a successor of that time.
func stagedAt(t *testing.T, at time.Time, names ...string) map[string][]byte {
	t.Helper()
	data := secretWith(t, "a", "b")
	return read(data, at).staged(data, mustIssue(t, at, names...))
}

func damaged(data map[string][]byte, key string) map[string][]byte {
	return with(data, map[string][]byte{key: []byte("damaged")})
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const renewal = lifetime - renewBefore
	renewed := start.Add(renewal)
	good := secretWith(t, "a", "b")
	foreign := with(good, map[string][]byte{keyAuthorities: mustIssue(t, start, "a", "b").authority})
	swapped := with(good, map[string][]byte{keyPrivate: mustIssue(t, start, "a", "b").key})
	tests := map[string]struct {
		reason string
		data   map[string][]byte
		after  time.Duration
		want   decision
	}{
		"nothing":            {reason: "the first replica of a cluster", want: decision{action: replace, names: []string{"a", "b"}}},
		"good":               {data: good, want: decision{action: keep, wait: renewal}},
		"good for longer":    {data: good, after: 10 * day, want: decision{action: keep, wait: renewal - 10*day}},
		"clock behind":       {reason: "the certificate is valid a little earlier", data: good, after: -backdate, want: decision{action: keep, wait: renewal + backdate}},
		"clock far behind":   {reason: "the certificate would be refused", data: good, after: -backdate - time.Second, want: decision{action: replace, names: []string{"a", "b"}}},
		"no key":             {data: without(with(good, nil), keyPrivate), want: decision{action: replace, names: []string{"a", "b"}}},
		"damaged":            {data: damaged(good, keyCertificate), want: decision{action: replace, names: []string{"a", "b"}}},
		"no authority":       {data: damaged(good, keyAuthorities), want: decision{action: replace, names: []string{"a", "b"}}},
		"another authority":  {reason: "nobody would trust the certificate", data: foreign, want: decision{action: replace, names: []string{"a", "b"}}},
		"another key":        {data: swapped, want: decision{action: replace, names: []string{"a", "b"}}},
		"expired":            {reason: "the controller was off for long", data: good, after: lifetime + time.Second, want: decision{action: replace, names: []string{"a", "b"}}},
		"other names":        {reason: "replicas with the other URL go on", data: secretWith(t, "c"), want: decision{action: replace, names: []string{"a", "b", "c"}}},
		"more names":         {data: secretWith(t, "a", "b", "c"), want: decision{action: keep, wait: renewal}},
		"addresses":          {data: secretWith(t, "127.0.0.1", "::1"), want: decision{action: replace, names: []string{"127.0.0.1", "::1", "a", "b"}}},
		"near its end":       {data: good, after: renewal, want: decision{action: stage, names: []string{"a", "b"}}},
		"just staged":        {data: stagedAt(t, renewed, "a", "b"), after: renewal, want: decision{action: keep, wait: trustDelay}},
		"staged for a while": {data: stagedAt(t, renewed, "a", "b"), after: renewal + trustDelay - 1, want: decision{action: keep, wait: 1}},
		"trusted":            {data: stagedAt(t, renewed, "a", "b"), after: renewal + trustDelay, want: decision{action: promote}},
		"staged too early":   {reason: "a clock was wrong: the order of events stays", data: stagedAt(t, start.Add(day), "a", "b"), after: day, want: decision{action: keep, wait: renewal - day}},
		"staged for others":  {data: stagedAt(t, renewed, "c"), after: renewal, want: decision{action: stage, names: []string{"a", "b"}}},
		"damaged successor":  {data: damaged(stagedAt(t, renewed, "a", "b"), keyNextPrivate), after: renewal, want: decision{action: stage, names: []string{"a", "b"}}},
		"useless successor":  {reason: "it ends with the current one", data: stagedAt(t, start, "a", "b"), after: renewal, want: decision{action: stage, names: []string{"a", "b"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := start.Add(tt.after)
			got := decide(read(tt.data, now), []string{"b", "a"}, now)
			if (got.action == keep) != (got.reason == "") {
				t.Errorf("reason %q for action %d", got.reason, got.action)
			}
			got.reason = ""
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(decision{})); diff != "" {
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
	changes := map[action]int{}
	for now := start; now.Before(start.Add(3 * 365 * day)); {
		found := read(data, now)
		decision := decide(found, []string{"a"}, now)
		changes[decision.action]++
		if decision.action == keep {
			now = now.Add(decision.wait)
			continue
		}
		changed, err := change(decision, found, data, now)
		if err != nil {
			t.Fatal(err)
		}
		after := read(changed, now)
		if after.current == nil || found.current == nil {
			t.Fatalf("at %v there is nothing to serve", now)
		}
		for _, side := range []struct {
			trusted material
			served  material
		}{{found, after}, {after, found}} {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(side.trusted.bundle())
			options := x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: "a"}
			if _, err := side.served.current.Leaf.Verify(options); err != nil {
				t.Fatalf("action %d: %v", decision.action, err)
			}
		}
		if count := len(after.authorities); count > 3 {
			t.Errorf("%d authorities are trusted", count)
		}
		data = changed
	}
	if changes[replace] != 0 || changes[stage] < 15 || changes[promote] != changes[stage] {
		t.Errorf("actions %v", changes)
	}
}

// Names that change all the time do not fill the Secret.
func TestAuthoritiesAreBounded(t *testing.T) {
	t.Parallel()
	data := secretWith(t, "a")
	for i := range 20 {
		now := start.Add(time.Duration(i) * time.Minute)
		data = read(data, now).replaced(data, mustIssue(t, now, "a"))
		if read(data, now).current == nil {
			t.Fatal("the current authority was dropped")
		}
	}
	if got := len(read(data, start.Add(time.Hour)).authorities); got > maxAuthorities+1 {
		t.Errorf("%d authorities are trusted", got)
	}
}

func TestIssue(t *testing.T) {
	t.Parallel()
	data := secretWith(t, "b.svc", "a.svc", "10.0.0.1")
	pair := read(data, start).current
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

func TestNames(t *testing.T) {
	t.Parallel()
	for external, want := range map[string][]string{
		"https://catalogd-service.olmv1-system.svc":               {"catalogd-service.olmv1-system.svc", "catalogd-service.olmv1-system.svc.cluster.local"},
		"https://catalogd-service.olmv1-system.svc.cluster.local": {"catalogd-service.olmv1-system.svc", "catalogd-service.olmv1-system.svc.cluster.local"},
		"https://Catalogs.example.com:8443/x":                     {"catalogs.example.com"},
		"https://127.0.0.1:8443":                                  {"127.0.0.1"},
		"https://[::1]:8443":                                      {"::1"},
	} {
		parsed, err := url.Parse(external)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, Names(parsed)); diff != "" {
			t.Errorf("%s: -want +got\n%s", external, diff)
		}
	}
}
